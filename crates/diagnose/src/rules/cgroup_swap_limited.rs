//! A cgroup has used up its swap limit.

use timeline::signals::{
    CGROUP_ANON, CGROUP_CURRENT, CGROUP_SWAP_CURRENT, CGROUP_SWAP_MAX, SWAP_FREE, SWAP_TOTAL,
};

use crate::measures::cgroups::{self, LimitHarm};
use crate::measures::readings::STALL_NOTICED_SHARE;
use crate::prelude::*;
use crate::remedy;

declare_rule! {
    /// A cgroup is nearly full and has used up the swap that it may use, although the host has free swap.
    ///
    /// ## What it means
    /// `memory.swap.max` limits the swap of a cgroup. When it is used up, anonymous memory of the cgroup can go
    /// nowhere: the kernel evicts the cgroup's last page cache, and then kills in it, while `free` shows swap to spare.
    /// ## How it is recognised
    /// For {LEVEL} the cgroup's swap is at {USED_UP} of memory.swap.max or more, and memory that cannot be dropped is
    /// {cgroups::NEARLY_FULL} of its limit (memory.max, memory.high) or more. It is informational, and a warning if the
    /// cgroup hits its limit or its tasks stall for memory {STALL_NOTICED_SHARE} of the time.
    /// ## Not this
    /// - `swap-full`: the swap of the host is used up.
    /// - A cgroup with its swap used up and room below its memory limit: cold pages, which may stay there.
    /// - memory.swap.max 0: the cgroup may not swap at all, as Kubernetes sets it on purpose.
    /// ## What to do
    /// Now: raise memory.swap.max (MemorySwapMax=), or the memory limit. For good: size the limit to what the service
    /// needs. Verify: the cgroup's swap stays below {USED_UP} of its limit.
    /// ## References
    /// - kernel Documentation/admin-guide/cgroup-v2.rst, memory.swap.max
    /// - systemd.resource-control(5), MemorySwapMax
    pub(crate) RULE = {
        id: "cgroup-swap-limited", since: "0.1.0", class: Limit,
        numbers: [LEVEL, USED_UP, cgroups::NEARLY_FULL, STALL_NOTICED_SHARE],
        trigger: trigger, story: story,
        cause: "The cgroup has more anonymous memory than its limits of memory and swap hold \
                together.",
        verify: "memory.swap.current of the cgroup stays below {USED_UP} of memory.swap.max",
        brings_about: &["cgroup-cache-starved", "cgroup-high-throttle", "oom-cgroup"],
    }
}

/// As for memory: swap is charged in batches, and clusters are freed late.
const USED_UP: Ratio = cgroups::AT_LIMIT;
/// With less free swap than this part of all, the host is the limit: the threshold of `swap-full`.
const HOST_IS_FULL: Ratio = Ratio::from_percent(10.0);

fn trigger() -> Trigger {
    let most = limit(CGROUP_SWAP_MAX);
    Trigger::on(
        Subjects::Each(Entity::Cgroup, may_swap),
        LEVEL,
        all![
            gauge(CGROUP_SWAP_CURRENT).at_least("swap of the cgroup", most.share(USED_UP)),
            cgroups::is_nearly_full(),
        ],
    )
}

/// Whether the cgroup has a swap limit that is not 0.
fn may_swap(cx: &Evidence<'_>, group: &EntitySeries) -> bool {
    cgroups::limit(cx, group, CGROUP_SWAP_MAX).is_some()
}

