//! A control group ran into its limit, and the kernel killed in it.

mod report;

use std::cmp::Reverse;

use timeline::Entity::Cgroup;
use timeline::facts::CgroupMode;
use timeline::signals::{
    CGROUP_ANON, CGROUP_CURRENT, CGROUP_EVENTS_OOM, CGROUP_EVENTS_OOM_KILL, CGROUP_FILE,
    CGROUP_HIGH, CGROUP_MAX, CGROUP_SHMEM, MEM_AVAILABLE, OOM_KILLS,
};

use crate::measures::cgroups;
use crate::oom::kills::{self, GroupKills};
use crate::oom::{self, Limit as Hit};
use crate::prelude::*;
use crate::remedy::{self, Knob};

declare_rule! {
    /// A control group ran into its memory limit and the kernel killed a process in it; the host itself may have plenty.
    ///
    /// ## What it means
    /// What a service, container or pod may use is limited by its control group. When it wants more and nothing in it can
    /// be reclaimed, the kernel kills one of its processes: exit status 137, a restarted pod, a failed unit. The host's
    /// free memory does not matter for that.
    /// ## How it is recognised
    /// The group's `oom_kill` event rises, and it or a group above it ran into its own limit at that moment (`oom`, or
    /// `max` where that is all there is). Every kill counts; there is no holding time. Kills at one group's limit that
    /// follow each other within 10 s are one incident. Kills before the first sample are a note.
    /// The kernel's own report in a pasted log names the group, the limit and what was charged to it.
    /// ## Not this
    /// - `oom-global`: the host was out of memory. The victim's group counts that kill too, but no limit was hit.
    /// - A kill by systemd-oomd, earlyoom or by hand: the kernel's events do not count it.
    /// - `cgroup-high-throttle`: slowed down at memory.high, not killed.
    /// ## What to do
    /// Now: raise the limit, or make the program smaller (heap size, workers). For good: the same in the unit or pod, and
    /// MemoryHigh at nine tenths of it as a warning. tmpfs and emptyDir in memory count too. Verify: `oom_kill` stays.
    /// ## References
    /// - kernel Documentation/admin-guide/cgroup-v2.rst, memory.events
    /// - kernel mm/memcontrol.c, mem_cgroup_oom
    pub(crate) RULE = { id: "oom-cgroup", since: "0.1.0", class: Limit,
        trigger: trigger, story: story,
        cause: "The programs of the group want more memory than its limit allows, and what could be reclaimed in it was not enough.",
        brings_about: &["cgroup-cache-starved", "oom-score-misuse"],
        aliases: &["cgroup-oom"],
    }
}

fn trigger() -> Trigger {
    Trigger::Found(Found {
        find,
        could: Some(rate(CGROUP_EVENTS_OOM_KILL).at_least("kills in the group", kills::ANY)),
        scope: Scope::each_cgroup(),
        none: Some(none),
    })
}

/// Each kill, in the group whose limit was hit.
fn find(cx: &Evidence<'_>) -> Result<Vec<Occurrence>, Missing> {
    let counted: Vec<Occurrence> = match kills::in_groups(cx) {
        Ok(all) => all.iter().filter_map(occurrence).collect(),
        Err(missing) if oom::reports(cx).is_empty() && was_anybody_killed(cx) => {
            return Err(missing);
        }
        Err(_) => Vec::new(),
    };
    let reported = report::occurrences(cx, &counted);
    Ok(joined(cx, [counted, reported].concat(), oom::AGAIN))
}

fn occurrence(kills: &GroupKills<'_>) -> Option<Occurrence> {
    Some(Occurrence {
        first: kills.from,
        last: kills.at,
        key: Some(kills.at_limit_of?.key.clone()),
    })
}

/// A host on which nobody was ever killed needs no groups to say so.
fn was_anybody_killed(cx: &Evidence<'_>) -> bool {
    cx.timeline.last(OOM_KILLS) != Some(Count::ZERO)
}

/// What is said where no limit killed.
fn none(cx: &Evidence<'_>) -> Result<Outcome, Missing> {
    if !oom::reports(cx).is_empty() {
        return clear!("the kernel's report names no control group's limit");
    }
    match kills::in_groups(cx) {
        Ok(all) if all.is_empty() => before_the_first_sample(cx),
        Ok(_) => {
            clear!("processes of control groups were killed, but no group had run into its limit")
        }
        Err(missing) if was_anybody_killed(cx) => Err(missing),
        Err(_) => clear!("no process was killed for want of memory since boot"),
    }
}

