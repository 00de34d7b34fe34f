//! The host ran out of memory, and the kernel killed a process.

mod report;

use timeline::kernel_report::ReportKind;
use timeline::signals::{
    ALLOCSTALL, CGROUP_EVENTS_OOM_KILL, MEM_AVAILABLE, OOM_KILLS, SWAP_FREE, SWAP_TOTAL,
};
use timeline::{EventKind, KillNotice, NoticeKind, Stamp};

use crate::oom;
use crate::oom::{kills, notices};
use crate::prelude::*;

declare_rule! {
    /// The host ran out of memory, and the kernel killed a process (OOM kill).
    ///
    /// ## What it means
    /// An allocation failed although the kernel had reclaimed all it could: RAM was full of memory that cannot be
    /// reclaimed, and swap was full or missing. The kernel killed the process with the highest score, usually the
    /// largest; it need not be the one that grew.
    /// ## How it is recognised
    /// The kernel's kill counter rises, and cgroups at their limits do not explain it. A kill is an instant, so one is
    /// enough and nothing has to last; kills that follow each other within {oom::AGAIN} are one incident. Allocation
    /// stalls in the same interval, or {AVAILABLE_SHARE_SHORT} of RAM or less available before, confirm it; a
    /// fast-growing process is killed with hardly any stall. If the source has no cgroups, both kinds of kill look
    /// alike and these two signs decide. Kills before the first sample are informational. The kubelet's event SystemOOM
    /// counts too. The kernel's own report of a kill, in a pasted log, has all details: the allocation, the watermark
    /// that each zone was below, the processes, and what filled memory.
    /// ## Not this
    /// - `oom-cgroup`: a cgroup hit its own limit; the host has memory, and no allocation outside had to reclaim.
    /// - A kill by systemd-oomd, earlyoom or a person: they raise no counter; SysRq f raises it without any shortage.
    /// ## What to do
    /// Now: see which processes used memory just before (below, or Mem-Info in the kernel log), restart the victim, cap
    /// what grew. For good: limits, smaller pools, swap as a buffer, OOMScoreAdjust for what must survive. Verify: the
    /// counter does not rise, and MemAvailable stays above {AVAILABLE_LOW_SHARE} of RAM over a work cycle.
    /// ## References
    /// - kernel mm/oom_kill.c: how the victim is chosen; since 4.13 counted as oom_kill
    /// - kernel Documentation/admin-guide/cgroup-v2.rst, memory.events
    pub(crate) RULE = { id: "oom-global", since: "0.1.0", class: Shortage,
        numbers: [oom::AGAIN, AVAILABLE_SHARE_SHORT, AVAILABLE_LOW_SHARE],
        trigger: trigger, story: story,
        cause: "Memory that cannot be reclaimed filled RAM, and swap could not take more.",
        verify: "oom_kill in /proc/vmstat does not rise; MemAvailable stays above \
                 {AVAILABLE_LOW_SHARE} of RAM over a work cycle",
        brings_about: &["available-exhaustion", "cache-starved-floor", "swap-full", "no-swap-risk",
            "oom-score-misuse", "direct-reclaim-stall", "kswapd-saturated"],
    }
}

/// With more than this available just before, the host was hardly short of memory (`free-low-harmless` calls 15 %
/// healthy). A labelled capture of a fast-growing process had 3 % one second before its kill; a faster one would have
/// had more.
const AVAILABLE_SHARE_SHORT: Ratio = Ratio::from_percent(15.0);
/// Parts of this share of RAM are shown as having filled it: an engineering choice.
const SHARE_MUCH: Ratio = Ratio::from_percent(10.0);

/// PID_MAX_LIMIT (include/linux/threads.h, 7.2): a counter that rises by more than this is broken.
const KILLS_MAX: u64 = 1 << 22;
/// Upper bounds of the confidence where one or two signs of a shortage are missing.
const PROBABLE: f64 = 0.85;
const POSSIBLE: f64 = 0.55;

fn trigger() -> Trigger {
    Trigger::Found(FoundBy {
        find,
        could: Some(rate(OOM_KILLS).at_least("kills", kills::ANY)),
        scope: Subjects::Host,
        none: Some(none),
    })
}

