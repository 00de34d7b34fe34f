//! Kernel memory fills a cgroup's limit.

use timeline::signals::{
    CGROUP_ANON, CGROUP_KERNEL, CGROUP_KERNEL_STACK, CGROUP_PAGETABLES, CGROUP_PERCPU,
    CGROUP_SLAB_RECLAIMABLE, CGROUP_SLAB_UNRECLAIMABLE, CGROUP_SOCK, MEM_AVAILABLE,
};

use crate::measures::cgroups::{self, LimitHarm};
use crate::measures::readings::STALL_NOTICED_SHARE;
use crate::prelude::*;
use crate::remedy;

declare_rule! {
    /// A cgroup is nearly full, and much of it is memory of the kernel: page tables, sockets, stacks, kernel objects.
    ///
    /// ## What it means
    /// What the kernel allocates on behalf of a cgroup counts towards its limit: page tables, stacks of threads, socket
    /// buffers, objects for open files, watches and BPF. No process shows that memory in its RSS, so the service seems
    /// small while it is at its limit. Swap cannot take it.
    /// ## How it is recognised
    /// For {LEVEL}, memory that cannot be dropped (without page cache and reclaimable objects) is
    /// {cgroups::NEARLY_FULL} of the cgroup's limit (memory.max, memory.high) or more, and kernel memory that cannot be
    /// reclaimed, socket buffers included, is {KERNEL_SHARE} of the limit or more. It is informational, and a warning
    /// if the cgroup hits its limit or its tasks stall for memory {STALL_NOTICED_SHARE} of the time.
    /// ## Not this
    /// - Dentries and inodes in a cgroup are reclaimed when it needs memory, as page cache is.
    /// - `cgroup-shmem-large`: files in tmpfs.
    /// - `cgroup-cache-starved`, `cgroup-high-throttle`, `oom-cgroup`: what follows at the limit.
    /// - `slab-leak`, `page-tables-large`, `socket-memory-pressure`: the same on the whole host.
    /// ## What to do
    /// Now: raise the limit. For good: fewer processes on one shared segment, huge pages, bounded thread pools, sockets
    /// that are read and closed; memory.stat names the kind. Verify: kernel memory of the cgroup is below
    /// {KERNEL_SHARE} of its limit.
    /// ## References
    /// - kernel Documentation/admin-guide/cgroup-v2.rst, memory.stat: kernel, sock, slab_unreclaimable
    pub(crate) RULE = {
        id: "cgroup-kmem-large", since: "0.1.0", class: Limit,
        numbers: [LEVEL, cgroups::NEARLY_FULL, KERNEL_SHARE, STALL_NOTICED_SHARE],
        trigger: trigger, story: story,
        cause: "The kernel charges what it allocates for a cgroup to it, and cannot reclaim these \
                kinds.",
        verify: "the cgroup's memory.stat: kernel - slab_reclaimable + sock is below \
                 {KERNEL_SHARE} of its limit",
        brings_about: &["cgroup-high-throttle", "cgroup-cache-starved", "cgroup-oom-standstill", "oom-cgroup"],
    }
}

/// An engineering choice: usual services have 2 % to 10 %.
const KERNEL_SHARE: Ratio = Ratio::from_percent(25.0);

/// Kernel memory of a cgroup that cannot be reclaimed, with its socket buffers. Kernels before 5.18 have no sum of it.
fn kernel() -> Reading<Bytes> {
    let objects = gauge(CGROUP_SLAB_UNRECLAIMABLE);
    let parts =
        objects.plus([gauge(CGROUP_PAGETABLES), gauge(CGROUP_KERNEL_STACK), gauge(CGROUP_PERCPU)]);
    let whole = gauge(CGROUP_KERNEL).minus(gauge(CGROUP_SLAB_RECLAIMABLE));
    whole.or(parts).named("cgroup kernel objects").plus([gauge(CGROUP_SOCK)])
}

fn trigger() -> Trigger {
    let least = cgroups::tightest().share(KERNEL_SHARE);
    Trigger::on(
        Subjects::each_cgroup(),
        LEVEL,
        all![cgroups::is_nearly_full(), kernel().at_least("kernel memory of the cgroup", least),],
    )
}

