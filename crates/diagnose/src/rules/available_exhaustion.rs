//! MemAvailable stays near zero.

use timeline::signals::{HUGEPAGES_FREE, MEM_ANON, MEM_AVAILABLE, SWAP_FREE, SWAP_TOTAL};

use crate::measures::arc;
use crate::measures::available::{
    self, AVAILABLE_EXHAUSTED_MAX, AVAILABLE_EXHAUSTED_SHARE, little,
};
use crate::measures::kernel_threads::kswapd_cpu_in_top;
use crate::measures::readings::{memory_waits, ram_at_least};
use crate::oom::{self, Explained};
use crate::prelude::*;
use crate::trigger::Subject;

declare_rule! {
    /// Hardly any memory is available: programs that allocate have to wait, and an OOM kill is close.
    ///
    /// ## What it means
    /// MemAvailable is the kernel's estimate of what programs can still get without swapping: free memory plus the part
    /// of page cache and slab that can be dropped, minus the kernel's reserve. It includes cache that is in use, so it
    /// is an upper bound. Near zero, every allocation has to wait for reclaim, and an OOM kill is close.
    /// ## How it is recognised
    /// MemAvailable stays at {AVAILABLE_EXHAUSTED_SHARE} of RAM or less (at most {AVAILABLE_EXHAUSTED_MAX} on large
    /// hosts) for {LEVEL} or longer. That alone is a warning. It is critical when tasks wait: memory stalls
    /// {PressureWindow::MEMORY} of the time, or one allocation stall per second. With such stalls, or while `top` shows
    /// kswapd with half a CPU or more, {AVAILABLE_LOW_SHARE} of RAM or less (at most {AVAILABLE_LOW_MAX}) is already a
    /// warning. A kernel report of a request that could wait and still failed, with every zone at its watermark, counts
    /// too: a warning, or informational where its caller has a fallback. Where RAM is unknown, the sum of the parts
    /// that the source shows replaces it, a lower bound. A dip in one of several samples does not count, and a single
    /// sample lowers the confidence. Without MemAvailable (kernels before 3.14, old `free`), free memory plus all of
    /// the cache and reclaimable slab is used as an upper bound.
    /// ## Not this
    /// - `free-low-harmless`: MemFree is low, which means nothing; MemAvailable is not.
    /// - A dip when a job starts, or a cgroup at its limit while the host has memory.
    /// - Memory that only looks used: the ARC of ZFS beyond its minimum, which is added where the source shows it, and
    ///   free hugetlb pages (`hugetlb-unused`) are not part of MemAvailable.
    /// ## What to do
    /// Now: stop or cap what grew last. For good: smaller pools, fewer workers, the job at another hour, or more RAM;
    /// some swap as a safety net. Verify: MemAvailable stays above {AVAILABLE_LOW_SHARE} of RAM over a whole work
    /// cycle, and stalls stay below {PressureWindow::CALM}.
    /// ## References
    /// - kernel Documentation/filesystems/proc.rst, MemAvailable
    /// - kernel mm/show_mem.c, si_mem_available
    pub(crate) RULE = {
        id: "available-exhaustion", since: "0.1.0", class: Scarcity,
        numbers: [AVAILABLE_EXHAUSTED_SHARE, AVAILABLE_EXHAUSTED_MAX, LEVEL,
            PressureWindow::MEMORY, AVAILABLE_LOW_SHARE, AVAILABLE_LOW_MAX, PressureWindow::CALM],
        trigger: trigger, story: story,
        cause: "Programs and the kernel use nearly all of RAM, and little of it can be reclaimed.",
        verify: "memtide capture --for 24h --every 1m -o day.jsonl.zst over a work cycle: \
                 MemAvailable stays above {AVAILABLE_LOW_SHARE} of RAM, stalls stay below \
                 {PressureWindow::CALM}",
        brings_about: &["swap-full", "no-swap-risk", "direct-reclaim-stall", "kswapd-saturated"],
    }
}

/// As [`AVAILABLE_EXHAUSTED_MAX`], for what counts only while tasks wait for memory.
const AVAILABLE_LOW_MAX: Bytes = Bytes::from_gib(8);

/// With this share of swap free, hardly anything was swapped out; an engineering choice.
const SWAP_NEARLY_FREE: Ratio = Ratio::from_percent(95.0);

/// An engineering choice. A stream keeps kswapd busy too, but leaves its cache available.
const KSWAPD_BUSY: Ratio = Ratio::from_percent(50.0);

