//! Facts that differ: tunables, kernel, RAM, swap, processors, cgroups, NUMA.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Serialize;
use timeline::facts::{
    self, ADMIN_RESERVE, CgroupMode, KERNEL_CMDLINE, KERNEL_VERSION, MIN_FREE, USER_RESERVE,
};
use timeline::signals::{CGROUP_HIGH, CGROUP_MAX, MEM_TOTAL, SWAP_TOTAL};
use timeline::{Entity, EntitySeries, Fact, Gauge, Signal};
use units::{Bytes, Count, Limit, PageSize, Quantity, Span, Unit as _};

use crate::evidence::Evidence;

/// The name of the fact for RAM.
pub(super) const RAM: &str = "ram";
/// The name of the fact for the size of all swap areas.
pub(super) const SWAP: &str = "swap";

/// A fact that is not the same on both sides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "FactEntry")]
pub struct FactChange {
    /// Its dotted name, or `ram`, `swap`, `kernel`, `cpus`, `cgroup`, …, or `limit of /web` and `memory.high of /web`.
    pub name: Cow<'static, str>,
    /// Its value before; null where that source lacks it, which is no change.
    pub before: Option<String>,
    /// Its value after.
    pub after: Option<String>,
    /// Whether it explains what changed.
    pub explains: bool,
}

impl FactChange {
    /// Whether both sides have it: if not, it is not a difference, one source only knows more.
    pub fn differs(&self) -> bool {
        self.before.is_some() && self.after.is_some()
    }
}

/// MemTotal varies by up to this share with the kernel's build and with memory that firmware keeps.
const SAME_RAM: f64 = 0.02;

/// Facts that differ, or that one side lacks: the machine first, then tunables in the catalogue's order.
pub(super) fn compare(before: &Evidence<'_>, after: &Evidence<'_>) -> Vec<FactChange> {
    let (old, new) = (machine(before), machine(after));
    let mut changes: Vec<FactChange> = old
        .into_iter()
        .zip(new)
        .filter_map(|((name, before), (_, after))| changed(name, before, after))
        .collect();
    if same_ram(before, after) {
        changes.retain(|change| change.name != RAM);
    }
    changes.extend(cmdline(before, after));
    for fact in facts::ALL {
        if [KERNEL_CMDLINE, KERNEL_VERSION].contains(fact) {
            continue;
        }
        let text = |cx: &Evidence<'_>| {
            let chosen = cx.facts.choice(*fact).or_else(|| cx.facts.text(*fact))?;
            // Columns of a file are separated by tabs.
            Some(chosen.split_whitespace().collect::<Vec<_>>().join(" "))
        };
        if !follows(*fact, before, after) {
            changes.extend(changed(fact.name, text(before), text(after)));
        }
    }
    changes
}

/// Whether the kernel derives the setting from RAM at boot, which is never quite the same, and both values are so
/// derived.
fn follows(fact: Fact, before: &Evidence<'_>, after: &Evidence<'_>) -> bool {
    let numbers = before.facts.number(fact).zip(after.facts.number(fact));
    let from_ram = [MIN_FREE, USER_RESERVE, ADMIN_RESERVE].contains(&fact);
    from_ram
        && numbers.is_some_and(|(old, new)| {
            let (old, new) = (Count::new(old).as_f64(), Count::new(new).as_f64());
            (old - new).abs() <= SAME_RAM * old.max(new)
        })
}

fn changed(
    name: impl Into<Cow<'static, str>>,
    before: Option<String>,
    after: Option<String>,
) -> Option<FactChange> {
    (before != after).then(|| FactChange { name: name.into(), before, after, explains: false })
}

/// A limit of a cgroup, and its name in sentences.
const LIMITS: [(Signal<Gauge<Limit>>, &str); 2] =
    [(CGROUP_MAX, "limit"), (CGROUP_HIGH, "memory.high")];
/// At most this many limits that differ are named: two hosts may run thousands of the same cgroups with other limits.
const LIMITS_MAX: usize = 20;

