//! What a kernel report says of a kill at a control group's limit.

use timeline::Entity::Cgroup;
use timeline::facts::CgroupMode;
use timeline::kernel_report::{GroupLimit, GroupReport};
use timeline::signals::CGROUP_CURRENT;
use units::{Bytes, Count, Ratio};

use super::{RULE, SLOWED_FIRST, before};
use crate::evidence::Evidence;
use crate::finding::Fix;
use crate::finding::{Affected, Finding, Severity};
use crate::oom::{self, Cause, Explained, Limit};
use crate::remedy::{self, Knob};
use crate::rule::Incident;
use crate::trigger::Occurrence;

fn is_at_a_limit(one: &Explained<'_>) -> bool {
    matches!(one.cause, Cause::GroupLimit(_))
}

/// Where the reports of groups at their limits are. One that names a group which the source does not have is about what was
/// counted at that time: its lines are missing, or it was written in another cgroup namespace.
pub(super) fn occurrences(cx: &Evidence<'_>, counted: &[Occurrence]) -> Vec<Occurrence> {
    let reports = oom::reports(cx).into_iter();
    let such = reports.filter(is_at_a_limit);
    such.map(|one| {
        let index = one.index;
        let known = one
            .group()
            .filter(|path| cx.timeline.entity(Cgroup, path).is_some());
        let mut counted = counted
            .iter()
            .filter(|it| it.first < index && index <= it.last);
        let counted = || counted.next().and_then(|it| it.key.as_deref());
        Occurrence {
            first: index,
            last: index,
            key: known.or_else(counted).or(one.group()).map(str::to_owned),
        }
    })
    .collect()
}

/// What the last report of an incident says; `None` where it has none.
pub(super) fn finding(cx: &Evidence<'_>, incident: &Incident<'_>) -> Option<Finding> {
    let mut reports = oom::within(cx, &incident.stretch, is_at_a_limit);
    let is_its = |one: &Explained<'_>| one.group() == incident.key;
    if reports.iter().any(is_its) {
        reports.retain(is_its);
    } else {
        // Of those that name a group which is known each has an incident of its own.
        reports.retain(|one| {
            one.group()
                .is_none_or(|it| cx.timeline.entity(Cgroup, it).is_none())
        });
    }
    let finding = tell(cx, reports.last()?);
    Some(oom::tell_all(cx, &incident.stretch, &reports, finding))
}

/// A group at its limit, as the finding speaks of it.
struct AtLimit<'a> {
    /// As printed, where it was.
    group: Option<&'a GroupReport>,
    /// Which limit.
    which: Limit,
    /// Its figures, where printed.
    limit: Option<GroupLimit>,
}

/// All but the report's lines.
fn tell(cx: &Evidence<'_>, one: &Explained<'_>) -> Finding {
    let group = one.report.group.as_ref();
    let which = match one.cause {
        Cause::GroupLimit(which) => which,
        _ => Limit::Memory,
    };
    let at_limit = AtLimit {
        group,
        which,
        limit: group
            .and_then(|group| match which {
                Limit::Memory => group.memory,
                Limit::MemoryAndSwap => group.memory_and_swap,
                Limit::Kernel => group.kernel,
            })
            .filter(GroupLimit::is_limited),
    };
    let finding = RULE.found(Severity::Critical, title(cx, one, &at_limit));
    let finding = charged(&at_limit, finding);
    // A kill that is not shown, and a limit that is not: each leaves something open.
    let (value, open) = match (&one.holders.victim, at_limit.limit) {
        (Some(_), Some(_)) => (0.98, ""),
        (Some(_), None) => (0.95, "the limit is not shown"),
        (None, _) => (0.85, "the kill itself is not shown"),
    };
    remedy(finding, &at_limit)
        .not(
            "oom-global",
            "a group's limit was hit; the report says nothing of the host's memory",
        )
        .verify(verify(at_limit.is_v1(), which))
        .affects(affected(&at_limit))
        .affects(oom::victim(one))
        .affects(one.holders.affected(4))
        .sure(oom::sure(one, value, open))
}

/// The counters that must stay: cgroup v1 has others.
pub(super) fn verify(is_v1: bool, which: Limit) -> &'static str {
    match (is_v1, which) {
        (false, _) => "oom_kill in the group's memory.events stays where it is over a work cycle",
        (true, Limit::Memory) => {
            "oom_kill in the group's memory.oom_control stays where it is over a work cycle (before kernel 4.13: memory.failcnt)"
        }
        (true, Limit::MemoryAndSwap) => {
            "oom_kill in the group's memory.oom_control stays where it is over a work cycle (before kernel 4.13: memory.memsw.failcnt)"
        }
        (true, Limit::Kernel) => {
            "the group's memory.kmem.failcnt stays where it is over a work cycle"
        }
    }
}