fn trigger() -> Trigger {
    let is_low = available::upper_bound().at_most("available", low());
    let is_low = all![is_low, is_beside_arc(low()), is_reclaiming()];
    Trigger::on_host(LEVEL, any![is_little(), is_low]).or_reported(is_reported)
}

/// Whether a request failed that could wait for reclaim, so that nothing more could be freed for it.
fn is_reported(one: &Explained<'_>) -> bool {
    !one.is_kill() && one.cause.is_shortage()
}

/// Tasks wait for memory, or kswapd works hard for it.
fn is_reclaiming() -> Predicate {
    let is_busy = kswapd_cpu_in_top().at_least("kswapd's CPU in top", KSWAPD_BUSY);
    any![memory_waits(), is_busy]
}

fn is_little() -> Predicate {
    all![available::upper_bound().at_most("available", little()), is_beside_arc(little())]
}

/// The ARC of ZFS shrinks to its minimum when programs want memory, which MemAvailable does not know.
fn is_beside_arc(edge: Reading<Bytes>) -> Predicate {
    let with_arc = arc::reclaimable().plus([available::upper_bound()]);
    with_arc.at_most("available with the ARC", edge).if_measured()
}

fn low() -> Reading<Bytes> {
    ram_at_least().share(AVAILABLE_LOW_SHARE).min(AVAILABLE_LOW_MAX)
}

fn story<'a>(cx: &Evidence<'a>, incident: &Incident<'a>) -> Result<Outcome, Missing> {
    let stretch = &incident.stretch;
    if stretch.first == stretch.last
        && let Some(one) = oom::within(cx, stretch, is_reported).last()
        && !is_low_at(cx, stretch.first)
    {
        return Ok(reported(cx, one).into());
    }
    let available = available::upper_bound().track(cx)?;
    let Some((least, index)) = available.min_in(stretch) else {
        return clear!("enough memory was available");
    };
    let is_measured = cx.gauge(MEM_AVAILABLE).is_ok();
    let what = if is_measured { "available memory" } else { "free memory plus cache" };
    let ram: Bytes = ram_at_least().track(cx)?.at(index).unwrap_or_default();
    let of_ram = match cx.ram() {
        Ok(_) => format!(" of {ram}"),
        Err(_) => " (how much RAM there is, is not shown)".to_owned(),
    };
    let stalls = PressureWindow::during(cx, stretch);
    let at = |reading: Reading<Bytes>| Ok(reading.track(cx)?.at(index).unwrap_or_default());
    let (little, low): (Bytes, Bytes) = (at(little())?, at(low())?);
    let lasts = |predicate: Predicate| predicate.longest_in(cx, stretch) >= LEVEL;
    let is_little_left = least <= little && (cx.is_single_sample() || lasts(is_little()));
    // Tasks may have waited during a part of the incident only.
    let waited = || stalls.for_memory() || lasts(all![is_little(), memory_waits()]);
    let severity = Severity::critical_if(is_little_left && waited());
    let edge = if is_little_left { little } else { low };
    let share = match cx.of_ram(least) {
        Ok(share) => format!(" ({share})"),
        Err(_) => String::new(),
    };
    let title = if cx.is_single_sample() {
        let bound = if is_measured { "" } else { "at most " };
        Title::from(format!("{bound}{least}{share}{of_ram} is available."))
    } else {
        let stayed = match stretch.duration() {
            Span::ZERO => String::new(),
            lasted => format!(" and stayed that low for {lasted}"),
        };
        Title::from(format!("{what} fell to {least}{share}{of_ram}{stayed}."))
            .then(stalls.sentence())
    };
    Ok(RULE
        .found(severity, title.after("RAM is nearly used up: "))
        .graph(what, &available)
        .shows_below(
            MEM_AVAILABLE,
            least,
            edge,
            cx.time(index),
            format!("{what} fell to {least}{share}"),
        )
        .counts_as(what)
        .shows_stalls(&stalls)
        .shows_holders(cx, index, ram.share(AVAILABLE_LOW_SHARE))
        .when(cx.timeline.at(HUGEPAGES_FREE, index) == Some(Count::ZERO), |finding| {
            finding.not("hugetlb-unused", "no reserved huge page is free")
        })
        .not(
            "free-low-harmless",
            "MemAvailable is low too, not only MemFree: there is no idle cache to drop",
        )
        .with(swap_left(cx, index), of_kernel_memory)
        .fix(Fix::cap(cx, index, "Stop what grew last, or cap its cgroup."))
        .fix(Fix::say(
            "Use smaller pools or fewer workers, run the job at another hour, or add RAM. Some \
             swap is a safety net.",
        ))
        .affects(processes::largest(cx, index, 3))
        .sure_by_kinds(cx, stalls.open())
        .into())
}

