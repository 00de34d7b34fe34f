//! External fragmentation: memory is free, but in blocks too small for the requests.

use timeline::Condition;
use timeline::facts::COMPACTION_PROACTIVENESS;
use timeline::settings::COMPACTION_PROACTIVENESS_DEFAULT;
use timeline::signals::{
    COMPACT_FAIL, MEM_CMA_FREE, MEM_FLOOR_HIGH, MEM_FREE, THP_FAULT_FALLBACK, ZONE_BLOCKS,
    ZONE_BLOCKS_0, ZONE_FREE, ZONE_HIGH, ZONE_PROTECTION,
};

use crate::oom::{self, Explained, OomCause};
use crate::prelude::*;
use crate::trigger;
use crate::trigger::While;

declare_rule! {
    /// Memory is free, but fragmented: no block is large enough for what is requested.
    ///
    /// ## What it means
    /// The kernel allocates blocks of 2ⁿ contiguous pages (order n). After long use free memory can consist of single
    /// pages only; requests for larger blocks (huge pages, network buffers, kernel stacks) then fail, or tasks have to
    /// compact memory first.
    /// ## How it is recognised
    /// At least twice the floor is free, and in every zone above its watermarks, blocks of some order (from 3, which
    /// the kernel expects to find, up to huge pages) make up less than {ABOUT_NONE} of the free memory, for {LEVEL} or
    /// longer. Failed compactions or page faults that fell back to small pages show real requests: six or more, at most
    /// {APART} apart. Without them it is informational, and only for small orders. A kernel report is proof by itself:
    /// a zone is above its watermarks and has no free block of the requested size and type.
    /// ## Not this
    /// - Little free memory: the zones are at their watermarks, and every block is rare.
    /// - Missing blocks that nothing requests.
    /// - `compaction-stall`: what it costs the tasks that allocate.
    /// ## What to do
    /// Once: `echo 1 > /proc/sys/vm/compact_memory`. For good: `vm.compaction_proactiveness` (5.9 and later), drivers
    /// in single-page mode, hugetlb pages reserved at boot. Verify: /proc/buddyinfo shows blocks of the missing order.
    /// ## References
    /// - kernel Documentation/admin-guide/sysctl/vm.rst, compact_memory, extfrag_threshold
    /// - kernel mm/vmstat.c, unusable_free_index
    pub(crate) RULE = { id: "external-fragmentation", since: "0.1.0", class: Stall,
        numbers: [ABOUT_NONE, LEVEL, APART],
        trigger: trigger, story: story,
        cause: "Unmovable pages lie between free ones.",
        brings_about: &["compaction-stall", "oom-global", "oom-score-misuse"],
        aliases: &["oom-highorder"],
    }
}

/// The kernel's PAGE_ALLOC_COSTLY_ORDER: up to here it expects requests to succeed.
const COSTLY: usize = 3;
/// The same order in a report.
const PROMISED: u32 = 3;
/// Multiples of the floor; an engineering choice: with more free memory than this there is no shortage.
const FREE_FLOOR_MULTIPLE: f64 = 2.0;
/// "About none": an unusable-free-space index of 0.99 or more.
const ABOUT_NONE: Ratio = Ratio::from_percent(1.0);
/// Requests fail at least six times per minute; an engineering choice, calm labelled captures show single events.
const FAILING: PerSecond<Count> = PerSecond::new(0.1);
/// Fewer failed requests than this are single events.
const FAILURES_MIN: f64 = 6.0;
/// Failed requests further apart than this do not belong together: the distance at [`FAILING`].
const APART: Span = Span::from_secs(10);
/// Where this much of the free memory is CMA's, little is left for requests that cannot be moved; an engineering choice.
const CMA_SHARE_MIN: Ratio = Ratio::from_percent(75.0);
/// The advised value; an engineering choice.
const PROACTIVENESS: u64 = 2 * COMPACTION_PROACTIVENESS_DEFAULT;

fn trigger() -> Trigger {
    Trigger::Found(FoundBy {
        find,
        could: Some(is_fragmented(blocks_of_huge_pages())),
        scope: Subjects::Host,
        none: Some(|_| {
            clear!(
                "every order up to huge pages has free blocks, no request for a missing one is \
                 known, or little memory is free"
            )
        }),
    })
}

