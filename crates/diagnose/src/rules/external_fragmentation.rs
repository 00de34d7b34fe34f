//! External fragmentation: memory is free, but in pieces too small for what is asked.

use timeline::Condition;
use timeline::facts::COMPACTION_PROACTIVENESS;
use timeline::signals::{
    COMPACT_FAIL, MEM_FLOOR_HIGH, MEM_FREE, THP_FAULT_FALLBACK, ZONE_BLOCKS, ZONE_BLOCKS_0,
    ZONE_FREE, ZONE_HIGH, ZONE_PROTECTION,
};

use crate::oom::{self, Cause, Explained};
use crate::prelude::*;
use crate::trigger;
use crate::trigger::While;

declare_rule! {
    /// Memory is free, but in pieces too small for what is asked.
    ///
    /// ## What it means
    /// The kernel hands out runs of 2ⁿ pages. After long use free memory can consist of single pages only; requests for
    /// larger runs (huge pages, network buffers, kernel stacks) then fail or have to move memory about first.
    /// ## How it is recognised
    /// At least twice the floor is free, and in every zone that has memory to give, blocks of some order (from 3, which
    /// the kernel expects to find, up to huge pages) make up less than 1 % of it, for 10 s or longer. Failed compactions or
    /// page faults that did without a huge page show that somebody asked: six or more, 10 s or less apart. Without them it
    /// is information, and only for small orders. A kernel report shows it by itself: a zone is above its marks and has no free block of the size and kind
    /// that was asked for.
    /// ## Not this
    /// - Little free memory: the zones are at their marks, and every block is rare.
    /// - Missing blocks that nobody asks for.
    /// - `compaction-stall`: what it costs the tasks that ask.
    /// ## What to do
    /// Once: `echo 1 > /proc/sys/vm/compact_memory`. For good: `vm.compaction_proactiveness` (5.9 and later), drivers in
    /// single-page mode, hugetlb pages reserved at boot. Verify: /proc/buddyinfo shows blocks of the missing order.
    /// ## References
    /// - kernel Documentation/admin-guide/sysctl/vm.rst, compact_memory, extfrag_threshold
    /// - kernel mm/vmstat.c, unusable_free_index
    pub(crate) RULE = { id: "external-fragmentation", since: "0.1.0", class: Stall,
        trigger: trigger, story: story,
        cause: "Pages that cannot be moved lie between free ones.",
        brings_about: &["compaction-stall", "oom-global", "oom-score-misuse"],
        aliases: &["oom-highorder"],
    }
}

/// The kernel's PAGE_ALLOC_COSTLY_ORDER: up to here it expects requests to succeed.
const COSTLY: usize = 3;
/// An engineering choice: more free memory than this is not shortage.
const FREE: f64 = 2.0;
/// "About none": an unusable-free-space index of 0.99 or more.
const ABOUT_NONE: Ratio = Ratio::from_percent(1.0);
/// Somebody asks in vain: six times a minute; an engineering choice, calm labelled captures show single events.
const ASKED: PerSecond<Count> = PerSecond::new(0.1);
/// Fewer requests than this are single events.
const TIMES: f64 = 6.0;
/// Requests further apart than this do not belong together; at [`ASKED`], one is as far from the next.
const APART: Span = Span::from_secs(10);
/// The advised value, twice the kernel's default.
const PROACTIVENESS: u64 = 40;

fn trigger() -> Trigger {
    Trigger::Found(Found {
        find,
        could: Some(in_pieces(runs_of_huge_pages())),
        scope: Scope::Host,
        none: Some(|_| {
            clear!(
                "every order up to that of huge pages has free blocks, nobody is known to ask for it, or little is free"
            )
        }),
    })
}

/// Enough is free, but hardly any of it in such runs.
fn in_pieces(runs: Reading<Ratio>) -> Predicate {
    let floor = computed("upper edge of the floor", |cx| Ok(cx.floor()?.high.cast()));
    let twice: Reading<Bytes> = floor.times(FREE);
    all![
        gauge(MEM_FREE).at_least("free memory", twice),
        runs.at_most("free memory in large runs", ABOUT_NONE),
    ]
}

/// What part of a zone's free memory is in blocks that the kernel expects to find, where it is most.
fn expected_runs() -> Reading<Ratio> {
    computed("free memory in runs of 8 pages", |cx| {
        largest_share(cx, &zones(cx)?, COSTLY)
    })
}

/// The same of huge pages.
fn runs_of_huge_pages() -> Reading<Ratio> {
    computed("free memory in runs of huge pages", |cx| {
        largest_share(cx, &zones(cx)?, huge_page_order(cx)?)
    })
}

