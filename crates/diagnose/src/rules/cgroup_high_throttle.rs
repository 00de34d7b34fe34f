//! The kernel throttles a cgroup that exceeds its memory.high.

use timeline::facts::CgroupMode;
use timeline::signals::{
    CGROUP_CURRENT, CGROUP_EVENTS_HIGH, CGROUP_HIGH, CGROUP_MAX, CGROUP_PSI_MEMORY_FULL,
    CGROUP_PSI_MEMORY_SOME, MEM_AVAILABLE,
};

use crate::finding::LimitFile;
use crate::measures::cgroups;
use crate::measures::psi_average::PressureAverage;
use crate::measures::readings::STALL_NOTICED_SHARE;
use crate::prelude::*;
use crate::remedy;
use crate::trigger::computed_of;

declare_rule! {
    /// A cgroup needs more than its memory.high, and the kernel throttles its tasks.
    ///
    /// ## What it means
    /// Above `memory.high` a cgroup is not killed. Its tasks have to reclaim from the cgroup; when that does not help,
    /// the kernel puts them to sleep for up to two seconds at each return to user space. The service crawls and uses
    /// hardly any CPU while the host has memory to spare. The host's own memory pressure rises with it, although
    /// nothing else waits.
    /// ## How it is recognised
    /// The cgroup's `high` event rises, its memory is at {NEAR_LIMIT} of `memory.high` or more, and its tasks stall for
    /// memory {STALL_NOTICED_SHARE} of the time, for {STALL} or longer. It is critical if nothing in the cgroup ran for
    /// {PressureWindow::STANDSTILL} of the time. In one sample the kernel's averages of a minute show the stalls.
    /// Without the cgroup's pressure file, its memory must stay at {ABOVE} of the limit or more, and the finding is
    /// only probable.
    /// ## Not this
    /// - A cgroup that streams files through its limit: `high` rises, but reclaim is easy and nothing stalls.
    /// - `available-exhaustion`, `swap-thrash`: the host itself is short of memory. Memory available on the host rules
    ///   that out.
    /// - `oom-cgroup`, `cgroup-cache-starved`: the hard limit, memory.max.
    /// ## What to do
    /// Now: raise `memory.high` to what the cgroup needs. For good: MemoryHigh= in its unit, or a smaller program.
    /// Verify: the cgroup's memory pressure is below {PressureWindow::CALM} and `high` no longer rises.
    /// ## References
    /// - kernel mm/memcontrol.c, mem_cgroup_handle_over_high
    /// - kernel Documentation/admin-guide/cgroup-v2.rst, memory.high
    pub(crate) RULE = {
        id: "cgroup-high-throttle", since: "0.1.0", class: Limit,
        numbers: [NEAR_LIMIT, STALL_NOTICED_SHARE, STALL, ABOVE, PressureWindow::CALM,
            PressureWindow::STANDSTILL],
        trigger: trigger, waits: Memory, story: story,
        cause: "The cgroup uses more than its memory.high, and the kernel cannot reclaim from it \
                fast enough.",
        verify: "the cgroup's memory.pressure stays below {PressureWindow::CALM}, and high in its \
                 memory.events no longer rises",
    }
}

/// Charges are batched (the kernel's MEMCG_CHARGE_BATCH), so a throttled cgroup may read a little below its limit.
const NEAR_LIMIT: Ratio = Ratio::from_percent(98.0);
/// Where reclaim keeps up, a cgroup stays within a batch of 64 pages per CPU of its limit; where it does not, the
/// cgroup exceeds the limit by more (a labelled capture, November 2026: 5 % to 16 % above).
const ABOVE: Ratio = Ratio::from_percent(102.0);