/// Enough memory is free, but hardly any of it in such blocks.
fn is_fragmented(blocks: Reading<Ratio>) -> Predicate {
    let floor = computed("upper edge of the floor", |cx| Ok(cx.floor()?.high.cast()));
    let twice: Reading<Bytes> = floor.times(FREE_FLOOR_MULTIPLE);
    all![
        gauge(MEM_FREE).at_least("free memory", twice),
        blocks.at_most("free memory in large blocks", ABOUT_NONE),
    ]
}

/// The share of a zone's free memory in blocks that the kernel expects to find; the largest of all zones.
fn expected_blocks() -> Reading<Ratio> {
    computed("free memory in blocks of 8 pages", |cx| largest_share(cx, &zones(cx)?, COSTLY))
}

/// The same for blocks of a huge page.
fn blocks_of_huge_pages() -> Reading<Ratio> {
    computed("free memory in blocks of huge pages", |cx| {
        largest_share(cx, &zones(cx)?, huge_page_order(cx)?)
    })
}

/// Kernel reports of requests that found no block, times of failed requests, and times at which small blocks are
/// missing without any request.
fn find(cx: &Evidence<'_>) -> Result<Vec<Occurrence>, Missing> {
    let reported = oom::occurrences(cx, has_no_block);
    let mut found = match counted(cx) {
        Ok(counted) => counted,
        Err(missing) if reported.is_empty() => return Err(missing),
        Err(_) => Vec::new(),
    };
    retain_others(&mut found, &reported);
    found.extend(reported);
    Ok(found)
}

/// Removes occurrences that overlap one of `known`.
fn retain_others(occurrences: &mut Vec<Occurrence>, known: &[Occurrence]) {
    occurrences.retain(|occurrence| known.iter().all(|known| overlap(occurrence, known).is_none()));
}

fn has_no_block(explained: &Explained<'_>) -> bool {
    explained.cause == OomCause::NoBlock
}

fn counted(cx: &Evidence<'_>) -> Result<Vec<Occurrence>, Missing> {
    let holding = |blocks| {
        let trigger = While {
            scope: Subjects::Host,
            when: is_fragmented(blocks),
            at_least: LEVEL,
            alert_if: None,
            reported: None,
            noticed: None,
        };
        trigger::holding(cx, &trigger)
    };
    let failures = failures(cx);
    let mut found: Vec<Occurrence> = holding(blocks_of_huge_pages())?
        .iter()
        .flat_map(|level| failures.iter().filter_map(|failing| overlap(level, failing)))
        .filter(|occurrence| {
            let stretch = cx.timeline.stretch(occurrence.first, occurrence.last);
            stretch.is_some_and(|stretch| stretch.duration() >= LEVEL)
        })
        .collect();
    let mut without_requests = holding(expected_blocks())?;
    retain_others(&mut without_requests, &found);
    found.extend(without_requests);
    Ok(found)
}

/// The samples that both occurrences have in common.
fn overlap(a: &Occurrence, b: &Occurrence) -> Option<Occurrence> {
    let (first, last) = (a.first.max(b.first), a.last.min(b.last));
    (first <= last).then(|| Occurrence::on_host(first, last))
}

/// The times at which requests failed often enough.
fn failures(cx: &Evidence<'_>) -> Vec<Occurrence> {
    let all = FAILURES.iter().flat_map(|(signal, _)| failures_by(cx, *signal));
    joined(cx, all.collect(), Span::ZERO)
}

fn failures_by(cx: &Evidence<'_>, signal: Signal<Counter<Count>>) -> Vec<Occurrence> {
    let Ok(rate) = cx.rate(signal) else {
        return Vec::new();
    };
    let times = cx.timeline.times();
    let rises = (1..times.len()).filter(|at| rate.at(*at).is_some_and(|rate| rate.get() > 0.0));
    let mut runs: Vec<Occurrence> = Vec::new();
    for at in rises {
        match runs.last_mut() {
            Some(run) if run.last + 1 == at || times[at] - times[run.last] <= APART => {
                run.last = at;
            }
            _ => runs.push(Occurrence::on_host(at - 1, at)),
        }
    }
    runs.retain(|run| {
        let stretch = cx.timeline.stretch(run.first, run.last);
        stretch.is_some_and(|stretch| {
            let least = FAILURES_MIN.max(FAILING.get() * stretch.duration().as_secs_f64());
            stretch.duration() >= LEVEL && rate.integral_in(&stretch) >= least
        })
    });
    runs
}