fn story<'a>(cx: &Evidence<'a>, incident: &Incident<'a>) -> Result<Outcome, Missing> {
    let (group, stretch) = (incident.entity()?, &incident.stretch);
    let track = kernel().track_of(cx, group)?;
    let limits = cgroups::tightest().track_of(cx, group)?;
    let name = cgroups::called(cx, group);
    let Some(((most, index), limit)) =
        track.max_in(stretch).and_then(|most| Some((most, limits.at(most.1)?)))
    else {
        return clear!("kernel memory of {name} was not measured");
    };
    let kinds = kinds(cx, group, index);
    let mostly =
        kinds.first().map_or_else(String::new, |(_, what, size)| format!(", {size} of it {what}"));
    let share = most.ratio_of(limit).unwrap_or_default();
    let harm = LimitHarm::during(cx, group, stretch);
    let available = cx.lowest_in(MEM_AVAILABLE, stretch).map(|(least, _)| least);
    let host = cgroups::while_the_host_had(available);
    let title = Title::from(format!(
        "{} is nearly full of memory that cannot be dropped, and \
                                     {most} ({share} of its limit of {limit}) is kernel \
                                     memory{mostly}.",
        capital(&name)
    ))
    .then(host);
    let anon = cx.timeline.at_of(group, CGROUP_ANON, index);
    let (file, _) = cgroups::binding_at(cx, group, index).unwrap_or((remedy::kills_at(cx), limit));
    let raised = remedy::raise_limit(cx, group, file, limit);
    let shown = RULE
        .found(Severity::warning_if(harm.is_felt()), title)
        .graph("kernel memory of the cgroup", &track)
        .shows_from(
            Computed(CGROUP_KERNEL),
            most,
            limit.share(KERNEL_SHARE),
            cx.time(index),
            format!("kernel memory that cannot be reclaimed: {most}"),
        )
        .counts_as("the cgroup's kernel memory");
    let shown = kinds.iter().fold(shown, |finding, (signal, what, size)| {
        finding.shows(*signal, *size, cx.time(index), format!("{what}: {size}"))
    });
    Ok(shown
        .with(anon, |finding, anon| {
            finding.shows(CGROUP_ANON, anon, cx.time(index), format!("anonymous memory: {anon}"))
        })
        .and(|finding| harm.shown_in(finding))
        .not("cgroup-cache-starved", "page cache and reclaimable objects are not counted here")
        .fix(raised.described(format!(
            "Raise its limit (it was {limit}); the kernel needs this memory for what the service \
             does. Start with a quarter more."
        )))
        .fix(Fix::say(
            "Reduce the largest kind: page tables by huge pages or fewer processes, stacks by \
             smaller thread pools, socket buffers by reading and closing connections, objects by \
             closing files and watches.",
        ))
        .affects([Affected::new(
            "cgroup",
            &group.key,
            format!("{most} of kernel memory, limit {limit}"),
        )])
        .sure_by_kinds(cx, "")
        .into())
}