fn trigger() -> Trigger {
    let current = || gauge(CGROUP_CURRENT);
    let high = |share| limit(CGROUP_HIGH).share(share);
    let waits =
        stall(CGROUP_PSI_MEMORY_SOME).at_least("memory stalls of the cgroup", STALL_NOTICED_SHARE);
    let at_high = current().at_least("memory of the cgroup", high(NEAR_LIMIT));
    let above_high = current().at_least("memory of the cgroup", high(ABOVE));
    let waited = computed_of("memory stalls of the cgroup before the sample", |cx, group| {
        let average = PressureAverage::of_one_sample_in(cx, group)
            .ok_or_else(|| cx.lacks_signal(CGROUP_PSI_MEMORY_SOME.id()))?;
        Ok(cx.timeline.constant(average.some).cast())
    });
    let waited = waited.at_least("memory stalls of the cgroup", STALL_NOTICED_SHARE);
    Trigger::on(
        Subjects::Each(Entity::Cgroup, has_high),
        STALL,
        all![at_high, any![waited, waits.or_without(above_high)]],
    )
}

/// memory.high exists on cgroup v2 only.
fn has_high(cx: &Evidence<'_>, group: &EntitySeries) -> bool {
    cx.facts.cgroup_mode != Some(CgroupMode::V1) && cgroups::limit(cx, group, CGROUP_HIGH).is_some()
}

fn story<'a>(cx: &Evidence<'a>, incident: &Incident<'a>) -> Result<Outcome, Missing> {
    let (group, stretch) = (incident.entity()?, &incident.stretch);
    let Some(throttled) = Throttled::during(cx, group, stretch) else {
        return clear!("{} did not exceed its memory.high", cgroups::called(cx, group));
    };
    let Throttled { high, used, events } = throttled;
    let share = |signal| cgroups::stalled(cx, group, signal, stretch);
    let signals = [CGROUP_PSI_MEMORY_SOME, CGROUP_PSI_MEMORY_FULL];
    let waited = PressureAverage::of_one_sample_in(cx, group)
        .map_or_else(|| Waited::during(stretch, signals, share), Waited::averaged);
    let waits = waited
        .clause()
        .map_or_else(String::new, |(did, time)| format!(", and its tasks {did} {time}"));
    let available = cx.lowest_in(MEM_AVAILABLE, stretch).map(|(least, _)| least);
    let host = cgroups::while_the_host_had(available);
    let open = match waited.some {
        Some(_) => "",
        None => "the cgroup's memory.pressure would settle it",
    };
    let raised = raised(cx, group, high, used, available);
    let name = cgroups::called(cx, group);
    let title = Title::from(format!(
        "{} is throttled: it needs more than its memory.high of {high}{waits}.",
        capital(&name)
    ))
    .then(host);
    let stalled = cx.timeline.rate_of(group, CGROUP_PSI_MEMORY_SOME);
    let is_short =
        |available: Bytes| cx.ram().is_ok_and(|ram| available < ram.share(AVAILABLE_LOW_SHARE));
    Ok(RULE
        .found(Severity::critical_if(waited.is_standstill()), title)
        .shows_from(
            CGROUP_EVENTS_HIGH,
            events,
            Count::new(1),
            None,
            format!("memory.high exceeded {events} times"),
        )
        .shows_from(
            CGROUP_CURRENT,
            used,
            high.share(NEAR_LIMIT),
            None,
            format!(
                "the cgroup uses {used}{}",
                if cx.is_single_sample() { "" } else { " on average" }
            ),
        )
        .shows(CGROUP_HIGH, high, None, format!("its memory.high is {high}"))
        .counts_as("the cgroup's high events")
        .with(waited.some, |finding, some| {
            let text = format!("memory stalls of the cgroup: {}", waited.shares());
            finding
                .shows_from(CGROUP_PSI_MEMORY_SOME, some, STALL_NOTICED_SHARE, None, text)
                .counts_as("its memory stalls")
        })
        .with(stalled, |finding, stalled| {
            finding.graph("memory stalls of the cgroup", &stalled.to_share())
        })
        .with(available, |finding, available| {
            finding.shows(
                MEM_AVAILABLE,
                available,
                None,
                format!("at least {available} available on the host"),
            )
        })
        .with(available.filter(|available| !is_short(*available)), |finding, available| {
            let why = format!(
                "the host had {available} available; its memory stalls come from the cgroup"
            );
            finding.not("available-exhaustion", why)
        })
        .not("oom-cgroup", "memory.high throttles; it does not kill")
        .fix(raised)
        .affects([Affected::new("cgroup", &group.key, format!("{used} of memory.high {high}"))])
        .sure_by_kinds(cx, open)
        .into())
}

