//! `slabtop`, with its head of totals or without, sorted in any way, and the same table of `vmstat -m`.
//!
//! Sizes are KiB with a `K`, those of objects rounded to hundredths; the size of a cache is its slabs' pages and exact.
//! The column "USE" shows 0 % for large caches in some versions and is not used. `vmstat -m` has sizes of objects in
//! bytes and no pages.

use timeline::signals::{
    MEM_SLAB, SLAB_OBJECT_SIZE, SLAB_OBJECTS, SLAB_OBJECTS_ACTIVE, SLAB_PAGES,
};
use timeline::{Entity, Facts};
use units::{Bytes, Count};

use super::{Block, Form, Reading};
use crate::figure::{Base, Figure, pages, raw};
use crate::looks::Look;

pub(super) const FORM: Form = Form {
    name: "slabtop",
    read,
};

/// The totals as pairs, which people write down apart from the table.
pub(super) const TOTALS: Form = Form {
    name: "slabtop totals",
    read: read_pairs,
};

/// Caches that become rows, as of `/proc/slabinfo`.
const MOST_ROWS: usize = 64;
const KIB: f64 = 1024.0;
const VMSTAT: &str = "vmstat -m";

fn read(reading: &mut Reading<'_>) -> Option<Block> {
    let head = reading
        .lines
        .iter()
        .take(6)
        .take_while(|line| is_head(line))
        .count();
    let total = reading.lines[..head]
        .iter()
        .find_map(|line| total_of_head(line));
    let blank = usize::from(head > 0 && reading.lines.get(head) == Some(&""));
    let table = Table::read(&reading.lines[head + blank..]);
    if head == 0 && table.is_none() {
        return None;
    }
    let mut look = Look::default();
    if let Some(bytes) = total.and_then(|total| raw(total.in_bytes(KIB).value)) {
        look.sample.host.set(MEM_SLAB, Bytes::new(bytes));
    }
    let mut block = Block {
        what: "slabtop: totals".to_owned(),
        lines: head,
        unit: "KiB",
        ..Block::default()
    };
    if let Some(table) = table {
        table.what.clone_into(&mut block.what);
        block.lines = head + blank + table.lines;
        for cache in &table.caches {
            cache.fill(&mut look, reading.facts);
        }
    }
    let has_rows = !look.sample.table(Entity::Slab).rows().is_empty();
    if has_rows || !look.sample.host.is_empty() {
        reading.look(look);
    }
    Some(block)
}

/// A table of caches.
#[derive(Debug)]
struct Table<'a> {
    what: &'static str,
    /// The largest of its caches.
    caches: Vec<Cache<'a>>,
    lines: usize,
}