fn story<'a>(cx: &Evidence<'a>, incident: &Incident<'a>) -> Result<Outcome, Missing> {
    let kills = Kills::of(cx, incident);
    if let Some(finding) = report::finding(cx, incident) {
        let finding = finding.killed(kills.in_all());
        return Ok(grown(cx, incident, finding).into());
    }
    let Some((limited, worst)) = kills.worst() else {
        return clear!("no group had run into its limit when processes were killed");
    };
    let limit = cgroups::limit(cx, limited, CGROUP_MAX);
    let count = kills.in_group(worst.group);
    let available = cx.level(MEM_AVAILABLE, worst.from);
    let has_events = cx.timeline.last_of(limited, CGROUP_EVENTS_OOM).is_some();
    let is_v1 = cx.facts.cgroup_mode == Some(CgroupMode::V1);
    let title = title(limited, limit, worst.group, count, available);
    let text = format!("{count} killed in {}", worst.group.label);
    Ok(RULE
        .found(Severity::Critical, title)
        .killed(kills.in_all())
        .shows_from(CGROUP_EVENTS_OOM_KILL, count, Count::new(1), cx.time(worst.at), text)
        .counts_as("the group's kill counter")
        .and(|finding| held(cx, limited, worst.from, limit, finding))
        .with(available, |it, available| {
            let text = format!("{available} available on the host before");
            it.shows(MEM_AVAILABLE, available, cx.time(worst.from), text)
                .not("oom-global", format!("the limit was hit, and the host had {available} available"))
        })
        .counts_if(has_events, "its limit events")
        .and(|finding| grown(cx, incident, finding))
        .fix(raised(cx, limited, limit, "Raise the limit to what the group needs (a quarter more is a beginning), or make its programs smaller (heap, workers)."))
        .when(!is_v1, |finding| slowed_first(cx, finding, limited, limit))
        .verify(report::verify(is_v1, Hit::Memory))
        .affects(kills.affected(cx))
        .sure_by_kinds(cx, "")
        .into())
}

/// `Control group X ran into its limit of 96 MiB, and the kernel killed a process of X/y. The host had …`
fn title(
    limited: &EntitySeries,
    limit: Option<Bytes>,
    victims: &EntitySeries,
    count: Count,
    available: Option<Bytes>,
) -> String {
    let group = &limited.label;
    let ran = match limit {
        Some(limit) => format!("Control group {group} ran into its limit of {limit}"),
        None => format!("A control group below {group} ran into its limit"),
    };
    let processes = match count.get() {
        1 => "a process".to_owned(),
        _ => format!("{count} processes"),
    };
    let inside = if limited.key == victims.key {
        String::new()
    } else {
        format!(" of {}", victims.label)
    };
    let while_free = cgroups::while_the_host_had(available);
    format!("{ran}, and the kernel killed {processes}{inside}.{while_free}")
}

/// The kills of an incident: at one group's limit, in it and in groups below it.
struct Kills<'a>(Vec<GroupKills<'a>>);

impl<'a> Kills<'a> {
    fn of(cx: &Evidence<'a>, incident: &Incident<'_>) -> Self {
        let mut all = kills::in_groups(cx).unwrap_or_default();
        let limited = incident.key.unwrap_or_default();
        all.retain(|kills| kills.are_of(limited, &incident.stretch));
        Self(all)
    }

    /// The group at its limit, and the first kills in the group that lost most.
    fn worst(&self) -> Option<(&'a EntitySeries, &GroupKills<'a>)> {
        // Of several that are alike the last counts, so the order is turned.
        let worst = self.0.iter().rev();
        let worst = worst.max_by_key(|kills| self.in_group(kills.group))?;
        let first = self
            .0
            .iter()
            .filter(|kills| kills.group.key == worst.group.key);
        let first = first.min_by_key(|kills| kills.at)?;
        Some((first.at_limit_of?, first))
    }

    fn in_group(&self, group: &EntitySeries) -> Count {
        let own = self.0.iter().filter(|kills| kills.group.key == group.key);
        Count::new(own.map(|kills| kills.count).sum())
    }