/// The limit at which the kernel kills, less this: the kernel is to slow the cgroup down first. An engineering choice.
const BELOW_MAX: Ratio = Ratio::from_percent(90.0);

/// Raises memory.high to where the need of the cgroup shows, else by a quarter.
fn raised(
    cx: &Evidence<'_>,
    group: &EntitySeries,
    high: Bytes,
    used: Bytes,
    available: Option<Bytes>,
) -> Fix {
    let held = high.max(used);
    let below_max = cgroups::limit(cx, group, CGROUP_MAX).map(|max| max.share(BELOW_MAX));
    let room = remedy::limit_to_measure(cx, group, held, available)
        .map(|room| below_max.map_or(room, |below| room.min(below)))
        .filter(|room| *room >= remedy::more(held));
    let (to, how) = match room {
        Some(to) => (
            to,
            format!(
                "Raise memory.high (it was {high}) to {to}, for which there is room: what the \
                 cgroup needs shows only below the limit. After a time of usual load set it a \
                 little above memory.current. Or make the program smaller."
            ),
        ),
        None => (
            remedy::more(held),
            format!(
                "Raise memory.high (it was {high}) above what the cgroup needs, or make the \
                 program smaller. Start with a quarter more."
            ),
        ),
    };
    remedy::raise_limit_to(cx, group, LimitFile::High, high, to).described(how)
}

/// The readings of a throttled cgroup.
struct Throttled {
    high: Bytes,
    used: Bytes,
    events: Count,
}

