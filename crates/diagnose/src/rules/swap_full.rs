//! Swap is full and little memory is available: an OOM kill is next.

use timeline::signals::{MEM_AVAILABLE, MEM_FREE, SWAP_FREE, SWAP_TOTAL};

use crate::measures::available;
use crate::measures::readings::{ram_at_least, refaults_file};
use crate::oom::{self, Explained, OomCause, SwapState};
use crate::prelude::*;
use crate::trigger;
use crate::trigger::While;

declare_rule! {
    /// Swap is nearly full and hardly any memory is available: further growth ends in an OOM kill.
    ///
    /// ## What it means
    /// RAM and swap together are nearly used up. The kernel can no longer swap anonymous memory out, so it evicts the
    /// last file pages and then kills a process.
    /// ## How it is recognised
    /// At most {NEARLY_FULL} of swap is free and {AVAILABLE_COLD} of RAM is available, for {LEVEL} or longer. It is
    /// critical when less than {SWAP_FREE_SHARE_FULL} of swap is free and tasks stall or files refault (are read again
    /// after eviction). A kernel report of a kill shows both at once. Where MemAvailable is missing, free memory plus
    /// all of the cache is its upper bound; with more than {AVAILABLE_COLD}, or without any figure of RAM, a swap of
    /// which less than {SWAP_FREE_SHARE_FULL} is free is informational, unless more than {AVAILABLE_COLD} of RAM is
    /// free.
    /// ## Not this
    /// - `swap-cold-harmless`: swap is full of cold pages, but RAM is available.
    /// - `swap-thrash`: pages move in and out; both may be found.
    /// ## What to do
    /// Now: find out what is in swap (VmSwap of each process, tmpfs) and stop or cap it; another swap file buys time.
    /// For good: less demand or more RAM. Verify: more than {SWAP_FREE_GOAL} of swap stays free over a work cycle.
    /// ## References
    /// - kernel Documentation/admin-guide/mm/concepts.rst, reclaim
    /// - swapon(8), fallocate(1)
    pub(crate) RULE = {
        id: "swap-full", since: "0.1.0", class: Scarcity,
        numbers: [NEARLY_FULL, AVAILABLE_COLD, LEVEL, SWAP_FREE_SHARE_FULL, SWAP_FREE_GOAL],
        trigger: trigger, story: story,
        cause: "Anonymous and shared memory together are nearly as large as RAM and swap.",
        verify: "more than {SWAP_FREE_GOAL} of swap stays free over a work cycle: memtide capture \
                 --for 24h --every 1m -o day.jsonl.zst",
    }
}

/// An engineering choice.
const NEARLY_FULL: Ratio = Ratio::from_percent(10.0);
/// What a fix must reach: a margin of three times the threshold.
const SWAP_FREE_GOAL: Ratio = Ratio::from_percent(30.0);
/// An engineering choice: swap takes nothing more.
const SWAP_FREE_SHARE_FULL: Ratio = Ratio::from_percent(2.0);
/// With more than this available, a full swap contains cold pages.
const AVAILABLE_COLD: Ratio = AVAILABLE_LOW_SHARE;

/// Fires at once on a kernel report; levels must last.
fn trigger() -> Trigger {
    Trigger::Found(FoundBy { find, could: Some(used_up()), scope: Subjects::Host, none: None })
}

fn used_up() -> Predicate {
    let left = || gauge(SWAP_FREE);
    let at_most = |share| gauge(SWAP_TOTAL).share(share);
    // Much free memory is available memory.
    let is_full = all![
        left().at_most("free swap", at_most(SWAP_FREE_SHARE_FULL)),
        gauge(MEM_FREE).at_most("free memory", little()).if_measured(),
    ];
    let is_little = gauge(MEM_AVAILABLE).at_most("available", little());
    all![
        gauge(SWAP_TOTAL).at_least("swap", Bytes::new(1)),
        left().at_most("free swap", at_most(NEARLY_FULL)),
        any![
            available::upper_bound().at_most("available", little()),
            is_little.or_without(is_full),
        ],
    ]
}

