//! `slabtop`, with or without its head of totals, in any order, and the similar table of `vmstat -m`.
//!
//! Sizes are KiB with a `K`. Those of objects are rounded to hundredths; the size of a cache is exact. The column "USE"
//! shows 0 % for large caches in some versions and is not used. `vmstat -m` has sizes of objects in bytes and no pages.

use timeline::signals::{
    MEM_SLAB, SLAB_OBJECT_SIZE, SLAB_OBJECTS, SLAB_OBJECTS_ACTIVE, SLAB_PAGES,
};
use timeline::{Entity, Facts};
use units::{Bytes, Count};

use super::Form;
use crate::block::{BlockReader, TextBlock};
use crate::builder::Snapshot;
use crate::text::figure::{KIB, PrintedFigure, pages, raw};
use crate::text::line_scan::BlockStart;

pub(super) const FORM: Form = Form {
    name: "slabtop",
    begins: BlockStart::with(&[
        "Active / Total ",
        "Minimum / Average",
        "OBJS",
        "objs",
        "Objs",
        "Cache ",
        "cache ",
        "CACHE ",
    ]),
    read,
};

/// The totals as pairs, noted without the table.
pub(super) const TOTALS: Form =
    Form { name: "slabtop totals", begins: BlockStart::with(&PAIRS), read: read_pairs };

/// At most 64 caches, as of `/proc/slabinfo`.
const ROWS_MAX: usize = 64;
const VMSTAT: &str = "vmstat -m";

fn read(input: &mut BlockReader<'_>) -> Option<TextBlock> {
    let head = input.lines.iter().take(6).take_while(|line| is_head(line)).count();
    let total = input.lines[..head].iter().find_map(|line| total_of_head(line));
    let blank = usize::from(head > 0 && input.lines.get(head) == Some(&""));
    let table = SlabtopTable::read(&input.lines[head + blank..]);
    if head == 0 && table.is_none() {
        return None;
    }
    let mut snapshot = Snapshot::default();
    if let Some(bytes) = total.and_then(|total| raw(total.in_bytes(KIB).value)) {
        snapshot.sample.host.set(MEM_SLAB, Bytes::new(bytes));
    }
    let mut block = TextBlock {
        what: "slabtop: totals".to_owned(),
        lines: head,
        unit: "KiB",
        ..TextBlock::default()
    };
    if let Some(table) = table {
        table.what.clone_into(&mut block.what);
        block.lines = head + blank + table.lines;
        for cache in &table.caches {
            cache.fill(&mut snapshot, input.facts);
        }
    }
    if snapshot.has_readings() {
        input.add(snapshot);
    }
    Some(block)
}

/// A table of caches.
#[derive(Debug)]
struct SlabtopTable<'a> {
    what: &'static str,
    /// The largest caches.
    caches: Vec<SlabtopRow<'a>>,
    lines: usize,
}

impl<'a> SlabtopTable<'a> {
    fn read(lines: &[&'a str]) -> Option<Self> {
        let columns = SlabtopColumns::from_heading(lines.first()?)?;
        let mut table = Self { what: columns.tool, caches: Vec::new(), lines: 1 };
        let is_next_page = |line: &str| {
            columns.tool == VMSTAT
                && SlabtopColumns::from_heading(line).is_some_and(|next| next.tool == VMSTAT)
        };
        while let Some(line) = lines.get(table.lines) {
            match columns.cache(line) {
                Some(cache) => table.caches.push(cache),
                None if is_next_page(line) => {}
                None => break,
            }
            table.lines += 1;
        }
        table.caches.retain(|cache| cache.size() > 0.0);
        table.caches.sort_by(|a, b| b.size().total_cmp(&a.size()));
        table.caches.truncate(ROWS_MAX);
        Some(table)
    }
}

/// ` Active / Total Size (% used)       : 357260.45K / 394945.70K (90.5%)` and similar lines.
fn is_head(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("Active / Total ") || line.starts_with("Minimum / Average / Maximum Object")
}

fn total_of_head(line: &str) -> Option<PrintedFigure> {
    let (_, sizes) = line.trim_start().strip_prefix("Active / Total Size")?.split_once(": ")?;
    let total = sizes.split(" / ").nth(1)?.split(' ').next()?;
    PrintedFigure::binary(total)
}

/// The names of the totals, as pairs.
const PAIRS: [&str; 8] = [
    "active_objs",
    "total_objs",
    "active_slabs",
    "total_slabs",
    "active_caches",
    "total_caches",
    "active_kB",
    TOTAL,
];
const TOTAL: &str = "total_kB";

fn read_pairs(input: &mut BlockReader<'_>) -> Option<TextBlock> {
    let mut snapshot = Snapshot::default();
    let mut lines = 0;
    for line in input.lines {
        let words: Vec<&str> = line.split_whitespace().take(2 * PAIRS.len()).collect();
        let is_known = words.iter().step_by(2).all(|word| PAIRS.contains(word));
        if words.len() < 2 || !is_known {
            break;
        }
        lines += 1;
        let total = words.chunks_exact(2).find(|pair| pair[0] == TOTAL);
        let total = total.and_then(|pair| PrintedFigure::binary(pair[1]));
        if let Some(bytes) = total.and_then(|total| raw(total.in_bytes(KIB).value)) {
            snapshot.sample.host.set(MEM_SLAB, Bytes::new(bytes));
        }
    }
    if !snapshot.sample.host.is_empty() {
        input.add(snapshot);
    }
    (lines > 0).then(|| TextBlock {
        what: "slabtop: totals".to_owned(),
        lines,
        unit: "KiB",
        ..TextBlock::default()
    })
}

/// What a column means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SlabtopColumn {
    Objects,
    Active,
    ObjectKib,
    ObjectBytes,
    CacheKib,
    Name,
    Other,
}