impl<'a> Table<'a> {
    fn read(lines: &[&'a str]) -> Option<Self> {
        let columns = Columns::of(lines.first()?)?;
        let mut table = Self {
            what: columns.tool,
            caches: Vec::new(),
            lines: 1,
        };
        let is_next_page = |line: &str| {
            columns.tool == VMSTAT && Columns::of(line).is_some_and(|next| next.tool == VMSTAT)
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
        table.caches.truncate(MOST_ROWS);
        Some(table)
    }
}

/// ` Active / Total Size (% used)       : 357260.45K / 394945.70K (90.5%)` and its like.
fn is_head(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("Active / Total ") || line.starts_with("Minimum / Average / Maximum Object")
}

fn total_of_head(line: &str) -> Option<Figure> {
    let (_, sizes) = line
        .trim_start()
        .strip_prefix("Active / Total Size")?
        .split_once(": ")?;
    let total = sizes.split(" / ").nth(1)?.split(' ').next()?;
    Figure::parse(total, Base::Binary)
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

fn read_pairs(reading: &mut Reading<'_>) -> Option<Block> {
    let mut look = Look::default();
    let mut lines = 0;
    for line in reading.lines {
        let words: Vec<&str> = line.split_whitespace().take(2 * PAIRS.len()).collect();
        let is_known = words.iter().step_by(2).all(|word| PAIRS.contains(word));
        if words.len() < 2 || !is_known {
            break;
        }
        lines += 1;
        let total = words.chunks_exact(2).find(|pair| pair[0] == TOTAL);
        let total = total.and_then(|pair| Figure::parse(pair[1], Base::Binary));
        if let Some(bytes) = total.and_then(|total| raw(total.in_bytes(KIB).value)) {
            look.sample.host.set(MEM_SLAB, Bytes::new(bytes));
        }
    }
    if !look.sample.host.is_empty() {
        reading.look(look);
    }
    (lines > 0).then(|| Block {
        what: "slabtop: totals".to_owned(),
        lines,
        unit: "KiB",
        ..Block::default()
    })
}

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Column {
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
struct Columns {
    columns: Vec<Column>,
    tool: &'static str,
}

/// A cache.
#[derive(Debug, Default)]
struct Cache<'a> {
    name: &'a str,
    objects: Option<f64>,
    active: Option<f64>,
    object_bytes: Option<f64>,
    bytes: Option<f64>,
}

impl Columns {
    fn of(line: &str) -> Option<Self> {
        if line.len() > 200 {
            return None;
        }
        let line = line.to_lowercase();
        if line
            .split_whitespace()
            .eq(["cache", "num", "total", "size", "pages"])
        {
            use Column::{Active, Name, ObjectBytes, Objects, Other};
            return Some(Self {
                columns: vec![Name, Active, Objects, ObjectBytes, Other],
                tool: VMSTAT,
            });
        }
        let line = line
            .replace("obj size", "objsize_kb")
            .replace("cache size", "cache_kb");
        let column = |word| match word {
            "objs" => Column::Objects,
            "active" => Column::Active,
            "objsize_kb" | "objsize" => Column::ObjectKib,
            "cache_kb" | "cachesize" => Column::CacheKib,
            "name" => Column::Name,
            _ => Column::Other,
        };
        let columns: Vec<Column> = line.split_whitespace().map(column).collect();
        let has = |column| columns.contains(&column);
        let is_it =
            has(Column::Objects) && has(Column::Active) && columns.last() == Some(&Column::Name);
        is_it.then_some(Self {
            columns,
            tool: "slabtop",
        })
    }

    /// A row: its figures stand before its name, which may hold blanks, or behind it.
    fn cache<'a>(&self, line: &'a str) -> Option<Cache<'a>> {
        let mut cache = Cache::default();
        let mut rest = line.trim();
        let mut backwards = self.columns.clone();
        let is_last = backwards.last() == Some(&Column::Name);
        if !is_last {
            backwards.reverse();
        }
        for column in backwards {
            if column == Column::Name {
                break;
            }
            let (word, other) = match is_last {
                true => rest.split_once(' ')?,
                false => rest.rsplit_once(' ').map(|(other, word)| (word, other))?,
            };
            rest = other.trim();
            let figure = Figure::parse(word.trim_end_matches('%'), Base::Binary)?;
            match column {
                Column::Objects => cache.objects = Some(figure.value),
                Column::Active => cache.active = Some(figure.value),
                Column::ObjectKib => cache.object_bytes = Some(figure.in_bytes(KIB).value),
                Column::ObjectBytes => cache.object_bytes = Some(figure.value),
                Column::CacheKib => cache.bytes = Some(figure.in_bytes(KIB).value),
                Column::Name | Column::Other => {}
            }
        }
        cache.name = rest;
        (!rest.is_empty()).then_some(cache)
    }
}

impl Cache<'_> {
    /// What it takes in RAM, as far as known.
    fn size(&self) -> f64 {
        let of_objects = || Some(self.objects? * self.object_bytes?);
        self.bytes.or_else(of_objects).unwrap_or(0.0)
    }

    fn fill(&self, look: &mut Look, facts: &mut Facts) {
        let row = &mut look.sample.table_mut(Entity::Slab).entry(self.name).row;
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
            // Where the size of the cache is known, one that is rounded to hundredths says nothing more.
            row.set(SLAB_OBJECT_SIZE, Bytes::new(bytes));
        }
    }
}

#[cfg(test)]
mod tests;