/// Swap of which this much is free: what fills RAM is hardly programs' memory.
fn of_kernel_memory(finding: Finding, (free, total): (Bytes, Bytes)) -> Finding {
    finding
        .with_line(format!(
            "only {} of {total} swap is used: programs' memory would have been swapped out first, \
             unless it is locked or vm.swappiness is near 0",
            total.saturating_sub(free)
        ))
        .fix(
            Fix::say(
                "See whether it is kernel memory: slab, shared memory, huge pages, the ARC of \
                 ZFS, a driver.",
            )
            .inspect(
                "grep -E '^(Slab|SUnreclaim|Shmem|Mlocked|Hugetlb|Percpu)' /proc/meminfo\n\
                 grep -E '^(size|c_max) ' /proc/spl/kstat/zfs/arcstats",
            ),
        )
}

/// Swap that programs hardly used although RAM was used up, where the source does not show what fills RAM.
fn swap_left(cx: &Evidence<'_>, index: usize) -> Option<(Bytes, Bytes)> {
    let at = |signal| cx.timeline.at(signal, index);
    let (free, total) = (at(SWAP_FREE)?, at(SWAP_TOTAL)?);
    let is_free = free.ratio_of(total)? >= SWAP_NEARLY_FREE;
    (is_free && cx.gauge(MEM_ANON).is_err()).then_some((free, total))
}

/// Whether the level of available memory is an incident too.
fn is_low_at(cx: &Evidence<'_>, index: usize) -> bool {
    let Trigger::While(level) = trigger() else {
        return false;
    };
    let holds = level.when.holds(Subject { cx, of: None });
    holds.is_ok_and(|holds| holds.at(index) == Some(true))
}