/// The names of a cgroup's limits among the facts.
pub(super) fn limit_names(key: &str) -> impl Iterator<Item = String> {
    LIMITS.into_iter().map(move |(_, name)| format!("{name} of {key}"))
}

/// Limits of cgroups that both sides have and that differ; those of the cgroups `first` come first.
pub(super) fn limits(
    before: &Evidence<'_>,
    after: &Evidence<'_>,
    first: &BTreeSet<&str>,
) -> Vec<FactChange> {
    let mut all: Vec<(bool, FactChange)> = Vec::new();
    for old in before.timeline.entities(Entity::Cgroup) {
        let Some(new) = after.timeline.entity(Entity::Cgroup, &old.key) else {
            continue;
        };
        for (limit, name) in LIMITS {
            let both = usual(before, old, limit).zip(usual(after, new, limit));
            let words = both.map(|both| [both.0, both.1].map(in_words));
            let change = words.and_then(|[before, after]| {
                changed(format!("{name} of {}", old.key), Some(before), Some(after))
            });
            let is_later = !first.contains(old.key.as_str());
            all.extend(change.map(|change| (is_later, change)));
        }
    }
    all.sort_by_key(|(is_later, _)| *is_later);
    all.truncate(LIMITS_MAX);
    all.into_iter().map(|(_, change)| change).collect()
}

/// Whether a limit of a cgroup was lower on one side for most of the time than on the other.
pub(super) fn is_tighter(poor: &Evidence<'_>, rich: &Evidence<'_>, key: &str) -> bool {
    let group =
        |cx: &Evidence<'_>, limit| usual(cx, cx.timeline.entity(Entity::Cgroup, key)?, limit);
    LIMITS.iter().any(|(limit, _)| {
        let both = group(poor, *limit).zip(group(rich, *limit));
        both.is_some_and(|(poor, rich)| match (poor, rich) {
            (Limit::Bytes(poor), Limit::Bytes(rich)) => poor < rich,
            (poor, rich) => poor != Limit::Unlimited && rich == Limit::Unlimited,
        })
    })
}

fn in_words(limit: Limit) -> String {
    limit.limited().map_or_else(|| "none".to_owned(), |limit| limit.to_string())
}

/// The limit that a cgroup had for most of the time.
fn usual(cx: &Evidence<'_>, group: &EntitySeries, limit: Signal<Gauge<Limit>>) -> Option<Limit> {
    let (_, runs) = group.runs().find(|(found, _)| *found == limit.id())?;
    let times = cx.timeline.times();
    let mut held: BTreeMap<u64, (Span, usize)> = BTreeMap::new();
    for (at, run) in runs.iter().enumerate() {
        let until = runs.get(at + 1).map_or(run.last(), |next| next.first());
        let lasted = times.get(until)?.saturating_sub(*times.get(run.first())?);
        let known = held.entry(run.value).or_insert((Span::ZERO, at));
        *known = (known.0.plus(lasted), at);
    }
    // Of equal ones the last.
    let (value, _) = held.into_iter().max_by_key(|(_, held)| *held)?;
    Some(Limit::from_raw(value))
}

/// Whether the hosts have the same amount of RAM, as far as is known.
pub(super) fn same_ram(before: &Evidence<'_>, after: &Evidence<'_>) -> bool {
    let (Ok(old), Ok(new)) = (before.ram(), after.ram()) else {
        return true;
    };
    let (old, new) = (old.as_f64(), new.as_f64());
    (old - new).abs() <= SAME_RAM * old.max(new)
}

/// The facts about the machine.
fn machine(cx: &Evidence<'_>) -> [(&'static str, Option<String>); 9] {
    let facts = cx.facts;
    let size = |bytes: Option<Bytes>| {
        bytes.map(|bytes| match bytes {
            Bytes::ZERO => "none".to_owned(),
            bytes => bytes.to_string(),
        })
    };
    let page = facts.page_size.map(PageSize::bytes);
    [
        ("host", facts.hostname.clone()),
        ("kernel", facts.kernel_release().map(str::to_owned)),
        (RAM, size(cx.timeline.last(MEM_TOTAL))),
        (SWAP, size(cx.timeline.last(SWAP_TOTAL))),
        ("cpus", facts.cpus.map(|n| Count::new(n.into()).to_string())),
        ("page size", size(page)),
        ("NUMA nodes", nodes(cx)),
        ("cgroup", facts.cgroup_mode.map(hierarchy)),
        ("container", Some(container(cx))),
    ]
}

