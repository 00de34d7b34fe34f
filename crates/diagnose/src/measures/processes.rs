//! Owners of memory: processes grouped by name, largest first; and processes that had memory and are gone.

use std::collections::BTreeMap;

use timeline::{
    Entity, EntitySeries,
    signals::{PROC_OOM_ADJ, PROC_PSS, PROC_RSS, PROC_RSS_ANON, PROC_SWAP},
};
use units::{Bytes, Count, Ratio};

use crate::evidence::Evidence;
use crate::finding::Affected;
use crate::measures::cgroups;

/// Memory of the processes of one name.
#[derive(Debug, Clone, Default)]
struct ProgramGroup {
    processes: u64,
    held: Bytes,
    swapped: Bytes,
    /// Whether pages that several of them share were counted for each.
    counts_shared: bool,
}

/// An owner of less than this share of RAM is not named beside those that fill it: an engineering choice.
const OWNER_SHARE_MIN: Ratio = Ratio::from_percent(0.5);

fn worth_naming(cx: &Evidence<'_>) -> Bytes {
    cx.ram().map_or(Bytes::ZERO, worth_naming_in)
}

/// What a process must have to be named beside those that fill this much memory.
pub(crate) fn worth_naming_in(capacity: Bytes) -> Bytes {
    capacity.share(OWNER_SHARE_MIN)
}

/// Whether a process is a recorder that made itself unkillable: such a process does not fill memory.
pub(crate) fn is_recorder(cx: &Evidence<'_>, process: &EntitySeries) -> bool {
    cx.timeline.last_of(process, PROC_OOM_ADJ) == Some(Count::ZERO)
}

/// Returns the three processes with the largest amounts of something, and the amounts.
pub(crate) fn holding<'a>(
    cx: &Evidence<'a>,
    held: impl Fn(&'a EntitySeries) -> Option<Bytes>,
    what: &str,
) -> Vec<Affected> {
    let processes = cx.timeline.entities(Entity::Process);
    let holders = processes.filter_map(|process| Some((process, held(process)?)));
    let mut holders: Vec<_> = holders.filter(|(_, held)| *held > Bytes::ZERO).collect();
    holders.sort_by_key(|(_, held)| std::cmp::Reverse(*held));
    let most = holders.into_iter().take(3);
    most.map(|(process, held)| Affected::new("process", &process.label, format!("{held} {what}")))
        .collect()
}

/// Returns programs around a sample, the largest first. `held` measures one process; `together` combines processes of
/// one name.
pub(crate) fn programs<'a>(
    cx: &Evidence<'a>,
    index: usize,
    held: impl Fn(&EntitySeries, usize) -> Option<Bytes>,
    together: impl Fn(Bytes, Bytes) -> Bytes,
) -> Vec<(&'a str, Bytes)> {
    let Some(index) = cx.rows_at(Entity::Process, index) else {
        return Vec::new();
    };
    let mut programs: BTreeMap<&str, Bytes> = BTreeMap::new();
    for process in cx.timeline.entities(Entity::Process) {
        if let Some(held) = held(process, index) {
            let all = programs.entry(&process.label).or_default();
            *all = together(*all, held);
        }
    }
    let mut programs: Vec<_> = programs.into_iter().collect();
    programs.sort_by_key(|(_, held)| std::cmp::Reverse(*held));
    programs
}

/// Returns the largest groups of processes around sample `index`, by anonymous memory and swap. Where the source does not
/// separate anonymous memory, by PSS, which counts a shared page once in all; else by RSS, which sums up to an upper bound.
pub(crate) fn largest(cx: &Evidence<'_>, index: usize, most: usize) -> Vec<Affected> {
    largest_of(cx, index, most, |_| true, worth_naming(cx))
}

