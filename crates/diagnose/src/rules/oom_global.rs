//! The host ran out of memory, and the kernel killed a process.

use std::collections::BTreeMap;

use timeline::signals::{
    ALLOCSTALL, CGROUP_EVENTS_OOM_KILL, MEM_ANON, MEM_AVAILABLE, MEM_SHMEM, MEM_SLAB_UNRECLAIMABLE,
    OOM_KILLS, SWAP_FREE, SWAP_TOTAL,
};
use timeline::{Entity, EventKind, Track};
use units::{Bytes, Count, PerSecond, Ratio};

mod report;

use super::oom_cgroup::{Kills, kills, rounded};
use crate::evidence::Evidence;
use crate::finding::{Affected, Held, Severity};
use crate::fix::Fix;
use crate::missing::{Missing, Need};
use crate::oom::{bout_at, bouts};
use crate::rule::{Outcome, clear, declare_rule};
use crate::who;

declare_rule! {
    /// The host ran out of memory, and the kernel killed a process to go on.
    ///
    /// ## What it means
    /// An allocation failed although the kernel had reclaimed all it could: RAM was full of memory that cannot be dropped,
    /// and swap was full or missing. The kernel killed the process with the highest score, mostly the largest; it need not
    /// be the one that grew.
    /// ## How it is recognised
    /// The kernel's kill counter rises, and control groups at their limits do not explain it. A kill takes an instant, so
    /// one is enough and nothing has to last. That allocations had to reclaim in the same interval, or that 15 % of RAM or
    /// less was available before, confirms it; a process that grows fast is killed with hardly any stall. Where the source
    /// has no control groups, both kinds of kill look alike and these two signs must tell. Kills before the look are a note.
    /// The kernel's own report of a kill, in a pasted log, tells all of it: what was asked for, which mark each zone was
    /// below, who held memory, and what filled it.
    /// ## Not this
    /// - `oom-cgroup`: a group hit its own limit; the host has memory, and no allocation outside had to reclaim.
    /// - A kill by systemd-oomd, earlyoom or a person: no such counter rises; SysRq f raises it without any shortage.
    /// ## What to do
    /// Now: see who held memory just before (below, or Mem-Info in the kernel log), restart the victim, cap what grew. For
    /// good: limits, smaller pools, swap as a buffer, OOMScoreAdjust for what must live. Verify: the counter stays, and
    /// MemAvailable keeps above 10 % of RAM over a work cycle.
    /// ## References
    /// - kernel mm/oom_kill.c: how the victim is chosen; since 4.13 counted as oom_kill
    /// - kernel Documentation/admin-guide/cgroup-v2.rst, memory.events
    pub(crate) RULE = { id: "oom-global", since: "0.1.0", purpose: Finding, check: check }
}

/// With more than this available just before, the host was hardly short (the notes call 15 % healthy). A labelled
/// capture of a fast grower had 3 % one second before its kill, and a faster one would have had more.
const SHORT: Ratio = Ratio::from_percent(15.0);

/// PID_MAX_LIMIT (include/linux/threads.h, 7.2): a counter that rises by more is broken.
const MOST_KILLS: u64 = 1 << 22;
/// Confidence at most, where one sign is missing that would tell whose kill it was, or two.
const PROBABLE: f64 = 0.85;
const POSSIBLE: f64 = 0.55;