/// A kind of kernel memory: its signal, its name and its size.
type KernelPart = (Signal<timeline::Gauge<Bytes>>, &'static str, Bytes);

/// The kinds of kernel memory of a cgroup at a sample, as far as its kernel separates them, the largest first.
fn kinds(cx: &Evidence<'_>, group: &EntitySeries, index: usize) -> Vec<KernelPart> {
    let all = [
        (CGROUP_PAGETABLES, "page tables"),
        (CGROUP_SOCK, "socket buffers"),
        (CGROUP_KERNEL_STACK, "kernel stacks"),
        (CGROUP_PERCPU, "per-CPU memory"),
        (CGROUP_SLAB_UNRECLAIMABLE, "kernel objects"),
    ];
    let measured = all.into_iter().filter_map(|(signal, what)| {
        let size = cx.timeline.at_of(group, signal, index)?;
        (size > Bytes::ZERO).then_some((signal, what, size))
    });
    let mut kinds: Vec<_> = measured.collect();
    kinds.sort_by_key(|(_, _, size)| std::cmp::Reverse(*size));
    kinds
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::{Case, changed, clear, found, not_evaluated, times};
    use timeline::Entity::Cgroup;
    use timeline::signals::{
        CGROUP_ACTIVE_FILE, CGROUP_CURRENT, CGROUP_EVENTS_MAX, CGROUP_INACTIVE_FILE, CGROUP_MAX,
        CGROUP_SHMEM,
    };
    use units::Limit;

    const DB: &str = "/system.slice/db.service";
    const MIB: fn(u64) -> Bytes = Bytes::from_mib;

    /// A cgroup of 980 MiB below a limit of 1,000, with `cache` of page cache and `kernel` of kernel memory.
    fn group(cache: u64, kernel: u64) -> Case {
        Case::over(30)
            .gauge_of(Cgroup, DB, CGROUP_MAX, Limit::Bytes(MIB(1000)))
            .gauge_of(Cgroup, DB, CGROUP_CURRENT, MIB(980))
            .gauge_of(Cgroup, DB, CGROUP_ACTIVE_FILE, MIB(cache / 2))
            .gauge_of(Cgroup, DB, CGROUP_INACTIVE_FILE, MIB(cache - cache / 2))
            .gauge_of(Cgroup, DB, CGROUP_SLAB_RECLAIMABLE, MIB(10))
            .gauge_of(Cgroup, DB, CGROUP_KERNEL, MIB(kernel))
            .gauge_of(Cgroup, DB, CGROUP_PAGETABLES, MIB(kernel / 2))
    }

    fn hitting(case: Case, times: u64) -> Case {
        case.counter_of(Cgroup, DB, CGROUP_EVENTS_MAX, times)
    }

    #[test]
    fn page_tables_that_fill_a_limit_are_a_warning_when_it_is_hit() {
        let finding = found(RULE, &hitting(group(20, 500), 3));
        assert_eq!(finding.severity, Severity::Warning);
        assert_eq!(finding.confidence.word(), "confirmed");
        assert!(finding.title.contains("250 MiB of it page tables"), "{}", finding.title);
        let raised = changed(&finding.fixes[0]);
        assert!(raised[0].ends_with("/db.service/memory.max=1310720000"), "{raised:?}");
        let quiet = found(RULE, &hitting(group(20, 500), 0));
        assert_eq!(quiet.severity, Severity::Info);
    }

    #[test]
    fn kernels_before_5_18_have_its_parts() {
        let case = hitting(group(20, 0), 3)
            .gauge_of(Cgroup, "/old", CGROUP_MAX, Limit::Bytes(MIB(1000)))
            .gauge_of(Cgroup, "/old", CGROUP_CURRENT, MIB(980))
            .gauge_of(Cgroup, "/old", CGROUP_ACTIVE_FILE, MIB(10))
            .gauge_of(Cgroup, "/old", CGROUP_INACTIVE_FILE, MIB(10))
            .gauge_of(Cgroup, "/old", CGROUP_SLAB_UNRECLAIMABLE, MIB(200))
            .gauge_of(Cgroup, "/old", CGROUP_SOCK, MIB(150));
        let finding = found(RULE, &case);
        assert!(finding.title.contains("350 MiB"), "{}", finding.title);
    }

    #[test]
    fn clear_when_the_limit_is_full_of_what_can_be_dropped() {
        clear(RULE, &hitting(group(400, 400), 9));
        let dentries =
            hitting(group(20, 500), 9).gauge_of(Cgroup, DB, CGROUP_SLAB_RECLAIMABLE, MIB(480));
        clear(RULE, &dentries);
    }

    #[test]
    fn clear_when_tmpfs_or_anonymous_memory_fills_it() {
        let tmpfs = hitting(group(20, 30), 9).gauge_of(Cgroup, DB, CGROUP_SHMEM, MIB(700));
        clear(RULE, &tmpfs);
        let anon = hitting(group(20, 60), 9).gauge_of(Cgroup, DB, CGROUP_ANON, MIB(880));
        clear(RULE, &anon);
    }

    #[test]
    fn finds_30_s_within_an_hour() {
        let mut hour = vec![MIB(100); 3600];
        hour[1800..1830].fill(MIB(980));
        let case = Case::over(3600)
            .gauge_of(Cgroup, DB, CGROUP_MAX, Limit::Bytes(MIB(1000)))
            .gauge_steps_of(Cgroup, DB, CGROUP_CURRENT, &hour)
            .gauge_of(Cgroup, DB, CGROUP_ACTIVE_FILE, MIB(5))
            .gauge_of(Cgroup, DB, CGROUP_INACTIVE_FILE, MIB(5))
            .gauge_of(Cgroup, DB, CGROUP_SLAB_RECLAIMABLE, MIB(5))
            .gauge_of(Cgroup, DB, CGROUP_KERNEL, MIB(400));
        assert_eq!(times(&found(RULE, &case)), [(1799, 1829)]);
    }

    #[test]
    fn not_evaluated_without_cgroups() {
        assert_eq!(not_evaluated(RULE, &Case::over(30)).names, ["cgroup.current"]);
    }
}
