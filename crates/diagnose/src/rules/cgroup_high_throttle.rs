//! A control group is slowed down for being above its memory.high.

use timeline::{
    Condition, EntitySeries, Stretch,
    facts::CgroupMode,
    signals::{
        CGROUP_CURRENT, CGROUP_EVENTS_HIGH, CGROUP_HIGH, CGROUP_PSI_MEMORY_FULL,
        CGROUP_PSI_MEMORY_SOME, MEM_AVAILABLE,
    },
};
use units::{Bytes, Count, Ratio, Span};

use super::oom_cgroup::rounded;
use crate::evidence::Evidence;
use crate::finding::{Affected, Held, Severity};
use crate::groups::{self, Knob};
use crate::missing::{Missing, Need};
use crate::rule::{Outcome, clear, declare_rule};
use crate::stalls::Stalls;

declare_rule! {
    /// A control group wants more than its memory.high, and the kernel slows its tasks down.
    ///
    /// ## What it means
    /// Above `memory.high` a group is not killed: its tasks have to reclaim from the group, and where that does not help
    /// they are put to sleep for up to two seconds at each return from the kernel. The service crawls with hardly any CPU
    /// use while the host has memory to spare. The host's own memory pressure rises with it, although nothing else waits.
    /// ## How it is recognised
    /// The group's `high` event rises, its memory is at 98 % of `memory.high` or more, and its tasks stall for memory 10 %
    /// of the time, for long. It is critical when nothing in the group ran for a quarter of the time. Without the group's
    /// pressure file its memory must stay above the limit by 2 %, and that makes it probable.
    /// ## Not this
    /// - A group that streams files through its limit: `high` rises, but reclaim is easy and nothing stalls.
    /// - `available-exhaustion`, `swap-thrash`: the host itself is short. Memory available on the host rules that out.
    /// - `oom-cgroup`, `cgroup-cache-starved`: the hard limit, memory.max.
    /// ## What to do
    /// Now: raise `memory.high` to what the group needs. For good: MemoryHigh= in its unit, or a smaller program. Verify:
    /// the group's memory pressure is below 1 % and `high` no longer rises.
    /// ## References
    /// - kernel mm/memcontrol.c, mem_cgroup_handle_over_high
    /// - kernel Documentation/admin-guide/cgroup-v2.rst, memory.high
    pub(crate) RULE = { id: "cgroup-high-throttle", since: "0.1.0", purpose: Finding, check: check }
}

/// Charges are batched (the kernel's MEMCG_CHARGE_BATCH), so a throttled group may read a little below its limit.
const NEAR: Ratio = Ratio::from_percent(98.0);
/// A group whose reclaim keeps up stays within a batch of 64 pages per CPU of its limit; one that cannot goes beyond
/// (a labelled capture, November 2026: 5 % to 16 % above).
const ABOVE: Ratio = Ratio::from_percent(102.0);
/// An engineering choice: a tenth of the time is what users notice.
const STALLED: Ratio = Ratio::from_percent(10.0);
const HOLD: Span = Span::from_mins(5);

/// A group that is slowed down.
struct Throttled<'a> {
    group: &'a EntitySeries,
    high: Bytes,
    held: Bytes,
    events: Count,
    stretch: Stretch,
    /// Every time at which it was slowed down.
    held_when: Held,
    some: Option<Ratio>,
    full: Option<Ratio>,
}