fn story<'a>(cx: &Evidence<'a>, incident: &Incident<'a>) -> Result<Outcome, Missing> {
    let stretch = &incident.stretch;
    let reports = oom::within(cx, stretch, has_no_block);
    if let Some(last) = reports.last() {
        let finding = oom::tell_all(cx, stretch, &reports, reported(cx, last));
        let finding = oom::measures(cx, last, finding);
        return Ok(match free_in_cma(last) {
            Some(_) => remedy_beside_cma(finding),
            None => remedy(cx, finding),
        }
        .into());
    }
    let failed = failed_requests(cx, stretch);
    let stalls = PressureWindow::during(cx, stretch);
    let severity = Severity::warning_if(failed.is_some() && stalls.any());
    let (order, share) = smallest_missing(cx, stretch)?;
    let block = Bytes::from_f64(cx.page_size()?.bytes().as_f64() * pages_in(order));
    let free = cx.mean_in(stretch, MEM_FREE, &cx.gauge(MEM_FREE)?)?;
    let twice =
        cx.mean_in(stretch, MEM_FLOOR_HIGH, &cx.floor()?.high.scaled(FREE_FLOOR_MULTIPLE))?;
    let (effect, open) = match &failed {
        Some((_, rate, what)) => (format!("{rate} {what}"), ""),
        None => ("no request needed one".to_owned(), "a failed request would show that it matters"),
    };
    let title =
        format!("Memory is fragmented: {free} is free, but hardly any block of {block}: {effect}.");
    let text = format!(
        "blocks of order {order} or more ({block}): at most {share} of the free memory in any zone \
         above its watermarks"
    );
    let finding = RULE
        .found(severity, title)
        .shows_below(Computed(ZONE_BLOCKS_0), share, ABOUT_NONE, None, text)
        .shows_from(MEM_FREE, free, twice, None, format!("{free} free, more than twice the floor"))
        .counts_as("the free lists")
        .with(failed, |finding, (signal, rate, what)| {
            finding
                .shows_from(signal, rate, FAILING, None, format!("{rate} {what}"))
                .counts_as("failed requests")
        })
        .when(stalls.any(), |finding| stalls.shown_in(finding));
    Ok(remedy(cx, finding)
        .not("available-exhaustion", format!("{free} is free, well above the floor"))
        .verify(
            "cat /proc/buddyinfo: blocks in the columns of higher orders; compact_fail does not \
             rise",
        )
        .sure_by_kinds(cx, open)
        .into())
}

/// The smallest order with almost no free blocks, and its share of free memory.
fn smallest_missing(cx: &Evidence<'_>, stretch: &Stretch) -> Result<(usize, Ratio), Missing> {
    let zones = zones(cx)?;
    let huge = huge_page_order(cx)?;
    let share = |order| {
        let share: Track<Ratio> = largest_share(cx, &zones, order)?;
        cx.mean_in(stretch, ZONE_BLOCKS_0, &share)
    };
    for order in COSTLY..huge {
        let share = share(order)?;
        if share <= ABOUT_NONE {
            return Ok((order, share));
        }
    }
    Ok((huge, share(huge)?))
}

/// What a kernel report shows.
fn reported(cx: &Evidence<'_>, explained: &Explained<'_>) -> Finding {
    let page = explained.report.page_size.or(cx.facts.page_size);
    let size = explained.asked.map_or_else(String::new, |asked| asked.size(page));
    let (severity, effect) = oom::effect(explained);
    let may_be_shortage = explained.asked.is_some_and(|asked| asked.order <= PROMISED);
    if explained.zones.is_empty() && may_be_shortage {
        let because = format!("no block of {size} was free, or hardly any memory was");
        let title = format!("{effect}: {because}; the report does not show the zones (Mem-Info).");
        let open = "the zones would distinguish fragmentation from a shortage";
        return RULE.found(Severity::Info, title).sure(oom::sure(explained, 0.45, open));
    }
    let (because, value, open) = if let Some((cma, free)) = free_in_cma(explained) {
        let because = format!(
            " because no block of {size} was free that it may use: {cma} of the free {free} belong \
             to CMA, for movable memory"
        );
        (because, 0.9, "")
    } else if explained.zones.is_empty() {
        let because = format!(
            ", probably because no block of {size} was free; how much was free in smaller blocks \
             is not shown"
        );
        let open = "the report does not show the zones (Mem-Info): their free memory would \
                    distinguish fragmentation from a shortage";
        (because, 0.6, open)
    } else {
        let because = format!(
            " because no block of {size} was free, although enough memory was free in smaller \
             blocks"
        );
        (because, 0.95, "")
    };
    RULE.found(severity, format!("{effect}{because}."))
        .verify(
            "cat /proc/buddyinfo: blocks in the columns of higher orders; no further report in the \
             kernel log",
        )
        .affects(oom::victim(explained))
        .sure(oom::sure(explained, value, open))
}