/// The columns of a table.
#[derive(Debug)]
struct SlabtopColumns {
    columns: Vec<SlabtopColumn>,
    tool: &'static str,
}

/// A cache.
#[derive(Debug, Default)]
struct SlabtopRow<'a> {
    name: &'a str,
    objects: Option<f64>,
    active: Option<f64>,
    object_bytes: Option<f64>,
    bytes: Option<f64>,
}

impl SlabtopColumns {
    fn from_heading(line: &str) -> Option<Self> {
        if line.len() > 200 {
            return None;
        }
        let line = line.to_lowercase();
        if line.split_whitespace().eq(["cache", "num", "total", "size", "pages"]) {
            use SlabtopColumn::{Active, Name, ObjectBytes, Objects, Other};
            return Some(Self {
                columns: vec![Name, Active, Objects, ObjectBytes, Other],
                tool: VMSTAT,
            });
        }
        let line = line.replace("obj size", "objsize_kb").replace("cache size", "cache_kb");
        let column = |word| match word {
            "objs" => SlabtopColumn::Objects,
            "active" => SlabtopColumn::Active,
            "objsize_kb" | "objsize" => SlabtopColumn::ObjectKib,
            "cache_kb" | "cachesize" => SlabtopColumn::CacheKib,
            "name" => SlabtopColumn::Name,
            _ => SlabtopColumn::Other,
        };
        let columns: Vec<SlabtopColumn> = line.split_whitespace().map(column).collect();
        let has = |column| columns.contains(&column);
        let is_slabtop = has(SlabtopColumn::Objects)
            && has(SlabtopColumn::Active)
            && columns.last() == Some(&SlabtopColumn::Name);
        is_slabtop.then_some(Self { columns, tool: "slabtop" })
    }

    /// Reads a row: figures, and before or after them a name, which may contain blanks.
    fn cache<'a>(&self, line: &'a str) -> Option<SlabtopRow<'a>> {
        let mut cache = SlabtopRow::default();
        let mut rest = line.trim();
        let mut backwards = self.columns.clone();
        let is_last = backwards.last() == Some(&SlabtopColumn::Name);
        if !is_last {
            backwards.reverse();
        }
        for column in backwards {
            if column == SlabtopColumn::Name {
                break;
            }
            let (word, other) = if is_last {
                rest.split_once(' ')?
            } else {
                let (other, word) = rest.rsplit_once(' ')?;
                (word, other)
            };
            rest = other.trim();
            let figure = PrintedFigure::binary(word.trim_end_matches('%'))?;
            match column {
                SlabtopColumn::Objects => cache.objects = Some(figure.value),
                SlabtopColumn::Active => cache.active = Some(figure.value),
                SlabtopColumn::ObjectKib => cache.object_bytes = Some(figure.in_bytes(KIB).value),
                SlabtopColumn::ObjectBytes => cache.object_bytes = Some(figure.value),
                SlabtopColumn::CacheKib => cache.bytes = Some(figure.in_bytes(KIB).value),
                SlabtopColumn::Name | SlabtopColumn::Other => {}
            }
        }
        cache.name = rest;
        (!rest.is_empty()).then_some(cache)
    }
}

impl SlabtopRow<'_> {
    /// Its size in bytes, if known.
    fn size(&self) -> f64 {
        self.bytes.or_else(|| Some(self.objects? * self.object_bytes?)).unwrap_or(0.0)
    }

    fn fill(&self, snapshot: &mut Snapshot, facts: &mut Facts) {
        let row = &mut snapshot.sample.table_mut(Entity::Slab).entry(self.name).row;
        let count = |value: Option<f64>| value.and_then(raw).map(Count::new);
        if let Some(objects) = count(self.objects) {
            row.set(SLAB_OBJECTS, objects);
        }
        if let Some(active) = count(self.active) {
            row.set(SLAB_OBJECTS_ACTIVE, active);
        }
        if let Some(pages) = self.bytes.and_then(|bytes| pages(bytes, facts)) {
            row.set(SLAB_PAGES, pages);
        } else if let Some(bytes) = self.object_bytes.and_then(raw) {
            // It is rounded, and not needed if the size of the cache is known.
            row.set(SLAB_OBJECT_SIZE, Bytes::new(bytes));
        }
    }
}

#[cfg(test)]
mod tests;