/// With this much of RAM available or less, a full swap is not of cold pages only.
fn little() -> Reading<Bytes> {
    ram_at_least().share(AVAILABLE_COLD)
}

fn find(cx: &Evidence<'_>) -> Result<Vec<Occurrence>, Missing> {
    let levels = While {
        scope: Subjects::Host,
        when: used_up(),
        at_least: LEVEL,
        alert_if: None,
        reported: None,
        noticed: None,
    };
    let found = oom::beside_levels(cx, trigger::holding(cx, &levels), is_reported);
    let reports = oom::reports(cx);
    let is_of_others = !reports.is_empty() && !reports.iter().any(|one| one.cause.is_shortage());
    match found {
        Err(_) if is_of_others => Ok(Vec::new()),
        found => found,
    }
}

fn story<'a>(cx: &Evidence<'a>, incident: &Incident<'a>) -> Result<Outcome, Missing> {
    let stretch = &incident.stretch;
    let is_of_incident =
        |explained: &Explained<'_>| is_reported(explained) && explained.index == stretch.first;
    if stretch.first == stretch.last
        && let Some(explained) = oom::last(cx, is_of_incident)
    {
        return Ok(reported(cx, &explained).into());
    }
    if oom::only_others(cx) {
        return clear!("the kernel report is not about RAM and swap of the host");
    }
    let free = cx.gauge(SWAP_FREE)?;
    let Some((left, _)) = free.min_in(stretch) else {
        return clear!("free swap was not measured");
    };
    let total = cx.timeline.at(SWAP_TOTAL, stretch.last);
    let total = total.unwrap_or_default();
    let Some((least, little, index)) = least_available(cx, stretch) else {
        return Ok(of_swap_alone(cx, stretch, left, total).into());
    };
    let stalls = PressureWindow::during(cx, stretch);
    let refaults = refaults_file().bytes().track(cx).ok();
    let refaulted = refaults
        .and_then(|refaults| pressure::worst(&refaults, stretch))
        .filter(|refaulted| *refaulted >= READ_AGAIN);
    let hurts = refaulted.is_some() || stalls.for_memory();
    let severity = Severity::critical_if(
        left < total.share(SWAP_FREE_SHARE_FULL) && !cx.is_single_sample() && hurts,
    );
    let at = cx.time(index);
    let bound = match cx.gauge(MEM_AVAILABLE) {
        Ok(_) => "",
        Err(_) => "at most ",
    };
    let title = format!(
        "RAM and swap are nearly used up: {left} of {total} swap is free and {bound}{least} of RAM \
         is available, so further growth ends in an OOM kill."
    );
    Ok(RULE
        .found(severity, title)
        .graph("free swap", &free)
        .shows_below(
            SWAP_FREE,
            left,
            total.share(NEARLY_FULL),
            None,
            format!("{left} of {total} swap free"),
        )
        .shows_below(MEM_AVAILABLE, least, little, at, format!("available fell to {bound}{least}"))
        .counts_as("swap and RAM both used up")
        .shows_refaults(refaulted)
        .shows_stalls(&stalls)
        .not("swap-cold-harmless", format!("only {least} of RAM is available"))
        .and(|finding| remedy(cx, finding, index, total))
        .affects(processes::largest(cx, index, 3))
        .sure_by_kinds(cx, stalls.open())
        .into())
}

/// The least available memory, or its upper bound, with its edge and its sample; `None` if it is not little.
fn least_available(cx: &Evidence<'_>, stretch: &Stretch) -> Option<(Bytes, Bytes, usize)> {
    let track = available::upper_bound().track(cx).ok()?;
    let (least, index) = track.min_in(stretch)?;
    let little = little().track(cx).ok()?.at(index)?;
    (least <= little).then_some((least, little, index))
}