fn check(cx: &Evidence<'_>) -> Result<Outcome, Missing> {
    if let Some(told) = report::check(cx) {
        return Ok(told);
    }
    let since_boot = cx.last(OOM_KILLS)?;
    if since_boot == Count::ZERO {
        return clear!("no process was killed for want of memory since boot");
    }
    let in_groups = kills(cx);
    let by_limits = |k: &&Kills<'_>| k.at_limit_of.is_some();
    let mut moments = moments(cx);
    if in_groups.is_ok()
        && let Some(last) = cx.timeline.read_before(Entity::Cgroup, cx.timeline.len())
    {
        // Whose the youngest kills are, the groups have not been asked yet.
        let known = moments.partition_point(|(at, _)| *at <= last);
        if known == 0 && !moments.is_empty() {
            let signal = CGROUP_EVENTS_OOM_KILL.def().name;
            return Err(Missing::because(vec![signal], Need::SameTime));
        }
        moments.truncate(known);
    }
    let total: f64 = moments.iter().map(|(_, count)| count).sum();
    if total < 1.0 {
        return before_the_look(cx, since_boot);
    }
    let explained: f64 = in_groups
        .iter()
        .flatten()
        .filter(by_limits)
        .map(|k| k.count)
        .sum();
    if total - explained < 0.5 {
        return clear!(
            "all of the {} kills were in control groups at their limits (oom-cgroup)",
            Count::new(rounded(total))
        );
    }
    // The counters of one sample are read one after the other, so which interval a group's kill falls into is not
    // exact; that intervals differ shows the host's only together with a difference of the totals.
    let mut left: BTreeMap<usize, f64> = moments.iter().copied().collect();
    for kills in in_groups.iter().flatten().filter(by_limits) {
        let mut count = kills.count;
        for (_, left) in left.range_mut(kills.from + 1..=kills.at) {
            let theirs = count.min(*left);
            (count, *left) = (count - theirs, *left - theirs);
        }
    }
    let mut hosts: Vec<usize> = left
        .into_iter()
        .filter_map(|(at, left)| (left >= 0.5).then_some(at))
        .collect();
    if hosts.is_empty() {
        hosts = moments.iter().map(|(at, _)| *at).collect();
    }
    // There may be as many kills as samples: what is asked of each of them is computed once.
    let (stalls, available) = (
        cx.timeline.rate(ALLOCSTALL),
        cx.timeline.gauge(MEM_AVAILABLE),
    );
    let reclaimed = |at: usize| reclaimed(cx, stalls.as_ref()?, at);
    let stalled = |at: usize| reclaimed(at).map(|stalls| stalls > 0.0);
    let available = |at: usize| {
        let available = available.as_ref()?;
        let before = available.at(at - 1)?;
        Some(available.at(at).map_or(before, |after| before.min(after)))
    };
    let ram = cx.ram().ok();
    let short = |at: usize| Some(available(at)? <= ram?.share(SHORT));
    // The interval that shows the shortage best is the one to report.
    let signs = |at: &usize| (stalled(*at) == Some(true), short(*at) == Some(true));
    let Some(at) = hosts.iter().copied().max_by_key(signs) else {
        return clear!("no process was killed while watched");
    };
    let (had_to_reclaim, was_short) = (stalled(at), short(at));
    let most: f64 = match (&in_groups, had_to_reclaim, was_short) {
        (Ok(_), Some(true), Some(true) | None) => 1.0,
        // Something made allocations wait, and there was memory: a zone or a node may have been out of it.
        (Ok(_), Some(true), Some(false)) => POSSIBLE,
        // The kernel reclaims before it kills, and counts that (mm/vmscan.c, do_try_to_free_pages).
        (Ok(_), Some(false), _) => {
            return clear!(
                "no allocation of the host had to reclaim when a process was killed: a control group that is gone by now, or a kill by hand (SysRq f)"
            );
        }
        (Ok(_), None, _) | (Err(_), Some(true), Some(true)) => PROBABLE,
        (Err(_), Some(true), _) | (Err(_), None, Some(true)) => POSSIBLE,
        (Err(_), ..) => {
            return Err(Missing::because(
                vec![CGROUP_EVENTS_OOM_KILL.def().name],
                Need::File(CGROUP_EVENTS_OOM_KILL.def().file),
            ));
        }
    };

    let count = Count::new(rounded(total - explained));
    let victim = who::gone(cx, at);
    let killed = match (count.get(), victim) {
        (1, Some((name, held))) => format!("killed a process, most likely {name} ({held})"),
        (1, None) => "killed a process".to_owned(),
        (n, _) if n > MOST_KILLS => {
            format!("killed processes (its counter rose by {count}, more than there can be)")
        }
        _ => format!("killed {count} processes"),
    };
    let swap = match (cx.timeline.last(SWAP_TOTAL), cx.timeline.gauge(SWAP_FREE)) {
        (Some(Bytes::ZERO), _) => " There is no swap.".to_owned(),
        (Some(total), Some(free)) => free.at(at - 1).map_or_else(String::new, |free| {
            format!(" {free} of {total} swap were free.")
        }),
        _ => String::new(),
    };
    let before = cx.timeline.times()[at - 1];
    let mut finding = RULE
        .found(
            Severity::Critical,
            format!("The host ran out of memory, and the kernel {killed}.{swap}"),
        )
        .shows_from(
            OOM_KILLS,
            count,
            Count::new(1),
            Some(cx.timeline.times()[at]),
            format!("{count} killed for want of memory"),
        );
    let bouts = bouts(cx, hosts.iter().map(|at| (at - 1, *at)));
    if let Some(during) = bout_at(&bouts, at) {
        finding = finding.during(Held::new(during, bouts));
    }
    let mut kinds = vec!["the kill counter"];
    if let Some(stalls) = reclaimed(at).filter(|stalls| *stalls > 0.0) {
        let stalls = Count::new(rounded(stalls));
        finding = finding.shows(
            ALLOCSTALL,
            stalls,
            Some(cx.timeline.times()[at]),
            format!("{stalls} allocations had to reclaim memory themselves just then"),
        );
        kinds.push("allocation stalls");
    }
    if let (Some(least), Some(ram)) = (available(at), ram) {
        finding = finding.shows_below(
            MEM_AVAILABLE,
            least,
            ram.share(SHORT),
            Some(before),
            format!("{least} of {ram} available one sample before"),
        );
        if was_short == Some(true) {
            kinds.push("little available");
        }
    }
    for (signal, what) in [
        (MEM_ANON, "anonymous memory"),
        (MEM_SHMEM, "shared memory"),
        (
            MEM_SLAB_UNRECLAIMABLE,
            "kernel objects that cannot be dropped",
        ),
    ] {
        if let (Some(held), Some(ram)) = (
            cx.timeline.gauge(signal).and_then(|track| track.at(at - 1)),
            ram,
        ) && held >= ram.share(Ratio::from_percent(10.0))
        {
            finding = finding.shows(signal, held, Some(before), format!("{held} of {what}"));
        }
    }
    finding = match &in_groups {
        Ok(_) => finding.not(
            "oom-cgroup",
            "no control group at its limit explains the kill",
        ),
        Err(_) => finding,
    };
    let open = if in_groups.is_ok() {
        ""
    } else {
        "without control groups' events only the signs of a shortage tell it from a kill at a group's limit"
    };
    let mut sure = cx.confidence(&kinds, open);
    sure.value = sure.value.min(most);
    let mut affected = who::largest(cx, at - 1, 3);
    if let Some((name, held)) = victim {
        affected.insert(
            0,
            Affected {
                kind: "process",
                name: name.to_owned(),
                what: format!("gone after it had held {held}: likely the victim"),
            },
        );
    }
    Ok(finding
        .cause("Memory that cannot be dropped filled RAM, and swap could not take more.")
        .fix(Fix::say("See in the kernel log what was asked for and who held how much.").look("journalctl -k -g 'Out of memory|oom-kill'"))
        .fix(Fix::cap(cx, at - 1, "Then cap what grew."))
        .fix(Fix::say("Keep the service that must live from being chosen: OOMScoreAdjust=-500 in its unit file; choom sets it for a process that runs."))
        .verify("oom_kill in /proc/vmstat stays where it is; available stays above 10 % of RAM over a work cycle")
        .affects(affected)
        .sure(sure)
        .see("kernel: mm/oom_kill.c")
        .see("kernel: Documentation/admin-guide/cgroup-v2.rst, memory.events")
        .into())
}