/// Each kill that no cgroup limit explains.
fn find(cx: &Evidence<'_>) -> Result<Vec<Occurrence>, Missing> {
    let mut all = oom::occurrences(cx, report::is_the_hosts);
    all.extend(notices::occurrences(cx, is_of_node));
    match counted(cx) {
        Ok(counted) => all.extend(counted),
        Err(missing) if oom::reports(cx).is_empty() && all.is_empty() => return Err(missing),
        Err(_) => {}
    }
    Ok(joined(cx, all, oom::AGAIN))
}

fn counted(cx: &Evidence<'_>) -> Result<Vec<Occurrence>, Missing> {
    if cx.last(OOM_KILLS)? == Count::ZERO {
        return Ok(Vec::new());
    }
    let in_groups = kills::in_groups(cx).ok();
    let mut kills = kills::of_host(cx, in_groups.as_deref());
    if in_groups.is_some()
        && let Some(last) = cx.timeline.read_before(Entity::Cgroup, cx.timeline.len())
    {
        // Cgroups were not read again after the latest kills.
        let known = kills.partition_point(|(at, _)| *at <= last);
        if known == 0 && !kills.is_empty() {
            let signal = CGROUP_EVENTS_OOM_KILL.def().name;
            return Err(Missing::because(vec![signal], Need::SameTime));
        }
        kills.truncate(known);
    }
    Ok(kills.into_iter().map(|(at, _)| Occurrence::on_host(at - 1, at)).collect())
}

/// The answer where the host did not kill.
fn none(cx: &Evidence<'_>) -> Result<Outcome, Missing> {
    if let Some(why) = report::why_not_the_hosts(cx) {
        return clear!("{why}");
    }
    let since_boot = cx.last(OOM_KILLS)?;
    let counted = kills::counted(cx);
    let explained = counted.iter().fold(0, |sum: u64, (_, count)| sum.saturating_add(*count));
    if since_boot == Count::ZERO {
        clear!("no process was OOM-killed since boot")
    } else if explained > 0 {
        clear!(
            "all of the {} kills were in cgroups at their limits (oom-cgroup)",
            Count::new(explained)
        )
    } else {
        before_the_first_sample(cx, since_boot)
    }
}

fn story<'a>(cx: &Evidence<'a>, incident: &Incident<'a>) -> Result<Outcome, Missing> {
    let stretch = &incident.stretch;
    let in_groups = kills::in_groups(cx).ok();
    let mut kills = kills::of_host(cx, in_groups.as_deref());
    kills.retain(|(at, _)| stretch.first < *at && *at <= stretch.last);
    let count = Count::new(kills.iter().map(|(_, count)| count).sum());
    if let Some(finding) = report::finding(cx, stretch) {
        return Ok(finding.killed(count.get()).into());
    }
    if let Some(finding) = noticed(cx).filter(|_| kills.is_empty()) {
        return Ok(finding.into());
    }
    let signs = Signs::new(cx);
    // Report the interval that shows the shortage best.
    let intervals = kills.iter().map(|(at, _)| signs.at(cx, *at));
    let Some(interval) = intervals.max_by_key(KillInterval::signs) else {
        return clear!("the kill was in a cgroup at its limit (oom-cgroup)");
    };
    let Some(most) = interval.sure_at_most(in_groups.is_some())? else {
        return clear!(
            "no allocation of the host stalled when a process was killed: a cgroup that is gone by \
             now, or a kill by hand (SysRq f)"
        );
    };
    let at = interval.at;
    let victim = processes::gone(cx, at);
    let open = if in_groups.is_some() {
        ""
    } else {
        "without cgroup events, only the signs of a shortage distinguish it from a kill at a \
         cgroup limit"
    };
    let much = cx.ram().map(|ram| ram.share(SHARE_MUCH)).ok();
    let gone = victim.map(|(process, used)| {
        let what = format!("had {used} and is gone: likely the victim");
        Affected::new("process", &process.label, what)
    });
    Ok(RULE
        .found(Severity::Critical, title(cx, count, victim, at))
        .killed(count.get())
        .shows_from(OOM_KILLS, count, Count::new(1), cx.time(at), format!("{count} OOM-killed"))
        .counts_as("the kill counter")
        .and(|finding| interval.shown_in(cx, &signs, finding))
        .with(much, |finding, much| finding.shows_holders(cx, at - 1, much))
        .when(in_groups.is_some(), |finding| {
            finding.not("oom-cgroup", "no cgroup at its limit explains the kill")
        })
        .fix(
            Fix::say(
                "See the kernel log for the failed allocation and the memory of each process.",
            )
            .inspect("journalctl -k -g 'Out of memory|oom-kill'"),
        )
        .fix(Fix::cap(cx, at - 1, "Cap what grew."))
        .fix(Fix::say(
            "Protect the service that must survive: OOMScoreAdjust=-500 in its unit file; choom \
             sets it for a running process.",
        ))
        .affects(gone)
        .affects(processes::largest(cx, at - 1, 3))
        .sure_by_kinds(cx, open)
        .sure_at_most(most)
        .into())
}