/// The finding where nothing shows whether RAM is short too.
fn of_swap_alone(cx: &Evidence<'_>, stretch: &Stretch, left: Bytes, total: Bytes) -> Finding {
    let title = Title::from(format!("Swap is full: {left} of {total} is free."))
        .then("Whether RAM is short too is not shown: MemAvailable is missing.");
    let text = format!("{left} of {total} swap free");
    let share = total.share(SWAP_FREE_SHARE_FULL);
    let finding = RULE
        .found(Severity::Info, title)
        .shows_below(SWAP_FREE, left, share, None, text)
        .counts_as("swap used up")
        .cause("Swap can take nothing more. What it contains may be pages that nobody uses.");
    remedy(cx, finding, stretch.last, total)
        .affects(processes::largest(cx, stretch.last, 3))
        .sure_by_kinds(
            cx,
            "MemAvailable (/proc/meminfo) would show whether the next allocation fails",
        )
}

fn remedy(cx: &Evidence<'_>, finding: Finding, index: usize, total: Bytes) -> Finding {
    let size = Bytes::from_f64((total.as_f64() / 2.0).max(Bytes::from_gib(1).as_f64()));
    let what = "Stop or cap the programs in swap; restart those that leak.";
    let more = Fix::swap_file("Buy time with another swap file.", "/swapfile2", size);
    finding.fix(Fix::cap(cx, index, what)).fix(more)
}

/// Whether a kernel report shows that both RAM and swap were used up.
fn is_reported(explained: &Explained<'_>) -> bool {
    let full = SwapState::Full;
    matches!(explained.cause, OomCause::UsedUp { swap, .. } if swap == full)
}

