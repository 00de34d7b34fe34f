//! Protected cgroups leave too little memory to everything else.

use timeline::cgroup;
use timeline::facts::CgroupMode;
use timeline::signals::{
    CGROUP_CURRENT, CGROUP_EVENTS_LOW, CGROUP_LOW, CGROUP_MIN, MEM_FREE, PGSCAN_DIRECT,
    PGSCAN_KSWAPD,
};
use units::Limit;

use crate::measures::cgroups;
use crate::measures::readings::memory_waits;
use crate::prelude::*;

declare_rule! {
    /// Cgroups with memory.low or memory.min hold most of RAM, and everything else is reclaimed while tasks wait.
    ///
    /// ## What it means
    /// `memory.min` is never reclaimed, and `memory.low` only if nothing else is left. Where protected cgroups together
    /// use most of RAM, all reclaim falls on the others: their page cache and working set go first, however idle the
    /// protected memory is. MemAvailable counts protected page cache as available, so the host seems to have room.
    /// ## How it is recognised
    /// For {STALL} the cgroups at the top of the hierarchy use protected memory (their use up to memory.low or
    /// memory.min) of {PROTECTED_SHARE} of RAM or more, tasks wait for memory ({PressureWindow::MEMORY} of the time, or
    /// allocations that reclaim), and the host reclaims {PressureWindow::SCANNED} or more. It is a warning, and
    /// critical if nothing ran for {PressureWindow::STANDSTILL} of the time. A breached memory.low (the `low` event) shows that the
    /// protections exceed what RAM holds.
    /// ## Not this
    /// - `available-exhaustion`, `swap-thrash`: the same waits without protections.
    /// - Protections that are set but not used: only memory in use counts.
    /// - `cgroup-high-throttle`: waits in a cgroup at its own limit, where the host reclaims nothing.
    /// ## What to do
    /// Now: lower memory.low (MemoryLow=) and memory.min (MemoryMin=) to what the services really use all the time. For
    /// good: keep the sum well below RAM, and protect what must react (sshd, the agent of the cluster), not what is
    /// large. Verify: memory stalls below {PressureWindow::CALM} at the same load.
    /// ## References
    /// - kernel Documentation/admin-guide/cgroup-v2.rst, memory.min and memory.low
    /// - systemd.resource-control(5), MemoryLow
    pub(crate) RULE = {
        id: "protection-imbalance", since: "0.1.0", class: Setting,
        numbers: [STALL, PROTECTED_SHARE, PressureWindow::MEMORY, PressureWindow::SCANNED,
            PressureWindow::CALM, PressureWindow::STANDSTILL],
        trigger: trigger, waits: Memory, story: story,
        cause: "Protected cgroups keep what they use, so reclaim takes from the others alone.",
        verify: "memtide check --for 1m at the same load: memory stalls below \
                 {PressureWindow::CALM}",
        brings_about: WANT_AND_THRASH,
    }
}

/// An engineering choice: the others have less than half of RAM.
const PROTECTED_SHARE: Ratio = Ratio::from_percent(50.0);

fn trigger() -> Trigger {
    let protected: Reading<Bytes> = computed("protected_memory", |cx| Ok(protected(cx)?.cast()));
    let scanned = rate(PGSCAN_KSWAPD).plus([rate(PGSCAN_DIRECT)]);
    Trigger::on_host(
        STALL,
        all![
            memory_waits(),
            scanned.at_least("scanned by reclaim of the host", PressureWindow::SCANNED),
            protected.at_least("protected memory in use", ram().share(PROTECTED_SHARE)),
        ],
    )
}

/// What a cgroup at the top of the hierarchy has that reclaim spares. Protection below it can only divide this
/// (mm/page_counter.c, effective_protection).
fn spared(cx: &Evidence<'_>, group: &EntitySeries) -> Option<Track<Bytes>> {
    let used = cx.timeline.gauge_of(group, CGROUP_CURRENT)?;
    let set = [CGROUP_LOW, CGROUP_MIN].into_iter().filter_map(|signal| {
        let (most, _) = cx.timeline.gauge_of(group, signal)?.max()?;
        Some(match most {
            Limit::Unlimited => Bytes::new(u64::MAX),
            Limit::Bytes(size) => size,
        })
    });
    let set = set.max().filter(|set| *set > Bytes::ZERO)?;
    Some(used.lower(&cx.timeline.constant(set)))
}