impl AtLimit<'_> {
    fn path(&self) -> Option<&str> {
        let path = self.group?.path.as_str();
        (!path.is_empty()).then_some(path)
    }

    /// A field of memory.stat, under its name in cgroup v2 or v1.
    fn stat(&self, names: [&str; 2]) -> Option<Bytes> {
        let stat = &self.group?.stat;
        let of = |name: &str| stat.iter().find(|(field, _)| field == name);
        names
            .iter()
            .find_map(|name| of(name))
            .map(|(_, bytes)| Bytes::new(*bytes))
    }

    /// Whether this is a part of the limit that deserves a word.
    fn is_much(&self, held: Bytes) -> bool {
        const QUARTER: Ratio = Ratio::from_percent(25.0);
        self.limit.is_some_and(|l| held >= l.limit.share(QUARTER))
    }

    /// The older interface has other limits and other names.
    fn is_v1(&self) -> bool {
        self.group.and_then(|group| group.mode) == Some(CgroupMode::V1)
    }

    fn shared(&self) -> Option<Bytes> {
        self.stat(["shmem", "total_shmem"])
            .filter(|held| self.is_much(*held))
    }

    fn kernel(&self) -> Option<Bytes> {
        let kernel = self.stat(["kernel", "slab_unreclaimable"]);
        kernel.filter(|held| self.is_much(*held))
    }
}

fn title(cx: &Evidence<'_>, one: &Explained<'_>, at_limit: &AtLimit<'_>) -> String {
    let group = at_limit.path().map_or_else(
        || "A control group".to_owned(),
        |path| format!("Control group {path}"),
    );
    let which = match at_limit.which {
        Limit::Memory => "memory limit",
        Limit::MemoryAndSwap => "limit of memory and swap together",
        Limit::Kernel => "kernel memory limit",
    };
    let of = at_limit
        .limit
        .map_or_else(String::new, |limit| format!(" of {}", limit.limit));
    let what = match (&one.holders.victim, at_limit.limit) {
        (Some(victim), _) => format!(
            ", and the kernel killed {}{}",
            victim.words(),
            oom::among(cx, one.report).trim_end_matches(',')
        ),
        (None, Some(limit)) if limit.failures > 0 => {
            format!(" ({} times so far)", Count::new(limit.failures))
        }
        (None, _) => String::new(),
    };
    let much = if let Some(held) = at_limit.shared() {
        format!("; {held} of it are shared memory and tmpfs")
    } else if let Some(held) = at_limit.kernel() {
        format!("; {held} of it are kernel memory")
    } else {
        String::new()
    };
    format!("{group} ran into its {which}{of}{what}{much}.")
}

/// What was charged to the group, line by line.
fn charged(at_limit: &AtLimit<'_>, mut finding: Finding) -> Finding {
    if let Some(limit) = at_limit.limit {
        let (usage, failures) = (limit.usage, Count::new(limit.failures));
        finding = finding.shows_from(
            CGROUP_CURRENT,
            usage,
            limit.limit,
            None,
            match failures {
                Count::ZERO => format!("{usage} of its limit of {} used", limit.limit),
                _ => format!(
                    "{usage} of its limit of {} used; the limit was hit {failures} times",
                    limit.limit
                ),
            },
        );
    }
    for (names, what) in [
        (["anon", "rss"], "anonymous memory of programs"),
        (["file", "cache"], "page cache, shared memory included"),
        (["shmem", "total_shmem"], "shared memory and tmpfs"),
        (["kernel", "slab"], "kernel memory"),
        (["pagetables", "page_tables"], "page tables"),
        (["sock", "sock"], "network buffers"),
    ] {
        const TWENTIETH: Ratio = Ratio::from_percent(5.0);
        let least = at_limit
            .limit
            .map_or(Bytes::from_mib(1), |l| l.limit.share(TWENTIETH));
        if let Some(held) = at_limit.stat(names).filter(|held| *held >= least) {
            finding = finding.tells(format!("in the group: {held} of {what}"));
        }
    }
    match at_limit.group.and_then(|group| group.swap) {
        Some(swap) if swap.limit == Bytes::ZERO => {
            finding.tells("the group may not use swap (limit 0)")
        }
        Some(swap) if swap.is_full() => finding.tells(format!(
            "its swap is used up too: {} of {}",
            swap.usage, swap.limit
        )),
        Some(swap) if swap.usage > Bytes::ZERO => {
            finding.tells(format!("{} of the group in swap", swap.usage))
        }
        _ => finding,
    }
}

fn affected(at_limit: &AtLimit<'_>) -> Vec<Affected> {
    let Some(group) = at_limit.group else {
        return Vec::new();
    };
    let one = |name: &str, what: String| Affected::new("cgroup", name, what);
    let mut affected = Vec::new();
    if let Some(path) = at_limit.path() {
        let limit = at_limit.limit.map_or_else(
            || "at its limit".to_owned(),
            |limit| format!("at its limit of {}", limit.limit),
        );
        affected.push(one(path, limit));
    }
    if !group.victim_path.is_empty() && group.victim_path != group.path {
        affected.push(one(&group.victim_path, "where the victim was".to_owned()));
    }
    affected
}

