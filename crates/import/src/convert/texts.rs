//! Kernel files' texts, written from signals: the files whose lines stand for themselves.

use std::collections::BTreeMap;

use probe::octal;
use timeline::signals::{
    MEMINFO, NODE_MEMINFO, NODE_NUMASTAT, PROC_OOM_ADJ, PROC_RSS, PROCESS_IO, PROCESS_STATUS,
    SLAB_OBJECT_SIZE, SLAB_OBJECTS, SLAB_OBJECTS_ACTIVE, SLAB_PAGES, SLABINFO, SMAPS_ROLLUP,
    SWAP_AREA_RANK, SWAP_AREA_SIZE, SWAP_AREA_USED, SWAPS, SignalDef, VMSTAT,
};
use timeline::{Entity, EntityRow, Facts, Sample, facts};
use units::Unit as _;

/// Path → text.
pub(super) type Texts = BTreeMap<String, String>;

/// The texts of a sample's files.
pub(super) fn of(sample: &Sample) -> Texts {
    let mut texts = Texts::new();
    for (signal, raw) in sample.host.iter() {
        let def = signal.def();
        match def.file {
            MEMINFO => push(&mut texts, MEMINFO, &field(def, raw)),
            VMSTAT => push(&mut texts, VMSTAT, &pair(def, raw)),
            file if file.starts_with("/proc/pressure/") => {
                push(&mut texts, file, &total(def, raw));
            }
            _ => {}
        }
    }
    for (entity, write) in ENTITIES {
        for row in sample.table(entity).rows() {
            write(row, &mut texts);
        }
    }
    texts
}

/// The texts of tunables, and of whatever else is one short text.
pub(super) fn of_facts(known: &Facts) -> Texts {
    let text = |fact: &facts::Fact| Some((fact.file.to_owned(), known.text(*fact)?.to_owned()));
    facts::ALL.iter().filter_map(text).collect()
}

type WriteRow = fn(&EntityRow, &mut Texts);

const ENTITIES: [(Entity, WriteRow); 5] = [
    (Entity::Node, node),
    (Entity::SwapArea, swap_area),
    (Entity::Slab, slab),
    (Entity::Cgroup, group),
    (Entity::Process, process),
];

fn push(texts: &mut Texts, path: &str, line: &str) {
    texts.entry(path.to_owned()).or_default().push_str(line);
}

/// `MemFree: 7 kB`; counts have no unit.
fn field(def: &SignalDef, raw: u64) -> String {
    let unit = if def.scale == 1024 { " kB" } else { "" };
    format!("{}: {}{unit}\n", def.field, raw / def.scale)
}

/// `pgfault 7`.
fn pair(def: &SignalDef, raw: u64) -> String {
    // Signals that are sums of several fields have no line of their own.
    let is_name = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    match def.field.bytes().all(is_name) {
        true => format!("{} {}\n", def.field, raw / def.scale),
        false => String::new(),
    }
}

/// `some … total=7`.
fn total(def: &SignalDef, raw: u64) -> String {
    let who = def.field.trim_end_matches(" total");
    format!("{who} avg10=0.00 avg60=0.00 avg300=0.00 total={raw}\n")
}

fn node(row: &EntityRow, texts: &mut Texts) {
    for (signal, raw) in row.row.iter() {
        let def = signal.def();
        let path = def.file.replace('*', &row.key);
        match def.file {
            NODE_MEMINFO => push(
                texts,
                &path,
                &format!("Node {} {}", row.key, field(def, raw)),
            ),
            NODE_NUMASTAT => push(texts, &path, &pair(def, raw)),
            _ => {}
        }
    }
}

fn swap_area(row: &EntityRow, texts: &mut Texts) {
    let size = row.row.get(SWAP_AREA_SIZE);
    let used = row.row.get(SWAP_AREA_USED);
    let rank = row
        .row
        .get(SWAP_AREA_RANK)
        .map(|rank| i64::try_from(rank.get()));
    // A line needs all its numbers, and none is made up.
    if let (Some(size), Some(used), Some(Ok(rank))) = (size, used, rank) {
        let kind = if row.key.starts_with("/dev/") {
            "partition"
        } else {
            "file"
        };
        let line = format!(
            "{}\t{kind}\t{}\t{}\t{}\n",
            octal::escaped(&row.key),
            size.get() / 1024,
            used.get() / 1024,
            rank - 32_768
        );
        push(texts, SWAPS, &line);
    }
}

fn slab(row: &EntityRow, texts: &mut Texts) {
    let objects = (
        row.row.get(SLAB_OBJECTS),
        row.row.get(SLAB_OBJECTS_ACTIVE),
        row.row.get(SLAB_OBJECT_SIZE),
        row.row.get(SLAB_PAGES),
    );
    if let (Some(all), Some(active), Some(size), Some(pages)) = objects {
        let line = format!(
            "{} {} {} {} 1 1 : tunables 0 0 0 : slabdata {pages} {pages} 0\n",
            row.key,
            active.get(),
            all.get(),
            size.get(),
            pages = pages.get()
        );
        push(texts, SLABINFO, &line);
    }
}

/// A group of the unified hierarchy; one of v1 has other files.
fn group(row: &EntityRow, texts: &mut Texts) {
    for (signal, raw) in row.row.iter() {
        let def = signal.def();
        let Some(name) = def.file.strip_prefix("/sys/fs/cgroup/**/") else {
            continue;
        };
        let path = format!("/sys/fs/cgroup{}/{name}", row.key.trim_end_matches('/'));
        let line = match name {
            "memory.stat" | "memory.events" => pair(def, raw),
            "memory.pressure" | "io.pressure" => total(def, raw),
            // No limit has the largest number there is.
            _ if raw == u64::MAX => "max\n".to_owned(),
            _ => format!("{raw}\n"),
        };
        push(texts, &path, &line);
    }
}

fn process(row: &EntityRow, texts: &mut Texts) {
    let pid = row.key.split('@').next().unwrap_or_default();
    let path = |file: &str| format!("/proc/{pid}/{file}");
    let name: String = row.label.chars().filter(|c| !c.is_control()).collect();
    push(texts, &path("status"), &format!("Name:\t{name}\n"));
    for (signal, raw) in row.row.iter() {
        let def = signal.def();
        match def.file {
            PROCESS_STATUS => push(texts, &path("status"), &field(def, raw)),
            SMAPS_ROLLUP => push(texts, &path("smaps_rollup"), &field(def, raw)),
            PROCESS_IO => push(texts, &path("io"), &format!("{}: {raw}\n", def.field)),
            _ => {}
        }
    }
    if let Some(resident) = row.row.get(PROC_RSS) {
        // Only the second number has a reader.
        let pages = resident.get();
        push(
            texts,
            &path("statm"),
            &format!("{pages} {pages} 0 0 0 0 0\n"),
        );
    }
    if let Some(adjusted) = row
        .row
        .get(PROC_OOM_ADJ)
        .map(|adj| i64::try_from(adj.raw()))
    {
        let adjusted = adjusted.unwrap_or_default() - OOM_ADJ_ZERO;
        push(texts, &path("oom_score_adj"), &format!("{adjusted}\n"));
    }
}

/// What the catalogue adds, so that -1000 is a number like the others.
const OOM_ADJ_ZERO: i64 = 1000;