/// The finding of a kernel report.
fn reported(cx: &Evidence<'_>, one: &Explained<'_>) -> Finding {
    let page = one.report.page_size.or(cx.facts.page_size);
    let size = one.asked.map_or_else(|| "memory".to_owned(), |asked| asked.size(page));
    let by = one.report.invoker.as_ref();
    let is_reclaim = by.is_some_and(|by| by.name.starts_with("kswapd"));
    let by = by.map_or_else(String::new, |by| format!(" by {}", by.name));
    // Reclaim itself, and callers with a fallback, go on without the memory.
    let goes_on = |asked: oom::Asked| asked.has_fallback || !asked.may_enter_fs;
    let is_minor = is_reclaim || one.report.waited.is_none() && one.asked.is_none_or(goes_on);
    let (because, value, open) = if one.zones.is_empty() {
        ("nothing could be freed for it", 0.6, "the report does not show the zones (Mem-Info)")
    } else {
        ("every zone that it may use was at its watermark", 0.9, "")
    };
    let fate = oom::fate(one);
    let title = Title::from(format!("A request{by} for {size} {fate}: {because}."))
        .then("That alone kills nothing.");
    let finding = RULE.found(Severity::warning_if(!is_minor), title);
    let finding = oom::measures(cx, one, oom::explain(cx, one, finding));
    finding
        .not("oom-global", "the kernel kills no process for such a request")
        .fix(
            Fix::say("See which programs use memory, and cap what grew.")
                .inspect("ps -eo pid,rss,comm --sort=-rss | head; cat /proc/meminfo"),
        )
        .affects(one.holders.affected(3))
        .verify("no further failure in a work cycle: journalctl -k -g 'page allocation failure'")
        .sure(oom::sure(one, value, open))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oom::testing::Report;
    use crate::rules::testing::{Case, amid_calm, clear, found, not_evaluated, times};
    use timeline::signals::{
        ALLOCSTALL, MEM_BUFFERS, MEM_CACHED, MEM_FREE, MEM_TOTAL, PSI_MEMORY_FULL, PSI_MEMORY_SOME,
    };
    use timeline::signals::{ZFS_ARC, ZFS_ARC_MIN};

    fn host(case: Case, ram: u64, available: u64) -> Case {
        case.gauge(MEM_TOTAL, Bytes::from_mib(ram)).gauge(MEM_AVAILABLE, Bytes::from_mib(available))
    }

    fn stalling(case: Case, percent: u64) -> Case {
        case.counter(PSI_MEMORY_SOME, percent * 10_000).counter(PSI_MEMORY_FULL, percent * 9_000)
    }

    #[test]
    fn swap_that_stays_free_points_to_the_kernel() {
        let with = |free| {
            let case = host(Case::once(), 3182, 7).gauge(SWAP_TOTAL, Bytes::from_mib(8191));
            let finding = found(RULE, &case.gauge(SWAP_FREE, Bytes::from_mib(free)));
            finding.fixes.iter().any(|fix| fix.what.contains("kernel memory"))
        };
        assert!(with(8142));
        assert!(!with(900));
    }

    #[test]
    fn below_5_percent_is_a_warning_and_critical_with_stalls() {
        let case = |percent| stalling(host(Case::over(60), 16_000, 480), percent);
        assert_eq!(found(RULE, &case(0)).severity, Severity::Warning);
        let finding = found(RULE, &case(30));
        assert_eq!(finding.severity, Severity::Critical);
        assert_eq!(finding.confidence.word(), "confirmed");
    }

    #[test]
    fn below_10_percent_counts_only_while_tasks_wait() {
        let case = || host(Case::over(60), 469, 30);
        clear(RULE, &stalling(case(), 0));
        assert_eq!(found(RULE, &stalling(case(), 30)).severity, Severity::Warning);
        assert_eq!(found(RULE, &case().counter(ALLOCSTALL, 30)).severity, Severity::Warning);
    }

    #[test]
    fn a_busy_kswapd_in_top_counts_as_waiting() {
        use timeline::Entity;
        use timeline::signals::{PROC_CPU, PROC_PARENT};
        use units::{Count, Micros};
        let case = |percent: u64, available| {
            host(Case::once(), 917, available)
                .gauge_of(Entity::Process, "49@0", PROC_CPU, Micros::new(percent * 10_000))
                .gauge_of(Entity::Process, "49@0", PROC_PARENT, Count::new(2))
                .named("49@0", "kswapd0")
        };
        assert_eq!(found(RULE, &case(66, 56)).severity, Severity::Warning);
        clear(RULE, &case(20, 56));
        clear(RULE, &case(66, 200));
    }

    #[test]
    fn clear_when_the_arc_of_zfs_can_shrink() {
        let case = |arc| host(Case::once(), 64_226, 2170).gauge(ZFS_ARC, Bytes::from_mib(arc));
        clear(RULE, &case(17_408));
        found(RULE, &case(500));
        let min = Bytes::from_mib(17_000);
        found(RULE, &case(17_408).gauge(ZFS_ARC_MIN, min));
    }

    #[test]
    fn nothing_available_is_found_without_memtotal() {
        let case = |available| {
            Case::once()
                .gauge(MEM_FREE, Bytes::from_mib(4))
                .gauge(MEM_AVAILABLE, Bytes::from_mib(available))
        };
        let finding = found(RULE, &case(0));
        assert!(finding.title.contains("not shown"), "{}", finding.title);
        // 40 MiB may be little or much.
        assert_eq!(not_evaluated(RULE, &case(40)).names, ["mem.total"]);
    }

    #[test]
    fn a_request_that_could_wait_and_failed_is_found() {
        let failed = |gfp| {
            let report = Report::default().asking(gfp, 0);
            report.zone("Normal", 10_000, 61_948, 12_774_792, &[0; 5])
        };
        let finding = found(RULE, &Case::of_report(failed(0xcc0).failed()));
        assert_eq!(finding.severity, Severity::Warning);
        assert!(finding.title.contains("watermark"), "{}", finding.title);
        // It may not enter file systems, so its caller has to cope.
        let finding = found(RULE, &Case::of_report(failed(0xc40).failed()));
        assert_eq!(finding.severity, Severity::Info);
        let bare = found(RULE, &Case::of_report(Report::default().asking(0xcc0, 0).failed()));
        assert!(bare.confidence.value < 0.7, "{:?}", bare.confidence);
        // Atomic requests have a reserve of their own, and kills a rule.
        not_evaluated(RULE, &Case::of_report(failed(0xa20).failed()));
        not_evaluated(RULE, &Case::of_report(failed(0xcc0).killing(8, "java")));
        let within = Case::over(3600).with_report(1800, failed(0xcc0).failed());
        assert_eq!(times(&found(RULE, &within)), [(1800, 1800)]);
    }

    #[test]
    fn clear_when_much_is_available_and_little_free() {
        clear(RULE, &host(Case::over(60), 469, 94).gauge(MEM_FREE, Bytes::from_mib(4)));
    }

    #[test]
    fn clear_when_only_a_cgroup_is_throttled() {
        clear(RULE, &stalling(host(Case::over(60), 721, 486), 98));
    }

    #[test]
    fn clear_on_a_large_host_with_20_gib_available() {
        clear(RULE, &host(Case::over(60), 1 << 20, 20 << 10));
        found(RULE, &host(Case::over(60), 1 << 20, 3 << 10));
    }

    #[test]
    fn clear_when_one_sample_dips() {
        let mut values = vec![Bytes::from_mib(300); 61];
        values[30] = Bytes::from_mib(5);
        let case = Case::over(60)
            .gauge(MEM_TOTAL, Bytes::from_mib(469))
            .gauge_steps(MEM_AVAILABLE, &values);
        clear(RULE, &stalling(case, 50));
    }

    #[test]
    fn finds_30_s_within_an_hour_but_not_low_free_memory() {
        let in_an_hour = |available, free| {
            Case::over(3600)
                .gauge(MEM_TOTAL, Bytes::from_mib(16_000))
                .gauge_steps(
                    MEM_AVAILABLE,
                    &amid_calm(Bytes::from_mib(available), Bytes::from_gib(8)),
                )
                .gauge(MEM_FREE, Bytes::from_mib(free))
                .counter_steps(PSI_MEMORY_SOME, &amid_calm(300_000, 0))
                .counter_steps(PSI_MEMORY_FULL, &amid_calm(270_000, 0))
        };
        let finding = found(RULE, &in_an_hour(480, 100));
        assert_eq!(finding.severity, Severity::Critical);
        assert_eq!(times(&finding), [(1799, 1829)]);
        clear(RULE, &in_an_hour(4000, 100));
    }

    #[test]
    fn stalls_during_a_part_of_it_make_it_critical() {
        let case = host(Case::over(3600), 16_000, 480)
            .counter_steps(PSI_MEMORY_SOME, &amid_calm(300_000, 0))
            .counter_steps(PSI_MEMORY_FULL, &amid_calm(270_000, 0));
        assert_eq!(found(RULE, &case).severity, Severity::Critical);
    }

    #[test]
    fn pressure_averages_of_one_sample_count_as_stalls() {
        use timeline::signals::PSI_MEMORY_SOME_AVG60;
        use units::Micros;
        let case = |micros| {
            host(Case::once(), 16_000, 1_200).gauge(PSI_MEMORY_SOME_AVG60, Micros::new(micros))
        };
        assert_eq!(found(RULE, &case(300_000)).severity, Severity::Warning);
        clear(RULE, &case(10_000));
    }

    #[test]
    fn a_single_sample_is_not_confirmed() {
        let finding = found(RULE, &host(Case::once(), 16_000, 100));
        assert_eq!(finding.severity, Severity::Warning);
        assert_ne!(finding.confidence.word(), "confirmed");
    }

    /// What `free` of 2011 prints, in MiB: without available memory.
    fn old_free(free: u64, buffers: u64, cached: u64) -> Case {
        Case::once()
            .gauge(MEM_TOTAL, Bytes::from_mib(3941))
            .gauge(MEM_FREE, Bytes::from_mib(free))
            .gauge(MEM_BUFFERS, Bytes::from_mib(buffers))
            .gauge(MEM_CACHED, Bytes::from_mib(cached))
    }

    #[test]
    fn free_memory_plus_cache_stand_in_for_memavailable() {
        let finding = found(RULE, &old_free(109, 1, 62));
        assert_eq!(finding.severity, Severity::Warning);
        assert!(finding.title.contains("at most 172 MiB"), "{}", finding.title);
        clear(RULE, &old_free(109, 1, 620));
        // Cached may be shared memory; so high an upper bound proves nothing.
        clear(RULE, &old_free(30, 0, 2300));
    }

    #[test]
    fn not_evaluated_without_memavailable_and_cache() {
        let case = Case::over(60).gauge(MEM_TOTAL, Bytes::from_mib(469));
        assert_eq!(not_evaluated(RULE, &case).names, ["mem.available"]);
    }
}
