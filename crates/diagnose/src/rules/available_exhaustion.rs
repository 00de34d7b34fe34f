//! Hardly any memory is available, and stays so.

use timeline::{
    Stretch,
    signals::{HUGEPAGES_FREE, MEM_ANON, MEM_AVAILABLE, MEM_SHMEM, MEM_SLAB_UNRECLAIMABLE},
};
use units::{Bytes, Count, Ratio, Span};

use crate::calm;
use crate::evidence::Evidence;
use crate::finding::Severity;
use crate::fix::Fix;
use crate::missing::Missing;
use crate::rule::{Outcome, clear, declare_rule};
use crate::stalls::Stalls;
use crate::who;

declare_rule! {
    /// Hardly any memory is left that could be given to a program.
    ///
    /// ## What it means
    /// MemAvailable is the kernel's estimate of what programs could still get without swapping: free memory and the part
    /// of page cache and slab that can be dropped, less the kernel's reserve. It includes cache that is in use, so it is
    /// an upper bound. Near zero, everything that asks for memory has to wait for it, and an OOM kill is close.
    /// ## How it is recognised
    /// MemAvailable stays at 5 % of RAM or less (4 GiB at most, on large hosts). That alone is a warning, and it is
    /// critical when tasks wait: memory stalls 5 % of the time, or an allocation stall a second. With such stalls 10 % of
    /// RAM or less (8 GiB at most) is a warning already. A dip of one sample does not count. Where MemAvailable is not
    /// measured (kernels before 3.14, old `free`), free memory and all of cache and reclaimable slab take its place:
    /// less than that is available.
    /// ## Not this
    /// - `free-low-harmless`: MemFree is small, which says nothing; MemAvailable is not.
    /// - A dip at the start of a job, or a control group at its limit while the host has memory.
    /// - Memory that only looks taken: ZFS's ARC and free hugetlb pages (`hugetlb-unused`) are not in MemAvailable.
    /// ## What to do
    /// Now: stop or cap what grew last. For good: smaller pools, fewer workers, the job at another hour, or more RAM; swap
    /// as a safety net. Verify: MemAvailable stays above 10 % of RAM over a whole work cycle, with stalls below 1 %.
    /// ## References
    /// - kernel Documentation/filesystems/proc.rst, MemAvailable
    /// - kernel mm/show_mem.c, si_mem_available
    pub(crate) RULE = { id: "available-exhaustion", since: "0.1.0", purpose: Finding, check: check }
}

/// An engineering choice. What one process grows by in a burst does not grow with the host, so a share alone would call a
/// large host exhausted with tens of GiB left.
const LITTLE: Ratio = Ratio::from_percent(5.0);
const LITTLE_AT_MOST: Bytes = Bytes::from_gib(4);
/// An engineering choice: counts only where tasks wait. Calm labelled captures have 15 % and more (November 2026).
pub(crate) const LOW: Ratio = Ratio::from_percent(10.0);
const LOW_AT_MOST: Bytes = Bytes::from_gib(8);
const HOLD: Span = Span::from_mins(5);