fn story<'a>(cx: &Evidence<'a>, incident: &Incident<'a>) -> Result<Outcome, Missing> {
    let (group, stretch) = (incident.entity()?, &incident.stretch);
    let name = cgroups::called(cx, group);
    let swap = cx.gauge_of(group, CGROUP_SWAP_CURRENT)?;
    let most = cgroups::limit_in(cx, group, CGROUP_SWAP_MAX, stretch);
    let Some(((used, index), most)) = swap.max_in(stretch).zip(most) else {
        return clear!("swap of {name} was not measured");
    };
    let free = cx.lowest_in(SWAP_FREE, stretch).map(|(free, _)| free);
    let all = cx.timeline.last(SWAP_TOTAL);
    if let Some((free, all)) = free.zip(all)
        && free < all.share(HOST_IS_FULL)
    {
        return clear!("{name} used its swap, but the host has only {free} of swap left");
    }
    let limit = cgroups::tightest().track_of(cx, group)?.at(index);
    let of_limit =
        limit.map_or_else(String::new, |limit| format!(" below its memory limit of {limit}"));
    let harm = LimitHarm::during(cx, group, stretch);
    let left = free.map_or_else(String::new, |free| format!(" The host has {free} of free swap."));
    let title = Title::from(format!(
        "{} has used up its swap limit of {most} and has no room{of_limit}.",
        capital(&name)
    ))
    .then(left);
    let at = |signal| cx.timeline.at_of(group, signal, index);
    let raised = cgroups::binding_at(cx, group, index)
        .map(|(file, limit)| remedy::raise_limit(cx, group, file, limit));
    Ok(RULE
        .found(Severity::warning_if(harm.is_felt()), title)
        .graph("swap of the cgroup", &swap)
        .shows_from(
            CGROUP_SWAP_CURRENT,
            used,
            most.share(USED_UP),
            cx.time(index),
            format!("{used} of the swap limit of {most} used"),
        )
        .counts_as("its swap limit")
        .with(at(CGROUP_CURRENT), |finding, current| {
            finding.shows(
                CGROUP_CURRENT,
                current,
                cx.time(index),
                format!("{current} of memory used"),
            )
        })
        .with(at(CGROUP_ANON), |finding, anon| {
            finding.shows(CGROUP_ANON, anon, cx.time(index), format!("anonymous memory: {anon}"))
        })
        .and(|finding| harm.shown_in(finding))
        .with(free, |finding, free| {
            finding.not("swap-full", format!("the host had {free} of free swap"))
        })
        .with(raised, |finding, raised| {
            finding.fix(raised.described(
                "Raise its memory limit, if the host has the memory. Start with a quarter more.",
            ))
        })
        .fix(Fix::say(
            "Or let it swap more: MemorySwapMax= in its unit, memory.swap.max of the cgroup. It \
             then waits instead of being killed.",
        ))
        .affects([Affected::new("cgroup", &group.key, format!("{used} of swap, limit {most}"))])
        .sure_by_kinds(cx, "")
        .into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::{Case, clear, found, not_evaluated, times};
    use timeline::Entity::Cgroup;
    use timeline::signals::{
        CGROUP_ACTIVE_FILE, CGROUP_EVENTS_MAX, CGROUP_INACTIVE_FILE, CGROUP_MAX,
    };
    use units::Limit;

    const APP: &str = "/system.slice/app.service";
    const MIB: fn(u64) -> Bytes = Bytes::from_mib;

    /// A cgroup with `swapped` MiB of 200 in swap, and `current` of 500 in memory.
    fn app(swapped: u64, current: u64, swap_max: Limit) -> Case {
        Case::over(30)
            .gauge(SWAP_TOTAL, MIB(4000))
            .gauge(SWAP_FREE, MIB(3500))
            .gauge_of(Cgroup, APP, CGROUP_MAX, Limit::Bytes(MIB(500)))
            .gauge_of(Cgroup, APP, CGROUP_CURRENT, MIB(current))
            .gauge_of(Cgroup, APP, CGROUP_ACTIVE_FILE, MIB(2))
            .gauge_of(Cgroup, APP, CGROUP_INACTIVE_FILE, MIB(2))
            .gauge_of(Cgroup, APP, CGROUP_SWAP_MAX, swap_max)
            .gauge_of(Cgroup, APP, CGROUP_SWAP_CURRENT, MIB(swapped))
    }

    const LIMIT: Limit = Limit::Bytes(Bytes::from_mib(200));

    #[test]
    fn a_cgroup_without_room_anywhere_is_found() {
        let case = app(199, 498, LIMIT).counter_of(Cgroup, APP, CGROUP_EVENTS_MAX, 7);
        let finding = found(RULE, &case);
        assert_eq!(finding.severity, Severity::Warning);
        assert_eq!(finding.confidence.word(), "confirmed");
        assert!(finding.title.contains("free swap"), "{}", finding.title);
        assert_eq!(found(RULE, &app(199, 498, LIMIT)).severity, Severity::Info);
    }

    #[test]
    fn clear_when_the_host_is_the_limit() {
        let case = app(199, 498, LIMIT).gauge(SWAP_FREE, MIB(100));
        assert!(clear(RULE, &case).contains("100 MiB of swap left"));
    }

    #[test]
    fn clear_with_room_in_memory_or_in_swap() {
        clear(RULE, &app(199, 300, LIMIT));
        clear(RULE, &app(100, 498, LIMIT));
    }

    #[test]
    fn clear_without_a_swap_limit_or_where_none_may_be_used() {
        clear(RULE, &app(199, 498, Limit::Unlimited));
        clear(RULE, &app(0, 498, Limit::Bytes(Bytes::ZERO)));
    }

    #[test]
    fn finds_30_s_within_an_hour() {
        let mut hour = vec![MIB(50); 3600];
        hour[1800..1830].fill(MIB(199));
        let case = Case::over(3600)
            .gauge_of(Cgroup, APP, CGROUP_MAX, Limit::Bytes(MIB(500)))
            .gauge_of(Cgroup, APP, CGROUP_CURRENT, MIB(498))
            .gauge_of(Cgroup, APP, CGROUP_ACTIVE_FILE, MIB(2))
            .gauge_of(Cgroup, APP, CGROUP_INACTIVE_FILE, MIB(2))
            .gauge_of(Cgroup, APP, CGROUP_SWAP_MAX, LIMIT)
            .gauge_steps_of(Cgroup, APP, CGROUP_SWAP_CURRENT, &hour);
        assert_eq!(times(&found(RULE, &case)), [(1799, 1829)]);
    }

    #[test]
    fn not_evaluated_without_cgroups() {
        assert_eq!(not_evaluated(RULE, &Case::over(30)).names, ["cgroup.swap_current"]);
    }
}
