//! Memory zones: watermarks, sizes, reserves, per-CPU lists: `/proc/zoneinfo`.
//!
//! All numbers are pages. The printed min, low and high watermarks include `boost` (5.0). `managed` exists since 3.9.
//! Since 4.12 zones without pages are printed too; they are skipped, as they have no content. Since 4.8 the statistics
//! of a node come before those of its first zone; they are `/proc/vmstat`'s by node and are skipped, as are those of
//! the zone apart from `nr_free_cma`. `protection` has one reserve for each higher zone: the largest is read, which is
//! the one that MemAvailable leaves out. A node is one record of the file: nodes are read one after the other. Cost:
//! one `pread` of some 5 KiB for a node of 2 CPUs, 24 µs, growing with CPUs; no lock that a task waits for.

use memchr::memmem::Finder;
use timeline::{
    Entity, Gauge, Sample, Signal, UnknownFields,
    signals::{
        ZONE_BOOST, ZONE_FREE, ZONE_FREE_CMA, ZONE_HIGH, ZONE_LOW, ZONE_MANAGED, ZONE_MIN,
        ZONE_PCP, ZONE_PRESENT, ZONE_PROTECTION, ZONE_SPANNED, ZONEINFO,
    },
};
use units::Pages;

use crate::error::{First, ParseError};
use crate::text;

/// The parser. Nine of ten lines are not used, so it searches for those that are.
#[derive(Debug)]
pub(crate) struct Zoneinfo {
    header: Finder<'static>,
    pages: Finder<'static>,
    protection: Finder<'static>,
    free_cma: Finder<'static>,
    count: Finder<'static>,
    /// Buffer for keys.
    key: String,
}

/// The fields of a zone's `pages` block.
const FIELDS: [(&[u8], Signal<Gauge<Pages>>); 8] = [
    (b"free", ZONE_FREE),
    (b"boost", ZONE_BOOST),
    (b"min", ZONE_MIN),
    (b"low", ZONE_LOW),
    (b"high", ZONE_HIGH),
    (b"spanned", ZONE_SPANNED),
    (b"present", ZONE_PRESENT),
    (b"managed", ZONE_MANAGED),
];
const PRESENT: usize = 6;
const MANAGED: usize = 7;

/// A zone's `pages` block.
#[derive(Debug, Default)]
struct Block<'a> {
    readings: [Option<u64>; FIELDS.len()],
    /// Fields that the catalogue does not know. A kernel has two of them (`promo`, `cma`).
    unknown: [(&'a [u8], u64); 8],
    unknowns: usize,
}

/// The first text that is not a number of pages.
type Wrong<'a> = Option<&'a [u8]>;

impl Default for Zoneinfo {
    fn default() -> Self {
        Self {
            header: Finder::new(b"\nNode "),
            pages: Finder::new(b"  pages "),
            protection: Finder::new(b"protection:"),
            free_cma: Finder::new(b"nr_free_cma"),
            count: Finder::new(b" count:"),
            key: String::new(),
        }
    }
}

impl Zoneinfo {
    /// Reads the text into the zones' rows, which are keyed `NODE/ZONE`.
    ///
    /// # Errors
    /// The first malformed line; the other lines are read.
    pub(crate) fn parse(&mut self, text: &[u8], sample: &mut Sample) -> Result<(), ParseError> {
        let mut first = First::default();
        let mut note = |expected, found| {
            first.note(|| ParseError::new(ZONEINFO, text::line_of(text, found), expected, found));
        };
        let mut rest = text;
        while !rest.is_empty() {
            let end = self.header.find(rest).map_or(rest.len(), |end| end + 1);
            let (zone, next) = rest.split_at(end);
            rest = next;
            let end = memchr::memchr(b'\n', zone).unwrap_or(zone.len());
            let (header, body) = zone.split_at(end);
            let Some((node, name, _)) = split_header(header) else {
                note("`Node 0, zone NAME`", header);
                continue;
            };
            zone_key(&mut self.key, node, name);
            if let Some(found) = self.zone(body, sample) {
                note("a number of pages", found);
            }
        }
        first.into_result()
    }

    /// Reads the zone after its header into its row, unless it has no pages.
    fn zone<'a>(&mut self, body: &'a [u8], sample: &mut Sample) -> Wrong<'a> {
        let mut wrong = None;
        // The statistics of the node, if any, come before the block.
        let block = behind(&self.pages, body)?;
        let (block, lists) = Block::read(block, &mut wrong);
        let size = block.readings[MANAGED].or(block.readings[PRESENT]);
        if size.is_none_or(|pages| pages == 0) {
            return wrong;
        }
        let (row, unknown) = sample.entry_and_unknown(Entity::Zone, &self.key);
        let row = &mut row.row;
        for ((_, signal), reading) in FIELDS.iter().zip(block.readings) {
            if let Some(pages) = reading {
                row.set(*signal, Pages::new(pages));
            }
        }
        let protection = behind(&self.protection, lists).map(|values| largest(line(values)));
        let free_cma = behind(&self.free_cma, lists).map(|value| pages(line(value)));
        let mut per_cpu = None;
        for count in self.count.find_iter(lists) {
            let count = pages(line(&lists[count + self.count.needle().len()..]));
            // A sum without one of its parts would be wrong.
            let sum = per_cpu.unwrap_or(Ok(0));
            per_cpu = Some(sum.and_then(|sum: u64| Ok(sum.saturating_add(count?))));
        }
        for (signal, reading) in
            [(ZONE_PROTECTION, protection), (ZONE_FREE_CMA, free_cma), (ZONE_PCP, per_cpu)]
        {
            match reading {
                Some(Ok(pages)) => row.set(signal, Pages::new(pages)),
                Some(Err(found)) => wrong = wrong.or(Some(found)),
                None => {}
            }
        }
        for (name, value) in &block.unknown[..block.unknowns] {
            keep_of(&mut self.key, name, *value, ZONEINFO, unknown);
        }
        wrong
    }
}