/// Whether the kubelet says that the kernel killed for a shortage of the node.
fn is_of_node(cx: &Evidence<'_>, notice: &KillNotice) -> bool {
    notice.kind == NoticeKind::Node && !notices::is_told_by_the_kernel(cx, notice)
}

/// The finding where only the kubelet speaks of the kill.
fn noticed(cx: &Evidence<'_>) -> Option<Finding> {
    let all = notices::such(cx, is_of_node);
    if all.is_empty() {
        return None;
    }
    let title = format!(
        "The kubelet reports that the node ran out of memory (SystemOOM{}): the kernel killed {}.",
        match all.len() {
            1 => String::new(),
            times => format!(", {times} messages"),
        },
        notices::victims(&all)
    );
    let finding = RULE
        .found(Severity::Critical, title)
        .and(|finding| notices::shown(finding, &all))
        .affects(all.iter().rev().take(3).filter_map(|one| notices::affected(one)))
        .fix(
            Fix::say("See the node's kernel log for what filled memory.")
                .inspect("journalctl -k -b --no-pager | memtide check -"),
        )
        .fix(Fix::say(
            "Reserve memory for the system (kubelet: system-reserved, eviction-hard), and let the \
             pods request what they use.",
        ))
        .cause("The message does not show what filled the node's memory.")
        .sure(notices::sure("the kernel log of the node would show what filled memory"));
    Some(finding)
}

/// `The host ran out of memory, and the kernel killed a process. There is no swap.`
fn title(
    cx: &Evidence<'_>,
    count: Count,
    victim: Option<(&EntitySeries, Bytes)>,
    at: usize,
) -> Title {
    let killed = match (count.get(), victim) {
        (1, Some((process, used))) => {
            // A name may be a word of the sentence: what follows it shows that it is a name.
            let known = Some(process.pid()).filter(|pid| !["", "0"].contains(pid));
            let pid = known.map_or_else(String::new, |pid| format!("PID {pid}, "));
            format!("killed a process, most likely {} ({pid}{used})", process.label)
        }
        (1, None) => "killed a process".to_owned(),
        (n, _) if n > KILLS_MAX => {
            format!("killed processes (its counter rose by {count}, which is impossible)")
        }
        _ => format!("killed {count} processes"),
    };
    let before = cx.level(SWAP_FREE, at - 1);
    let swap = match (cx.timeline.last(SWAP_TOTAL), before) {
        (Some(Bytes::ZERO), _) => " There is no swap.".to_owned(),
        (Some(total), Some(free)) => format!(" {free} of {total} swap was free."),
        _ => String::new(),
    };
    Title::from(format!("The host ran out of memory, and the kernel {killed}.")).then(swap)
}

/// Signs of a shortage of the host, computed once for all kills.
struct Signs {
    stalls: Option<Track<PerSecond<Count>>>,
    available: Option<Track<Bytes>>,
    ram: Option<Bytes>,
}

impl Signs {
    fn new(cx: &Evidence<'_>) -> Self {
        Self {
            stalls: cx.timeline.rate(ALLOCSTALL),
            available: cx.timeline.gauge(MEM_AVAILABLE),
            ram: cx.ram().ok(),
        }
    }

    /// The signs around the kill before sample `at`.
    fn at(&self, cx: &Evidence<'_>, at: usize) -> KillInterval {
        let stalls = self.stalls.as_ref();
        let available = self.available.as_ref().and_then(|available| {
            let before = available.at(at - 1)?;
            Some(available.at(at).map_or(before, |after| before.min(after)))
        });
        let short = self.ram.map(|ram| ram.share(AVAILABLE_SHARE_SHORT));
        KillInterval {
            at,
            reclaimed: stalls.and_then(|stalls| reclaimed(cx, stalls, at)),
            available,
            was_short: available.zip(short).map(|(least, short)| least <= short),
        }
    }
}

