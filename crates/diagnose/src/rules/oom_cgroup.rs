//! A control group ran into its limit, and the kernel killed in it.

mod report;

use timeline::{
    Entity::Cgroup,
    EntitySeries,
    facts::CgroupMode,
    signals::{
        CGROUP_ANON, CGROUP_CURRENT, CGROUP_EVENTS_MAX, CGROUP_EVENTS_OOM, CGROUP_EVENTS_OOM_KILL,
        CGROUP_FILE, CGROUP_HIGH, CGROUP_MAX, CGROUP_SHMEM, MEM_AVAILABLE, OOM_KILLS,
    },
};
use units::{Bytes, Count, Ratio};

use crate::evidence::Evidence;
use crate::finding::{Affected, Finding, Held, Severity};
use crate::fix::Fix;
use crate::groups::{self, Knob};
use crate::missing::Missing;
use crate::oom::{Limit as Hit, bout_at, bouts};
use crate::rule::{Outcome, clear, declare_rule};
use crate::who;

declare_rule! {
    /// A control group ran into its memory limit and the kernel killed a process in it; the host itself may have plenty.
    ///
    /// ## What it means
    /// What a service, container or pod may use is limited by its control group. When it wants more and nothing in it can
    /// be reclaimed, the kernel kills one of its processes: exit status 137, a restarted pod, a failed unit. The host's
    /// free memory does not matter for that.
    /// ## How it is recognised
    /// The group's `oom_kill` event rises, and it or a group above it ran into its own limit at that moment (`oom`, or
    /// `max` where that is all there is). Every kill counts; there is no holding time. Kills before the look are a note.
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
    pub(crate) RULE = { id: "oom-cgroup", since: "0.1.0", purpose: Finding, check: check }
}

/// Kills in one group between two looks at it.
#[derive(Debug)]
pub(crate) struct Kills<'a> {
    /// Where the victims were.
    pub(crate) group: &'a EntitySeries,
    /// The sample of the look before: groups may be read more rarely than the host.
    pub(crate) from: usize,
    /// The sample of the look after.
    pub(crate) at: usize,
    /// How many.
    pub(crate) count: f64,
    /// The group whose limit was hit: it or one above it. `None` where no limit was, so the host killed.
    pub(crate) at_limit_of: Option<&'a EntitySeries>,
}

/// All kills in control groups while the source was watched.
///
/// `oom_kill` of memory.events counts the group's victims of any OOM kill, the host's included (kernel
/// Documentation/admin-guide/cgroup-v2.rst), so each is held against the limits.
///
/// # Errors
/// [`Missing`] where no group reports kills.
pub(crate) fn kills<'a>(cx: &Evidence<'a>) -> Result<Vec<Kills<'a>>, Missing> {
    let mut all = Vec::new();
    let is_look = |at: &usize| cx.timeline.was_read(Cgroup, *at);
    let looks: Vec<usize> = (0..cx.timeline.len()).filter(is_look).collect();
    for group in groups::with(cx, CGROUP_EVENTS_OOM_KILL)? {
        let Some(own) = groups::own_events(cx, group, CGROUP_EVENTS_OOM_KILL) else {
            continue;
        };
        for step in looks.windows(2) {
            let (from, at) = (step[0], step[1]);
            let count = cx
                .timeline
                .stretch(from, at)
                .map_or(0.0, |step| own.integral_in(&step))
                .round();
            if count < 1.0 {
                continue;
            }
            let mut kills = Kills {
                group,
                from,
                at,
                count,
                at_limit_of: limit_hit(cx, group, at),
            };
            if kills.at_limit_of.is_some()
                && let Some(gone) = gone_below(cx, group, at)
            {
                kills.group = gone;
                kills.at_limit_of = Some(gone);
            }
            all.push(kills);
        }
    }
    Ok(all)
}

/// The innermost group from `group` upwards that ran into its own limit around sample `at`.
fn limit_hit<'a>(
    cx: &Evidence<'a>,
    group: &'a EntitySeries,
    at: usize,
) -> Option<&'a EntitySeries> {
    // Files of one sample are read one after the other, so an event may show one sample off.
    let around = |signal, group: &EntitySeries| {
        let own = groups::own_events(cx, group, signal)?;
        Some((at - 1..=at + 1).any(|i| own.at(i).is_some_and(|rate| rate.get() > 0.0)))
    };
    groups::upwards(cx, group).find(|group| {
        around(CGROUP_EVENTS_OOM, group)
            .or_else(|| {
                let hit = around(CGROUP_EVENTS_MAX, group)?;
                Some(hit && groups::limit(cx, group, CGROUP_MAX).is_some())
            })
            // Without events about limits the limit itself must do.
            .unwrap_or_else(|| groups::limit(cx, group, CGROUP_MAX).is_some())
    })
}