impl<'a> Block<'a> {
    /// Reads the block that begins with `free 3840`; returns it and the text after it.
    fn read(text: &'a [u8], wrong: &mut Wrong<'a>) -> (Self, &'a [u8]) {
        let mut block = Self::default();
        let mut rest = text;
        while !rest.is_empty() {
            let line = line(rest);
            let field = line.trim_ascii_start();
            let ends = [&b"nr_"[..], b"protection:", b"pagesets"];
            if ends.iter().any(|end| field.starts_with(end)) {
                break;
            }
            if let Some(end) = memchr::memchr(b' ', field) {
                let (name, value) = field.split_at(end);
                match pages(value) {
                    Ok(pages) => block.note(name, pages),
                    Err(found) => *wrong = wrong.or(Some(found)),
                }
            }
            rest = rest.get(line.len() + 1..).unwrap_or_default();
        }
        (block, rest)
    }

    fn note(&mut self, name: &'a [u8], pages: u64) {
        if let Some(known) = FIELDS.iter().position(|(field, _)| *field == name) {
            self.readings[known] = Some(pages);
        } else if let Some(slot) = self.unknown.get_mut(self.unknowns) {
            *slot = (name, pages);
            self.unknowns += 1;
        }
    }
}

/// Returns the text after the first occurrence of the words.
fn behind<'a>(words: &Finder<'_>, text: &'a [u8]) -> Option<&'a [u8]> {
    let at = words.find(text)?;
    Some(&text[at + words.needle().len()..])
}

/// Returns the text up to the end of its line.
fn line(text: &[u8]) -> &[u8] {
    &text[..memchr::memchr(b'\n', text).unwrap_or(text.len())]
}

/// Reads a number of pages; the error is the malformed text.
fn pages(text: &[u8]) -> Result<u64, &[u8]> {
    let word = text::trim(text);
    text::number(word).ok_or(word)
}

/// Returns the largest of `(0, 3019, 4427)`; the error is the malformed text.
fn largest(text: &[u8]) -> Result<u64, &[u8]> {
    let text = text::trim(text);
    let values = text.strip_prefix(b"(").and_then(|t| t.strip_suffix(b")"));
    let mut largest = 0;
    for value in values.ok_or(text)?.split(|b| *b == b',') {
        largest = largest.max(text::number(text::trim(value)).ok_or(text)?);
    }
    Ok(largest)
}