/// Allocation stalls in the interval of a kill and the one before, in which the shortage may have begun.
fn reclaimed(cx: &Evidence<'_>, stalls: &Track<PerSecond<Count>>, at: usize) -> Option<Count> {
    stalls.at(at)?;
    let stretch = cx.timeline.stretch(at.saturating_sub(2), at)?;
    Some(Count::from_f64(stalls.integral_in(&stretch)))
}

/// An interval in which the kernel killed.
struct KillInterval {
    at: usize,
    reclaimed: Option<Count>,
    available: Option<Bytes>,
    was_short: Option<bool>,
}

impl KillInterval {
    fn had_to_reclaim(&self) -> Option<bool> {
        self.reclaimed.map(|stalls| stalls > Count::ZERO)
    }

    /// A key for comparison: more signs compare as greater.
    fn signs(&self) -> (bool, bool) {
        (self.had_to_reclaim() == Some(true), self.was_short == Some(true))
    }

    /// Upper bound of the confidence that the host was short; `None` if it was not.
    fn sure_at_most(&self, has_groups: bool) -> Result<Option<f64>, Missing> {
        Ok(Some(match (has_groups, self.had_to_reclaim(), self.was_short) {
            (true, Some(true), Some(true) | None) => 1.0,
            // Allocations stalled while memory was available: a zone or a node may have been exhausted.
            (true, Some(true), Some(false)) => POSSIBLE,
            // The kernel reclaims before it kills and counts that (mm/vmscan.c, do_try_to_free_pages).
            (true, Some(false), _) => return Ok(None),
            (true, None, _) | (false, Some(true), Some(true)) => PROBABLE,
            (false, Some(true), _) | (false, None, Some(true)) => POSSIBLE,
            (false, ..) => {
                return Err(Missing::file(CGROUP_EVENTS_OOM_KILL.def()));
            }
        }))
    }

    fn shown_in(&self, cx: &Evidence<'_>, signs: &Signs, finding: Finding) -> Finding {
        let reclaimed = self.reclaimed.filter(|stalls| *stalls > Count::ZERO);
        finding
            .with(reclaimed, |finding, stalls| {
                let text = format!("allocation stalls at that time: {stalls}");
                finding
                    .shows(ALLOCSTALL, stalls, cx.time(self.at), text)
                    .counts_as("allocation stalls")
            })
            .with(self.available.zip(signs.ram), |finding, (least, ram)| {
                let text = format!("{least} of {ram} available one sample before");
                let short = ram.share(AVAILABLE_SHARE_SHORT);
                finding
                    .shows_below(MEM_AVAILABLE, least, short, cx.time(self.at - 1), text)
                    .counts_if(self.was_short == Some(true), "little available")
            })
    }
}

/// The answer where nothing was killed since the first sample.
fn before_the_first_sample(cx: &Evidence<'_>, since_boot: Count) -> Result<Outcome, Missing> {
    let in_groups = logged_in_cgroups(cx);
    if in_groups >= since_boot {
        return clear!(
            "all of the {since_boot} kills since boot were at cgroup limits: memtide events --kind \
             oom-kill"
        );
    }
    let processes = match since_boot.get() {
        1 => "A process was",
        _ => "Processes were",
    };
    let others = match in_groups {
        Count::ZERO => String::new(),
        some => format!(", {some} of them at cgroup limits"),
    };
    let title = format!(
        "{processes} OOM-killed since boot, before the first sample ({since_boot} in all{others})."
    );
    let text = format!("{since_boot} killed since boot, none since the first sample");
    let stored = Count::new(reports_stored(cx));
    Ok(RULE
        .found(Severity::Info, title)
        .shows(OOM_KILLS, since_boot, None, text)
        .cause(
            "The counter shows that it happened, but not when, nor whether the host or a cgroup \
             limit was the reason.",
        )
        .fix(
            Fix::say("See the kernel log for time and reason.")
                .inspect("journalctl -k -g 'Out of memory|oom-kill'"),
        )
        .verify("oom_kill in /proc/vmstat does not rise")
        .sure_by_kinds(cx, "the kernel log shows when and why")
        .sure_at_most(0.4)
        .when(stored > Count::ZERO, |finding| {
            finding.with_line(format!(
                "the recording has kernel reports of {stored}: `memtide events --kind oom-kill` \
                 shows them"
            ))
        })
        .into())
}