/// A group without a limit of its own cannot have hit one: its counter keeps what happened in a group below it that is
/// gone by sample `at`, as a failed unit's is at once. The one that was nearest to its limit.
fn gone_below<'a>(cx: &Evidence<'a>, group: &EntitySeries, at: usize) -> Option<&'a EntitySeries> {
    if groups::limit(cx, group, CGROUP_MAX).is_some() {
        return None;
    }
    let below = format!("{}/", group.key.trim_end_matches('/'));
    let before = cx.rows_at(Cgroup, at.checked_sub(1)?)?;
    let after = cx.rows_from(Cgroup, at)?;
    cx.timeline
        .entities(Cgroup)
        .filter(|child| child.key.starts_with(&below))
        .filter_map(|child| {
            let held = cx.timeline.at_of(child, CGROUP_CURRENT, before)?;
            let gone = cx.timeline.at_of(child, CGROUP_CURRENT, after).is_none();
            let near = held.ratio_of(groups::limit(cx, child, CGROUP_MAX)?)?;
            gone.then_some((near.get(), child))
        })
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, child)| child)
}

fn check(cx: &Evidence<'_>) -> Result<Outcome, Missing> {
    if let Some(told) = report::check(cx) {
        return Ok(told);
    }
    let all = match kills(cx) {
        Ok(all) => all,
        Err(missing) => {
            // A host on which nobody was ever killed needs no groups to say so.
            return match cx.timeline.last(OOM_KILLS) {
                Some(Count::ZERO) => clear!("no process was killed for want of memory since boot"),
                _ => Err(missing),
            };
        }
    };
    let mut at_limits: Vec<&Kills<'_>> = all.iter().filter(|k| k.at_limit_of.is_some()).collect();
    // The group in which most were killed is what the finding is about.
    let killed_in = |group: &EntitySeries| -> f64 {
        all.iter()
            .filter(|k| k.at_limit_of.is_some() && k.group.key == group.key)
            .map(|k| k.count)
            .sum()
    };
    at_limits.sort_by(|a, b| {
        killed_in(b.group)
            .total_cmp(&killed_in(a.group))
            .then(a.at.cmp(&b.at))
    });
    let Some(worst) = at_limits.first() else {
        return before_the_look(cx, all.is_empty());
    };
    let limited = worst.at_limit_of.unwrap_or(worst.group);
    let limit = groups::limit(cx, limited, CGROUP_MAX);
    let count = Count::new(rounded(killed_in(worst.group)));
    let processes = if count == Count::new(1) {
        "a process".to_owned()
    } else {
        format!("{count} processes")
    };
    let ran = limit.map_or_else(
        || format!("A control group below {} ran into its limit", limited.label),
        |limit| {
            format!(
                "Control group {} ran into its limit of {limit}",
                limited.label
            )
        },
    );
    let inside = if limited.key == worst.group.key {
        String::new()
    } else {
        format!(" of {}", worst.group.label)
    };
    let available = cx
        .timeline
        .gauge(MEM_AVAILABLE)
        .and_then(|available| available.at(worst.from));
    let while_free = available.map_or_else(String::new, |available| {
        format!(" The host had {available} available.")
    });
    let mut finding = RULE
        .found(
            Severity::Critical,
            format!("{ran}, and the kernel killed {processes}{inside}.{while_free}"),
        )
        .shows_from(
            CGROUP_EVENTS_OOM_KILL,
            count,
            Count::new(1),
            Some(cx.timeline.times()[worst.at]),
            format!("{count} killed in {}", worst.group.label),
        );
    let bouts = bouts(cx, at_limits.iter().map(|k| (k.from, k.at)));
    if let Some(during) = bout_at(&bouts, worst.at) {
        finding = finding.during(Held::new(during, bouts));
    }
    finding = held(cx, limited, worst.from, limit, finding);
    if let Some(available) = available {
        finding = finding
            .shows(
                MEM_AVAILABLE,
                available,
                Some(cx.timeline.times()[worst.from]),
                format!("{available} available on the host before"),
            )
            .not(
                "oom-global",
                format!("the limit was hit, and the host had {available} available"),
            );
    }
    let mut kinds = vec!["the group's kill counter"];
    if cx.timeline.last_of(limited, CGROUP_EVENTS_OOM).is_some() {
        kinds.push("its limit events");
    }
    finding = finding
        .cause("The programs of the group want more memory than its limit allows, and what could be reclaimed in it was not enough.")
        .fix(raised(cx, limited, limit, "Raise the limit to what the group needs (a quarter more is a beginning), or make its programs smaller (heap, workers)."));
    if cx.facts.cgroup_mode != Some(CgroupMode::V1) {
        finding = slowed_first(cx, finding, limited, limit);
    }
    Ok(finding
        .verify(report::verify(
            cx.facts.cgroup_mode == Some(CgroupMode::V1),
            Hit::Memory,
        ))
        .affects(affected(cx, worst, &killed_in, &all))
        .alias("cgroup-oom")
        .sure(cx.confidence(&kinds, ""))
        .see("kernel: Documentation/admin-guide/cgroup-v2.rst, memory.events")
        .into())
}

