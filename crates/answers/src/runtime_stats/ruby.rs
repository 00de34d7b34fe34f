//! Ruby: is the object space full, or are its pages kept by few objects? And against it: malloc's heap.

use anatomy::runtime_stats::{RubyPool, RubyStats};
use report::model::runtime_stats::{ObjectPoolEntry, ObjectSpaceEntry, RuntimeStatsReport};
use units::{Bytes, Count, Ratio};

use super::{Judged, ProcessBeside};
use crate::explain::ARENAS_MAX;

/// From this occupancy on, the collector adds pages: `GC_HEAP_FREE_SLOTS_MIN_RATIO` of `gc.c` is 0.20 of slots free.
const FULL_MIN: Ratio = Ratio::new(0.80);
/// Below this occupancy, the collector frees pages, if they are empty: `GC_HEAP_FREE_SLOTS_MAX_RATIO` is 0.65 of slots free.
const SPARSE_MAX: Ratio = Ratio::new(0.35);
/// Less free memory in object space is not worth a remedy: an engineering choice.
const FREE_MIN: Bytes = Bytes::from_mib(8);

pub(super) fn answer(stats: &RubyStats, process: &ProcessBeside) -> RuntimeStatsReport {
    let judged = judge(stats, process);
    let is_sparse = judged.is_concern;
    let mut report = judged.report("ruby");
    report.version.clone_from(&stats.version);
    report.pid = stats.pid;
    report.evidence = evidence(stats, process);
    report.not_counted = vec![
        "Contents of long strings, of arrays and of hashes, and C extensions: they are malloc's."
            .to_owned(),
    ];
    if is_sparse {
        // Measured with Ruby 3.1 on the pages of the test's report: 1,157 pages became 588, RSS 39 MiB became 30 MiB.
        report.advice.push(
            "GC.compact and two GC.start after it (Ruby 2.7 and later) move objects together and \
             return empty pages; at best once, after the program has started."
                .to_owned(),
        );
    } else if is_slack_in_malloc(stats, process) {
        report.advice.push(format!(
            "Look for the slack in malloc: MALLOC_ARENA_MAX={ARENAS_MAX} or jemalloc, measured on \
             this workload."
        ));
    } else if process.malloc_free.is_none() {
        let pid = stats.pid.map_or_else(|| "PID".to_owned(), |pid| pid.to_string());
        report.advice.push(format!(
            "Most memory of a Ruby process is malloc's: memtide explain {pid} shows what is free \
             there."
        ));
    }
    report.ruby = Some(entry(stats));
    report
}

/// Whether malloc has more free memory than the slots, and enough to look for.
fn is_slack_in_malloc(stats: &RubyStats, process: &ProcessBeside) -> bool {
    let exceeds = |slack| stats.free().is_none_or(|free| slack > free);
    (process.malloc_free).is_some_and(|slack| slack >= FREE_MIN && exceeds(slack))
}

fn judge(stats: &RubyStats, process: &ProcessBeside) -> Judged {
    let size = stats.size();
    let Some(occupancy) = stats.slot_occupancy() else {
        let headline = format!("Object space has {size}; its slots are not in the report.");
        return Judged::fine("usual", headline);
    };
    let free = stats.free();
    let (class, state) = if occupancy >= FULL_MIN {
        ("full", format!("Object space ({size}) is {occupancy} full"))
    } else if occupancy >= SPARSE_MAX {
        (
            "usual",
            format!("Object space ({size}) is {occupancy} full, as Ruby's collector plans it"),
        )
    } else {
        ("sparse", format!("Object space ({size}) is only {occupancy} full"))
    };
    // The contrast is what the report is for: where is the slack?
    let headline = match (process.malloc_free, free) {
        (Some(slack), Some(_)) if is_slack_in_malloc(stats, process) => {
            format!("{state}: the {slack} of slack sit in malloc's arenas.")
        }
        (Some(slack), Some(free)) => {
            format!("{state}: {free} are free slots, and {slack} are free in malloc.")
        }
        (Some(slack), None) => format!("{state}; {slack} are free in malloc."),
        (None, Some(free)) => format!("{state}: {free} of it are free slots."),
        (None, None) => format!("{state}."),
    };
    let is_lost = class == "sparse" && free.is_none_or(|free| free >= FREE_MIN);
    if is_lost { Judged::concern(class, headline) } else { Judged::fine(class, headline) }
}