    fn in_all(&self) -> u64 {
        self.0.iter().map(|kills| kills.count).sum()
    }

    /// The groups that lost processes, the one that lost most first, and the likely victim.
    fn affected(&self, cx: &Evidence<'_>) -> Vec<Affected> {
        let worst = self.worst().map(|(_, worst)| worst);
        let mut affected: Vec<Affected> = Vec::new();
        for kills in worst.into_iter().chain(&self.0) {
            if affected.len() < 5 && affected.iter().all(|a| a.name != kills.group.label) {
                let what = format!("{} killed", self.in_group(kills.group));
                affected.push(Affected::new("cgroup", &kills.group.label, what));
            }
        }
        let victim = worst.and_then(|worst| processes::gone(cx, worst.at));
        affected.extend(victim.map(|(name, held)| {
            let what = format!("gone after it had held {held}: likely the victim");
            Affected::new("process", name, what)
        }));
        affected
    }
}

/// A quarter more than the limit, where it is known.
fn raised(cx: &Evidence<'_>, group: &EntitySeries, limit: Option<Bytes>, what: &str) -> Fix {
    let commands = limit.map_or_else(Fix::default, |limit| {
        remedy::set_limit(cx, group, Knob::kills_at(cx), remedy::more(limit))
    });
    commands.told(what)
}

/// Where a group is slowed down before its limit kills: an engineering choice, as its sentence says.
const BEFORE_LIMIT: Ratio = Ratio::from_percent(90.0);

/// Where a group whose limit is raised to this is slowed down first.
fn before(limit: Bytes) -> Bytes {
    limit.share(BEFORE_LIMIT)
}

/// Slowing a group down before its limit kills, unless it is slowed down before that already.
fn slowed_first(
    cx: &Evidence<'_>,
    finding: Finding,
    group: &EntitySeries,
    limit: Option<Bytes>,
) -> Finding {
    let high = limit.map(|limit| before(remedy::more(limit)));
    let has = cgroups::limit(cx, group, CGROUP_HIGH);
    if has.zip(high).is_some_and(|(has, high)| has <= high) {
        return finding;
    }
    let set = high.map(|high| remedy::set_limit(cx, group, Knob::High, high));
    finding.fix(set.unwrap_or_default().told(SLOWED_FIRST))
}

/// The words for it.
const SLOWED_FIRST: &str = "Set memory.high a tenth below the raised limit: the group is slowed down before it is killed, and that can be alerted on.";

/// What the group's memory was when it was last read before the kill.
fn held(
    cx: &Evidence<'_>,
    group: &EntitySeries,
    index: usize,
    limit: Option<Bytes>,
    finding: Finding,
) -> Finding {
    let Some(index) = cx.rows_at(Cgroup, index) else {
        return finding;
    };
    let parts = [
        (CGROUP_CURRENT, "in all"),
        (CGROUP_ANON, "anonymous"),
        (CGROUP_FILE, "page cache and shared memory"),
        (CGROUP_SHMEM, "shared memory and tmpfs"),
    ];
    let finding = parts.into_iter().fold(finding, |finding, (signal, what)| {
        let bytes = cx.timeline.at_of(group, signal, index);
        finding.with(bytes.filter(|bytes| *bytes > Bytes::ZERO), |it, bytes| {
            let text = format!("{bytes} {what} in the group before");
            it.shows(signal, bytes, cx.time(index), text)
        })
    });
    finding.with(limit, |it, limit| {
        it.shows(CGROUP_MAX, limit, None, format!("its limit was {limit}"))
    })
}

