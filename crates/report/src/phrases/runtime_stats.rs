//! The words of a runtime's own report: its name, its tables and what its class rests on.

use units::{Bytes, Count, Ratio, SignedBytes};

use super::LabelledText;
use crate::model::runtime_stats::{
    JemallocBinEntry, JemallocEntry, NativeMemoryEntry, ObjectPoolEntry, ObjectSpaceEntry,
    RuntimeStatsReport, ServerMemoryEntry,
};

/// Rows under names of columns. The first column is words, the others are numbers.
pub(crate) struct StatsTable {
    pub(crate) names: Vec<&'static str>,
    pub(crate) rows: Vec<Vec<String>>,
}

/// `Ruby 3.1.2, PID 4711`.
pub(crate) fn title(report: &RuntimeStatsReport) -> String {
    let name = match report.runtime {
        "ruby" => "Ruby",
        "jvm" => "JVM",
        "redis" => "Redis",
        other => other,
    };
    // The commit of a build is of no interest.
    let version = report.version.as_deref().unwrap_or_default();
    let version = version.split('-').next().unwrap_or_default();
    let pid = known(report.pid, |pid| format!(", PID {pid}"));
    format!("{name} {version}").trim_end().to_owned() + &pid
}

/// Returns what the runtime's memory is made of.
pub(crate) fn tables(report: &RuntimeStatsReport) -> Vec<StatsTable> {
    match (&report.ruby, &report.jvm, &report.jemalloc) {
        (Some(ruby), _, _) => vec![object_space(ruby)],
        (_, Some(jvm), _) => vec![native_memory(jvm)],
        (_, _, Some(jemalloc)) => vec![sizes(jemalloc), slabs(jemalloc)],
        _ => report.server.iter().map(server).collect(),
    }
}

/// Returns what does not fit, what the class rests on, what is not counted, and what to do.
pub(crate) fn sentences(report: &RuntimeStatsReport) -> Vec<LabelledText> {
    let parts = [
        ("Remark", &report.remarks),
        ("Evidence", &report.evidence),
        ("Not counted", &report.not_counted),
        ("To do", &report.advice),
    ];
    let labelled = |(label, texts): (&'static str, &Vec<String>)| -> Vec<LabelledText> {
        let texts = texts.iter().map(String::as_str);
        texts.map(|text| LabelledText::new(label, text)).collect()
    };
    parts.into_iter().flat_map(labelled).collect()
}

fn size(bytes: Bytes) -> String {
    bytes.to_string()
}

/// Prints a number, or nothing if it is unknown.
fn known<T>(value: Option<T>, print: impl Fn(T) -> String) -> String {
    value.map_or_else(String::new, print)
}

fn count(n: u64) -> String {
    Count::new(n).to_string()
}

fn ratio(value: Ratio) -> String {
    value.to_string()
}

/// A change with its sign; nothing if there is none.
fn change(bytes: Option<SignedBytes>) -> String {
    let changed = bytes.filter(|bytes| *bytes != SignedBytes::default());
    known(changed, |bytes| format!("{bytes:+}"))
}

fn object_space(entry: &ObjectSpaceEntry) -> StatsTable {
    let row = |pool: &ObjectPoolEntry| {
        vec![
            pool.slot_size_bytes.map_or_else(|| "all".to_owned(), size),
            count(pool.eden_pages),
            count(pool.eden_slots),
            known(pool.live_slots, count),
            known(pool.slot_occupancy_ratio, ratio),
            known(pool.free_bytes, size),
        ]
    };
    StatsTable {
        names: vec!["slot", "pages", "slots", "live", "occupied", "free"],
        rows: entry.pools.iter().map(row).collect(),
    }
}

fn native_memory(entry: &NativeMemoryEntry) -> StatsTable {
    let has_change = entry.committed_change_bytes.is_some();
    let mut names = vec!["category", "reserved", "committed", "share"];
    names.extend(has_change.then_some("change"));
    let row =
        |first: String, sizes: [Bytes; 2], share: Option<Ratio>, changed: Option<SignedBytes>| {
            let mut cells = vec![first, size(sizes[0]), size(sizes[1]), known(share, ratio)];
            cells.extend(has_change.then(|| change(changed)));
            cells
        };
    let total = row(
        "Total".to_owned(),
        [entry.reserved_bytes, entry.committed_bytes],
        None,
        entry.committed_change_bytes,
    );
    let categories = entry.categories.iter().map(|one| {
        let sizes = [one.reserved_bytes, one.committed_bytes];
        row(one.name.clone(), sizes, one.committed_ratio, one.committed_change_bytes)
    });
    StatsTable { names, rows: std::iter::once(total).chain(categories).collect() }
}

/// What a server has, with what bounds it.
fn server(entry: &ServerMemoryEntry) -> StatsTable {
    let parts = entry.parts.iter().map(|part| {
        vec![
            part.name.clone(),
            size(part.bytes),
            known(part.bytes.ratio_of(entry.total_bytes), ratio),
            part.setting.clone().unwrap_or_default(),
        ]
    });
    StatsTable { names: vec!["part", "size", "share", "setting"], rows: parts.collect() }
}

/// What resident memory is made of.
fn sizes(entry: &JemallocEntry) -> StatsTable {
    let whole = entry.resident_bytes;
    let row = |name: &str, bytes: Bytes| {
        vec![name.to_owned(), size(bytes), known(bytes.ratio_of(whole), ratio)]
    };
    let mut rows = vec![
        row("resident", whole),
        row("  allocated", entry.allocated_bytes),
        row("  free in active pages", entry.active_unused_bytes),
        row("  free pages, not purged", entry.unpurged_bytes),
        row("  metadata", entry.metadata_bytes),
    ];
    rows.extend(
        entry
            .retained_bytes
            .map(|bytes| vec!["retained: no memory".to_owned(), size(bytes), String::new()]),
    );
    StatsTable { names: vec!["part", "size", "share"], rows }
}

/// The sizes with the most free memory in their slabs.
fn slabs(entry: &JemallocEntry) -> StatsTable {
    let row = |bin: &JemallocBinEntry| {
        vec![
            size(bin.region_size_bytes),
            count(bin.slabs),
            count(bin.regions),
            count(bin.used_regions),
            known(bin.occupancy_ratio, ratio),
            size(bin.unused_bytes),
        ]
    };
    StatsTable {
        names: vec!["region", "slabs", "regions", "used", "occupied", "free"],
        rows: entry.bins.iter().map(row).collect(),
    }
}