/// Splits a line `Node 0, zone   Normal …` into node, zone and rest.
pub(crate) fn split_header(line: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let rest = line.strip_prefix(b"Node ")?;
    let (node, rest) = rest.split_at(memchr::memchr(b',', rest)?);
    let rest = text::trim(rest.strip_prefix(b", zone")?);
    let end = memchr::memchr(b' ', rest).unwrap_or(rest.len());
    let (name, rest) = rest.split_at(end);
    let node = text::trim(node);
    (text::number(node).is_some() && !name.is_empty()).then_some((node, name, rest))
}

/// Sets `key` to a zone's key: `0/Normal`.
pub(crate) fn zone_key(key: &mut String, node: &[u8], name: &[u8]) {
    key.clear();
    text::push_lossy(key, node);
    key.push('/');
    text::push_lossy(key, name);
}

/// Stores an unknown field of the zone or node that `key` names; `key` is unchanged afterwards.
pub(crate) fn keep_of(
    key: &mut String,
    name: &[u8],
    value: u64,
    file: &'static str,
    unknown: &mut UnknownFields,
) {
    let entity = key.len();
    key.push(' ');
    text::push_lossy(key, name);
    unknown.keep(file, key, value);
    key.truncate(entity);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hostile;
    use timeline::Row;

    const V6_1: &[u8] = include_bytes!("../../tests/kernel/6.1/zoneinfo");
    const V6_12: &[u8] = include_bytes!("../../tests/kernel/6.12/zoneinfo");
    const V6_18: &[u8] = include_bytes!("../../tests/kernel/6.18/zoneinfo");
    /// The layout of 2.6.32: no `managed`, no `boost`, `protection` after the statistics.
    const V2_6_32: &[u8] = b"\
Node 0, zone      DMA
  pages free     3937
        min      60
        low      75
        high     90
        scanned  0
        spanned  4095
        present  3837
    nr_free_pages 3937
    nr_inactive_anon 0
        protection: (0, 2991, 8041, 8041)
  pagesets
    cpu: 0
              count: 3
              high:  0
              batch: 1
  vm stats threshold: 6
    cpu: 1
              count: 4
              high:  0
              batch: 1
  vm stats threshold: 6
  all_unreclaimable: 1
  prev_priority:     12
  start_pfn:         1
  inactive_ratio:    1
";
    /// The layout of 4.8: a node's statistics before its first zone, `node_scanned`; a statistic without a name, as
    /// 4.18 has it.
    const V4_8: &[u8] = b"\
Node 0, zone   Normal
  per-node stats
      nr_inactive_anon 145
      nr_free_cma 77777
      nr_written   6100
                   176096
  pages free     3975
        min      67
        low      83
        high     99
   node_scanned  5
        spanned  4095
        present  3998
        managed  3977
      nr_free_pages 3975
      numa_other   0
      nr_free_cma  12
        protection: (0, 2934, 3886, 3886, 3886)
  pagesets
    cpu: 0
              count: 1
              high:  7
              batch: 1
  vm stats threshold: 6
  node_unreclaimable:  0
  start_pfn:           1
  node_inactive_ratio: 1
";

    fn parse(text: &[u8]) -> (Sample, Result<(), ParseError>) {
        let mut sample = Sample::default();
        let result = Zoneinfo::default().parse(text, &mut sample);
        (sample, result)
    }

    fn zone<'a>(sample: &'a Sample, key: &str) -> &'a Row {
        let rows = sample.table(Entity::Zone).rows();
        &rows.iter().find(|row| row.key == key).unwrap().row
    }

    fn keys(sample: &Sample) -> Vec<&str> {
        let rows = sample.table(Entity::Zone).rows();
        rows.iter().map(|row| row.key.as_str()).collect()
    }

    #[test]
    fn zones_with_pages_of_all_nodes_are_rows_and_others_are_not() {
        let (sample, result) = parse(V6_1);
        result.unwrap();
        assert_eq!(keys(&sample), ["0/DMA", "0/DMA32", "1/DMA32"]);
        let row = zone(&sample, "0/DMA32");
        for (signal, pages) in [
            (ZONE_FREE, 7_774),
            (ZONE_BOOST, 0),
            (ZONE_MANAGED, 124_820),
            (ZONE_PROTECTION, 0),
            (ZONE_PCP, 2_522 + 225),
            (ZONE_FREE_CMA, 0),
        ] {
            assert_eq!(row.get(signal), Some(Pages::new(pages)), "{}", signal.def().name);
        }
        assert_eq!(zone(&sample, "0/DMA").get(ZONE_PROTECTION), Some(Pages::new(487)));
        assert_eq!(row.iter().count(), 11);
    }

    #[test]
    fn newer_kernels_differ_in_fields_that_are_kept() {
        let (sample, result) = parse(V6_12);
        result.unwrap();
        assert_eq!(keys(&sample), ["0/DMA", "0/DMA32"]);
        assert_eq!(zone(&sample, "0/DMA32").get(ZONE_PCP), Some(Pages::new(2_134 + 2_585)));
        let (sample, result) = parse(V6_18);
        result.unwrap();
        assert_eq!(keys(&sample), ["0/DMA", "0/DMA32", "0/Normal"]);
        let unknown_field = |field: &str| {
            let mut all = sample.unknown.iter();
            all.find(|u| u.field == field).map(|u| (u.file, u.value))
        };
        assert_eq!(unknown_field("0/DMA promo"), Some((ZONEINFO, 72)));
        assert_eq!(unknown_field("0/Normal cma"), Some((ZONEINFO, 0)));
        assert_eq!(sample.unknown.iter().count(), 6);
    }

    #[test]
    fn old_kernels_have_fewer_fields_elsewhere() {
        let (sample, result) = parse(V2_6_32);
        result.unwrap();
        let row = zone(&sample, "0/DMA");
        assert_eq!(row.get(ZONE_PRESENT), Some(Pages::new(3_837)));
        assert_eq!(row.get(ZONE_MANAGED), None, "missing is not zero");
        assert_eq!(row.get(ZONE_BOOST), None);
        assert_eq!(row.get(ZONE_FREE_CMA), None);
        assert_eq!(row.get(ZONE_HIGH), Some(Pages::new(90)), "not that of a CPU's list");
        assert_eq!(row.get(ZONE_PROTECTION), Some(Pages::new(8_041)));
        assert_eq!(row.get(ZONE_PCP), Some(Pages::new(7)));

        let (sample, result) = parse(V4_8);
        result.unwrap();
        let row = zone(&sample, "0/Normal");
        assert_eq!(row.get(ZONE_FREE), Some(Pages::new(3_975)));
        assert_eq!(row.get(ZONE_FREE_CMA), Some(Pages::new(12)), "the zone's, not the node's");
        assert_eq!(row.get(ZONE_PROTECTION), Some(Pages::new(3_886)));
    }

    #[test]
    fn a_bad_line_costs_its_reading_only() {
        for (line, bad, message) in [
            (
                "        min      -5",
                "        min      60",
                "line 3: expected a number of pages, found `-5`",
            ),
            ("        min      1180591620717411303424", "        min      60", "line 3"),
            (
                "        protection: (0, x)",
                "        protection: (0, 2991, 8041, 8041)",
                "found `(0, x)`",
            ),
            (
                "        protection: (0, 29",
                "        protection: (0, 2991, 8041, 8041)",
                "found `(0, 29`",
            ),
            ("              count: -1", "              count: 3", "found `-1`"),
        ] {
            let text = String::from_utf8(V2_6_32.to_vec()).unwrap().replace(bad, line);
            let (sample, result) = parse(text.as_bytes());
            let error = result.unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
            let row = zone(&sample, "0/DMA");
            assert_eq!(row.get(ZONE_LOW), Some(Pages::new(75)));
            assert_eq!(row.iter().count(), 7, "{line}");
        }
        let (sample, result) = parse(b"Node zero, zone DMA\n  pages free 5\nNode 1, zone Normal\n  pages free 7\n        managed 9");
        assert!(result.unwrap_err().to_string().contains("line 1: expected `Node 0, zone NAME`"));
        assert_eq!(keys(&sample), ["1/Normal"]);
    }

    #[test]
    fn any_bytes_are_survived() {
        hostile::feed(V6_18, |text| drop(parse(text)));
    }
}
