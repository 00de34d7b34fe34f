//! Files in tmpfs or shared memory fill a cgroup's limit.

use timeline::signals::{
    CGROUP_ANON, CGROUP_SHMEM, CGROUP_SWAP_CURRENT, CGROUP_SWAP_MAX, MEM_AVAILABLE,
};

use crate::measures::cgroups::{self, LimitHarm};
use crate::measures::readings::STALL_NOTICED_SHARE;
use crate::prelude::*;
use crate::remedy;

declare_rule! {
    /// A cgroup is nearly full, much of it with tmpfs files or shared memory, which cannot be dropped.
    ///
    /// ## What it means
    /// A file in /dev/shm, /tmp on tmpfs or a volume in memory (`emptyDir` with `medium: Memory`) is charged to the
    /// cgroup that wrote it, like a shared segment. It stays after the process that wrote it ended. memory.stat counts
    /// it as `file`, so a container seems full of page cache; but only swap can take it, and the container is killed
    /// with files in its way that nobody reads.
    /// ## How it is recognised
    /// For {LEVEL}, memory that cannot be dropped (without page cache and reclaimable objects) is
    /// {cgroups::NEARLY_FULL} of the cgroup's limit (memory.max, memory.high) or more, and shared memory is
    /// {SHMEM_SHARE} of the limit or more. It is informational, and a warning if the cgroup hits its limit or its tasks
    /// stall for memory {STALL_NOTICED_SHARE} of the time.
    /// ## Not this
    /// - `cgroup-cache-starved`: page cache of files on a disk, which can be dropped.
    /// - `cgroup-kmem-large`: kernel memory fills the limit.
    /// - `shmem-growth`: shared memory of the whole host.
    /// - A database's shared buffers far below the limit: then nothing is wrong.
    /// ## What to do
    /// Now: remove files that are not needed (`df -t tmpfs` in the container), or raise the limit. For good: give the
    /// volume a size limit, use a disk, size shared buffers to the limit. Verify: shmem in the cgroup's memory.stat is
    /// below half of its limit.
    /// ## References
    /// - kernel Documentation/admin-guide/cgroup-v2.rst, memory.stat: shmem
    /// - Kubernetes documentation, Volumes: emptyDir
    pub(crate) RULE = {
        id: "cgroup-shmem-large", since: "0.1.0", class: Limit,
        numbers: [LEVEL, cgroups::NEARLY_FULL, SHMEM_SHARE, STALL_NOTICED_SHARE],
        trigger: trigger, story: story,
        cause: "Files in tmpfs and shared segments are charged to the cgroup that wrote them, \
                until they are removed.",
        verify: "the cgroup's memory.stat: shmem is below half of its limit",
        brings_about: &["cgroup-high-throttle", "cgroup-cache-starved", "cgroup-oom-standstill", "oom-cgroup"],
    }
}

/// An engineering choice: less is not what fills the limit. Databases are advised to take 25 % to 40 %.
const SHMEM_SHARE: Ratio = Ratio::from_percent(50.0);

fn trigger() -> Trigger {
    let least = cgroups::tightest().share(SHMEM_SHARE);
    Trigger::on(
        Subjects::each_cgroup(),
        LEVEL,
        all![
            cgroups::is_nearly_full(),
            gauge(CGROUP_SHMEM).at_least("shared memory of the cgroup", least),
        ],
    )
}