/// The samples before which the kernel killed, and how many.
fn moments(cx: &Evidence<'_>) -> Vec<(usize, f64)> {
    let Some(rate) = cx.timeline.rate(OOM_KILLS) else {
        return Vec::new();
    };
    (1..cx.timeline.len())
        .filter_map(|at| {
            let step = cx.timeline.stretch(at - 1, at)?;
            let count = rate.integral_in(&step).round();
            (count >= 1.0).then_some((at, count))
        })
        .collect()
}

/// Allocation stalls in the interval of a kill and the one before it, in which the shortage may have begun.
fn reclaimed(cx: &Evidence<'_>, stalls: &Track<PerSecond<Count>>, at: usize) -> Option<f64> {
    stalls.at(at)?;
    let stretch = cx.timeline.stretch(at.saturating_sub(2), at)?;
    Some(stalls.integral_in(&stretch))
}

/// Nothing was killed while watched.
fn before_the_look(cx: &Evidence<'_>, since_boot: Count) -> Result<Outcome, Missing> {
    let in_groups = known_of_groups(cx);
    if in_groups >= since_boot {
        return clear!(
            "all of the {since_boot} kills since boot were at control groups' limits: memtide events --kind oom-kill"
        );
    }
    let processes = if since_boot == Count::new(1) {
        "A process was"
    } else {
        "Processes were"
    };
    let others = match in_groups {
        Count::ZERO => String::new(),
        some => format!(", {some} of them at control groups' limits"),
    };
    let mut finding = RULE
        .found(
            Severity::Info,
            format!("{processes} killed for want of memory since boot, before the watch began ({since_boot} in all{others})."),
        )
        .shows(
            OOM_KILLS,
            since_boot,
            None,
            format!("{since_boot} killed since boot, none while watched"),
        )
        .cause("The counter tells that it happened, not when, nor whether the host or a control group's limit was the reason.")
        .fix(Fix::say("See in the kernel log when and why.").look("journalctl -k -g 'Out of memory|oom-kill'"))
        .verify("oom_kill in /proc/vmstat stays where it is")
        .sure({
            let mut sure = cx.confidence(&[], "the kernel log tells when and why");
            sure.value = sure.value.min(0.4);
            sure
        })
        .see("kernel: mm/oom_kill.c");
    let kept = reports_kept(cx);
    if kept > 0 {
        finding = finding.tells(format!(
            "the kernel's reports of {} are kept: `memtide events --kind oom-kill` shows them",
            Count::new(kept)
        ));
    }
    Ok(finding.into())
}

