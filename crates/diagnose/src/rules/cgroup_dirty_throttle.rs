//! Writers in a cgroup wait at the cgroup's own dirty limit, while the host's is far.

use timeline::facts::CgroupMode;
use timeline::signals::{
    CGROUP_FILE_DIRTY, CGROUP_HIGH, CGROUP_MAX, CGROUP_PSI_IO_FULL, CGROUP_PSI_IO_SOME,
    DIRTY_AND_WRITEBACK, MEM_AVAILABLE, NR_DIRTY_THRESHOLD, PSWPOUT,
};

use crate::measures::cgroups;
use crate::measures::readings::{STALL_NOTICED_SHARE, SWAP_OUT_NOTABLE};
use crate::measures::writeback::{
    NEAR_OWN_LEVEL, UNWRITTEN_MIN, dirty_limit, is_far_from_limit, mean_and_own_level, own_level,
    own_unwritten, unwritten,
};
use crate::prelude::*;
use crate::remedy;
use crate::rule::DIRTY_LIMITS;
use crate::trigger::computed_of;

declare_rule! {
    /// Writers in a cgroup wait for the disk at the cgroup's own dirty limit, while the host could take much more.
    ///
    /// ## What it means
    /// On cgroup v2 each cgroup with a memory limit has dirty limits of its own: the same share as the host's, but of
    /// the memory that the cgroup has left for files. In a container of 256 MiB that is some 30 MiB. Its writers are
    /// then throttled to the speed of the disk much earlier than the same program outside. The host shows no sign of
    /// it.
    /// ## How it is recognised
    /// For {STALL} or longer, dirty pages plus pages under writeback of a cgroup with `memory.max` or `memory.high` are
    /// at {NEAR_OWN_LEVEL} or more of the level at which the kernel throttles its writers (the host's share, of the
    /// cgroup's file pages and what is left below its limit), its tasks wait for disks {STALL_NOTICED_SHARE} of the
    /// time or more, and the host's dirty pages are at most half of the host's own level.
    /// ## Not this
    /// - `dirty-throttle`: the host's own limit is reached; every writer waits.
    /// - `cgroup-cache-starved`: the cgroup reads evicted files again.
    /// - `cgroup-high-throttle`: its tasks wait for memory.
    /// - `cgroup-dirty-reclaim`: on cgroup v1, which has no dirty limits of its own, writers fill the cgroup instead.
    /// ## What to do
    /// Write less, or to a faster disk: what writes faster than the disk waits with any limit. For bursts raise the
    /// cgroup's memory limit: its dirty limit grows with it. Smaller limits of the host would make it worse. Verify:
    /// the tasks of the cgroup wait for disks less than {STALL_NOTICED_SHARE} of the time during the same writes.
    /// ## References
    /// - kernel Documentation/admin-guide/cgroup-v2.rst, Writeback
    /// - kernel mm/page-writeback.c, domain_dirty_limits
    pub(crate) RULE = {
        id: "cgroup-dirty-throttle", since: "0.1.0", class: Limit,
        numbers: [STALL, NEAR_OWN_LEVEL, STALL_NOTICED_SHARE],
        trigger: trigger, waits: MemoryOrDisk, story: story,
        cause: "A cgroup's dirty limit is a share of the memory that its own limit leaves for \
                files, and its writers are faster than the disk.",
        verify: "io.pressure of the cgroup during the same writes: some below {STALL_NOTICED_SHARE}",
        explained_by: DIRTY_LIMITS,
    }
}

fn trigger() -> Trigger {
    let level: Reading<Bytes> = computed_of("level at which its writers are throttled", own_level);
    Trigger::on(
        Subjects::Each(Entity::Cgroup, has_limit),
        STALL,
        all![
            own_unwritten().at_least("dirty pages of the cgroup", UNWRITTEN_MIN),
            own_unwritten()
                .at_least("dirty pages of the cgroup", level.times(NEAR_OWN_LEVEL.get())),
            stall(CGROUP_PSI_IO_SOME).at_least("I/O stalls of the cgroup", STALL_NOTICED_SHARE),
            is_far_from_limit(),
            // A cgroup's writeback contains swap-out.
            rate(PSWPOUT).at_most("swapped out", SWAP_OUT_NOTABLE).if_measured(),
        ],
    )
}