/// The free memory of CMA and all free memory, where the request may not use most of it.
fn free_in_cma(explained: &Explained<'_>) -> Option<(Bytes, Bytes)> {
    let host = &explained.report.host;
    let (cma, free) = (host.get(MEM_CMA_FREE)?, host.get(MEM_FREE)?);
    let is_most = cma.ratio_of(free)? >= CMA_SHARE_MIN;
    (is_most && cma <= free && explained.asked.is_some_and(|asked| !asked.is_movable))
        .then_some((cma, free))
}

/// The share of a zone's free memory in blocks of this order; the largest of all zones; 0 for a zone at its
/// watermarks.
fn largest_share(
    cx: &Evidence<'_>,
    zones: &[ZoneBlocks],
    order: usize,
) -> Result<Track<Ratio>, Missing> {
    zones
        .iter()
        .map(|zone| zone.usable_share_from(cx, order))
        .reduce(|a, b| a.zip(&b, f64::max))
        .ok_or_else(|| Missing::file(ZONE_BLOCKS_0.def()))
}

/// Pages in a block of this order.
fn pages_in(order: usize) -> f64 {
    let order = i32::try_from(order).unwrap_or(i32::MAX);
    2.0_f64.powi(order)
}

/// The order of a PMD huge page: 9 with 4 KiB pages, 11 with 16 KiB; capped at the orders in the catalogue.
fn huge_page_order(cx: &Evidence<'_>) -> Result<usize, Missing> {
    let entries = cx.page_size()?.bytes().get() / 8;
    let order = usize::try_from(entries.max(1).ilog2()).unwrap_or(ZONE_BLOCKS.len());
    Ok(order.min(ZONE_BLOCKS.len() - 1))
}

/// A zone's free memory by block size.
struct ZoneBlocks {
    /// Whether free memory is at the watermarks, so that ordinary allocations get none.
    at_watermarks: Condition,
    /// Free pages in blocks of each order.
    pages: Vec<Track<Count>>,
    /// A track of zeros.
    none: Track<Count>,
}

impl ZoneBlocks {
    /// Free pages in blocks of `order` or more.
    fn pages_from(&self, order: usize) -> Track<Count> {
        self.pages.iter().skip(order).fold(self.none.clone(), |sum, pages| sum.plus(pages))
    }

    /// The share of free memory in blocks of `order` or more.
    fn share_from(&self, order: usize) -> Track<Ratio> {
        self.pages_from(order).ratio_of(&self.pages_from(0))
    }

    /// The same, and 0 while the zone is at its watermarks.
    fn usable_share_from(&self, cx: &Evidence<'_>, order: usize) -> Track<Ratio> {
        let shares = self.share_from(order);
        let usable = (0..cx.timeline.len()).map(|at| {
            if self.at_watermarks.at(at)? { Some(0.0) } else { shares.at(at).map(Ratio::get) }
        });
        cx.timeline.track(usable.collect())
    }
}

fn zones(cx: &Evidence<'_>) -> Result<Vec<ZoneBlocks>, Missing> {
    let mut zones = Vec::new();
    for zone in cx.timeline.entities(Entity::Zone) {
        let Ok(smallest) = cx.gauge_of(zone, ZONE_BLOCKS_0) else {
            continue;
        };
        let none = smallest.minus(&smallest);
        let mut pages = vec![smallest];
        for (order, signal) in ZONE_BLOCKS.iter().enumerate().skip(1) {
            let Ok(blocks) = cx.gauge_of(zone, *signal) else {
                break;
            };
            pages.push(blocks.scaled(pages_in(order)));
        }
        let mut watermark = cx.gauge_of(zone, ZONE_HIGH)?;
        if let Ok(protection) = cx.gauge_of(zone, ZONE_PROTECTION) {
            watermark = watermark.plus(&protection);
        }
        zones.push(ZoneBlocks {
            at_watermarks: cx.gauge_of(zone, ZONE_FREE)?.at_most_track(&watermark),
            pages,
            none,
        });
    }
    Ok(zones)
}