fn evidence(stats: &RubyStats, process: &ProcessBeside) -> Vec<String> {
    let mut lines = Vec::new();
    if let (Some(slots), Some(occupancy)) = (stats.eden_slots(), stats.slot_occupancy()) {
        let live = stats.live_slots;
        lines.push(match stats.slots_per_page {
            Some(of_page) => format!(
                "{live} live slots / ({} pages × {of_page} slots) = {occupancy}.",
                stats.eden_pages
            ),
            None => format!("{live} live slots / {slots} slots = {occupancy}."),
        });
    }
    if let Some(survived) = stats.survived_slots {
        let younger = stats.live_slots.saturating_sub(survived);
        lines.push(format!(
            "{survived} objects survived the last collection; up to {younger} younger ones may be \
             dead."
        ));
    }
    if let (Some(places), Some(share), Some(freed)) =
        (stats.list_places, stats.list_occupancy(), stats.freed_places())
    {
        let pages = stats.eden_pages;
        let others = if places > pages {
            let allocatable = stats.allocatable_pages.unwrap_or_default();
            format!(
                "{allocatable} places are for pages to come, {freed} of pages that were given back"
            )
        } else {
            "no page was given back".to_owned()
        };
        lines.push(format!("{pages} pages / {places} places in their list = {share}: {others}."));
    }
    if let Some(empty) = stats.empty_pages.filter(|empty| *empty > Count::ZERO) {
        let pages = empty.named("page has", "pages have");
        lines.push(format!("{pages} no object and can be given back."));
    }
    if let Some((rss, share)) = process.rss.and_then(|rss| Some((rss, stats.size().ratio_of(rss)?)))
    {
        lines.push(format!("Object space is {share} of the process's RSS of {rss}."));
    }
    lines
}

fn entry(stats: &RubyStats) -> ObjectSpaceEntry {
    ObjectSpaceEntry {
        size_bytes: stats.size(),
        free_bytes: stats.free(),
        live_slots: stats.live_slots.get(),
        survived_slots: stats.survived_slots.map(Count::get),
        eden_slots: stats.eden_slots().map(Count::get),
        slot_occupancy_ratio: stats.slot_occupancy(),
        slots_per_page: stats.slots_per_page.map(Count::get),
        page_size_bytes: stats.page_size,
        eden_pages: stats.eden_pages.get(),
        empty_pages: stats.empty_pages.map(Count::get),
        page_list_places: stats.list_places.map(Count::get),
        page_list_occupancy_ratio: stats.list_occupancy(),
        collections: stats.collections.map(Count::get),
        pools: pools(stats),
    }
}

/// Returns an entry for each pool, or one for all slots.
fn pools(stats: &RubyStats) -> Vec<ObjectPoolEntry> {
    let of_pool = |pool: &RubyPool| ObjectPoolEntry {
        slot_size_bytes: Some(pool.slot_size),
        eden_pages: pool.eden_pages.get(),
        eden_slots: pool.eden_slots.get(),
        live_slots: pool.live_slots.map(Count::get),
        slot_occupancy_ratio: pool.occupancy(),
        free_bytes: pool.free(),
    };
    if !stats.pools.is_empty() {
        return stats.pools.iter().map(of_pool).collect();
    }
    let all = stats.eden_slots().map(|slots| ObjectPoolEntry {
        slot_size_bytes: stats.slot_size,
        eden_pages: stats.eden_pages.get(),
        eden_slots: slots.get(),
        live_slots: Some(stats.live_slots.get()),
        slot_occupancy_ratio: stats.slot_occupancy(),
        free_bytes: stats.free(),
    });
    all.into_iter().collect()
}