/// Kernel reports of requests that found no block; times at which somebody asked in vain; and where small blocks are
/// missing, though nobody asked.
fn find(cx: &Evidence<'_>) -> Result<Vec<Occurrence>, Missing> {
    let reported = oom::occurrences(cx, has_no_block);
    let mut found = match counted(cx) {
        Ok(counted) => counted,
        Err(missing) if reported.is_empty() => return Err(missing),
        Err(_) => Vec::new(),
    };
    found.retain(|one| !reported.iter().any(|it| overlap(one, it).is_some()));
    found.extend(reported);
    Ok(found)
}

fn has_no_block(one: &Explained<'_>) -> bool {
    one.cause == Cause::NoBlock
}

fn counted(cx: &Evidence<'_>) -> Result<Vec<Occurrence>, Missing> {
    let holding = |runs| {
        let trigger = While {
            scope: Scope::Host,
            when: in_pieces(runs),
            at_least: LEVEL,
        };
        trigger::holding(cx, &trigger)
    };
    let asked = asked(cx);
    let huge = holding(runs_of_huge_pages())?;
    let in_vain = huge.iter().flat_map(|level| {
        let meanwhile = asked.iter().filter_map(|asked| overlap(level, asked));
        meanwhile.filter(|one| {
            let stretch = cx.timeline.stretch(one.first, one.last);
            stretch.is_some_and(|stretch| stretch.duration() >= LEVEL)
        })
    });
    let mut found: Vec<Occurrence> = in_vain.collect();
    let mut alone = holding(expected_runs())?;
    alone.retain(|one| !found.iter().any(|it| overlap(one, it).is_some()));
    found.extend(alone);
    Ok(found)
}

/// The time that both have in common.
fn overlap(a: &Occurrence, b: &Occurrence) -> Option<Occurrence> {
    let (first, last) = (a.first.max(b.first), a.last.min(b.last));
    (first <= last).then(|| Occurrence::on_host(first, last))
}

/// When somebody asked in vain, often enough.
fn asked(cx: &Evidence<'_>) -> Vec<Occurrence> {
    let all = IN_VAIN.iter().flat_map(|(signal, _)| asked_of(cx, *signal));
    joined(cx, all.collect(), Span::ZERO)
}

fn asked_of(cx: &Evidence<'_>, signal: Signal<Counter<Count>>) -> Vec<Occurrence> {
    let Ok(rate) = cx.rate(signal) else {
        return Vec::new();
    };
    let times = cx.timeline.times();
    let some = (1..times.len()).filter(|at| rate.at(*at).is_some_and(|it| it.get() > 0.0));
    let mut runs: Vec<Occurrence> = Vec::new();
    for at in some {
        match runs.last_mut() {
            Some(run) if run.last + 1 == at || times[at] - times[run.last] <= APART => {
                run.last = at;
            }
            _ => runs.push(Occurrence::on_host(at - 1, at)),
        }
    }
    runs.retain(|run| {
        let stretch = cx.timeline.stretch(run.first, run.last);
        stretch.is_some_and(|it| {
            let asked = rate.integral_in(&it);
            it.duration() >= LEVEL && asked >= TIMES.max(ASKED.get() * it.duration().as_secs_f64())
        })
    });
    runs
}

fn story<'a>(cx: &Evidence<'a>, incident: &Incident<'a>) -> Result<Outcome, Missing> {
    let stretch = &incident.stretch;
    let reports = oom::within(cx, stretch, has_no_block);
    if let Some(one) = reports.last() {
        let finding = reported(cx, one);
        let finding = oom::tell_all(cx, stretch, &reports, finding);
        return Ok(remedy(cx, oom::measures(cx, one, finding)).into());
    }
    let asked = asked_for(cx, stretch);
    let stalls = Stalls::during(cx, stretch);
    let severity = Severity::warning_if(asked.is_some() && stalls.any());
    let (order, share) = smallest_missing(cx, stretch)?;
    let block = Bytes::from_f64(cx.page_size()?.bytes().as_f64() * pages_in(order));
    let left = cx.mean_in(stretch, MEM_FREE, &cx.gauge(MEM_FREE)?)?;
    let twice = cx.mean_in(stretch, MEM_FLOOR_HIGH, &cx.floor()?.high.scaled(FREE))?;
    let effect = match &asked {
        Some((_, rate, what)) => format!("{rate} {what}"),
        None => "nobody asked for more meanwhile".to_owned(),
    };
    let open = match asked {
        Some(_) => "",
        None => "a request that fails would settle that it matters",
    };
    let title = format!("{left} are free, but hardly any of it in runs of {block}: {effect}.");
    let text = format!(
        "blocks of order {order} or more ({block}): at most {share} of what a zone with memory to give has free"
    );
    let finding = RULE
        .found(severity, title)
        .shows_below(Computed(ZONE_BLOCKS_0), share, ABOUT_NONE, None, text)
        .shows_from(
            MEM_FREE,
            left,
            twice,
            None,
            format!("{left} free, more than twice the floor"),
        )
        .counts_as("the free lists")
        .with(asked, |it, (signal, rate, what)| {
            it.shows_from(signal, rate, ASKED, None, format!("{rate} {what}"))
                .counts_as("requests in vain")
        })
        .when(stalls.any(), |finding| stalls.shown_in(finding));
    Ok(remedy(cx, finding)
        .not("available-exhaustion", format!("{left} are free, well above the floor"))
        .verify("cat /proc/buddyinfo: blocks in the columns of higher orders; failed compactions stand still")
        .sure_by_kinds(cx, open)
        .into())
}