fn story<'a>(cx: &Evidence<'a>, incident: &Incident<'a>) -> Result<Outcome, Missing> {
    let (group, stretch) = (incident.entity()?, &incident.stretch);
    let shmem = cx.gauge_of(group, CGROUP_SHMEM)?;
    let limits = cgroups::tightest().track_of(cx, group)?;
    let name = cgroups::called(cx, group);
    let Some(((most, index), limit)) =
        shmem.max_in(stretch).and_then(|most| Some((most, limits.at(most.1)?)))
    else {
        return clear!("shared memory of {name} was not measured");
    };
    let share = most.ratio_of(limit).unwrap_or_default();
    let harm = LimitHarm::during(cx, group, stretch);
    let at = |signal| cx.timeline.at_of(group, signal, index);
    let swap = cx.timeline.at_of(group, CGROUP_SWAP_MAX, index);
    let no_swap = swap.and_then(units::Limit::limited) == Some(Bytes::ZERO);
    let only = if no_swap {
        "it may not swap, so only deleting frees it"
    } else {
        "only swap or deleting frees it"
    };
    let available = cx.lowest_in(MEM_AVAILABLE, stretch).map(|(least, _)| least);
    let host = cgroups::while_the_host_had(available);
    let title = Title::from(format!(
        "{} is nearly full, and {most} ({share} of its limit of \
                                     {limit}) is tmpfs files or shared memory: {only}.",
        capital(&name)
    ))
    .then(host);
    let (file, _) = cgroups::binding_at(cx, group, index).unwrap_or((remedy::kills_at(cx), limit));
    let raised = remedy::raise_limit(cx, group, file, limit);
    Ok(RULE
        .found(Severity::warning_if(harm.is_felt()), title)
        .graph("shared memory of the cgroup", &shmem)
        .shows_from(
            CGROUP_SHMEM,
            most,
            limit.share(SHMEM_SHARE),
            cx.time(index),
            format!("shared memory and tmpfs of the cgroup: {most}"),
        )
        .counts_as("the cgroup's shared memory")
        .with(at(CGROUP_ANON), |finding, anon| {
            finding.shows(CGROUP_ANON, anon, cx.time(index), format!("anonymous memory: {anon}"))
        })
        .with(at(CGROUP_SWAP_CURRENT), |finding, swapped| {
            finding.shows(
                CGROUP_SWAP_CURRENT,
                swapped,
                cx.time(index),
                format!("in swap: {swapped}"),
            )
        })
        .and(|finding| harm.shown_in(finding))
        .not("cgroup-cache-starved", "page cache is not counted here; this cannot be dropped")
        .fix(
            Fix::say(
                "Find the files (in the mount namespace of the service) and the segments, and \
                 remove what is not needed.",
            )
            .inspect("df -h -t tmpfs\nipcs -m"),
        )
        .fix(raised.described(format!(
            "Raise its limit (it was {limit}) if the files are needed. Start with a quarter more. \
             A size limit on the volume (size=, sizeLimit) fails a write instead of killing the \
             service."
        )))
        .affects([Affected::new(
            "cgroup",
            &group.key,
            format!("{most} of shared memory, limit {limit}"),
        )])
        .sure_by_kinds(cx, "")
        .into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::{Case, clear, found, not_evaluated, times};
    use timeline::Entity::Cgroup;
    use timeline::signals::{
        CGROUP_ACTIVE_FILE, CGROUP_CURRENT, CGROUP_EVENTS_MAX, CGROUP_HIGH, CGROUP_INACTIVE_FILE,
        CGROUP_KERNEL, CGROUP_MAX,
    };
    use units::Limit;

    const POD: &str = "/kubepods/pod1";
    const MIB: fn(u64) -> Bytes = Bytes::from_mib;

    /// A cgroup of `current` MiB below a limit of 1,000, with `cache` of page cache and `shmem` of shared memory.
    fn pod(current: u64, cache: u64, shmem: u64) -> Case {
        Case::over(30)
            .gauge_of(Cgroup, POD, CGROUP_MAX, Limit::Bytes(MIB(1000)))
            .gauge_of(Cgroup, POD, CGROUP_CURRENT, MIB(current))
            .gauge_of(Cgroup, POD, CGROUP_ACTIVE_FILE, MIB(cache))
            .gauge_of(Cgroup, POD, CGROUP_INACTIVE_FILE, MIB(0))
            .gauge_of(Cgroup, POD, CGROUP_SHMEM, MIB(shmem))
    }

    #[test]
    fn a_volume_in_memory_that_fills_the_pod_is_found() {
        let case = pod(990, 20, 700).counter_of(Cgroup, POD, CGROUP_EVENTS_MAX, 5);
        let finding = found(RULE, &case);
        assert_eq!(finding.severity, Severity::Warning);
        assert_eq!(finding.confidence.word(), "confirmed");
        assert!(finding.title.contains("70 % of its limit"), "{}", finding.title);
        assert_eq!(found(RULE, &pod(990, 20, 700)).severity, Severity::Info);
    }

    #[test]
    fn where_it_may_not_swap_the_title_says_so() {
        let case =
            pod(990, 20, 700).gauge_of(Cgroup, POD, CGROUP_SWAP_MAX, Limit::Bytes(Bytes::ZERO));
        let title = found(RULE, &case).title;
        assert!(title.contains("it may not swap"), "{title}");
    }

    #[test]
    fn memory_high_is_a_limit_too() {
        let case = pod(600, 10, 500).gauge_of(Cgroup, POD, CGROUP_HIGH, Limit::Bytes(MIB(620)));
        assert!(found(RULE, &case).title.contains("limit of 620 MiB"));
    }

    #[test]
    fn clear_when_page_cache_or_kernel_memory_fills_the_limit() {
        clear(RULE, &pod(990, 600, 300));
        // A database: shared buffers of 40 %, and page cache up to the limit.
        clear(RULE, &pod(990, 450, 400));
        clear(RULE, &pod(990, 20, 100).gauge_of(Cgroup, POD, CGROUP_KERNEL, MIB(600)));
    }

    #[test]
    fn clear_far_below_the_limit_and_without_one() {
        clear(RULE, &pod(700, 10, 600));
        let unlimited = pod(990, 20, 700).gauge_of(Cgroup, POD, CGROUP_MAX, Limit::Unlimited);
        clear(RULE, &unlimited);
    }

    #[test]
    fn finds_30_s_within_an_hour() {
        let mut hour = vec![MIB(100); 3600];
        hour[1800..1830].fill(MIB(990));
        let case = Case::over(3600)
            .gauge_of(Cgroup, POD, CGROUP_MAX, Limit::Bytes(MIB(1000)))
            .gauge_steps_of(Cgroup, POD, CGROUP_CURRENT, &hour)
            .gauge_of(Cgroup, POD, CGROUP_ACTIVE_FILE, MIB(5))
            .gauge_of(Cgroup, POD, CGROUP_INACTIVE_FILE, MIB(5))
            .gauge_of(Cgroup, POD, CGROUP_SHMEM, MIB(700));
        assert_eq!(times(&found(RULE, &case)), [(1799, 1829)]);
    }

    #[test]
    fn not_evaluated_without_cgroups() {
        assert_eq!(not_evaluated(RULE, &Case::over(30)).names, ["cgroup.current"]);
    }
}