/// Kills from before the look of which a recorder found the kernel's words in its log.
fn reports_kept(cx: &Evidence<'_>) -> u64 {
    let first = cx.timeline.stamp(0).and_then(|stamp| stamp.wall);
    let kills = cx.timeline.noted().iter().filter(|event| {
        event.kind == EventKind::OomKill && !event.report.is_empty() && event.stamp.wall < first
    });
    kills.count() as u64
}

/// Kills of this boot of which the kernel's words are kept and say that they were at a control group's limit.
fn known_of_groups(cx: &Evidence<'_>) -> Count {
    /// How the line of such a kill begins, in all kernels (mm/oom_kill.c, `oom_kill_process`).
    const OF_A_GROUP: &str = "Memory cgroup out of memory";
    let last = cx.timeline.len().checked_sub(1);
    let last = last.and_then(|last| cx.timeline.stamp(last));
    let booted = last.and_then(|last| Some(last.wall?.minus(last.boot)));
    let kills = cx.timeline.noted().iter().filter(|event| {
        let is_of_this_boot = event.stamp.wall.zip(booted).is_none_or(|(at, b)| at >= b);
        event.kind == EventKind::OomKill && is_of_this_boot && event.report.contains(OF_A_GROUP)
    });
    Count::new(kills.count() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::{Case, clear, found, not_evaluated};
    use timeline::Entity::{Cgroup, Process};
    use timeline::signals::{CGROUP_EVENTS_OOM, MEM_TOTAL, PROC_RSS_ANON};

    /// A process is killed in second 9; `stalls` allocations reclaim in that second, and `available` MiB of 469 are left
    /// one second before.
    fn kill(stalls: u64, available: u64) -> Case {
        let second_nine = |n| {
            let mut steps = vec![0; 14];
            steps[9] = n;
            steps
        };
        let mut left = vec![Bytes::from_mib(350); 15];
        left[9] = Bytes::from_mib(available);
        Case::over(14)
            .gauge(MEM_TOTAL, Bytes::from_mib(469))
            .gauge(SWAP_TOTAL, Bytes::ZERO)
            .gauge_steps(MEM_AVAILABLE, &left)
            .counter_steps(OOM_KILLS, &second_nine(1))
            .counter_steps(ALLOCSTALL, &second_nine(stalls))
    }

    /// A group that counts the kill, with or without having hit its limit.
    fn group(case: Case, at_limit: u64) -> Case {
        let mut kills = vec![0; 14];
        kills[9] = 1;
        let limits: Vec<u64> = kills.iter().map(|k| k * at_limit).collect();
        case.counter_steps_of(Cgroup, "/app", CGROUP_EVENTS_OOM_KILL, &kills)
            .counter_steps_of(Cgroup, "/app", CGROUP_EVENTS_OOM, &limits)
    }

    #[test]
    fn a_kill_that_no_limit_explains_is_the_hosts() {
        let finding = found(RULE, &group(kill(18, 14), 0));
        assert_eq!(finding.severity, Severity::Critical);
        assert_eq!(finding.confidence.word(), "confirmed");
        assert!(finding.title.contains("There is no swap"));
    }

    #[test]
    fn a_kill_at_a_limit_is_not() {
        assert!(clear(RULE, &group(kill(0, 350), 1)).contains("oom-cgroup"));
        clear(RULE, &group(kill(18, 14), 1));
    }

    #[test]
    fn a_kill_at_a_limit_is_not_where_groups_are_read_more_rarely() {
        let case = group(kill(18, 350), 1).read_every(7, Cgroup);
        assert!(clear(RULE, &case).contains("oom-cgroup"));
        // The groups were not asked any more after the kill.
        let case = group(kill(18, 350), 1).read_every(8, Cgroup);
        let missing = not_evaluated(RULE, &case);
        assert_eq!(missing.names, ["cgroup.events_oom_kill"]);
    }

    #[test]
    fn a_host_with_memory_left_is_not_surely_out_of_it() {
        let finding = found(RULE, &group(kill(18, 350), 0));
        assert_eq!(finding.confidence.word(), "possible");
    }

    #[test]
    fn without_groups_the_signs_of_a_shortage_tell() {
        let finding = found(RULE, &kill(18, 14));
        assert_eq!(finding.confidence.word(), "probable");
        // A fast grower leaves no trace in what was available a sample before.
        let finding = found(RULE, &kill(18, 200));
        assert_eq!(finding.confidence.word(), "possible");
    }

    #[test]
    fn without_groups_and_signs_it_says_what_would_tell() {
        assert_eq!(
            not_evaluated(RULE, &kill(0, 350)).names,
            ["cgroup.events_oom_kill"]
        );
    }

    #[test]
    fn a_kill_that_nobody_had_to_reclaim_for_was_done_by_hand() {
        let other = Case::counter_of(kill(0, 350), Cgroup, "/app", CGROUP_EVENTS_OOM_KILL, 0);
        assert!(clear(RULE, &other).contains("SysRq"));
    }

    #[test]
    fn the_process_that_is_gone_is_named() {
        let held: Vec<_> = (0..10).map(|_| Bytes::from_mib(380)).collect();
        let case = kill(18, 14)
            .gauge_until_of(Process, "77@1", PROC_RSS_ANON, &held)
            .named("77@1", "java");
        let finding = found(RULE, &case);
        assert!(
            finding.title.contains("java (380 MiB)"),
            "{}",
            finding.title
        );
    }

    #[test]
    fn kills_before_the_look_are_a_note() {
        let case = Case::over(14).counter(OOM_KILLS, 0);
        assert_eq!(found(RULE, &case).severity, Severity::Info);
        assert_eq!(
            found(RULE, &Case::once().counter(OOM_KILLS, 0)).severity,
            Severity::Info
        );
    }

    /// Ten seconds in which nobody was killed, three kills since boot, and what the kernel said of some of them.
    fn three_since_boot(said: &[&str]) -> timeline::Timeline {
        let mut timeline = timeline::Timeline::default();
        for second in 0..10 {
            let mut sample = timeline::Sample::at(units::Span::from_secs(100 + second));
            sample.host.set(OOM_KILLS, Count::new(3));
            timeline.push(&sample).unwrap();
        }
        for (number, line) in said.iter().enumerate() {
            timeline.note(timeline::Event {
                stamp: timeline::Stamp::default(),
                kind: EventKind::OomKill,
                subject: format!("hog ({number})"),
                text: String::new(),
                report: (*line).to_owned(),
            });
        }
        timeline
    }

    #[test]
    fn kills_that_are_known_to_be_of_groups_are_not_the_hosts() {
        let group = "Memory cgroup out of memory: Killed process 7 (hog)";
        let facts = timeline::Facts::default();
        let judged = |said: &[&str]| {
            let timeline = three_since_boot(said);
            check(&Evidence::new(&timeline, &facts)).unwrap()
        };
        assert!(matches!(judged(&[group; 3]), Outcome::Clear(_)));
        let Outcome::Found(some) = judged(&[group, "Out of memory: Killed process 9", group])
        else {
            panic!("one of the three was the host's");
        };
        assert!(some.title.contains("3 in all, 2 of them"), "{}", some.title);
    }

    #[test]
    fn a_host_on_which_nobody_was_killed_is_clear() {
        clear(RULE, &Case::over(14).counter_at(OOM_KILLS, 0));
    }

    #[test]
    fn kernels_before_4_13_do_not_count() {
        assert_eq!(not_evaluated(RULE, &Case::over(14)).names, ["vm.oom_kill"]);
    }
}