/// The same among some processes; those that have no more than `least` are not named.
pub(crate) fn largest_of(
    cx: &Evidence<'_>,
    index: usize,
    most: usize,
    is_asked: impl Fn(&EntitySeries) -> bool,
    least: Bytes,
) -> Vec<Affected> {
    let mut groups: BTreeMap<&str, ProgramGroup> = BTreeMap::new();
    let Some(index) = cx.rows_at(Entity::Process, index) else {
        return Vec::new();
    };
    for process in cx.timeline.entities(Entity::Process) {
        if is_recorder(cx, process) || !is_asked(process) {
            continue;
        }
        let anon = cx.timeline.at_of(process, PROC_RSS_ANON, index);
        let own = anon.or_else(|| cx.timeline.at_of(process, PROC_PSS, index));
        let rss = || {
            let pages = cx.timeline.at_of(process, PROC_RSS, index)?;
            Some(pages.to_bytes(cx.facts.page_size?))
        };
        let Some(held) = own.or_else(rss) else {
            continue;
        };
        let group = groups.entry(&process.label).or_default();
        group.counts_shared |= own.is_none();
        group.processes += 1;
        group.held += held;
        group.swapped += cx.timeline.at_of(process, PROC_SWAP, index).unwrap_or_default();
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    // Kernel threads have no memory of this kind, and very small owners are no suspects.
    groups.retain(|(_, g)| g.held + g.swapped > least);
    groups.sort_by_key(|(_, g)| std::cmp::Reverse(g.held + g.swapped));
    groups
        .into_iter()
        .take(most)
        .map(|(name, group)| Affected {
            kind: "process",
            name: name.to_owned(),
            what: group.describe(),
        })
        .collect()
}

/// Returns the largest services and scopes around sample `index`, by all memory charged to them.
pub(crate) fn largest_units(cx: &Evidence<'_>, index: usize, most: usize) -> Vec<Affected> {
    let least = worth_naming(cx);
    let mut units: Vec<_> =
        cgroups::units(cx, index).filter(|(_, _, held)| *held > least).collect();
    units.sort_by_key(|(_, _, held)| std::cmp::Reverse(*held));
    let largest = units.into_iter().take(most);
    largest
        .map(|(group, _, held)| Affected {
            kind: "cgroup",
            name: group.label.clone(),
            what: format!("{held}, its cache included"),
        })
        .collect()
}

/// Returns the largest process that existed in the last reading of processes before `index` and is gone in the next
/// one, with its memory in RAM and swap. After a kill it is most likely the victim.
pub(crate) fn gone<'a>(cx: &Evidence<'a>, index: usize) -> Option<(&'a EntitySeries, Bytes)> {
    let before = cx.rows_at(Entity::Process, index.checked_sub(1)?)?;
    let index = cx.rows_from(Entity::Process, index)?;
    cx.timeline
        .entities(Entity::Process)
        .filter_map(|process| {
            let held = cx.timeline.at_of(process, PROC_RSS_ANON, before)?;
            let swapped = cx.timeline.at_of(process, PROC_SWAP, before);
            let stays = cx.timeline.at_of(process, PROC_RSS_ANON, index).is_some();
            (!stays).then(|| (process, held + swapped.unwrap_or_default()))
        })
        .max_by_key(|(_, held)| *held)
}

impl ProgramGroup {
    fn describe(&self) -> String {
        let processes = match self.processes {
            1 => String::new(),
            n => format!("{} processes: ", Count::new(n)),
        };
        let swapped = if self.swapped > Bytes::ZERO {
            format!(", {} in swap", self.swapped)
        } else {
            String::new()
        };
        let (bound, shared) = if self.counts_shared && self.processes > 1 {
            ("at most ", ", shared pages counted each time")
        } else {
            ("", "")
        };
        format!("{processes}{bound}{} in RAM{shared}{swapped}", self.held)
    }
}

#[cfg(test)]
mod tests {
    use timeline::{Facts, Sample, Timeline};
    use units::{PageSize, Pages, Span};

    use super::*;

    /// Three workers with 44 MiB each, of which 33 are shared by all.
    fn workers(has_pss: bool) -> String {
        let mut sample = Sample::at(Span::ZERO);
        for pid in 1..=3 {
            let worker = sample.table_mut(Entity::Process).add();
            worker.key = format!("{pid}@0");
            "postgres".clone_into(&mut worker.label);
            worker.row.set(PROC_RSS, Pages::new(44 * 256));
            if has_pss {
                worker.row.set(PROC_PSS, Bytes::from_mib(22));
            }
        }
        let mut timeline = Timeline::default();
        timeline.push(&sample).unwrap();
        let mut facts = Facts::default();
        facts.page_size = Some(PageSize::USUAL);
        largest(&Evidence::new(&timeline, &facts), 0, 1).remove(0).what
    }

    #[test]
    fn shared_pages_are_added_up_once_or_the_sum_is_an_upper_bound() {
        assert_eq!(workers(true), "3 processes: 66 MiB in RAM");
        assert_eq!(
            workers(false),
            "3 processes: at most 132 MiB in RAM, shared pages counted each time"
        );
    }
}