/// Protected cgroups at the top of the hierarchy, each with what reclaim spares.
fn protected_groups<'a>(cx: &Evidence<'a>) -> Vec<(&'a EntitySeries, Track<Bytes>)> {
    let groups = cx.timeline.entities(Entity::Cgroup);
    let top = groups.filter(|group| cgroup::parent(&group.key) == Some(cgroup::ROOT));
    top.filter_map(|group| Some((group, spared(cx, group)?))).collect()
}

/// Protected memory in use, of all cgroups together. Only the unified hierarchy has protections.
fn protected(cx: &Evidence<'_>) -> Result<Track<Bytes>, Missing> {
    if cx.facts.cgroup_mode != Some(CgroupMode::V1)
        && cx.timeline.entities(Entity::Cgroup).next().is_none()
    {
        return Err(cx.lacks_signal(CGROUP_LOW.id()));
    }
    let all = protected_groups(cx).into_iter().map(|(_, spared)| spared);
    let sum = all.reduce(|a, b| a.plus(&b).or_else(&a).or_else(&b));
    Ok(sum.unwrap_or_else(|| cx.timeline.constant(Bytes::ZERO)))
}

fn story<'a>(cx: &Evidence<'a>, incident: &Incident<'a>) -> Result<Outcome, Missing> {
    let stretch = &incident.stretch;
    let track = protected(cx)?;
    let Some((most, index)) = track.max_in(stretch) else {
        return clear!("protected memory was not measured");
    };
    let ram = cx.ram()?;
    let share = cx.of_ram(most)?;
    let rest = ram.saturating_sub(most);
    let stalls = PressureWindow::during(cx, stretch);
    let mut groups: Vec<_> = protected_groups(cx)
        .into_iter()
        .filter_map(|(group, spared)| Some((group, spared.max_in(stretch)?.0)))
        .collect();
    groups.sort_by_key(|(_, held)| std::cmp::Reverse(*held));
    let first = groups.first().map_or_else(String::new, |(group, held)| {
        format!(", {held} of it in {}", cgroups::called(cx, group))
    });
    let title = Title::from(format!(
        "Cgroups protect {most} of RAM ({share}) from reclaim{first}; everything else has {rest}, \
         and tasks wait for it."
    ))
    .then(stalls.sentence());
    let breached = groups.iter().filter_map(|(group, _)| {
        let rate = cx.timeline.rate_of(group, CGROUP_EVENTS_LOW)?;
        Some(rate.integral_in(stretch))
    });
    let breached =
        breached.reduce(|a, b| a + b).map(Count::from_f64).filter(|times| *times > Count::ZERO);
    Ok(RULE
        .found(Severity::critical_if(stalls.standstill()), title)
        .graph("protected memory in use", &track)
        .shows_from(
            Computed(CGROUP_LOW),
            most,
            ram.share(PROTECTED_SHARE),
            cx.time(index),
            format!("{most} is in use below memory.low or memory.min"),
        )
        .counts_as("the protections")
        .and(|finding| stalls.shown_in(finding))
        .counts_if(stalls.for_memory(), "memory stalls")
        .with(breached, |finding, times| {
            let text = format!("memory.low was breached {times} times");
            finding.shows(CGROUP_EVENTS_LOW, times, None, text).counts_as("breached protections")
        })
        .shows_mean(cx, PGSCAN_DIRECT, stretch, |scanned| {
            format!("{scanned} scanned by allocating tasks")
        })
        .shows_mean(cx, PGSCAN_KSWAPD, stretch, |scanned| format!("{scanned} scanned by kswapd"))
        .shows_lowest(cx, MEM_FREE, stretch, |free| format!("free memory fell to {free}"))
        .not(
            "cgroup-high-throttle",
            "the host itself reclaims, so no cgroup's own limit explains the waits",
        )
        .fix(Fix::say("See who is protected, and how much of it is in use all the time.").inspect(
            "grep -H . /sys/fs/cgroup/*/memory.low /sys/fs/cgroup/*/memory.min | grep -v ':0$'",
        ))
        .fix(Fix::say(
            "Lower MemoryLow= and MemoryMin= of these cgroups to what they need all the time; the \
             sum should leave the others room to work.",
        ))
        .affects(
            groups.iter().take(3).map(|(group, held)| {
                Affected::new("cgroup", &group.key, format!("{held} protected"))
            }),
        )
        .sure_by_kinds(cx, stalls.open())
        .into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::{Case, amid_calm, clear, found, not_evaluated, times};
    use timeline::Entity::Cgroup;
    use timeline::signals::{MEM_AVAILABLE, MEM_TOTAL, PSI_MEMORY_FULL, PSI_MEMORY_SOME};

    const MIB: fn(u64) -> Bytes = Bytes::from_mib;

    /// A host of 16,000 MiB with a cgroup of 10,000 that protects `low`, and stalls of `percent` of the time.
    fn host(low: u64, percent: u64, scanned: u64) -> Case {
        Case::over(30)
            .gauge(MEM_TOTAL, MIB(16_000))
            .gauge(MEM_AVAILABLE, MIB(6000))
            .counter(PSI_MEMORY_SOME, percent * 10_000)
            .counter(PSI_MEMORY_FULL, percent * 3_000)
            .counter(PGSCAN_KSWAPD, scanned)
            .counter(PGSCAN_DIRECT, 0)
            .gauge_of(Cgroup, "/db.slice", CGROUP_CURRENT, MIB(10_000))
            .gauge_of(Cgroup, "/db.slice", CGROUP_LOW, Limit::Bytes(MIB(low)))
            .gauge_of(Cgroup, "/db.slice", CGROUP_MIN, Limit::Bytes(Bytes::ZERO))
            .counter_of(Cgroup, "/db.slice", CGROUP_EVENTS_LOW, 0)
            .gauge_of(Cgroup, "/web.slice", CGROUP_CURRENT, MIB(3000))
            .gauge_of(Cgroup, "/web.slice", CGROUP_LOW, Limit::Bytes(Bytes::ZERO))
    }

    #[test]
    fn waits_beside_a_protected_slice_are_found() {
        let finding = found(RULE, &host(9000, 30, 20_000));
        assert_eq!(finding.severity, Severity::Warning);
        assert_eq!(finding.confidence.word(), "confirmed");
        assert!(finding.title.contains("in cgroup /db.slice"), "{}", finding.title);
        let finding = found(RULE, &host(9000, 90, 20_000));
        assert_eq!(finding.severity, Severity::Critical);
    }

    #[test]
    fn protection_below_the_top_is_part_of_what_lies_above() {
        let nested = |low| {
            host(low, 30, 20_000)
                .gauge_of(Cgroup, "/db.slice/a", CGROUP_CURRENT, MIB(9000))
                .gauge_of(Cgroup, "/db.slice/a", CGROUP_LOW, Limit::Unlimited)
        };
        clear(RULE, &nested(0));
        found(RULE, &nested(9000));
    }

    #[test]
    fn clear_without_protections_or_where_they_are_not_used() {
        clear(RULE, &host(0, 30, 20_000));
        clear(RULE, &host(4000, 30, 20_000));
        let unused = host(9000, 30, 20_000).gauge_of(Cgroup, "/db.slice", CGROUP_CURRENT, MIB(500));
        clear(RULE, &unused);
    }

    #[test]
    fn clear_when_nothing_waits_or_a_cgroups_own_limit_is_the_reason() {
        clear(RULE, &host(9000, 1, 20_000));
        clear(RULE, &host(9000, 60, 0));
    }

    #[test]
    fn finds_30_s_within_an_hour() {
        let hour = |waits| {
            Case::over(3600)
                .gauge(MEM_TOTAL, MIB(16_000))
                .counter_steps(PSI_MEMORY_SOME, &amid_calm(waits, 0))
                .counter(PGSCAN_KSWAPD, 20_000)
                .gauge_of(Cgroup, "/db.slice", CGROUP_CURRENT, MIB(10_000))
                .gauge_of(Cgroup, "/db.slice", CGROUP_LOW, Limit::Unlimited)
        };
        assert_eq!(times(&found(RULE, &hour(300_000))), [(1800, 1830)]);
        clear(RULE, &hour(10_000));
    }

    #[test]
    fn not_evaluated_without_cgroups() {
        let without = Case::over(30)
            .gauge(MEM_TOTAL, MIB(16_000))
            .counter(PSI_MEMORY_SOME, 300_000)
            .counter(PGSCAN_KSWAPD, 20_000);
        assert_eq!(not_evaluated(RULE, &without).names, ["cgroup.low"]);
    }
}
