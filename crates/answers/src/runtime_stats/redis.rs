//! Redis: is its memory data, or does its allocator keep what was deleted?

use anatomy::runtime_stats::RedisStats;
use report::model::runtime_stats::{RuntimeStatsReport, ServerMemoryEntry, ServerPartEntry};
use units::{Bytes, Ratio};

use super::{Judged, ProcessBeside};

/// With a smaller share of resident memory that is not allocated, nothing is lost: an engineering choice.
const SLACK_MIN: Ratio = Ratio::new(0.25);
/// Less is not worth a remedy: an engineering choice.
const SIZE_MIN: Bytes = Bytes::from_mib(16);

pub(super) fn answer(stats: &RedisStats, process: &ProcessBeside) -> RuntimeStatsReport {
    let judged = judge(stats);
    let class = judged.class;
    let mut report = judged.report("redis");
    report.version.clone_from(&stats.version);
    report.pid = stats.pid;
    report.evidence = evidence(stats);
    report.not_counted =
        vec!["Its program and libraries; pages that a fork copies while it saves.".to_owned()];
    report.advice = advice(stats, class);
    report.server = Some(entry(stats));
    report.rss_bytes = process.rss.or(stats.rss);
    report
}

fn judge(stats: &RedisStats) -> Judged {
    let (Some(unused), Some(unpurged)) = (stats.unused(), stats.unpurged()) else {
        let headline = format!(
            "Redis has allocated {}; its allocator does not report what it keeps beside that.",
            stats.used
        );
        return Judged::fine("allocated", headline);
    };
    let resident = stats.resident.unwrap_or_default();
    let is_much = |part: Bytes| part >= SIZE_MIN && part >= resident.share(SLACK_MIN);
    if !is_much(unused) && !is_much(unpurged) {
        let share = stats.allocated.unwrap_or_default().ratio_of(resident).unwrap_or_default();
        let headline =
            format!("{share} of the {resident} that are resident are allocated: it is data.");
        return Judged::fine("packed", headline);
    }
    if unused >= unpurged {
        let share = stats.unused_share().unwrap_or_default();
        let headline = format!(
            "{unused}, {share} of the pages in use, are free between values: what was deleted lay \
             beside what stays."
        );
        return Judged::concern("fragmented", headline);
    }
    let headline = format!("{unpurged} are free pages that jemalloc has not returned yet.");
    Judged::concern("unpurged", headline)
}

fn evidence(stats: &RedisStats) -> Vec<String> {
    let mut lines = Vec::new();
    if let (Some(allocated), Some(active), Some(resident)) =
        (stats.allocated, stats.active, stats.resident)
    {
        lines.push(format!(
            "{}: {allocated} allocated, {active} in pages with something allocated, {resident} \
             resident at most.",
            stats.allocator.as_deref().unwrap_or("its allocator")
        ));
    }
    if let Some((dataset, overhead)) = stats.dataset.zip(stats.overhead) {
        lines.push(format!(
            "Of {} allocated by Redis, {dataset} are keys and values, {overhead} tables and buffers.",
            stats.used
        ));
    }
    match stats.limit {
        Some(limit) => {
            let share = stats.used.ratio_of(limit).unwrap_or_default();
            let policy = stats.policy.as_deref().unwrap_or("unknown");
            lines.push(format!("maxmemory is {limit}, {share} used; policy {policy}."));
        }
        None => lines
            .push("maxmemory is not set: it grows until the host or a cgroup ends it.".to_owned()),
    }
    lines
}

fn advice(stats: &RedisStats, class: &str) -> Vec<String> {
    match class {
        "fragmented" if stats.is_defragmenting => {
            vec!["It moves values together now (active_defrag_running): read it again.".to_owned()]
        }
        "fragmented" => vec![
            "`redis-cli CONFIG SET activedefrag yes` moves values together while it runs, at up to \
             25 % of a CPU (active-defrag-cycle-max); it needs the jemalloc that Redis is built with. Where that \
             is refused (Debian's Redis uses the system's), a restart, or a new replica that becomes \
             the primary, has the same data without the holes."
                .to_owned(),
        ],
        "unpurged" => vec!["`redis-cli MEMORY PURGE` returns free pages at once.".to_owned()],
        _ => Vec::new(),
    }
}

fn entry(stats: &RedisStats) -> ServerMemoryEntry {
    let part = |name: &str, bytes: Option<Bytes>, setting: &str| {
        Some(ServerPartEntry {
            name: name.to_owned(),
            bytes: bytes?,
            setting: Some(setting.to_owned()).filter(|setting| !setting.is_empty()),
        })
    };
    let parts = [
        part("keys and values", stats.dataset, "maxmemory"),
        part("tables and buffers", stats.overhead, ""),
        part("  buffers of clients", stats.clients, "client-output-buffer-limit"),
        part("  replication backlog", stats.replication, "repl-backlog-size"),
        part("  append-only buffer", stats.append_only, ""),
        part("free between values", stats.unused(), "activedefrag"),
        part("free pages", stats.unpurged(), "MEMORY PURGE"),
    ];
    ServerMemoryEntry {
        total_bytes: stats.resident.or(stats.rss).unwrap_or(stats.used),
        parts: parts.into_iter().flatten().filter(|part| part.bytes > Bytes::ZERO).collect(),
    }
}