/// Cgroups of v1 have no dirty limits, and one without a memory limit has those of the host.
fn has_limit(cx: &Evidence<'_>, group: &EntitySeries) -> bool {
    cx.facts.cgroup_mode != Some(CgroupMode::V1)
        && [CGROUP_MAX, CGROUP_HIGH]
            .into_iter()
            .any(|signal| cgroups::limit(cx, group, signal).is_some())
}

fn story<'a>(cx: &Evidence<'a>, incident: &Incident<'a>) -> Result<Outcome, Missing> {
    let (group, stretch) = (incident.entity()?, &incident.stretch);
    let name = cgroups::called(cx, group);
    let (dirty, level) = mean_and_own_level(cx, group, stretch)?;
    let near_level = level.share(NEAR_OWN_LEVEL);
    if dirty < near_level {
        return clear!("{dirty} of {name} was unwritten; its writers are throttled from {level}");
    }
    let host = cx.mean_in(stretch, DIRTY_AND_WRITEBACK, &unwritten().track(cx)?)?;
    let limit = dirty_limit().track(cx)?.mean_in(stretch);
    let share = |signal| cgroups::stalled(cx, group, signal, stretch);
    let waited = Waited::during(stretch, [CGROUP_PSI_IO_SOME, CGROUP_PSI_IO_FULL], share);
    let waits = waited.time().unwrap_or_default();
    let (knob, max) = cgroups::binding_at(cx, group, stretch.last)
        .ok_or_else(|| cx.lacks_signal(CGROUP_MAX.id()))?;
    let title = Title::from(format!(
        "Writers in {name} wait for the disk {waits}: its {max} leave \
                                     room for only {level} of unwritten data."
    ))
    .then(
        "The \
                                                            host is far from its own limit.",
    );
    Ok(RULE
        .found(Severity::Warning, title)
        .graph("dirty pages of the cgroup", &own_unwritten().track_of(cx, group)?)
        .shows_from(
            CGROUP_FILE_DIRTY,
            dirty,
            near_level,
            None,
            format!(
                "{dirty} of the cgroup dirty or under writeback; its writers are throttled from \
                 about {level}"
            ),
        )
        .counts_as("the cgroup's dirty pages")
        .shows(knob.signal(), max, None, format!("its memory limit is {max}"))
        .with(waited.some, |finding, some| {
            let text = format!("I/O stalls of the cgroup: {}", waited.shares());
            finding
                .shows_from(CGROUP_PSI_IO_SOME, some, STALL_NOTICED_SHARE, None, text)
                .counts_as("its I/O stalls")
        })
        .with(limit, |finding, limit| {
            let text =
                format!("{host} dirty or under writeback on the host, of a limit of {limit}");
            finding.shows(NR_DIRTY_THRESHOLD, limit, None, text)
        })
        .shows_lowest(cx, MEM_AVAILABLE, stretch, |least| {
            format!("at least {least} available on the host")
        })
        .not(
            "dirty-throttle",
            format!("the host has {host} of unwritten data, far below its limit"),
        )
        .fix(Fix::say(
            "Write less, or to a faster disk: what writes faster than the disk waits with any \
             limit. Smaller vm.dirty_bytes of the host would make the cgroup wait earlier.",
        ))
        .fix(remedy::raise_limit(cx, group, knob, max).described(format!(
            "If it writes in bursts, raise the cgroup's memory limit (it was {max}): its dirty \
             limit grows with it, and a longer burst fits. Start with a quarter more."
        )))
        .affects([Affected::new("cgroup", &group.key, format!("{dirty} unwritten, of {level}"))])
        .sure_by_kinds(cx, "")
        .into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::{Case, amid_calm, changed, clear, found, not_evaluated, times};
    use timeline::Entity::Cgroup;
    use timeline::signals::{
        CGROUP_ACTIVE_FILE, CGROUP_CURRENT, CGROUP_FILE_WRITEBACK, CGROUP_INACTIVE_FILE,
        MEM_ACTIVE_FILE, MEM_DIRTY, MEM_FREE, MEM_INACTIVE_FILE, MEM_TOTAL, MEM_WRITEBACK,
        NR_DIRTY_BACKGROUND_THRESHOLD,
    };
    use units::Limit;

    const MIB: fn(u64) -> Bytes = Bytes::from_mib;

    /// A host of 8,000 MiB that throttles at 15 % of its 6,000 MiB, with this much dirty in all.
    fn host(case: Case, dirty: u64) -> Case {
        case.gauge(MEM_TOTAL, MIB(8000))
            .gauge(MEM_FREE, MIB(4000))
            .gauge(MEM_ACTIVE_FILE, MIB(1000))
            .gauge(MEM_INACTIVE_FILE, MIB(1000))
            .gauge(MEM_DIRTY, MIB(dirty))
            .gauge(MEM_WRITEBACK, MIB(4))
            .gauge(NR_DIRTY_THRESHOLD, Pages::new(1200 * 256))
            .gauge(NR_DIRTY_BACKGROUND_THRESHOLD, Pages::new(600 * 256))
    }

    /// A cgroup with a limit of 256 MiB, 200 MiB of files, 16 MiB left, and `dirty` MiB to be written.
    fn group(case: Case, dirty: u64) -> Case {
        let key = "/system.slice/job.service";
        case.gauge_of(Cgroup, key, CGROUP_MAX, Limit::Bytes(MIB(256)))
            .gauge_of(Cgroup, key, CGROUP_CURRENT, MIB(240))
            .gauge_of(Cgroup, key, CGROUP_ACTIVE_FILE, MIB(50))
            .gauge_of(Cgroup, key, CGROUP_INACTIVE_FILE, MIB(150))
            .gauge_of(Cgroup, key, CGROUP_FILE_DIRTY, MIB(dirty))
            .gauge_of(Cgroup, key, CGROUP_FILE_WRITEBACK, MIB(2))
    }

    fn waiting(dirty: u64, waits: u64) -> Case {
        let key = "/system.slice/job.service";
        group(host(Case::over(30), dirty), dirty).counter_of(Cgroup, key, CGROUP_PSI_IO_SOME, waits)
    }

    #[test]
    fn writers_at_the_cgroups_own_limit_are_found() {
        let finding = found(RULE, &waiting(32, 700_000));
        assert_eq!(finding.severity, Severity::Warning);
        assert_eq!(finding.confidence.word(), "confirmed");
        // 15 % of 216 MiB.
        assert!(finding.title.contains("256 MiB leave room for only 32 MiB"), "{}", finding.title);
        let raised = changed(&finding.fixes[1]);
        assert!(raised[0].ends_with("/job.service/memory.max=335544320"), "{raised:?}");
    }

    #[test]
    fn clear_below_its_level_or_without_waits() {
        clear(RULE, &waiting(12, 700_000));
        clear(RULE, &waiting(32, 20_000));
    }

    #[test]
    fn clear_when_the_host_is_at_its_limit() {
        clear(RULE, &host(waiting(32, 700_000), 850));
    }

    #[test]
    fn clear_when_writeback_is_swap_out_and_on_v1() {
        clear(RULE, &waiting(32, 700_000).counter(PSWPOUT, 3_000));
        let mut old = waiting(32, 700_000);
        old.facts.cgroup_mode = Some(CgroupMode::V1);
        clear(RULE, &old);
    }

    #[test]
    fn clear_without_a_limit_of_its_own() {
        let key = "/system.slice/job.service";
        let case = waiting(32, 700_000).gauge_of(Cgroup, key, CGROUP_MAX, Limit::Unlimited);
        clear(RULE, &case);
    }

    #[test]
    fn finds_30_s_within_an_hour() {
        let key = "/system.slice/job.service";
        let hour = |waits| {
            group(host(Case::over(3600), 33), 32).counter_steps_of(
                Cgroup,
                key,
                CGROUP_PSI_IO_SOME,
                &amid_calm(waits, 1_000),
            )
        };
        assert_eq!(times(&found(RULE, &hour(700_000))), [(1800, 1830)]);
        clear(RULE, &hour(50_000));
    }

    #[test]
    fn not_evaluated_without_the_cgroups_pressure_or_any_cgroup() {
        let case = group(host(Case::over(30), 32), 32);
        assert_eq!(not_evaluated(RULE, &case).names, ["cgroup.psi.io.some"]);
        let none = host(Case::over(30), 32);
        assert_eq!(not_evaluated(RULE, &none).names, ["cgroup.file_dirty"]);
    }
}