/// The smallest order of which there is about nothing, and how much of it there is.
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
fn reported(cx: &Evidence<'_>, one: &Explained<'_>) -> Finding {
    let page = one.report.page_size.or(cx.facts.page_size);
    let size = one.asked.map_or_else(String::new, |asked| asked.size(page));
    let (severity, effect) = oom::effect(one);
    let (value, open) = if one.zones.is_empty() {
        (0.7, "the free lists are not shown")
    } else {
        (0.95, "")
    };
    RULE.found(
        severity,
        format!("{effect} because nothing was free in runs of {size}, though enough was in smaller ones."),
    )
    .verify("cat /proc/buddyinfo: blocks in the columns of higher orders; no further report in the kernel log")
    .affects(oom::victim(one))
    .sure(oom::sure(one, value, open))
}

/// What part of a zone's free memory is in such blocks, where it is most; a zone at its watermarks has none to give.
fn largest_share(cx: &Evidence<'_>, zones: &[Zone], order: usize) -> Result<Track<Ratio>, Missing> {
    let shares = zones.iter().map(|zone| zone.gives(cx, order));
    let most = shares.reduce(|a, b| a.zip(&b, f64::max));
    most.ok_or_else(|| Missing::file(ZONE_BLOCKS_0.def()))
}

/// Pages in a block of this order.
fn pages_in(order: usize) -> f64 {
    let order = i32::try_from(order).unwrap_or(i32::MAX);
    2.0_f64.powi(order)
}

/// A table's worth of pages: order 9 with 4 KiB pages, 11 with 16 KiB; capped at what the catalogue holds.
fn huge_page_order(cx: &Evidence<'_>) -> Result<usize, Missing> {
    let entries = cx.page_size()?.bytes().get() / 8;
    let order = usize::try_from(entries.max(1).ilog2()).unwrap_or(ZONE_BLOCKS.len());
    Ok(order.min(ZONE_BLOCKS.len() - 1))
}

/// A zone's free memory by block size.
struct Zone {
    /// Nothing may be taken from it: free memory is at its marks.
    closed: Condition,
    /// Free pages in blocks of each order.
    pages: Vec<Track<Count>>,
    /// No pages, at each sample.
    none: Track<Count>,
}

impl Zone {
    /// Free pages in blocks of `order` or more.
    fn pages_from(&self, order: usize) -> Track<Count> {
        self.pages
            .iter()
            .skip(order)
            .fold(self.none.clone(), |sum, pages| sum.plus(pages))
    }

    /// What part of the free memory is in blocks of `order` or more.
    fn share_from(&self, order: usize) -> Track<Ratio> {
        self.pages_from(order).ratio_of(&self.pages_from(0))
    }

    /// The same, and nothing where nothing may be taken.
    fn gives(&self, cx: &Evidence<'_>, order: usize) -> Track<Ratio> {
        let shares = self.share_from(order);
        let gives = (0..cx.timeline.len()).map(|at| match self.closed.at(at)? {
            true => Some(0.0),
            false => shares.at(at).map(Ratio::get),
        });
        cx.timeline.track(gives.collect())
    }
}

fn zones(cx: &Evidence<'_>) -> Result<Vec<Zone>, Missing> {
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
        let mut mark = cx.gauge_of(zone, ZONE_HIGH)?;
        if let Ok(protection) = cx.gauge_of(zone, ZONE_PROTECTION) {
            mark = mark.plus(&protection);
        }
        zones.push(Zone {
            closed: cx.gauge_of(zone, ZONE_FREE)?.at_most_track(&mark),
            pages,
            none,
        });
    }
    Ok(zones)
}