fn check(cx: &Evidence<'_>) -> Result<Outcome, Missing> {
    let (available, told) = calm::available_at_most(cx)?;
    let what = if told {
        "available"
    } else {
        "free memory and cache together"
    };
    let ram = cx.ram()?;
    let little = ram.share(LITTLE).min(LITTLE_AT_MOST);
    let low = ram.share(LOW).min(LOW_AT_MOST);
    let lasting = |edge: Bytes| -> Option<Stretch> {
        let below = available.at_most(edge);
        cx.sustained_level(&below, HOLD)
    };
    let waits = |stretch: &Stretch| Stalls::during(cx, stretch).for_memory();
    let (stretch, edge, severity) = match (lasting(little), lasting(low)) {
        (Some(stretch), _) if waits(&stretch) => (stretch, little, Severity::Critical),
        (Some(stretch), _) => (stretch, little, Severity::Warning),
        (None, Some(stretch)) if waits(&stretch) => (stretch, low, Severity::Warning),
        _ => {
            return match available.min() {
                Some((least, _)) if least <= low => {
                    clear!(
                        "{what} fell to {least} of {ram}, but not for long, or nobody waited for it"
                    )
                }
                Some((least, _)) if told => clear!("at least {least} of {ram} were available"),
                Some((least, _)) => clear!("free memory and cache were at least {least} of {ram}"),
                None => clear!("enough was available"),
            };
        }
    };
    let Some((least, index)) = available.min_in(&stretch) else {
        return clear!("enough was available");
    };
    let stalls = Stalls::during(cx, &stretch);
    let share = least
        .ratio_of(ram)
        .map_or_else(String::new, |share| format!(" ({share})"));
    let held = cx.each_time(stretch, &available.at_most(edge), HOLD, |again| {
        edge == little || waits(again)
    });
    let lasted = if cx.is_single_look() {
        String::new()
    } else {
        format!(" for {}", held.how_long())
    };
    let mut finding = RULE
        .found(
            severity,
            format!(
                "Hardly any memory is left: {what} fell to {least}{share} of {ram} and stayed that low{lasted}.{}",
                stalls.sentence()
            ),
        )
        .during(held)
        .graph(what, &available)
        .shows_below(
            MEM_AVAILABLE,
            least, edge,
            Some(cx.timeline.times()[index]),
            format!("{what} fell to {least}{share}"),
        );
    if cx.is_single_look() {
        let at_most = if told { "" } else { "at most " };
        finding.title =
            format!("Hardly any memory is left: {at_most}{least}{share} of {ram} are available.");
    }
    finding = stalls.shown_in(finding);
    for (signal, what) in [
        (MEM_ANON, "anonymous memory"),
        (MEM_SHMEM, "shared memory"),
        (
            MEM_SLAB_UNRECLAIMABLE,
            "kernel objects that cannot be dropped",
        ),
    ] {
        let held = cx.gauge(signal).ok().and_then(|track| track.at(index));
        if let Some(held) = held.filter(|held| *held >= ram.share(LOW)) {
            finding = finding.shows(
                signal,
                held,
                Some(cx.timeline.times()[index]),
                format!("{held} of {what}"),
            );
        }
    }
    if let Ok(pages) = cx.gauge(HUGEPAGES_FREE)
        && pages.at(index) == Some(Count::ZERO)
    {
        finding = finding.not("hugetlb-unused", "no free huge page lies idle");
    }
    let mut kinds = vec![what];
    if stalls.any() {
        kinds.push("stalls");
    }
    Ok(finding
        .not(
            "free-low-harmless",
            "available is low, not only free: there is no idle cache to drop",
        )
        .cause("What programs and the kernel hold, less what can be dropped, is nearly as large as RAM.")
        .fix(Fix::cap(cx, index, "Stop what grew last, or cap the group it belongs to."))
        .fix(Fix::say("Smaller pools, fewer workers, the job at another hour, or more RAM; some swap as a safety net."))
        .verify("memtide capture --for 24h --every 1m -o day.jsonl.zst over a work cycle: available stays above 10 % of RAM, stalls below 1 %")
        .affects(who::largest(cx, index, 3))
        .sure(cx.confidence(&kinds, stalls.open()))
        .see("kernel: Documentation/filesystems/proc.rst, MemAvailable")
        .into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::{Case, clear, found, not_evaluated};
    use timeline::signals::{
        ALLOCSTALL, MEM_BUFFERS, MEM_CACHED, MEM_FREE, MEM_TOTAL, PSI_MEMORY_FULL, PSI_MEMORY_SOME,
    };

    fn host(case: Case, ram: u64, available: u64) -> Case {
        case.gauge(MEM_TOTAL, Bytes::from_mib(ram))
            .gauge(MEM_AVAILABLE, Bytes::from_mib(available))
    }

    fn stalling(case: Case, percent: u64) -> Case {
        case.counter(PSI_MEMORY_SOME, percent * 10_000)
            .counter(PSI_MEMORY_FULL, percent * 9_000)
    }

    #[test]
    fn little_is_a_warning_and_with_stalls_critical() {
        let case = |percent| stalling(host(Case::over(60), 16_000, 480), percent);
        assert_eq!(found(RULE, &case(0)).severity, Severity::Warning);
        let finding = found(RULE, &case(30));
        assert_eq!(finding.severity, Severity::Critical);
        assert_eq!(finding.confidence.word(), "confirmed");
    }

    #[test]
    fn a_tenth_counts_only_where_tasks_wait() {
        let case = || host(Case::over(60), 469, 30);
        clear(RULE, &stalling(case(), 0));
        assert_eq!(
            found(RULE, &stalling(case(), 30)).severity,
            Severity::Warning
        );
        assert_eq!(
            found(RULE, &case().counter(ALLOCSTALL, 30)).severity,
            Severity::Warning
        );
    }

    #[test]
    fn a_calm_host_is_clear_whatever_is_free() {
        clear(
            RULE,
            &host(Case::over(60), 469, 94).gauge(MEM_FREE, Bytes::from_mib(4)),
        );
    }

    #[test]
    fn a_group_that_is_throttled_is_no_shortage_of_the_host() {
        clear(RULE, &stalling(host(Case::over(60), 721, 486), 98));
    }

    #[test]
    fn a_large_host_with_twenty_gib_left_is_not_exhausted() {
        clear(RULE, &host(Case::over(60), 1 << 20, 20 << 10));
        found(RULE, &host(Case::over(60), 1 << 20, 3 << 10));
    }

    #[test]
    fn a_dip_does_not_count() {
        let mut values = vec![Bytes::from_mib(300); 61];
        values[30] = Bytes::from_mib(5);
        let case = Case::over(60)
            .gauge(MEM_TOTAL, Bytes::from_mib(469))
            .gauge_steps(MEM_AVAILABLE, &values);
        clear(RULE, &stalling(case, 50));
    }

    #[test]
    fn one_look_is_not_confirmed() {
        let finding = found(RULE, &host(Case::once(), 16_000, 100));
        assert_eq!(finding.severity, Severity::Warning);
        assert_ne!(finding.confidence.word(), "confirmed");
    }

    /// What `free` of 2011 prints, in MiB.
    fn old_free(free: u64, buffers: u64, cached: u64) -> Case {
        Case::once()
            .gauge(MEM_TOTAL, Bytes::from_mib(3941))
            .gauge(MEM_FREE, Bytes::from_mib(free))
            .gauge(MEM_BUFFERS, Bytes::from_mib(buffers))
            .gauge(MEM_CACHED, Bytes::from_mib(cached))
    }

    #[test]
    fn without_memavailable_free_memory_and_cache_are_its_upper_bound() {
        let finding = found(RULE, &old_free(109, 1, 62));
        assert_eq!(finding.severity, Severity::Warning);
        assert!(
            finding.title.contains("at most 172 MiB"),
            "{}",
            finding.title
        );
        clear(RULE, &old_free(109, 1, 620));
        // Cached may be shared memory: the bound does not say so, and that is no reason for an alarm.
        clear(RULE, &old_free(30, 0, 2300));
    }

    #[test]
    fn an_old_kernel_does_not_have_it() {
        let case = Case::over(60).gauge(MEM_TOTAL, Bytes::from_mib(469));
        assert_eq!(not_evaluated(RULE, &case).names, ["mem.available"]);
    }
}