fn hierarchy(mode: CgroupMode) -> String {
    match mode {
        CgroupMode::V1 => "v1".to_owned(),
        CgroupMode::V2 => "v2".to_owned(),
    }
}

fn container(cx: &Evidence<'_>) -> String {
    let container = cx.facts.container.as_ref();
    container.map_or_else(|| "no".to_owned(), |container| container.signs.join(", "))
}

/// The NUMA nodes: `2, distance 21`.
fn nodes(cx: &Evidence<'_>) -> Option<String> {
    let nodes = &cx.facts.nodes;
    if nodes.is_empty() {
        return None;
    }
    let farthest = nodes.iter().flat_map(|node| &node.distances).max();
    let count = Count::new(nodes.len() as u64);
    Some(match farthest.filter(|_| nodes.len() > 1) {
        Some(distance) => format!("{count}, distance {distance}"),
        None => count.to_string(),
    })
}

/// The boot parameters that only one side has.
fn cmdline(before: &Evidence<'_>, after: &Evidence<'_>) -> Option<FactChange> {
    let words = |cx: &Evidence<'_>| {
        let text = cx.facts.text(KERNEL_CMDLINE)?.to_owned();
        Some(text)
    };
    let (old, new) = (words(before), words(after));
    let own = |mine: &Option<String>, other: &Option<String>| {
        let mine = mine.as_ref()?;
        let theirs: BTreeSet<&str> = other.iter().flat_map(|t| t.split_whitespace()).collect();
        let own = mine.split_whitespace().filter(|w| !theirs.contains(w));
        let own = own.collect::<Vec<_>>().join(" ");
        Some(if other.is_some() && own.is_empty() { "-".to_owned() } else { own })
    };
    changed(KERNEL_CMDLINE.name, own(&old, &new), own(&new, &old))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::Case;
    use timeline::facts::{SWAPPINESS, THP_ENABLED};

    fn compared(
        before: &Case,
        after: &Case,
    ) -> Vec<(Cow<'static, str>, Option<String>, Option<String>)> {
        let changes = before.with(|before| after.with(|after| compare(before, after)));
        changes.into_iter().map(|c| (c.name, c.before, c.after)).collect()
    }

    fn some(text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    #[test]
    fn a_setting_differs_by_its_chosen_word() {
        let before = Case::once().fact(THP_ENABLED, "[always] madvise never");
        let after = Case::once().fact(THP_ENABLED, "always madvise [never]");
        let expected = [("thp.enabled".into(), some("always"), some("never"))];
        assert_eq!(compared(&before, &after), expected);
    }

    #[test]
    fn what_one_side_does_not_tell_is_no_change() {
        let before = Case::once().fact(SWAPPINESS, "60");
        let changes = before.with(|b| Case::once().with(|a| compare(b, a)));
        assert_eq!(changes.len(), 1);
        assert!(!changes[0].differs());
    }

    #[test]
    fn of_boot_parameters_only_what_differs_is_told() {
        let before = Case::once().fact(KERNEL_CMDLINE, "root=/dev/vda quiet psi=1");
        let after = Case::once().fact(KERNEL_CMDLINE, "root=/dev/vda quiet");
        let expected = [("kernel.cmdline".into(), some("psi=1"), some("-"))];
        assert_eq!(compared(&before, &after), expected);
    }

    #[test]
    fn a_few_pages_of_firmware_are_the_same_ram() {
        let host = |mib: u64| Case::once().gauge(MEM_TOTAL, Bytes::from_mib(mib));
        assert_eq!(compared(&host(973), &host(974)), []);
        assert_eq!(compared(&host(470), &host(974)).len(), 1);
    }
}