/// The counter of requests in vain, its rate, and what it says.
type Asked = (Signal<Counter<Count>>, PerSecond<Count>, &'static str);

/// Counters of requests in vain, the more telling first.
const IN_VAIN: [(Signal<Counter<Count>>, &str); 2] = [
    (COMPACT_FAIL, "requests for more failed after compaction"),
    (THP_FAULT_FALLBACK, "page faults did without a huge page"),
];

/// Who asks in vain.
fn asked_for(cx: &Evidence<'_>, stretch: &Stretch) -> Option<Asked> {
    IN_VAIN.into_iter().find_map(|(signal, what)| {
        let rate = cx.mean_rate(signal, stretch)?;
        (rate >= ASKED).then_some((signal, rate, what))
    })
}

fn remedy(cx: &Evidence<'_>, finding: Finding) -> Finding {
    let finding = finding.fix(
        Fix::say("Compact memory once; it costs system CPU for some seconds.")
            .now("echo 1 > /proc/sys/vm/compact_memory"),
    );
    match cx.number(COMPACTION_PROACTIVENESS) {
        Ok(now) if now < PROACTIVENESS => finding.fix(Fix::tunable(cx, "Let kcompactd work ahead.", COMPACTION_PROACTIVENESS, PROACTIVENESS)),
        _ => finding.fix(Fix::say("Who needs large blocks should have them at boot (hugepages= on the kernel's command line), or ask for single pages (drivers without jumbo buffers).")),
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
        let free: u64 = (0..)
            .zip(blocks)
            .map(|(order, n): (u32, u64)| n << order)
            .sum();
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
    fn single_pages_and_requests_in_vain_are_a_warning_where_they_hurt() {
        let case = || lists(host(203), "0/Normal", SINGLES, 10_000).counter(COMPACT_FAIL, 5);
        let finding = found(RULE, &case().counter(PSI_MEMORY_SOME, 60_000));
        assert_eq!(finding.severity, Severity::Warning);
        assert!(
            finding.title.contains("runs of 32 KiB"),
            "{}",
            finding.title
        );
        assert_eq!(found(RULE, &case()).severity, Severity::Info);
    }

    #[test]
    fn each_time_is_told_at_which_somebody_asks() {
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
    fn a_reserved_zone_with_large_blocks_does_not_hide_it() {
        let case = lists(host(203), "0/Normal", SINGLES, 10_000);
        found(
            RULE,
            &lists(case, "0/DMA", [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3], 3840),
        );
    }

    #[test]
    fn missing_huge_blocks_matter_only_to_who_asks() {
        let case = || lists(host(300), "0/Normal", NO_HUGE, 10_000);
        clear(RULE, &case());
        let finding = found(RULE, &case().counter(THP_FAULT_FALLBACK, 3));
        assert_eq!(finding.severity, Severity::Info);
    }

    #[test]
    fn whole_blocks_or_little_free_memory_are_clear() {
        clear(RULE, &lists(host(200), "0/Normal", WHOLE, 10_000));
        clear(RULE, &lists(host(50), "0/Normal", SINGLES, 10_000));
    }

    #[test]
    fn a_report_of_a_large_request_shows_it_where_enough_is_free() {
        let report = |free| {
            Report::default()
                .asking(0xcc0, 3)
                .zone("Normal", free, 60_000, 8_000_000, &[0; 5])
                .blocks(&[(20_000, "UM"), (500, "U"), (0, ""), (0, "C")])
                .killing(8, "java")
        };
        let finding = found(RULE, &Case::of_report(report(400_000)));
        assert_eq!(finding.severity, Severity::Critical);
        assert!(
            finding.title.contains("runs of 32 KiB"),
            "{}",
            finding.title
        );
        let failed = found(RULE, &Case::of_report(report(400_000).failed()));
        assert_eq!(failed.severity, Severity::Warning);
        // Short of memory, whatever its pieces: the report does not make it this.
        not_evaluated(RULE, &Case::of_report(report(50_000)));
    }

    #[test]
    fn needs_the_free_lists() {
        assert_eq!(not_evaluated(RULE, &Case::once()).names, ["mem.free"]);
        let no_lists = host(300)
            .gauge_of(ZONE, "0/Normal", ZONE_HIGH, Pages::new(1))
            .gauge_of(ZONE, "0/Normal", ZONE_LOW, Pages::new(1))
            .gauge_of(ZONE, "0/Normal", ZONE_MANAGED, Pages::new(9));
        assert_eq!(not_evaluated(RULE, &no_lists).names, ["zone.blocks_0"]);
    }

    #[test]
    fn requests_in_vain_for_half_a_minute_of_an_hour_are_found_and_single_ones_are_not() {
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
    fn a_report_within_an_hour_of_calm_is_found_with_its_time() {
        let report = Report::default()
            .asking(0xcc0, 3)
            .zone("Normal", 400_000, 60_000, 8_000_000, &[0; 5])
            .blocks(&[(20_000, "UM"), (500, "U"), (0, ""), (0, "C")])
            .killing(8, "java");
        let finding = found(RULE, &Case::over(3600).reporting(600, report));
        assert_eq!(
            (finding.harm.killed, times(&finding)),
            (1, vec![(600, 600)])
        );
    }
}
