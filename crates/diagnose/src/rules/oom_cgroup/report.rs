//! A kernel report of a kill at a cgroup limit.

use timeline::Entity::Cgroup;
use timeline::facts::CgroupMode;
use timeline::kernel_report::{GroupLimit, GroupReport};
use timeline::signals::{CGROUP_CURRENT, MEM_AVAILABLE};
use units::{Bytes, Count, Ratio};

use super::{RULE, THROTTLE_FIRST};
use crate::evidence::Evidence;
use crate::finding::Fix;
use crate::finding::LimitFile;
use crate::finding::{Affected, Finding, Severity, capital};
use crate::oom::{self, Explained, LimitHit, OomCause};
use crate::remedy;
use crate::rule::Incident;
use crate::trigger::Occurrence;

fn is_at_a_limit(explained: &Explained<'_>) -> bool {
    matches!(explained.cause, OomCause::GroupLimit(_))
}

fn is_known(cx: &Evidence<'_>, path: &str) -> bool {
    cx.timeline.entity(Cgroup, path).is_some()
}

/// The reports of cgroups at their limits. A report of a cgroup that the source does not have belongs to the kill that
/// was counted at that time: its lines are missing, or it was written in another cgroup namespace.
pub(super) fn occurrences(cx: &Evidence<'_>, counted: &[Occurrence]) -> Vec<Occurrence> {
    let reports = oom::reports(cx).into_iter();
    reports
        .filter(is_at_a_limit)
        .map(|explained| {
            let index = explained.index;
            let reported = explained.group();
            let counted_at_that_time = || {
                let kill = counted.iter().find(|kill| kill.first < index && index <= kill.last)?;
                kill.key.as_deref()
            };
            Occurrence {
                first: index,
                last: index,
                key: reported
                    .filter(|path| is_known(cx, path))
                    .or_else(counted_at_that_time)
                    .or(reported)
                    .map(str::to_owned),
            }
        })
        .collect()
}

/// The finding of the last report of an incident; `None` without a report.
pub(super) fn finding(cx: &Evidence<'_>, incident: &Incident<'_>) -> Option<Finding> {
    let mut reports = oom::within(cx, &incident.stretch, is_at_a_limit);
    let is_of_incident = |explained: &Explained<'_>| explained.group() == incident.key;
    if reports.iter().any(is_of_incident) {
        reports.retain(is_of_incident);
    } else {
        // Reports of known cgroups have incidents of their own.
        reports.retain(|explained| explained.group().is_none_or(|path| !is_known(cx, path)));
    }
    let finding = described(cx, reports.last()?);
    Some(oom::tell_all(cx, &incident.stretch, &reports, finding))
}

/// The last report of a kill in its cgroup.
fn of_kill<'a>(cx: &Evidence<'a>, kill: &Occurrence) -> Option<&'a GroupReport> {
    let reports = oom::reports(cx).into_iter().filter(is_at_a_limit);
    let mut of_kill = reports.filter(|one| {
        (kill.first..=kill.last).contains(&one.index) && one.group() == kill.key.as_deref()
    });
    of_kill.next_back()?.report.group.as_ref()
}

/// The memory limit in the report of a kill.
pub(super) fn limit_at(cx: &Evidence<'_>, kill: &Occurrence) -> Option<Bytes> {
    of_kill(cx, kill)?.memory.filter(GroupLimit::is_limited).map(|limit| limit.limit)
}

/// Shared memory and tmpfs in the report of a kill.
pub(super) fn shared_at(cx: &Evidence<'_>, kill: &Occurrence) -> Option<Bytes> {
    stat(of_kill(cx, kill)?, SHARED)
}

/// Shared memory and tmpfs in memory.stat.
const SHARED: [&str; 2] = ["shmem", "total_shmem"];

/// A field of memory.stat, under its name in cgroup v2 or v1.
fn stat(group: &GroupReport, names: [&str; 2]) -> Option<Bytes> {
    let fields = &group.stat;
    names
        .iter()
        .find_map(|name| fields.iter().find(|(field, _)| field == name))
        .map(|(_, bytes)| Bytes::new(*bytes))
}