fn check(cx: &Evidence<'_>) -> Result<Outcome, Missing> {
    if cx.facts.cgroup_mode == Some(CgroupMode::V1) {
        return clear!("memory.high exists on cgroup v2 only");
    }
    let groups = groups::with(cx, CGROUP_HIGH)?;
    let limited: Vec<_> = groups
        .into_iter()
        .filter_map(|group| Some((group, groups::limit(cx, group, CGROUP_HIGH)?)))
        .collect();
    if limited.is_empty() {
        return clear!("no control group has a memory.high");
    }
    groups::with(cx, CGROUP_EVENTS_HIGH)?;
    if cx.is_single_look() {
        return Err(Missing::because(
            vec![CGROUP_EVENTS_HIGH.def().name],
            Need::TwoLooks,
        ));
    }
    let mut throttled: Vec<_> = limited
        .iter()
        .filter_map(|(group, high)| throttled(cx, group, *high))
        .collect();
    throttled.sort_by(|a, b| {
        let stall = |t: &Throttled<'_>| t.full.or(t.some).map_or(0.0, Ratio::get);
        stall(b).total_cmp(&stall(a))
    });
    let Some(worst) = throttled.first() else {
        return clear!(
            "control groups with a memory.high: {}; none was slowed down by it",
            limited.len()
        );
    };

    let standstill = worst.full.is_some_and(|full| full >= Stalls::STANDSTILL);
    let waits = match (worst.full, worst.some) {
        (Some(full), _) if full >= Stalls::MEMORY => {
            format!(", and its tasks stood still {full} of the time")
        }
        (_, Some(some)) => format!(", and its tasks waited {some} of the time"),
        _ => String::new(),
    };
    let available = cx
        .gauge(MEM_AVAILABLE)
        .ok()
        .and_then(|available| available.min_in(&worst.stretch))
        .map(|(least, _)| least);
    let host = available.map_or_else(String::new, |available| {
        format!(" The host had {available} available.")
    });
    let mut finding = RULE
        .found(
            if standstill {
                Severity::Critical
            } else {
                Severity::Warning
            },
            format!(
                "Control group {} is slowed down: it wants more than its memory.high of {}{waits}.{host}",
                worst.group.label, worst.high
            ),
        )
        .during(worst.held_when.clone())
        .shows_from(
            CGROUP_EVENTS_HIGH,
            worst.events, Count::new(1),
            None,
            format!("{} times above memory.high", worst.events),
        )
        .shows_from(
            CGROUP_CURRENT,
            worst.held, worst.high.share(NEAR),
            None,
            format!("{} in the group on average", worst.held),
        )
        .shows(
            CGROUP_HIGH,
            worst.high,
            None,
            format!("its memory.high is {}", worst.high),
        );
    if let Some(stalled) = cx.timeline.rate_of(worst.group, CGROUP_PSI_MEMORY_SOME) {
        finding = finding.graph("tasks of the group waiting", &stalled.to_share());
    }
    if let Some(some) = worst.some {
        let full = worst
            .full
            .map_or_else(String::new, |full| format!(", full {full}"));
        finding = finding.shows_from(
            CGROUP_PSI_MEMORY_SOME,
            some,
            STALLED,
            None,
            format!("memory stalls of the group: some {some}{full}"),
        );
    }
    if let Some(available) = available {
        finding = finding
            .shows(
                MEM_AVAILABLE,
                available,
                None,
                format!("at least {available} available on the host"),
            )
            .not(
                "available-exhaustion",
                format!(
                    "the host had {available} available; its own memory stalls come from the group"
                ),
            );
    }
    let mut kinds = vec!["the group's high events"];
    if worst.some.is_some() {
        kinds.push("its memory stalls");
    }
    let open = if worst.some.is_some() {
        ""
    } else {
        "the group's memory.pressure would settle it"
    };
    let wanted = groups::more(worst.high.max(worst.held));
    let raised = groups::set_limit(cx, worst.group, Knob::High, wanted);
    Ok(finding
        .not("oom-cgroup", "memory.high slows down and does not kill")
        .cause("The group holds more than its memory.high, and what is in it cannot be reclaimed fast enough.")
        .fix(raised.told(format!("Raise memory.high above what the group needs (it was {}; a quarter more is a beginning), or make its program smaller.", worst.high)))
        .verify("the group's memory.pressure stays below 1 %, and high in its memory.events no longer rises")
        .affects(throttled.iter().take(5).map(|t| Affected {
            kind: "cgroup",
            name: t.group.label.clone(),
            what: format!("{} of memory.high {}", t.held, t.high),
        }))
        .sure(cx.confidence(&kinds, open))
        .see("kernel: mm/memcontrol.c, mem_cgroup_handle_over_high")
        .see("kernel: Documentation/admin-guide/cgroup-v2.rst, memory.high")
        .into())
}