fn remedy(finding: Finding, at_limit: &AtLimit<'_>) -> Finding {
    let cause = if at_limit.shared().is_some() {
        "Shared memory and files in tmpfs (emptyDir in memory, /dev/shm) are charged to the group, and stay when a process is killed."
    } else if at_limit.kernel().is_some() || at_limit.which == Limit::Kernel {
        "Kernel memory that the group's programs cause (sockets, inodes, page tables) is charged to it and cannot be dropped."
    } else {
        "The programs of the group want more memory than its limit allows, and nothing in it can be reclaimed."
    };
    let path = at_limit.path().unwrap_or_default();
    let is_v1 = at_limit.is_v1();
    let finding = match path {
        "" => finding.fix(
            Fix::say("See which group it is.")
                .look("journalctl -k -b -g 'oom-kill:|Memory cgroup stats' --no-pager"),
        ),
        _ => finding,
    };
    // What is printed of another limit says nothing of the one that a command would set.
    let printed = at_limit
        .limit
        .filter(|_| at_limit.which == Limit::Memory && container(path).is_none());
    let raised = printed.map(|limit| remedy::more(limit.usage.max(limit.limit)));
    let commands = raised.zip(printed).map(|(raised, limit)| {
        let knob = if is_v1 { Knob::MaxV1 } else { Knob::Max };
        let from = units::Limit::Bytes(limit.limit);
        remedy::set_limit_of(path, knob, raised, Some(from))
    });
    let place =
        container(path).map_or_else(String::new, |place| format!(" It is kept in {place}."));
    let finding = finding.cause(cause).fix(commands.unwrap_or_default().told(format!(
        "Raise the limit to what the group needs (at least a quarter more), or make its programs smaller (heap, workers).{place}"
    )));
    if is_v1 || container(path).is_some() {
        return finding;
    }
    // A report does not print memory.high, so nothing takes it back.
    let slowed = raised.map(|raised| remedy::set_limit_of(path, Knob::High, before(raised), None));
    finding.fix(slowed.unwrap_or_default().told(SLOWED_FIRST))
}

/// Where the limit of a container is kept, by how its groups are called.
fn container(path: &str) -> Option<&'static str> {
    if path.contains("kubepods") {
        Some("the pod's resources.limits.memory")
    } else if path.contains("docker") {
        Some("docker update --memory and --memory-swap, or its compose file")
    } else if path.contains("lxc") {
        Some("the container's memory (pct set --memory, lxc config set limits.memory)")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oom::testing::Report;
    use crate::rules::swap_full;
    use crate::rules::testing::{Case, clear, found};

    #[test]
    fn a_kill_at_a_limit_names_group_limit_and_victim() {
        let case = Case::of_report(Report::of_a_group(102_400, 102_400));
        let finding = found(RULE, &case);
        assert_eq!(
            finding.title,
            "Control group /pods/web ran into its memory limit of 100 MiB, and the kernel killed worker (90 MiB resident)."
        );
        assert!(
            finding.fixes[0].now.contains("echo 125M >"),
            "{:?}",
            finding.fixes
        );
        clear(swap_full::RULE, &case);
    }

    #[test]
    fn a_limit_without_the_line_of_a_kill_is_probable() {
        let mut report = Report::of_a_group(262_144, 262_144);
        report.0.killed.clear();
        report.0.tasks.clear();
        if let Some(group) = &mut report.0.group {
            group.path.clear();
        }
        let finding = found(RULE, &Case::of_report(report));
        assert_eq!(
            finding.title,
            "A control group ran into its memory limit of 256 MiB (12 times so far)."
        );
        assert_eq!(finding.confidence.word(), "probable");
    }

    #[test]
    fn files_in_memory_are_named() {
        let mut report = Report::of_a_group(102_400, 102_400);
        if let Some(group) = &mut report.0.group {
            group.stat = vec![("shmem".to_owned(), Bytes::from_mib(70).get())];
        }
        let finding = found(RULE, &Case::of_report(report));
        assert!(
            finding.title.contains("70 MiB of it are shared"),
            "{}",
            finding.title
        );
    }

    #[test]
    fn what_to_watch_is_a_file_that_the_groups_version_has() {
        let verify = |report| found(RULE, &Case::of_report(report)).verify;
        let v2 = Report::of_a_group(102_400, 102_400);
        assert!(verify(v2).contains("memory.events"));
        let mut v1 = Report::of_a_group(102_400, 102_400);
        if let Some(group) = &mut v1.0.group {
            group.mode = Some(CgroupMode::V1);
        }
        assert!(verify(v1).contains("memory.oom_control"));
    }

    #[test]
    fn a_kill_of_the_host_is_not_a_limits() {
        clear(RULE, &Case::of_report(Report::of_a_host()));
    }
}