/// The figures of a cgroup at its limit.
struct AtLimit<'a> {
    /// The cgroup's figures in the report.
    group: Option<&'a GroupReport>,
    which: LimitHit,
    /// The figures of the limit that was hit, if printed.
    limit: Option<GroupLimit>,
}

/// The finding without the report's lines.
fn described(cx: &Evidence<'_>, one: &Explained<'_>) -> Finding {
    let group = one.report.group.as_ref();
    let which = match one.cause {
        OomCause::GroupLimit(which) => which,
        _ => LimitHit::Memory,
    };
    let at_limit = AtLimit {
        group,
        which,
        limit: group
            .and_then(|group| match which {
                LimitHit::Memory => group.memory,
                LimitHit::MemoryAndSwap => group.memory_and_swap,
                LimitHit::Kernel => group.kernel,
            })
            .filter(GroupLimit::is_limited),
    };
    let finding = RULE.found(Severity::Critical, title(cx, one, &at_limit));
    let finding = show_charges(&at_limit, finding);
    let (value, open) = match (&one.holders.victim, at_limit.limit) {
        (Some(_), Some(_)) => (0.98, ""),
        (Some(_), None) => (0.95, "the report does not show the limit"),
        (None, _) => (0.85, "the report does not show the kill"),
    };
    remedy(cx, finding, &at_limit, cx.level(MEM_AVAILABLE, one.index))
        .not(
            "oom-global",
            "a cgroup limit was hit; the report says nothing about the host's memory",
        )
        .verify(verify(at_limit.is_v1(), which))
        .affects(affected(&at_limit))
        .affects(oom::victim(one))
        .affects(one.holders.affected(4))
        .sure(oom::sure(one, value, open))
}

/// The counters that must not rise; cgroup v1 has different ones.
pub(super) fn verify(is_v1: bool, which: LimitHit) -> &'static str {
    match (is_v1, which) {
        (false, _) => "oom_kill in the cgroup's memory.events does not rise over a work cycle",
        (true, LimitHit::Memory) => {
            "oom_kill in the cgroup's memory.oom_control does not rise over a work cycle (before \
             kernel 4.13: memory.failcnt)"
        }
        (true, LimitHit::MemoryAndSwap) => {
            "oom_kill in the cgroup's memory.oom_control does not rise over a work cycle (before \
             kernel 4.13: memory.memsw.failcnt)"
        }
        (true, LimitHit::Kernel) => {
            "the cgroup's memory.kmem.failcnt does not rise over a work cycle"
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
        stat(self.group?, names)
    }

    /// Whether this part of the charged memory belongs in the title.
    fn is_much(&self, part: Bytes) -> bool {
        const QUARTER: Ratio = Ratio::from_percent(25.0);
        self.limit.is_some_and(|l| part >= l.limit.share(QUARTER))
    }

    /// Whether the report is of cgroup v1, which has other limits and other names.
    fn is_v1(&self) -> bool {
        self.group.and_then(|group| group.mode) == Some(CgroupMode::V1)
    }

    fn shared(&self) -> Option<Bytes> {
        self.stat(SHARED).filter(|shared| self.is_much(*shared))
    }

    /// Pages of files that wait to be written, where they are a quarter of the limit or more.
    fn unwritten(&self) -> Option<Bytes> {
        let dirty = self.stat(["file_dirty", "dirty"]).unwrap_or_default();
        let writeback = self.stat(["file_writeback", "writeback"]).unwrap_or_default();
        Some(dirty + writeback).filter(|unwritten| self.is_much(*unwritten))
    }

    fn kernel(&self) -> Option<Bytes> {
        self.stat(["kernel", "slab_unreclaimable"]).filter(|kernel| self.is_much(*kernel))
    }
}