/// A quarter more than the limit, where it is known.
fn raised(cx: &Evidence<'_>, group: &EntitySeries, limit: Option<Bytes>, what: &str) -> Fix {
    let commands = limit.map_or_else(Fix::default, |limit| {
        groups::set_limit(cx, group, Knob::kills_at(cx), groups::more(limit))
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
    let high = limit.map(|limit| before(groups::more(limit)));
    let has = groups::limit(cx, group, CGROUP_HIGH);
    if has.zip(high).is_some_and(|(has, high)| has <= high) {
        return finding;
    }
    let set = high.map(|high| groups::set_limit(cx, group, Knob::High, high));
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
    mut finding: Finding,
) -> Finding {
    let Some(index) = cx.rows_at(Cgroup, index) else {
        return finding;
    };
    let at = Some(cx.timeline.times()[index]);
    for (signal, what) in [
        (CGROUP_CURRENT, "in all"),
        (CGROUP_ANON, "anonymous"),
        (CGROUP_FILE, "page cache and shared memory"),
        (CGROUP_SHMEM, "shared memory and tmpfs"),
    ] {
        if let Some(bytes) = cx
            .timeline
            .at_of(group, signal, index)
            .filter(|bytes| *bytes > Bytes::ZERO)
        {
            finding = finding.shows(
                signal,
                bytes,
                at,
                format!("{bytes} {what} in the group before"),
            );
        }
    }
    match limit {
        Some(limit) => finding.shows(CGROUP_MAX, limit, None, format!("its limit was {limit}")),
        None => finding,
    }
}

/// The groups that lost processes, the one that lost most first, and the likely victim.
fn affected(
    cx: &Evidence<'_>,
    worst: &Kills<'_>,
    killed_in: &impl Fn(&EntitySeries) -> f64,
    all: &[Kills<'_>],
) -> Vec<Affected> {
    let mut affected: Vec<Affected> = Vec::new();
    for kills in std::iter::once(worst).chain(all.iter().filter(|k| k.at_limit_of.is_some())) {
        if affected.len() < 5 && affected.iter().all(|a| a.name != kills.group.label) {
            affected.push(Affected {
                kind: "cgroup",
                name: kills.group.label.clone(),
                what: format!("{} killed", Count::new(rounded(killed_in(kills.group)))),
            });
        }
    }
    if let Some((name, held)) = who::gone(cx, worst.at) {
        affected.push(Affected {
            kind: "process",
            name: name.to_owned(),
            what: format!("gone after it had held {held}: likely the victim"),
        });
    }
    affected
}

/// Counts are whole; a sum of them is rounded, not cut.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
pub(crate) fn rounded(count: f64) -> u64 {
    count.round().max(0.0) as u64
}

/// Nothing was killed at a limit while watched; what the counters say of the time before is worth a note.
fn before_the_look(cx: &Evidence<'_>, nothing: bool) -> Result<Outcome, Missing> {
    if !nothing {
        return clear!(
            "processes of control groups were killed, but no group had run into its limit"
        );
    }
    let worst = groups::with(cx, CGROUP_EVENTS_OOM_KILL)?
        .into_iter()
        .filter_map(|group| {
            let total = cx.timeline.last_of(group, CGROUP_EVENTS_OOM_KILL)?;
            let limited = groups::limit(cx, group, CGROUP_MAX)?;
            Some((total, limited, group))
        })
        .max_by_key(|(total, _, _)| *total);
    let Some((total, limit, group)) = worst.filter(|(total, _, _)| *total > Count::ZERO) else {
        return clear!("no process of a limited control group was killed");
    };
    let processes = if total == Count::new(1) {
        "a process was"
    } else {
        "processes were"
    };
    Ok(RULE
        .found(
            Severity::Info,
            format!(
                "In control group {} {processes} killed for want of memory before the watch began ({total} in all, limit {limit}).",
                group.label
            ),
        )
        .shows(
            CGROUP_EVENTS_OOM_KILL,
            total,
            None,
            format!("{total} killed in {} since it exists, none while watched", group.label),
        )
        .cause("The group's counter tells that it happened, not when nor whether its limit or the host was the reason.")
        .fix(raised(cx, group, Some(limit), "If it is still too small: raise its limit by a quarter."))
        .verify(report::verify(cx.facts.cgroup_mode == Some(CgroupMode::V1), Hit::Memory))
        .sure(cx.confidence(&["the group's kill counter"], "the kernel log tells when and why"))
        .see("kernel: Documentation/admin-guide/cgroup-v2.rst, memory.events")
        .into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::{Case, clear, found, not_evaluated};
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
    fn kills_before_the_look_are_a_note() {
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
}