/// Whether, and how much, a group with this limit was slowed down.
fn throttled<'a>(cx: &Evidence<'a>, group: &'a EntitySeries, high: Bytes) -> Option<Throttled<'a>> {
    let current = cx.timeline.gauge_of(group, CGROUP_CURRENT)?;
    let some = cx
        .timeline
        .rate_of(group, CGROUP_PSI_MEMORY_SOME)
        .map(|stalled| stalled.to_share());
    let slowed: Condition = match &some {
        Some(some) => current
            .at_least(high.share(NEAR))
            .and(&some.at_least(STALLED)),
        None => current.at_least(high.share(ABOVE)),
    };
    let stretch = cx.sustained(&slowed, HOLD)?;
    let own = groups::own_events(cx, group, CGROUP_EVENTS_HIGH)?;
    let was_above = |stretch: &Stretch| own.integral_in(stretch) >= 1.0;
    if !was_above(&stretch) {
        return None;
    }
    Some(Throttled {
        group,
        high,
        held: current.mean_in(&stretch)?,
        events: Count::new(rounded(own.integral_in(&stretch))),
        stretch,
        held_when: cx.each_time(stretch, &slowed, HOLD, was_above),
        some: some.and_then(|some| some.mean_in(&stretch)),
        full: cx
            .timeline
            .rate_of(group, CGROUP_PSI_MEMORY_FULL)
            .and_then(|stalled| stalled.to_share().mean_in(&stretch)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::{Case, clear, found, not_evaluated};
    use timeline::Entity::Cgroup;
    use timeline::signals::{PSI_MEMORY_FULL, PSI_MEMORY_SOME};
    use units::Limit;

    /// A group of `held` MiB with a memory.high of 80 MiB that it exceeds `events` times a second.
    fn group(key: &str, held: u64, events: u64) -> Case {
        Case::over(30)
            .gauge(MEM_AVAILABLE, Bytes::from_mib(486))
            .gauge_of(Cgroup, key, CGROUP_HIGH, Limit::Bytes(Bytes::from_mib(80)))
            .gauge_of(Cgroup, key, CGROUP_CURRENT, Bytes::from_mib(held))
            .counter_of(Cgroup, key, CGROUP_EVENTS_HIGH, events)
    }

    fn stalled(case: Case, key: &str, percent: u64) -> Case {
        case.counter_of(Cgroup, key, CGROUP_PSI_MEMORY_SOME, percent * 10_000)
            .counter_of(Cgroup, key, CGROUP_PSI_MEMORY_FULL, percent * 9_500)
    }

    #[test]
    fn a_group_that_stands_still_above_its_high_is_critical() {
        let finding = found(RULE, &stalled(group("/app", 90, 17), "/app", 95));
        assert_eq!(finding.severity, Severity::Critical);
        assert_eq!(finding.confidence.word(), "confirmed");
        assert!(finding.title.contains("/app"));
        assert!(finding.title.contains("486 MiB available"));
        assert!(
            finding.fixes[0]
                .now
                .contains("/sys/fs/cgroup/app/memory.high")
        );
    }

    #[test]
    fn a_group_that_waits_a_little_is_a_warning() {
        let finding = found(RULE, &stalled(group("/app", 79, 17), "/app", 15));
        assert_eq!(finding.severity, Severity::Warning);
    }

    #[test]
    fn a_systemd_unit_is_changed_through_systemd() {
        let key = "/system.slice/web.service";
        let finding = found(RULE, &stalled(group(key, 90, 17), key, 95));
        assert_eq!(
            finding.fixes[0].now,
            "systemctl set-property --runtime web.service MemoryHigh=113M"
        );
    }

    #[test]
    fn a_name_that_a_shell_would_run_is_not_put_into_a_command() {
        let key = "/a; rm -rf x.service";
        let finding = found(RULE, &stalled(group(key, 90, 17), key, 95));
        assert_eq!(finding.fixes[0].now, "");
    }

    #[test]
    fn files_that_stream_through_the_limit_are_clear() {
        clear(RULE, &stalled(group("/app", 80, 200), "/app", 2));
        clear(RULE, &group("/app", 80, 200));
    }

    #[test]
    fn without_the_groups_pressure_it_is_probable() {
        assert_eq!(
            found(RULE, &group("/app", 90, 17)).confidence.word(),
            "probable"
        );
    }

    #[test]
    fn pressure_of_the_host_alone_proves_nothing() {
        let case = stalled(group("/app", 40, 0), "/app", 0)
            .counter(PSI_MEMORY_SOME, 980_000)
            .counter(PSI_MEMORY_FULL, 980_000);
        clear(RULE, &case);
    }

    #[test]
    fn without_limits_it_is_clear_and_without_groups_not_evaluated() {
        let unlimited =
            group("/app", 90, 0).gauge_of(Cgroup, "/app", CGROUP_HIGH, Limit::Unlimited);
        clear(RULE, &unlimited);
        assert_eq!(not_evaluated(RULE, &Case::over(30)).names, ["cgroup.high"]);
    }
}