fn title(cx: &Evidence<'_>, one: &Explained<'_>, at_limit: &AtLimit<'_>) -> String {
    let group = at_limit
        .path()
        .map_or_else(|| "A cgroup".to_owned(), |path| capital(&cx.facts.names.called(path)));
    let which = match at_limit.which {
        LimitHit::Memory => "memory limit",
        LimitHit::MemoryAndSwap => "limit of memory and swap together",
        LimitHit::Kernel => "kernel memory limit",
    };
    let of = at_limit.limit.map_or_else(String::new, |limit| format!(" of {}", limit.limit));
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
    let mostly = if let Some(shared) = at_limit.shared() {
        format!("; {shared} of it is shared memory and tmpfs")
    } else if let Some(kernel) = at_limit.kernel() {
        format!("; {kernel} of it is kernel memory")
    } else if let Some(unwritten) = at_limit.unwritten() {
        format!("; {unwritten} of it is page cache that was not written to the disk yet")
    } else {
        String::new()
    };
    format!("{group} hit its {which}{of}{what}{mostly}.")
}

/// Adds the memory charged to the cgroup.
fn show_charges(at_limit: &AtLimit<'_>, mut finding: Finding) -> Finding {
    if let Some(GroupLimit { usage, limit, failures, .. }) = at_limit.limit {
        let hits = match Count::new(failures) {
            Count::ZERO => String::new(),
            hits => format!("; limit hits so far: {hits}"),
        };
        let text = format!("{usage} of its limit of {limit} used{hits}");
        // A kill of a process that was dying already, or a larger request, leaves less.
        finding = if usage >= limit {
            finding.shows_from(CGROUP_CURRENT, usage, limit, None, text)
        } else {
            finding.shows(CGROUP_CURRENT, usage, None, text)
        };
    }
    for (names, what) in [
        (["anon", "rss"], "anonymous memory of programs"),
        (["unevictable", "total_unevictable"], "locked memory (mlock), which is never swapped"),
        (["file", "cache"], "page cache, shared memory included"),
        (SHARED, "shared memory and tmpfs"),
        (["kernel", "slab"], "kernel memory"),
        (["pagetables", "page_tables"], "page tables"),
        (["sock", "sock"], "network buffers"),
    ] {
        const TWENTIETH: Ratio = Ratio::from_percent(5.0);
        let least = at_limit.limit.map_or(Bytes::from_mib(1), |l| l.limit.share(TWENTIETH));
        if let Some(bytes) = at_limit.stat(names).filter(|bytes| *bytes >= least) {
            finding = finding.with_line(format!("in the cgroup: {bytes} of {what}"));
        }
    }
    match at_limit.group.and_then(|group| group.swap) {
        Some(swap) if swap.limit == Bytes::ZERO => {
            finding.with_line("the cgroup cannot use swap (limit 0)")
        }
        Some(swap) if swap.is_full() => {
            finding.with_line(format!("its swap is used up too: {} of {}", swap.usage, swap.limit))
        }
        Some(swap) if swap.usage > Bytes::ZERO => {
            finding.with_line(format!("{} of the cgroup in swap", swap.usage))
        }
        _ => finding,
    }
}

fn affected(at_limit: &AtLimit<'_>) -> Vec<Affected> {
    let Some(group) = at_limit.group else {
        return Vec::new();
    };
    let cgroup = |name: &str, what: String| Affected::new("cgroup", name, what);
    let mut affected = Vec::new();
    if let Some(path) = at_limit.path() {
        let limit = at_limit.limit.map_or_else(
            || "at its limit".to_owned(),
            |limit| format!("at its limit of {}", limit.limit),
        );
        affected.push(cgroup(path, limit));
    }
    if !group.victim_path.is_empty() && group.victim_path != group.path {
        affected.push(cgroup(&group.victim_path, "the victim's cgroup".to_owned()));
    }
    affected
}