/// Kills before the first sample with a kernel report in the recorder's log.
fn reports_stored(cx: &Evidence<'_>) -> u64 {
    let first = cx.timeline.stamp(0).and_then(|stamp| stamp.wall);
    let kills = cx.timeline.recorder_events().iter().filter(|event| {
        event.kind == EventKind::OomKill && !event.report.is_empty() && event.stamp.wall < first
    });
    kills.count() as u64
}

/// Kills of this boot at a cgroup limit, before the first sample: by the kernel reports that a recorder stored, or by
/// those of the kernel log that was read.
fn logged_in_cgroups(cx: &Evidence<'_>) -> Count {
    /// The start of the line of such a kill, in all kernels (mm/oom_kill.c, `oom_kill_process`).
    const IN_A_CGROUP: &str = "Memory cgroup out of memory";
    let last = cx.timeline.len().checked_sub(1);
    let last = last.and_then(|last| cx.timeline.stamp(last));
    let booted = last.and_then(|last| Some(last.wall?.minus(last.boot)));
    let is_of_this_boot = |at: Stamp| at.wall.zip(booted).is_none_or(|(at, booted)| at >= booted);
    let stored = cx.timeline.recorder_events().iter().filter(|event| {
        event.kind == EventKind::OomKill
            && is_of_this_boot(event.stamp)
            && event.report.contains(IN_A_CGROUP)
    });
    let read = cx.timeline.earlier_reports().iter().filter(|known| {
        let is_kill = known.report.kind == ReportKind::OomKill && is_of_this_boot(known.stamp);
        is_kill && oom::is_at_a_limit(&known.report)
    });
    let killed = read.map(|known| known.report.killed.len() as u64).sum();
    // A recorder stores what it read.
    Count::new((stored.count() as u64).max(killed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oom::testing::Report;
    use crate::rules::testing::{Case, clear, found, in_second, incidents, not_evaluated, times};
    use timeline::Entity::{Cgroup, Process};
    use timeline::signals::{CGROUP_EVENTS_OOM, MEM_TOTAL, PROC_RSS_ANON};

    /// A host with a kill in second 5, and a cgroup in which nothing was killed.
    fn killed_elsewhere() -> Case {
        Case::over(10)
            .gauge(MEM_AVAILABLE, Bytes::from_gib(3))
            .counter_steps(OOM_KILLS, &in_second(5, 10, 1))
            .counter_at(ALLOCSTALL, 0)
            .counter_of(Cgroup, "/other", CGROUP_EVENTS_OOM_KILL, 0)
    }

    #[test]
    fn a_kill_in_a_cgroup_that_was_gone_at_once_is_that_of_its_report() {
        let stalls = || killed_elsewhere().counter_steps(ALLOCSTALL, &[20; 10]);
        let reported = |report| stalls().with_report(6, report);
        clear(RULE, &reported(Report::of_a_group(102_400, 102_400)));
        assert_eq!(found(RULE, &stalls()).harm.killed, 1);
        // A report is of one kill: the other is not explained.
        let both = stalls().counter_steps(OOM_KILLS, &in_second(5, 10, 2));
        let both = both.with_report(6, Report::of_a_group(102_400, 102_400));
        assert_eq!(found(RULE, &both).harm.killed, 1);
    }

    #[test]
    fn kills_before_the_first_sample_that_the_log_puts_in_cgroups_are_not_the_hosts() {
        let before = |reports: u64, killed: u64| {
            let mut timeline = timeline::Timeline::default();
            for second in 1_000..1_010 {
                let mut sample = timeline::Sample::at(Span::from_secs(second));
                sample.host.set(OOM_KILLS, Count::new(killed));
                sample.table_mut(Cgroup).entry("/a").row.set(CGROUP_EVENTS_OOM_KILL, Count::ZERO);
                timeline.push(&sample).unwrap();
            }
            for n in 0..reports {
                let stamp = Stamp { boot: Span::from_secs(100 + n), ..Stamp::default() };
                timeline.report_earlier(stamp, Report::of_a_group(102_400, 102_400).0, None);
            }
            let facts = timeline::Facts::default();
            none(&Evidence::new(&timeline, &facts)).unwrap()
        };
        assert!(matches!(before(2, 2), Outcome::Clear(_)));
        assert!(matches!(before(2, 3), Outcome::Found(_)));
        assert!(matches!(before(0, 2), Outcome::Found(_)));
    }

    #[test]
    fn the_kubelets_word_of_a_kill_on_the_node_is_found() {
        let notice = |kind| KillNotice {
            process: "java".to_owned(),
            pid: Some(812),
            ..KillNotice::new(timeline::Messenger::Kubernetes, kind)
        };
        let finding = found(RULE, &Case::once().noticing(notice(NoticeKind::Node)));
        assert!(finding.title.contains("killed java (812)"), "{}", finding.title);
        // Whether there was swap, and what filled RAM, the message does not tell.
        assert!(!finding.cause.contains("swap"), "{}", finding.cause);
        let mut other = notice(NoticeKind::Node);
        other.process = "nginx".to_owned();
        let both = Case::once().noticing(notice(NoticeKind::Node)).noticing(other);
        let title = found(RULE, &both).title;
        assert!(
            title.contains("(SystemOOM, 2 messages): the kernel killed java (812) and nginx (812)"),
            "{title}"
        );
        let evicted = Case::once().noticing(notice(NoticeKind::Eviction));
        assert_eq!(not_evaluated(RULE, &evicted).names, ["vm.oom_kill"]);
    }

    /// A process is killed in second 9, with `stalls` allocation stalls in that second and `available` MiB of 469
    /// available one second before.
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

    /// A cgroup that counts the kill, with or without a limit hit.
    fn group(case: Case, at_limit: u64) -> Case {
        let mut kills = vec![0; 14];
        kills[9] = 1;
        let limits: Vec<u64> = kills.iter().map(|k| k * at_limit).collect();
        case.counter_steps_of(Cgroup, "/app", CGROUP_EVENTS_OOM_KILL, &kills).counter_steps_of(
            Cgroup,
            "/app",
            CGROUP_EVENTS_OOM,
            &limits,
        )
    }

    #[test]
    fn a_kill_that_no_cgroup_limit_explains_is_found() {
        let finding = found(RULE, &group(kill(18, 14), 0));
        assert_eq!(finding.severity, Severity::Critical);
        assert_eq!(finding.confidence.word(), "confirmed");
        assert!(finding.title.contains("There is no swap"));
    }

    #[test]
    fn clear_when_a_cgroup_limit_killed() {
        assert!(clear(RULE, &group(kill(0, 350), 1)).contains("oom-cgroup"));
        clear(RULE, &group(kill(18, 14), 1));
    }

    #[test]
    fn clear_when_a_cgroup_limit_killed_and_cgroups_are_read_rarely() {
        let case = group(kill(18, 350), 1).read_every(7, Cgroup);
        assert!(clear(RULE, &case).contains("oom-cgroup"));
        // Cgroups were not read after the kill.
        let case = group(kill(18, 350), 1).read_every(8, Cgroup);
        let missing = not_evaluated(RULE, &case);
        assert_eq!(missing.names, ["cgroup.events_oom_kill"]);
    }

    #[test]
    fn possible_when_memory_was_available() {
        let finding = found(RULE, &group(kill(18, 350), 0));
        assert_eq!(finding.confidence.word(), "possible");
    }

    #[test]
    fn without_cgroups_the_signs_of_a_shortage_decide() {
        let finding = found(RULE, &kill(18, 14));
        assert_eq!(finding.confidence.word(), "probable");
        // A fast-growing process leaves no trace in the sample before.
        let finding = found(RULE, &kill(18, 200));
        assert_eq!(finding.confidence.word(), "possible");
    }

    #[test]
    fn not_evaluated_without_cgroups_and_signs() {
        assert_eq!(not_evaluated(RULE, &kill(0, 350)).names, ["cgroup.events_oom_kill"]);
    }

    #[test]
    fn clear_when_no_allocation_stalled_at_the_kill() {
        let other = Case::counter_of(kill(0, 350), Cgroup, "/app", CGROUP_EVENTS_OOM_KILL, 0);
        assert!(clear(RULE, &other).contains("SysRq"));
    }

    #[test]
    fn the_title_names_the_process_that_is_gone() {
        let held: Vec<_> = (0..10).map(|_| Bytes::from_mib(380)).collect();
        let case = kill(18, 14)
            .gauge_until_of(Process, "77@1", PROC_RSS_ANON, &held)
            .named("77@1", "java");
        let finding = found(RULE, &case);
        assert!(finding.title.contains("java (PID 77, 380 MiB)"), "{}", finding.title);
    }

    #[test]
    fn kills_before_the_first_sample_are_informational() {
        let case = Case::over(14).counter(OOM_KILLS, 0);
        assert_eq!(found(RULE, &case).severity, Severity::Info);
        assert_eq!(found(RULE, &Case::once().counter(OOM_KILLS, 0)).severity, Severity::Info);
    }

    /// Ten seconds without a kill, three kills since boot, and kernel reports of some of them.
    fn three_since_boot(reports: &[&str]) -> timeline::Timeline {
        let mut timeline = timeline::Timeline::default();
        for second in 0..10 {
            let mut sample = timeline::Sample::at(units::Span::from_secs(100 + second));
            sample.host.set(OOM_KILLS, Count::new(3));
            timeline.push(&sample).unwrap();
        }
        for (number, line) in reports.iter().enumerate() {
            timeline.add_recorder_event(timeline::Event {
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
    fn logged_kills_at_cgroup_limits_are_not_the_hosts() {
        let group = "Memory cgroup out of memory: Killed process 7 (hog)";
        let facts = timeline::Facts::default();
        let judged = |reports: &[&str]| {
            let timeline = three_since_boot(reports);
            none(&Evidence::new(&timeline, &facts)).unwrap()
        };
        assert!(matches!(judged(&[group; 3]), Outcome::Clear(_)));
        let Outcome::Found(some) = judged(&[group, "Out of memory: Killed process 9", group])
        else {
            panic!("one of the three was the host's");
        };
        assert!(some.title.contains("3 in all, 2 of them"), "{}", some.title);
    }

    #[test]
    fn clear_without_any_kill() {
        clear(RULE, &Case::over(14).counter_at(OOM_KILLS, 0));
    }

    #[test]
    fn not_evaluated_before_kernel_4_13() {
        assert_eq!(not_evaluated(RULE, &Case::over(14)).names, ["vm.oom_kill"]);
    }

    /// An hour with kills in these seconds, a kill in a cgroup at its limit in second 1000, and allocation stalls at
    /// every kill.
    fn hour(seconds: &[usize]) -> Case {
        let mut kills = vec![0; 3600];
        let mut left = vec![Bytes::from_mib(350); 3601];
        for second in seconds {
            kills[*second] = 1;
            left[*second] = Bytes::from_mib(14);
        }
        let of_group = in_second(1000, 3600, 1);
        Case::over(3600)
            .gauge(MEM_TOTAL, Bytes::from_mib(469))
            .gauge(SWAP_TOTAL, Bytes::ZERO)
            .gauge_steps(MEM_AVAILABLE, &left)
            .counter_steps(OOM_KILLS, &kills)
            .counter_steps(ALLOCSTALL, &kills)
            .counter_steps_of(Cgroup, "/app", CGROUP_EVENTS_OOM_KILL, &of_group)
            .counter_steps_of(Cgroup, "/app", CGROUP_EVENTS_OOM, &of_group)
    }

    #[test]
    fn kills_four_minutes_apart_are_two_incidents() {
        let finding = found(RULE, &hour(&[1000, 2000, 2240, 2243]));
        assert_eq!(finding.severity, Severity::Critical);
        assert_eq!(finding.confidence.word(), "confirmed");
        assert_eq!(times(&finding), [(2000, 2001), (2240, 2244)]);
        assert_eq!(finding.harm.killed, 3);
        assert!(clear(RULE, &hour(&[1000])).contains("oom-cgroup"));
        // Files of one sample are read one after the other.
        clear(RULE, &hour(&[1001]));
    }

    #[test]
    fn a_counted_and_reported_kill_is_one_incident() {
        let case = hour(&[2000]);
        let report = Report::of_a_host();
        let case = case.reporting(2002, report);
        let all = incidents(RULE, &case);
        let [one] = all.as_slice() else {
            panic!("one kill: {all:?}");
        };
        assert_eq!((one.harm.killed, times(one)), (1, vec![(2000, 2002)]));
        assert!(one.title.contains("doxygen"), "{}", one.title);
    }

    #[test]
    fn clear_on_a_kill_by_hand() {
        let report = Report::of_a_host().asking(0xcc0, -1);
        assert!(clear(RULE, &hour(&[2000]).reporting(2001, report)).contains("by hand"));
    }
}