impl Throttled {
    fn during(cx: &Evidence<'_>, group: &EntitySeries, stretch: &Stretch) -> Option<Self> {
        let (events, used) = if cx.is_single_sample() {
            let events = cx.timeline.last_of(group, CGROUP_EVENTS_HIGH)?;
            (events, cx.timeline.last_of(group, CGROUP_CURRENT)?)
        } else {
            let rate = cgroups::own_events(cx, group, CGROUP_EVENTS_HIGH)?;
            let used = cx.timeline.gauge_of(group, CGROUP_CURRENT)?;
            let events = Count::from_f64(rate.integral_in(stretch));
            (events, used.mean_in(stretch)?)
        };
        Some(Self {
            high: cgroups::limit_in(cx, group, CGROUP_HIGH, stretch)?,
            used,
            events: Some(events).filter(|events| *events > Count::ZERO)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::FixChange;
    use crate::rules::testing::{Case, changed, clear, found, not_evaluated};
    use timeline::Entity::Cgroup;
    use timeline::signals::{CGROUP_PSI_MEMORY_SOME_AVG60, PSI_MEMORY_FULL, PSI_MEMORY_SOME};
    use units::{Limit, Micros};

    /// A cgroup that uses `used` MiB and exceeds its memory.high of 80 MiB `events` times a second.
    fn group(key: &str, used: u64, events: u64) -> Case {
        Case::over(30)
            .gauge(MEM_AVAILABLE, Bytes::from_mib(486))
            .gauge_of(Cgroup, key, CGROUP_HIGH, Limit::Bytes(Bytes::from_mib(80)))
            .gauge_of(Cgroup, key, CGROUP_CURRENT, Bytes::from_mib(used))
            .counter_of(Cgroup, key, CGROUP_EVENTS_HIGH, events)
    }

    fn stalled(case: Case, key: &str, percent: u64) -> Case {
        case.counter_of(Cgroup, key, CGROUP_PSI_MEMORY_SOME, percent * 10_000).counter_of(
            Cgroup,
            key,
            CGROUP_PSI_MEMORY_FULL,
            percent * 9_500,
        )
    }

    #[test]
    fn a_cgroup_stalled_above_its_high_is_critical() {
        let finding = found(RULE, &stalled(group("/app", 90, 17), "/app", 95));
        assert_eq!(finding.severity, Severity::Critical);
        assert_eq!(finding.confidence.word(), "confirmed");
        assert!(finding.title.contains("/app"));
        assert!(finding.title.contains("486 MiB available"));
        assert!(changed(&finding.fixes[0])[0].starts_with("/app/memory.high="));
    }

    #[test]
    fn a_cgroup_that_stalls_15_percent_is_a_warning() {
        let finding = found(RULE, &stalled(group("/app", 79, 17), "/app", 15));
        assert_eq!(finding.severity, Severity::Warning);
    }

    #[test]
    fn a_systemd_unit_is_changed_by_its_name() {
        let key = "/system.slice/web.service";
        let finding = found(RULE, &stalled(group(key, 90, 17), key, 95));
        let [FixChange::Limit(raised)] = &finding.fixes[0].changes[..] else { panic!() };
        assert_eq!(raised.unit.as_deref(), Some("web.service"));
        // Half of what the host has available is added.
        assert_eq!((raised.file, raised.to), (LimitFile::High, Bytes::from_mib(90 + 243)));
    }

    #[test]
    fn it_is_raised_to_where_the_need_shows_and_stays_below_limits_and_what_the_host_has() {
        let to = |case: Case| {
            let finding = found(RULE, &stalled(case, "/pod/app", 95));
            let [FixChange::Limit(raised)] = &finding.fixes[0].changes[..] else { panic!() };
            (raised.to.get() >> 20, finding.fixes[0].what.contains("Start with a quarter more"))
        };
        let app = || group("/pod/app", 80, 17);
        let limit = |case: Case, key: &str, mib| {
            case.gauge_of(Cgroup, key, CGROUP_MAX, Limit::Bytes(Bytes::from_mib(mib)))
        };
        assert_eq!(to(app().gauge(MEM_AVAILABLE, Bytes::from_gib(8))), (320, false));
        assert_eq!(to(limit(app(), "/pod/app", 200)), (180, false));
        assert_eq!(to(limit(app(), "/pod", 150)), (150, false));
        // No room for a measurement.
        assert_eq!(to(limit(app(), "/pod", 90)), (100, true));
        assert_eq!(to(app().gauge(MEM_AVAILABLE, Bytes::from_mib(20))), (100, true));
    }

    #[test]
    fn a_name_with_shell_syntax_gets_no_command() {
        let key = "/a; rm -rf x.service";
        let finding = found(RULE, &stalled(group(key, 90, 17), key, 95));
        assert_eq!(finding.fixes[0].changes, []);
    }

    #[test]
    fn one_sample_with_the_kernels_averages_is_enough() {
        let case = |percent: u64| {
            Case::once()
                .gauge_of(Cgroup, "/app", CGROUP_HIGH, Limit::Bytes(Bytes::from_mib(80)))
                .gauge_of(Cgroup, "/app", CGROUP_CURRENT, Bytes::from_mib(80))
                .counter_of(Cgroup, "/app", CGROUP_EVENTS_HIGH, 423_774)
                .gauge_of(
                    Cgroup,
                    "/app",
                    CGROUP_PSI_MEMORY_SOME_AVG60,
                    Micros::new(percent * 10_000),
                )
        };
        let finding = found(RULE, &case(72));
        assert!(finding.title.contains("last minute"), "{}", finding.title);
        clear(RULE, &case(2));
    }

    #[test]
    fn clear_when_files_stream_through_the_limit() {
        clear(RULE, &stalled(group("/app", 80, 200), "/app", 2));
        clear(RULE, &group("/app", 80, 200));
    }

    #[test]
    fn probable_without_the_cgroups_pressure() {
        assert_eq!(found(RULE, &group("/app", 90, 17)).confidence.word(), "probable");
    }

    #[test]
    fn clear_when_only_the_host_has_pressure() {
        let case = stalled(group("/app", 40, 0), "/app", 0)
            .counter(PSI_MEMORY_SOME, 980_000)
            .counter(PSI_MEMORY_FULL, 980_000);
        clear(RULE, &case);
    }

    #[test]
    fn clear_without_limits_and_not_evaluated_without_cgroups() {
        let unlimited =
            group("/app", 90, 0).gauge_of(Cgroup, "/app", CGROUP_HIGH, Limit::Unlimited);
        clear(RULE, &unlimited);
        assert_eq!(not_evaluated(RULE, &Case::over(30)).names, ["cgroup.current"]);
    }
}