fn remedy(
    cx: &Evidence<'_>,
    finding: Finding,
    at_limit: &AtLimit<'_>,
    available: Option<Bytes>,
) -> Finding {
    let cause = if at_limit.shared().is_some() {
        "Shared memory and files in tmpfs (emptyDir in memory, /dev/shm) are charged to the \
         cgroup, and stay when a process is killed."
    } else if at_limit.kernel().is_some() || at_limit.which == LimitHit::Kernel {
        "Kernel memory of the cgroup's programs (sockets, inodes, page tables) is charged to it \
         and cannot be reclaimed."
    } else if at_limit.unwritten().is_some() {
        "The cgroup is full of dirty page cache: its programs write faster than the disk takes it, \
         and dirty pages cannot be dropped. They do not need more memory as such."
    } else {
        "The programs of the cgroup need more memory than its limit allows, and nothing in it can \
         be reclaimed."
    };
    let path = at_limit.path().unwrap_or_default();
    let is_v1 = at_limit.is_v1();
    let finding = finding.when(path.is_empty(), |finding| {
        finding.fix(
            Fix::say("Find out which cgroup it is.")
                .inspect("journalctl -k -b -g 'oom-kill:|Memory cgroup stats' --no-pager"),
        )
    });
    // A container sees neither the host's paths nor its limits.
    let is_inside = cx.facts.container.is_some() && remedy::set_elsewhere(path).is_none();
    let is_elsewhere = is_inside || remedy::set_elsewhere(path).is_some();
    // The commands set memory.max, so figures of other limits do not help.
    let printed = at_limit.limit.filter(|_| at_limit.which == LimitHit::Memory);
    let used = printed.map(|limit| limit.usage.max(limit.limit));
    let raised = used.and_then(|used| remedy::larger_limit_of(cx, path, used, available));
    let fix = raised.zip(printed).map(|(raised, limit)| {
        let knob = if is_v1 { LimitFile::MaxV1 } else { LimitFile::Max };
        remedy::raise_limit_of(path, knob, limit.limit, raised)
    });
    let mut fix = fix.or_else(|| remedy::set_elsewhere(path)).unwrap_or_default();
    if is_inside {
        fix = Fix { raises: fix.raises, ..Fix::say("The limit is set on the host.") };
    }
    // Without the room it is a quarter more, which nobody measured.
    let group = cx.timeline.entity(Cgroup, path);
    let room =
        group.zip(used).and_then(|(group, used)| remedy::room_for(cx, group, used, available));
    let is_known = room.is_some() && !is_elsewhere;
    let words = match printed.zip(raised).filter(|_| is_known) {
        Some((limit, to)) => remedy::raise_words(limit.limit, to),
        None if used.is_some() && raised.is_none() => remedy::NO_ROOM.to_owned(),
        None => "Raise the limit to what the cgroup needs (at least a quarter more), or make its \
                 programs smaller (heap, workers)."
            .to_owned(),
    };
    let finding = finding.cause(cause);
    // A larger limit is full of unwritten data later.
    if at_limit.shared().is_none() && at_limit.kernel().is_none() && at_limit.unwritten().is_some()
    {
        return finding.fix(remedy::write_otherwise(is_v1));
    }
    let finding = finding.fix(fix.described(words));
    if is_v1 || is_elsewhere {
        return finding;
    }
    // A report does not print memory.high, so there is no command to undo it.
    let high = raised.map(|raised| {
        remedy::set_limit_of(path, LimitFile::High, remedy::high_below(raised), None)
    });
    finding.fix(high.unwrap_or_default().described(THROTTLE_FIRST))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oom::testing::Report;
    use crate::rules::swap_full;
    use crate::rules::testing::{Case, changed, clear, found};
    use timeline::signals::CGROUP_MAX;
    use units::Limit;

    #[test]
    fn a_cgroup_full_of_dirty_pages_is_not_said_to_need_more() {
        let mut report = Report::of_a_group(102_400, 102_400);
        if let Some(group) = &mut report.0.group {
            group.stat = vec![
                ("cache".to_owned(), 95 << 20),
                ("rss".to_owned(), 5 << 20),
                ("dirty".to_owned(), 80 << 20),
            ];
        }
        let finding = found(RULE, &Case::of_report(report));
        assert!(finding.title.contains("not written"), "{}", finding.title);
        assert!(finding.cause.contains("dirty page cache"), "{}", finding.cause);
        assert_eq!(finding.fixes, [remedy::write_otherwise(false)]);
    }

    #[test]
    fn the_title_names_cgroup_limit_and_victim() {
        let case = Case::of_report(Report::of_a_group(102_400, 102_400));
        let finding = found(RULE, &case);
        assert_eq!(
            finding.title,
            "Cgroup /pods/web hit its memory limit of 100 MiB, and the kernel killed worker (PID \
             40, 90 MiB resident)."
        );
        let raised = changed(&finding.fixes[0]);
        assert!(raised[0].ends_with("=131072000"), "{raised:?}");
        clear(swap_full::RULE, &case);
    }

    #[test]
    fn a_limit_that_was_raised_since_is_not_lowered_again() {
        let with_limit = |mib: u64| {
            let limit = Limit::Bytes(Bytes::from_mib(mib));
            let case = Case::of_report(Report::of_a_group(102_400, 102_400));
            found(RULE, &case.gauge_of(Cgroup, "/pods/web", CGROUP_MAX, limit))
        };
        let raised = with_limit(260);
        assert!(raised.fixes[0].what.starts_with("Its limit is 260 MiB now"), "{raised:?}");
        assert!(raised.fixes.iter().all(|fix| changed(fix).is_empty()), "{raised:?}");
        assert!(!changed(&with_limit(100).fixes[0]).is_empty());
    }

    #[test]
    fn a_limit_is_raised_to_what_there_is_room_for_or_not_at_all() {
        let with_available = |mib: u64| {
            let limit = Limit::Bytes(Bytes::from_mib(100));
            let case = Case::of_report(Report::of_a_group(102_400, 102_400))
                .gauge_of(Cgroup, "/pods/web", CGROUP_MAX, limit)
                .gauge(MEM_AVAILABLE, Bytes::from_mib(mib));
            found(RULE, &case).fixes.remove(0)
        };
        let raised = changed(&with_available(4096));
        assert_eq!(raised, ["/pods/web/memory.max=104857600 -> /pods/web/memory.max=419430400"]);
        let without_room = with_available(10);
        assert_eq!((without_room.what.as_str(), without_room.changes.len()), (remedy::NO_ROOM, 0));
    }

    #[test]
    fn a_report_without_the_kill_is_probable() {
        let mut report = Report::of_a_group(262_144, 262_144);
        report.0.killed.clear();
        report.0.tasks.clear();
        if let Some(group) = &mut report.0.group {
            group.path.clear();
        }
        let finding = found(RULE, &Case::of_report(report));
        assert_eq!(finding.title, "A cgroup hit its memory limit of 256 MiB (12 times so far).");
        assert_eq!(finding.confidence.word(), "probable");
    }

    #[test]
    fn locked_memory_is_named() {
        let mut report = Report::of_a_group(102_400, 102_400);
        if let Some(group) = &mut report.0.group {
            group.stat = vec![("rss".to_owned(), 95 << 20), ("unevictable".to_owned(), 80 << 20)];
        }
        let finding = found(RULE, &Case::of_report(report));
        let is_it = |line: &str| line.starts_with("in the cgroup: 80 MiB of locked memory");
        assert!(finding.evidence.iter().any(|line| is_it(&line.text)), "{finding:?}");
    }

    #[test]
    fn the_title_names_shared_memory() {
        let mut report = Report::of_a_group(102_400, 102_400);
        if let Some(group) = &mut report.0.group {
            group.stat = vec![("shmem".to_owned(), Bytes::from_mib(70).get())];
        }
        let finding = found(RULE, &Case::of_report(report));
        assert!(finding.title.contains("70 MiB of it is shared"), "{}", finding.title);
    }

    #[test]
    fn the_counters_to_verify_match_the_cgroup_version() {
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
    fn clear_when_the_host_killed() {
        clear(RULE, &Case::of_report(Report::of_a_host()));
    }
}