/// The finding of a kernel report.
fn reported(cx: &Evidence<'_>, one: &Explained<'_>) -> Finding {
    let at = |signal| cx.timeline.at(signal, one.index).unwrap_or_default();
    let (left, total) = (at(SWAP_FREE), at(SWAP_TOTAL));
    let title = format!(
        "RAM and swap were used up: {left} of {total} swap was free when an allocation failed."
    );
    let text = format!("{left} of {total} swap free");
    let mut swapped: Vec<_> = one.holders.programs.iter().collect();
    swapped.retain(|program| program.swap > Bytes::ZERO);
    swapped.sort_by_key(|program| std::cmp::Reverse(program.swap));
    let swapped = swapped
        .iter()
        .take(3)
        .map(|program| Affected::new("process", program.name, format!("{} in swap", program.swap)));
    let finding = RULE
        .found(Severity::Warning, title)
        .shows_below(SWAP_FREE, left, total.share(NEARLY_FULL), None, text)
        .affects(swapped)
        .with(oom::moment(cx, one), Finding::during);
    remedy(cx, finding, one.index, total)
        .not("swap-cold-harmless", "RAM was used up too")
        .sure(oom::sure(one, 0.97, ""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oom::testing::Report;
    use crate::rules::testing::{Case, amid_calm, clear, found, not_evaluated, times};
    use timeline::signals::{ALLOCSTALL, MEM_TOTAL};

    /// A host of 1,000 MiB RAM and 500 MiB swap, with `free` MiB of swap free and `available` MiB of RAM available.
    fn host(case: Case, free: u64, available: u64) -> Case {
        case.gauge(MEM_TOTAL, Bytes::from_mib(1000))
            .gauge(SWAP_TOTAL, Bytes::from_mib(500))
            .gauge(SWAP_FREE, Bytes::from_mib(free))
            .gauge(MEM_AVAILABLE, Bytes::from_mib(available))
    }

    #[test]
    fn a_warning_and_critical_with_stalls() {
        let case = || host(Case::over(60), 5, 40);
        assert_eq!(found(RULE, &case()).severity, Severity::Warning);
        let stalled = case().counter(ALLOCSTALL, 50);
        assert_eq!(found(RULE, &stalled).severity, Severity::Critical);
        let room = host(Case::over(60), 40, 40).counter(ALLOCSTALL, 50);
        assert_eq!(found(RULE, &room).severity, Severity::Warning);
    }

    #[test]
    fn clear_when_memory_is_available() {
        clear(RULE, &host(Case::over(60), 5, 300));
        clear(RULE, &host(Case::over(60), 100, 40));
    }

    #[test]
    fn finds_30_s_within_an_hour_but_not_cold_pages() {
        let in_an_hour = |available| {
            let steps = |mib, calm| amid_calm(Bytes::from_mib(mib), Bytes::from_mib(calm));
            host(Case::over(3600), 0, 0)
                .gauge_steps(SWAP_FREE, &steps(5, 400))
                .gauge_steps(MEM_AVAILABLE, &steps(available, 600))
                .counter_steps(ALLOCSTALL, &amid_calm(50, 0))
        };
        let finding = found(RULE, &in_an_hour(40));
        assert_eq!(finding.severity, Severity::Critical);
        assert_eq!(times(&finding), [(1799, 1829)]);
        clear(RULE, &in_an_hour(500));
    }

    #[test]
    fn clear_after_2_s() {
        let mut free = vec![Bytes::from_mib(300); 61];
        free[20] = Bytes::ZERO;
        free[21] = Bytes::ZERO;
        clear(RULE, &host(Case::over(60), 0, 40).gauge_steps(SWAP_FREE, &free));
    }

    #[test]
    fn a_single_sample_is_not_confirmed() {
        let finding = found(RULE, &host(Case::once(), 5, 40));
        assert_eq!(finding.severity, Severity::Warning);
        assert_ne!(finding.confidence.word(), "confirmed");
    }

    #[test]
    fn a_kernel_report_of_a_kill_is_found() {
        let finding = found(RULE, &Case::of_report(Report::of_a_host()));
        assert_eq!(finding.confidence.word(), "confirmed");
        let room = Report::of_a_host().swap(8_000_000, 3_000_000);
        clear(RULE, &Case::of_report(room));
    }

    #[test]
    fn clear_on_reports_of_cgroup_limits_or_kills_by_hand() {
        let limit = Report::of_a_group(100, 100).swap(8_000_000, 0);
        clear(RULE, &Case::of_report(limit));
        clear(RULE, &Case::of_report(Report::of_a_host().asking(0xcc0, -1)));
    }

    #[test]
    fn a_full_swap_alone_is_informational() {
        let case = |free| {
            Case::once()
                .gauge(SWAP_TOTAL, Bytes::from_mib(957))
                .gauge(SWAP_FREE, Bytes::from_mib(free))
        };
        assert_eq!(found(RULE, &case(0)).severity, Severity::Info);
        clear(RULE, &case(90));
    }

    #[test]
    fn without_memavailable_the_cache_bounds_it() {
        use timeline::signals::{MEM_BUFFERS, MEM_CACHED};
        let old_free = |cached| {
            Case::once()
                .gauge(MEM_TOTAL, Bytes::from_mib(1000))
                .gauge(MEM_FREE, Bytes::from_mib(20))
                .gauge(MEM_BUFFERS, Bytes::from_mib(1))
                .gauge(MEM_CACHED, Bytes::from_mib(cached))
                .gauge(SWAP_TOTAL, Bytes::from_mib(500))
                .gauge(SWAP_FREE, Bytes::from_mib(3))
        };
        let finding = found(RULE, &old_free(30));
        assert_eq!(finding.severity, Severity::Warning);
        assert!(finding.title.contains("at most 51 MiB"), "{}", finding.title);
        assert_eq!(found(RULE, &old_free(300)).severity, Severity::Info);
        clear(RULE, &old_free(300).gauge(MEM_FREE, Bytes::from_mib(280)));
    }

    #[test]
    fn clear_without_swap_and_not_evaluated_without_meminfo() {
        clear(RULE, &Case::over(60).gauge(SWAP_TOTAL, Bytes::ZERO));
        assert_eq!(not_evaluated(RULE, &Case::over(60)).names, ["swap.total"]);
    }
}
