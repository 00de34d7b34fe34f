//! Writes the texts of kernel files from signals: files of independent lines here, the others in submodules.

mod columns;
mod disk;
mod facts;
mod group;
mod host;
mod process;
mod zone;

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

use probe::octal;
use timeline::facts::CgroupMode;
use timeline::signals::{
    MEMINFO, NODE_MEMINFO, NODE_NUMASTAT, SLAB_OBJECT_SIZE, SLAB_OBJECTS, SLAB_OBJECTS_ACTIVE,
    SLAB_PAGES, SLABINFO, SWAP_AREA_RANK, SWAP_AREA_SIZE, SWAP_AREA_USED, SWAPS, SignalDef, VMSTAT,
};
use timeline::{Entity, EntityRow, Row, Sample, SignalId};

pub(super) use facts::{changed, known, unchanged};

/// Texts by path.
pub(super) type Texts = BTreeMap<String, String>;

/// Returns the texts of a sample's files; `mode` is the cgroup version.
pub(super) fn from_sample(sample: &Sample, mode: CgroupMode) -> Texts {
    let mut texts = Texts::new();
    for (signal, raw) in sample.host.iter() {
        let def = signal.def();
        match def.file {
            MEMINFO => push(&mut texts, MEMINFO, FieldLine(def, raw)),
            VMSTAT => push(&mut texts, VMSTAT, PairLine(def, raw)),
            _ => {}
        }
    }
    host::write(&sample.host, &mut texts);
    for (entity, write) in ENTITIES {
        for row in sample.table(entity).rows() {
            write(row, &mut texts);
        }
    }
    for row in sample.table(Entity::Cgroup).rows() {
        group::write(row, mode, &mut texts);
    }
    texts
}

type WriteRow = fn(&EntityRow, &mut Texts);

const ENTITIES: [(Entity, WriteRow); 7] = [
    (Entity::Node, node),
    (Entity::Zone, zone::write),
    (Entity::Disk, disk::write),
    (Entity::SwapArea, swap_area),
    (Entity::Zram, columns::zram),
    (Entity::Slab, slab),
    (Entity::Process, process::write),
];

fn push(texts: &mut Texts, path: &str, line: impl fmt::Display) {
    // Most lines go to a file that has one.
    match texts.get_mut(path) {
        // A string takes any text.
        Some(text) => drop(write!(text, "{line}")),
        None => drop(texts.insert(path.to_owned(), line.to_string())),
    }
}

fn raw(row: &Row, wanted: SignalId) -> Option<u64> {
    let found = row.iter().find(|(signal, _)| *signal == wanted);
    found.map(|(_, raw)| raw)
}

/// Joins numbers that only their position identifies, up to the first that is missing.
fn leading(numbers: impl IntoIterator<Item = Option<u64>>) -> String {
    let numbers = numbers.into_iter().map_while(|number| number);
    let words: Vec<String> = numbers.map(|number| number.to_string()).collect();
    words.join(" ")
}

/// `MemFree: 7 kB`; counts have no unit.
struct FieldLine<'a>(&'a SignalDef, u64);

impl fmt::Display for FieldLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(def, raw) = self;
        let unit = if def.scale == 1024 { " kB" } else { "" };
        writeln!(f, "{}: {}{unit}", def.field, raw / def.scale)
    }
}

/// `pgfault 7`. The sum of a counter over zones is written on the line of one zone.
struct PairLine<'a>(&'a SignalDef, u64);

impl fmt::Display for PairLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(def, raw) = self;
        let value = raw / def.scale;
        match def.field.split_once('*') {
            Some((front, end)) => writeln!(f, "{front}normal{end} {value}"),
            None => writeln!(f, "{} {value}", def.field),
        }
    }
}

fn node(row: &EntityRow, texts: &mut Texts) {
    for (signal, raw) in row.row.iter() {
        let def = signal.def();
        let path = || def.file.replace('*', &row.key);
        match def.file {
            NODE_MEMINFO => {
                push(texts, &path(), format_args!("Node {} {}", row.key, FieldLine(def, raw)))
            }
            NODE_NUMASTAT => push(texts, &path(), PairLine(def, raw)),
            _ => {}
        }
    }
}

fn swap_area(row: &EntityRow, texts: &mut Texts) {
    let size = row.row.get(SWAP_AREA_SIZE);
    let used = row.row.get(SWAP_AREA_USED);
    let rank = row.row.get(SWAP_AREA_RANK).map(|rank| i64::try_from(rank.get()));
    // A line needs all its numbers; a missing one is not invented.
    if let (Some(size), Some(used), Some(Ok(rank))) = (size, used, rank) {
        let kind = if row.key.starts_with("/dev/") { "partition" } else { "file" };
        push(
            texts,
            SWAPS,
            format_args!(
                "{}\t{kind}\t{}\t{}\t{}\n",
                octal::escaped(&row.key),
                size.get() / 1024,
                used.get() / 1024,
                rank - 32_768
            ),
        );
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
        push(
            texts,
            SLABINFO,
            format_args!(
                "{} {} {} {} 1 1 : tunables 0 0 0 : slabdata {pages} {pages} 0\n",
                row.key,
                active.get(),
                all.get(),
                size.get(),
                pages = pages.get()
            ),
        );
    }
}