/// Nobody was killed since the first sample; what the counters say of the time before is worth a note.
fn before_the_first_sample(cx: &Evidence<'_>) -> Result<Outcome, Missing> {
    let worst = cgroups::with(cx, CGROUP_EVENTS_OOM_KILL)?
        .into_iter()
        .filter_map(|group| {
            let total = cx.timeline.last_of(group, CGROUP_EVENTS_OOM_KILL)?;
            let limited = cgroups::limit(cx, group, CGROUP_MAX)?;
            Some((total, limited, group))
        })
        .max_by_key(|(total, _, _)| *total);
    let Some((total, limit, group)) = worst.filter(|(total, _, _)| *total > Count::ZERO) else {
        return clear!("no process of a limited control group was killed");
    };
    let processes = match total.get() {
        1 => "a process was",
        _ => "processes were",
    };
    let label = &group.label;
    let title = format!(
        "In control group {label} {processes} killed for want of memory before the watch began ({total} in all, limit {limit})."
    );
    let text = format!("{total} killed in {label} since it exists, none since the first sample");
    Ok(RULE
        .found(Severity::Info, title)
        .shows(CGROUP_EVENTS_OOM_KILL, total, None, text)
        .counts_as("the group's kill counter")
        .cause("The group's counter tells that it happened, not when nor whether its limit or the host was the reason.")
        .fix(raised(cx, group, Some(limit), "If it is still too small: raise its limit by a quarter."))
        .verify(report::verify(cx.facts.cgroup_mode == Some(CgroupMode::V1), Hit::Memory))
        .sure_by_kinds(cx, "the kernel log tells when and why")
        .into())
}

