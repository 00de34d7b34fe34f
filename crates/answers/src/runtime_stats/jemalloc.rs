//! jemalloc: how much of its resident memory is allocated, and what keeps the rest?

use anatomy::runtime_stats::{JemallocBin, JemallocStats};
use report::model::runtime_stats::{JemallocBinEntry, JemallocEntry, RuntimeStatsReport};
use units::{Bytes, Count, Ratio};

use super::{Judged, ProcessBeside};

/// With a smaller share of resident memory that is not allocated, nothing is lost: an engineering choice.
const SLACK_MIN: Ratio = Ratio::new(0.25);
/// At most this many sizes are in the answer.
const BINS_MAX: usize = 8;

pub(super) fn answer(stats: &JemallocStats, process: &ProcessBeside) -> RuntimeStatsReport {
    let judged = judge(stats);
    let class = judged.class;
    let mut report = judged.report("jemalloc");
    report.version.clone_from(&stats.version);
    report.evidence = evidence(stats, process);
    report.not_counted = vec![
        "Memory that the program maps itself, its files and its stacks.".to_owned(),
        "Padding within an allocation: it counts as allocated, about 20 % at most.".to_owned(),
    ];
    report.advice = advice(stats, class);
    report.jemalloc = Some(entry(stats, process));
    report
}

fn judge(stats: &JemallocStats) -> Judged {
    let (resident, allocated) = (stats.resident, stats.allocated);
    let slack = resident.saturating_sub(allocated);
    let (unused, unpurged) = (stats.active_unused(), stats.returnable());
    let share = |part: Bytes| part.ratio_of(resident).unwrap_or_default();
    if share(slack) < SLACK_MIN {
        let headline = format!(
            "{} of the {resident} that are resident are allocated: little is lost in jemalloc.",
            share(allocated)
        );
        return Judged::fine("packed", headline);
    }
    if unused >= unpurged {
        let lost = stats.active_unused_share().unwrap_or_default();
        let headline = format!(
            "{unused}, {lost} of the pages in use, are free between allocations: purging cannot \
             return them."
        );
        return Judged::concern("fragmented", headline);
    }
    let headline = format!(
        "{unpurged}, {} of the resident memory, are free pages that jemalloc has not purged yet.",
        share(unpurged)
    );
    Judged::concern("unpurged", headline)
}

fn evidence(stats: &JemallocStats, process: &ProcessBeside) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(share) = stats.active_unused_share() {
        lines.push(format!(
            "({} active − {} allocated) / active = {share}.",
            stats.active, stats.allocated
        ));
    }
    let rest = stats.resident.saturating_sub(stats.active + stats.metadata);
    lines.push(match stats.dirty {
        Some(_) => format!(
            "{} of free pages are counted as not purged; resident − active − metadata is {rest}.",
            stats.returnable()
        ),
        None => format!("resident − active − metadata = {rest}: free pages that are not purged."),
    });
    if let Some(caches) = stats.thread_caches {
        lines.push(format!("{caches} of what is allocated lie in caches of threads."));
    }
    if let Some(retained) = stats.retained {
        lines.push(format!("{retained} are retained: address space without memory."));
    }
    if let Some(rss) = process.rss {
        let beyond = rss.saturating_sub(stats.resident);
        lines.push(format!("RSS is {rss}: {beyond} or more of it are not jemalloc's."));
    }
    lines
}

fn advice(stats: &JemallocStats, class: &str) -> Vec<String> {
    match class {
        "fragmented" => {
            let arenas = stats.arenas.map_or_else(String::new, |n| format!(" (now {n})"));
            vec![format!(
                "Fewer arenas{arenas} keep allocations closer together: MALLOC_CONF=narenas:2, \
                 measured on this workload. What frees most of a burst and keeps a part leaves its \
                 slabs sparse."
            )]
        }
        "unpurged" if stats.background_thread == Some(false) => vec![
            "Pages decay only when the program allocates: MALLOC_CONF=background_thread:true \
             returns them also when it is idle; dirty_decay_ms:1000 sooner."
                .to_owned(),
        ],
        "unpurged" => {
            vec![
                "MALLOC_CONF=dirty_decay_ms:1000 returns pages sooner, at the price of page faults."
                    .to_owned(),
            ]
        }
        _ => Vec::new(),
    }
}

fn entry(stats: &JemallocStats, process: &ProcessBeside) -> JemallocEntry {
    let bin = |bin: &&JemallocBin| JemallocBinEntry {
        region_size_bytes: bin.region_size,
        slabs: bin.slabs.get(),
        regions: bin.regions.get(),
        used_regions: bin.used.get(),
        occupancy_ratio: bin.occupancy(),
        unused_bytes: bin.unused(),
    };
    let beyond = |rss: Bytes| rss.saturating_sub(stats.resident);
    JemallocEntry {
        allocated_bytes: stats.allocated,
        thread_caches_bytes: stats.thread_caches,
        active_bytes: stats.active,
        active_unused_bytes: stats.active_unused(),
        active_unused_ratio: stats.active_unused_share(),
        unpurged_bytes: stats.returnable(),
        unpurged_is_counted: stats.dirty.is_some(),
        metadata_bytes: stats.metadata,
        resident_bytes: stats.resident,
        beyond_resident_bytes: process.rss.map(beyond),
        retained_bytes: stats.retained,
        arenas: stats.arenas.map(Count::get),
        background_thread: stats.background_thread,
        bins: stats.by_unused().iter().take(BINS_MAX).map(bin).collect(),
    }
}