/// A counter of failed requests, its rate, and what it means.
type FailedRequests = (Signal<Counter<Count>>, PerSecond<Count>, &'static str);

/// Counters of failed requests, the stronger evidence first.
const FAILURES: [(Signal<Counter<Count>>, &str); 2] = [
    (COMPACT_FAIL, "requests failed after compaction"),
    (THP_FAULT_FALLBACK, "page faults got no huge page"),
];

fn failed_requests(cx: &Evidence<'_>, stretch: &Stretch) -> Option<FailedRequests> {
    FAILURES.into_iter().find_map(|(signal, what)| {
        let rate = cx.mean_rate(signal, stretch)?;
        (rate >= FAILING).then_some((signal, rate, what))
    })
}

fn remedy_beside_cma(finding: Finding) -> Finding {
    finding
        .cause(
            "Most of the free memory is in the area of CMA, which kernel allocations may not use.",
        )
        .fix(
            Fix::say("See how large the area is, and how much of it is free.")
                .inspect("grep Cma /proc/meminfo"),
        )
        .fix(Fix::say(
            "Make the area smaller (cma= on the kernel command line, or linux,cma in the device \
             tree), or let the driver allocate from it (dma_alloc_coherent), early, or in smaller \
             pieces.",
        ))
}

fn remedy(cx: &Evidence<'_>, finding: Finding) -> Finding {
    let finding = finding.fix(
        Fix::say("Compact memory once; this costs system CPU for some seconds.")
            .run("echo 1 > /proc/sys/vm/compact_memory"),
    );
    match cx.number(COMPACTION_PROACTIVENESS) {
        Ok(now) if now < PROACTIVENESS => finding.fix(Fix::tunable(
            cx,
            "Let kcompactd make large blocks in advance.",
            COMPACTION_PROACTIVENESS,
            PROACTIVENESS,
        )),
        _ => finding.fix(Fix::say(
            "Have large blocks allocated at boot: huge pages by hugepages= on the kernel command \
             line, a driver's by loading it early. Or avoid them (drivers without jumbo \
             buffers).",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oom::testing::Report;
    use crate::rules::testing::{Case, clear, found, not_evaluated, three_times, times};
    use timeline::signals::{PSI_MEMORY_SOME, ZONE_LOW, ZONE_MANAGED};
    use units::Pages;

    const ZONE: Entity = Entity::Zone;

    /// A zone of 1 GiB with these many free blocks of orders 0 to 10.
    fn lists(case: Case, key: &str, blocks: [u64; 11], high: u64) -> Case {
        let free: u64 = (0..).zip(blocks).map(|(order, n): (u32, u64)| n << order).sum();
        let mut case = case
            .gauge_of(ZONE, key, ZONE_FREE, Pages::new(free))
            .gauge_of(ZONE, key, ZONE_HIGH, Pages::new(high))
            .gauge_of(ZONE, key, ZONE_LOW, Pages::new(high))
            .gauge_of(ZONE, key, ZONE_MANAGED, Pages::new(262_144));
        for (signal, n) in ZONE_BLOCKS.iter().zip(blocks) {
            case = case.gauge_of(ZONE, key, *signal, Count::new(n));
        }
        case
    }

    fn host(free_mib: u64) -> Case {
        Case::over(30).gauge(MEM_FREE, Bytes::from_mib(free_mib))
    }

    const SINGLES: [u64; 11] = [40_000, 5000, 500, 2, 0, 0, 0, 0, 0, 0, 0];
    const NO_HUGE: [u64; 11] = [4000, 3000, 2000, 1000, 900, 300, 100, 20, 2, 0, 0];
    const WHOLE: [u64; 11] = [10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 40];

    #[test]
    fn failed_requests_with_stalls_are_a_warning() {
        let case = || lists(host(203), "0/Normal", SINGLES, 10_000).counter(COMPACT_FAIL, 5);
        let finding = found(RULE, &case().counter(PSI_MEMORY_SOME, 60_000));
        assert_eq!(finding.severity, Severity::Warning);
        assert!(finding.title.contains("block of 32 KiB"), "{}", finding.title);
        assert_eq!(found(RULE, &case()).severity, Severity::Info);
    }

    #[test]
    fn each_occurrence_of_failed_requests_is_reported() {
        let mut case = lists(
            Case::over(240).gauge(MEM_FREE, Bytes::from_mib(300)),
            "0/Normal",
            NO_HUGE,
            10_000,
        );
        for ((signal, few), many) in ZONE_BLOCKS.iter().zip(NO_HUGE).zip(WHOLE) {
            let steps = three_times([Count::new(few); 3], Count::new(many));
            let from_the_first = [vec![steps[0]], steps].concat();
            case = case.gauge_steps_of(ZONE, "0/Normal", *signal, &from_the_first);
        }
        let case = case.counter_steps(COMPACT_FAIL, &three_times([5, 0, 5], 0));
        assert_eq!(times(&found(RULE, &case)), [(0, 40), (200, 240)]);
    }

    #[test]
    fn a_zone_at_its_watermarks_with_large_blocks_does_not_hide_it() {
        let case = lists(host(203), "0/Normal", SINGLES, 10_000);
        found(RULE, &lists(case, "0/DMA", [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3], 3840));
    }

    #[test]
    fn missing_huge_pages_matter_only_with_requests() {
        let case = || lists(host(300), "0/Normal", NO_HUGE, 10_000);
        clear(RULE, &case());
        let finding = found(RULE, &case().counter(THP_FAULT_FALLBACK, 3));
        assert_eq!(finding.severity, Severity::Info);
    }

    #[test]
    fn clear_with_large_blocks_or_little_free_memory() {
        clear(RULE, &lists(host(200), "0/Normal", WHOLE, 10_000));
        clear(RULE, &lists(host(50), "0/Normal", SINGLES, 10_000));
    }

    #[test]
    fn a_kernel_report_of_a_large_request_is_found_if_enough_is_free() {
        let report = |free| {
            Report::default()
                .asking(0xcc0, 3)
                .zone("Normal", free, 60_000, 8_000_000, &[0; 5])
                .blocks(&[(20_000, "UM"), (500, "U"), (0, ""), (0, "C")])
                .killing(8, "java")
        };
        let finding = found(RULE, &Case::of_report(report(400_000)));
        assert_eq!(finding.severity, Severity::Critical);
        assert!(finding.title.contains("block of 32 KiB"), "{}", finding.title);
        let failed = found(RULE, &Case::of_report(report(400_000).failed()));
        assert_eq!(failed.severity, Severity::Warning);
        // The host is short of memory, fragmented or not.
        not_evaluated(RULE, &Case::of_report(report(50_000)));
    }

    #[test]
    fn not_evaluated_without_the_free_lists() {
        assert_eq!(not_evaluated(RULE, &Case::once()).names, ["mem.free"]);
        let no_lists = host(300)
            .gauge_of(ZONE, "0/Normal", ZONE_HIGH, Pages::new(1))
            .gauge_of(ZONE, "0/Normal", ZONE_LOW, Pages::new(1))
            .gauge_of(ZONE, "0/Normal", ZONE_MANAGED, Pages::new(9));
        assert_eq!(not_evaluated(RULE, &no_lists).names, ["zone.blocks_0"]);
    }

    #[test]
    fn finds_30_s_of_failed_requests_within_an_hour_but_not_single_ones() {
        let hour = |fails: &[u64]| {
            let free = Case::over(3600).gauge(MEM_FREE, Bytes::from_mib(300));
            lists(free, "0/Normal", NO_HUGE, 10_000).counter_steps(COMPACT_FAIL, fails)
        };
        let for_half_a_minute = [vec![0; 1000], vec![5; 30], vec![0; 2570]].concat();
        let stalled = [vec![0; 1000], vec![60_000; 30], vec![0; 2570]].concat();
        let case = hour(&for_half_a_minute).counter_steps(PSI_MEMORY_SOME, &stalled);
        let finding = found(RULE, &case);
        assert_eq!(finding.severity, Severity::Warning);
        assert_eq!(times(&finding), [(1000, 1030)]);
        let each_minute: Vec<u64> = (0..3600).map(|at| u64::from(at % 60 == 0)).collect();
        clear(RULE, &hour(&each_minute));
    }

    #[test]
    fn finds_a_kernel_report_within_an_hour() {
        let report = Report::default()
            .asking(0xcc0, 3)
            .zone("Normal", 400_000, 60_000, 8_000_000, &[0; 5])
            .blocks(&[(20_000, "UM"), (500, "U"), (0, ""), (0, "C")])
            .killing(8, "java");
        let finding = found(RULE, &Case::over(3600).reporting(600, report));
        assert_eq!((finding.harm.killed, times(&finding)), (1, vec![(600, 600)]));
    }
}