/// How fast the group grew in the time before the kill that its readings show. What is known between two of them is the
/// earlier one, so only the readings themselves tell a speed.
fn grown(cx: &Evidence<'_>, incident: &Incident<'_>, finding: Finding) -> Finding {
    let current = incident
        .of
        .and_then(|group| cx.timeline.gauge_of(group, CGROUP_CURRENT));
    let climb = current.and_then(|current| {
        let read = |at: &usize| cx.timeline.was_read(Entity::Cgroup, *at);
        let readings = (0..=incident.stretch.first).filter(read);
        let readings = readings.filter_map(|at| Some((current.at(at)?, at)));
        let readings: Vec<(Bytes, usize)> = readings.collect();
        let (last, earlier) = readings.split_last()?;
        // The climb begins where the group is at its low for the last time.
        let low = earlier
            .iter()
            .min_by_key(|(held, at)| (*held, Reverse(*at)))?;
        Some((*low, *last))
    });
    let Some(((from, low), (to, last))) = climb else {
        return finding;
    };
    let times = cx.timeline.times();
    let took = times[last] - times[low];
    match PerSecond::<Bytes>::over(to.saturating_sub(from).as_f64(), took) {
        Some(rate) if to > from => {
            let text = format!("grew from {from} to {to} in the {took} before ({rate})");
            finding.shows(CGROUP_CURRENT, to, cx.time(last), text)
        }
        _ => finding,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oom::testing::Report;
    use crate::rules::testing::{Case, clear, found, incidents, not_evaluated, times};
    use timeline::signals::CGROUP_EVENTS_MAX;
    use units::Limit;

    /// `kills` in second 5 in a group of 96 MiB, on a host with memory.
    fn group(case: Case, key: &str, kills: u64) -> Case {
        let mut events = vec![0; 10];
        events[5] = kills;
        case.gauge_of(Cgroup, key, CGROUP_MAX, Limit::Bytes(Bytes::from_mib(96)))
            .gauge_of(Cgroup, key, CGROUP_CURRENT, Bytes::from_mib(95))
            .gauge_of(Cgroup, key, CGROUP_ANON, Bytes::from_mib(94))
            .counter_steps_of(Cgroup, key, CGROUP_EVENTS_OOM_KILL, &events)
            .counter_steps_of(Cgroup, key, CGROUP_EVENTS_OOM, &events)
    }

    fn host() -> Case {
        Case::over(10).gauge(MEM_AVAILABLE, Bytes::from_mib(500))
    }

    #[test]
    fn one_kill_at_a_limit_is_critical() {
        let finding = found(RULE, &group(host(), "/app", 2));
        assert_eq!(finding.severity, Severity::Critical);
        assert_eq!(finding.confidence.word(), "confirmed");
        assert!(finding.title.contains("/app ran into its limit of 96 MiB"));
        assert!(finding.title.contains("2 processes"));
        assert_eq!(finding.affected[0].name, "/app");
    }

    #[test]
    fn memory_high_is_set_below_the_raised_limit_and_never_raised() {
        let slowed = |high: Limit| {
            let case = group(host(), "/app", 2).gauge_of(Cgroup, "/app", CGROUP_HIGH, high);
            let fixes = found(RULE, &case).fixes;
            let of_high = |fix: &Fix| fix.now.contains("memory.high");
            fixes
                .into_iter()
                .find(of_high)
                .map(|fix| [fix.now, fix.undo])
        };
        // 120 MiB is what the first fix raises the limit to.
        let now = "echo 108M > /sys/fs/cgroup/app/memory.high";
        for (high, undo) in [
            (Limit::Unlimited, "max"),
            (Limit::Bytes(Bytes::from_mib(112)), "117440512"),
        ] {
            let undo = format!("echo {undo} > /sys/fs/cgroup/app/memory.high");
            assert_eq!(slowed(high), Some([now.to_owned(), undo]));
        }
        assert_eq!(slowed(Limit::Bytes(Bytes::from_mib(48))), None);
    }

    #[test]
    fn kills_are_counted_once_where_groups_are_read_more_rarely_than_the_host() {
        for (kills, told) in [(1, "killed a process"), (6, "killed 6 processes")] {
            let case = group(host(), "/app", kills).read_every(10, Cgroup);
            let finding = found(RULE, &case);
            assert!(finding.title.contains(told), "{}", finding.title);
        }
    }

    #[test]
    fn the_speed_of_growth_is_that_between_readings_however_rare_they_are() {
        let held: Vec<Bytes> = (0..41)
            .map(|second| Bytes::from_mib(10 + 2 * second))
            .collect();
        let mut events = vec![0; 40];
        events[34] = 1;
        for (every, expected) in [
            (1, "grew from 58 MiB to 78 MiB in the 10 s before (2 MiB/s)"),
            (
                10,
                "grew from 50 MiB to 70 MiB in the 10 s before (2 MiB/s)",
            ),
        ] {
            let case = Case::over(40)
                .gauge_of(
                    Cgroup,
                    "/app",
                    CGROUP_MAX,
                    Limit::Bytes(Bytes::from_mib(96)),
                )
                .gauge_steps_of(Cgroup, "/app", CGROUP_CURRENT, &held)
                .counter_steps_of(Cgroup, "/app", CGROUP_EVENTS_OOM_KILL, &events)
                .counter_steps_of(Cgroup, "/app", CGROUP_EVENTS_OOM, &events)
                .read_every(every, Cgroup);
            let finding = found(RULE, &case);
            let lines: Vec<_> = finding
                .evidence
                .iter()
                .map(|line| line.text.as_str())
                .collect();
            assert!(lines.contains(&expected), "{lines:?}");
        }
    }

    #[test]
    fn the_group_that_lost_the_process_is_named_and_not_those_above_it() {
        let case = group(group(host(), "/pods", 1), "/pods/web", 1);
        let finding = found(RULE, &case);
        assert!(finding.title.contains("/pods/web ran into"));
        assert_eq!(finding.affected.len(), 1);
    }

    #[test]
    fn a_limit_above_the_victim_is_named_as_what_was_hit() {
        let mut events = vec![0; 10];
        events[5] = 1;
        let case = group(host(), "/pods", 1)
            .counter_steps_of(Cgroup, "/pods/web", CGROUP_EVENTS_OOM_KILL, &events)
            .counter_of(Cgroup, "/pods/web", CGROUP_EVENTS_OOM, 0);
        let finding = found(RULE, &case);
        assert!(
            finding.title.contains("/pods ran into"),
            "{}",
            finding.title
        );
        assert!(finding.title.contains("a process of /pods/web"));
    }

    #[test]
    fn a_group_that_is_gone_after_the_kill_is_still_named() {
        let slice = "/system.slice";
        let held = vec![Bytes::from_mib(95); 6];
        let case = group(host(), slice, 1)
            .gauge_of(Cgroup, slice, CGROUP_MAX, Limit::Unlimited)
            .gauge_until_of(Cgroup, "/system.slice/job.service", CGROUP_CURRENT, &held)
            .gauge_until_of(
                Cgroup,
                "/system.slice/job.service",
                CGROUP_MAX,
                &[Limit::Bytes(Bytes::from_mib(96)); 6],
            );
        let finding = found(RULE, &case);
        assert!(
            finding
                .title
                .contains("job.service ran into its limit of 96 MiB"),
            "{}",
            finding.title
        );
    }

    #[test]
    fn a_victim_of_the_host_is_not_the_limits_doing() {
        let case = group(host(), "/app", 1).counter_of(Cgroup, "/app", CGROUP_EVENTS_OOM, 0);
        clear(RULE, &case);
    }

    #[test]
    fn on_v1_running_into_the_limit_tells() {
        let v1 = |hits| {
            let mut events = vec![0; 10];
            events[5] = 1;
            let mut case = host()
                .gauge_of(
                    Cgroup,
                    "/app",
                    CGROUP_MAX,
                    Limit::Bytes(Bytes::from_mib(96)),
                )
                .counter_steps_of(Cgroup, "/app", CGROUP_EVENTS_OOM_KILL, &events)
                .counter_of(Cgroup, "/app", CGROUP_EVENTS_MAX, hits);
            case.facts.cgroup_mode = Some(CgroupMode::V1);
            case
        };
        found(RULE, &v1(10));
        clear(RULE, &v1(0));
    }

    #[test]
    fn kills_before_the_first_sample_are_a_note() {
        let finding = found(RULE, &group(host(), "/app", 0));
        assert_eq!(finding.severity, Severity::Info);
    }

    #[test]
    fn without_groups_only_a_host_without_any_kill_is_clear() {
        assert_eq!(
            not_evaluated(RULE, &Case::over(10)).names,
            ["cgroup.events_oom_kill"]
        );
        clear(RULE, &Case::over(10).counter_at(OOM_KILLS, 0));
    }

    /// An hour in which a process of a group of 96 MiB is killed in each of these seconds.
    fn hour(key: &str, seconds: &[usize]) -> Case {
        let mut events = vec![0; 3600];
        for second in seconds {
            events[*second] = 1;
        }
        Case::over(3600)
            .gauge(MEM_AVAILABLE, Bytes::from_mib(500))
            .gauge_of(Cgroup, key, CGROUP_MAX, Limit::Bytes(Bytes::from_mib(96)))
            .gauge_of(Cgroup, key, CGROUP_CURRENT, Bytes::from_mib(95))
            .counter_steps_of(Cgroup, key, CGROUP_EVENTS_OOM_KILL, &events)
            .counter_steps_of(Cgroup, key, CGROUP_EVENTS_OOM, &events)
    }

    #[test]
    fn kills_four_minutes_apart_are_two_incidents_of_an_hour_and_a_restart_is_none() {
        let finding = found(RULE, &hour("/app", &[1000, 1240, 1245]));
        assert_eq!(finding.severity, Severity::Critical);
        assert_eq!(times(&finding), [(1000, 1001), (1240, 1246)]);
        assert_eq!(finding.harm.killed, 3);
        let scope = finding.scope;
        assert_eq!((scope.entity, scope.key.as_str()), (Cgroup, "/app"));
    }

    #[test]
    fn two_groups_that_kill_are_two_incidents() {
        let mut events = vec![0; 3600];
        events[1001] = 1;
        let case = hour("/app", &[1000])
            .gauge_of(Cgroup, "/db", CGROUP_MAX, Limit::Bytes(Bytes::from_mib(64)))
            .counter_steps_of(Cgroup, "/db", CGROUP_EVENTS_OOM_KILL, &events)
            .counter_steps_of(Cgroup, "/db", CGROUP_EVENTS_OOM, &events);
        let all = incidents(RULE, &case);
        let keys: Vec<&str> = all.iter().map(|one| one.scope.key.as_str()).collect();
        assert_eq!(keys, ["/app", "/db"]);
        assert!(all.iter().all(|one| one.harm.killed == 1));
    }

    #[test]
    fn a_kill_that_a_counter_and_the_kernels_report_tell_is_one() {
        let mut report = Report::of_a_group(98_304, 98_304);
        if let Some(group) = &mut report.0.group {
            group.path = "/app".to_owned();
        }
        let all = incidents(RULE, &hour("/app", &[1000]).reporting(1001, report));
        let [one] = all.as_slice() else {
            panic!("one kill: {all:?}");
        };
        assert_eq!((one.harm.killed, times(one)), (1, vec![(1000, 1001)]));
        assert!(one.title.contains("killed worker"), "{}", one.title);
    }

    #[test]
    fn a_victim_of_the_host_within_an_hour_is_not_the_limits_doing() {
        let case = hour("/app", &[1000]).counter_of(Cgroup, "/app", CGROUP_EVENTS_OOM, 0);
        clear(RULE, &case);
    }
}
