//! Memory zones: marks, sizes, reserves, per-CPU lists: `/proc/zoneinfo`.
//!
//! All numbers are pages. The printed min, low and high include `boost` (5.0). `managed` is there since 3.9, and only
//! since 4.12 are zones without pages printed: they are left out here, as there is nothing in them. Since 4.8 the
//! statistics of a node stand before those of its first zone; they are `/proc/vmstat`'s by node and are passed over, as
//! are those of the zone apart from `nr_free_cma`. `protection` holds one reserve for each higher zone: the largest is
//! kept, which is the one that MemAvailable leaves out. A node is one record of the file: nodes are read one after the
//! other. Cost: one `pread` of some 5 KiB for a node of 2 CPUs, 24 µs, growing with CPUs; no lock that a task waits for.

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

/// The parser; it keeps the memory in which it writes keys.
#[derive(Debug, Default)]
pub(crate) struct Zoneinfo {
    key: String,
}

/// The fields of a zone's `pages` block, in the order of the array that holds them while the zone is read.
const FIELDS: [(&[u8], Signal<Gauge<Pages>>); 10] = [
    (b"free", ZONE_FREE),
    (b"boost", ZONE_BOOST),
    (b"min", ZONE_MIN),
    (b"low", ZONE_LOW),
    (b"high", ZONE_HIGH),
    (b"spanned", ZONE_SPANNED),
    (b"present", ZONE_PRESENT),
    (b"managed", ZONE_MANAGED),
    (b"protection:", ZONE_PROTECTION),
    (b"nr_free_cma", ZONE_FREE_CMA),
];
const PRESENT: usize = 6;
const MANAGED: usize = 7;
const PROTECTION: usize = 8;
const FREE_CMA: usize = 9;

/// A zone while its lines are read.
#[derive(Debug)]
struct Zone<'a> {
    node: &'a [u8],
    name: &'a [u8],
    readings: [Option<u64>; FIELDS.len()],
    /// Fields of the `pages` block that the catalogue does not know. A kernel has two of them (`promo`, `cma`).
    unknown: [(&'a [u8], u64); 8],
    unknowns: usize,
    in_pages: bool,
    /// The sum over the CPUs' lists, once there is one; none in it where one of them is no number.
    per_cpu: Option<Option<u64>>,
}

impl Zoneinfo {
    /// Reads the text into the zones' rows, which are keyed `NODE/ZONE`.
    ///
    /// # Errors
    /// The first line that is not what it should be; the other lines are read.
    pub(crate) fn parse(&mut self, text: &[u8], sample: &mut Sample) -> Result<(), ParseError> {
        let mut first = First::default();
        let mut zone: Option<Zone<'_>> = None;
        for (count, line) in text::lines(text) {
            if line.starts_with(b"Node") {
                if let Some(done) = zone.take() {
                    self.finish(&done, sample);
                }
                zone = Zone::headed(line);
                if zone.is_none() {
                    first.note(|| ParseError::new(ZONEINFO, count, "`Node 0, zone NAME`", line));
                }
            } else if let Some(zone) = &mut zone
                && let Err(value) = zone.line(line)
            {
                first.note(|| ParseError::new(ZONEINFO, count, "a number of pages", value));
            }
        }
        if let Some(done) = zone {
            self.finish(&done, sample);
        }
        first.into_result()
    }

    /// Writes a zone's row, unless the zone has no pages.
    fn finish(&mut self, zone: &Zone<'_>, sample: &mut Sample) {
        let size = zone.readings[MANAGED].or(zone.readings[PRESENT]);
        if size.is_none_or(|pages| pages == 0) {
            return;
        }
        zone_key(&mut self.key, zone.node, zone.name);
        let (row, unknown) = sample.entry_and_unknown(Entity::Zone, &self.key);
        let row = &mut row.row;
        for ((_, signal), reading) in FIELDS.iter().zip(zone.readings) {
            if let Some(pages) = reading {
                row.set(*signal, Pages::new(pages));
            }
        }
        if let Some(pages) = zone.per_cpu.flatten() {
            row.set(ZONE_PCP, Pages::new(pages));
        }
        for (name, value) in &zone.unknown[..zone.unknowns] {
            keep_of(&mut self.key, name, *value, ZONEINFO, unknown);
        }
    }
}

impl<'a> Zone<'a> {
    /// The zone of a line `Node 0, zone   Normal`.
    fn headed(line: &'a [u8]) -> Option<Self> {
        let (node, name, _) = split_header(line)?;
        Some(Self {
            node,
            name,
            readings: [None; FIELDS.len()],
            unknown: [(b"", 0); 8],
            unknowns: 0,
            in_pages: false,
            per_cpu: None,
        })
    }

    /// Reads a line below the header, or gives back the value that is no number.
    fn line(&mut self, line: &'a [u8]) -> Result<(), &'a [u8]> {
        // Most lines are statistics and CPUs' lists: their indent is known, and they are told apart by one letter.
        let line = [&b"              "[..], b"      "]
            .iter()
            .find_map(|indent| line.strip_prefix(*indent))
            .unwrap_or(line)
            .trim_ascii_start();
        match line.first() {
            Some(b'n') => {
                // A statistic ends the block; what 4.8 calls `node_scanned` is in it.
                self.in_pages &= !line.starts_with(b"nr_");
                if let Some(value) = line.strip_prefix(b"nr_free_cma") {
                    self.readings[FREE_CMA] = Some(pages(value)?);
                    return Ok(());
                }
            }
            Some(b'c') => {
                if let Some(value) = line.strip_prefix(b"count:") {
                    return self.list(value);
                }
            }
            Some(b'p') => {
                if let Some(field) = line.strip_prefix(b"pages ") {
                    self.in_pages = true;
                    return self.field(field);
                }
                if let Some(values) = line.strip_prefix(b"protection:") {
                    self.in_pages = false;
                    self.readings[PROTECTION] =
                        Some(largest(values).ok_or_else(|| text::trim(values))?);
                    return Ok(());
                }
                self.in_pages &= !line.starts_with(b"pagesets");
            }
            _ => {}
        }
        if self.in_pages {
            return self.field(line);
        }
        Ok(())
    }

    /// Adds the length of a CPU's list.
    fn list(&mut self, count: &'a [u8]) -> Result<(), &'a [u8]> {
        let count = pages(count);
        let sum = self.per_cpu.unwrap_or(Some(0));
        self.per_cpu = Some(sum.and_then(|sum| sum.checked_add(count.ok()?)));
        count.map(|_| ())
    }

    /// Reads a field of the `pages` block.
    fn field(&mut self, line: &'a [u8]) -> Result<(), &'a [u8]> {
        let Some(end) = line.iter().position(|b| *b == b' ') else {
            return Ok(());
        };
        let (name, value) = line.split_at(end);
        let value = pages(value)?;
        if let Some(known) = FIELDS.iter().position(|(field, _)| *field == name) {
            self.readings[known] = Some(value);
        } else if let Some(slot) = self.unknown.get_mut(self.unknowns) {
            *slot = (name, value);
            self.unknowns += 1;
        }
        Ok(())
    }
}

/// A number of pages, or the text that is none.
fn pages(text: &[u8]) -> Result<u64, &[u8]> {
    let word = text::trim(text);
    text::number(word).ok_or(word)
}

/// The largest of `(0, 3019, 4427)`.
fn largest(values: &[u8]) -> Option<u64> {
    let values = text::trim(values).strip_prefix(b"(")?.strip_suffix(b")")?;
    let mut largest = None;
    for value in values.split(|b| *b == b',') {
        largest = largest.max(Some(text::number(text::trim(value))?));
    }
    largest
}

/// Node, zone and what follows of a line `Node 0, zone   Normal …`.
pub(crate) fn split_header(line: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let rest = line.strip_prefix(b"Node ")?;
    let (node, rest) = rest.split_at(memchr::memchr(b',', rest)?);
    let rest = text::trim(rest.strip_prefix(b", zone")?);
    let end = memchr::memchr(b' ', rest).unwrap_or(rest.len());
    let (name, rest) = rest.split_at(end);
    let node = text::trim(node);
    (text::number(node).is_some() && !name.is_empty()).then_some((node, name, rest))
}

/// Writes a zone's key: `0/Normal`.
pub(crate) fn zone_key(key: &mut String, node: &[u8], name: &[u8]) {
    key.clear();
    text::push_lossy(key, node);
    key.push('/');
    text::push_lossy(key, name);
}

/// Keeps an unknown field of the zone or node that `key` names; `key` is the same afterwards.
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

    const V6_1: &[u8] = include_bytes!("../tests/kernel/6.1/zoneinfo");
    const V6_12: &[u8] = include_bytes!("../tests/kernel/6.12/zoneinfo");
    const V6_18: &[u8] = include_bytes!("../tests/kernel/6.18/zoneinfo");
    /// The layout of 2.6.32: no `managed`, no `boost`, `protection` behind the statistics.
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
            assert_eq!(
                row.get(signal),
                Some(Pages::new(pages)),
                "{}",
                signal.def().name
            );
        }
        assert_eq!(
            zone(&sample, "0/DMA").get(ZONE_PROTECTION),
            Some(Pages::new(487))
        );
        assert_eq!(row.iter().count(), 11);
    }

    #[test]
    fn newer_kernels_differ_in_fields_that_are_kept() {
        let (sample, result) = parse(V6_12);
        result.unwrap();
        assert_eq!(keys(&sample), ["0/DMA", "0/DMA32"]);
        assert_eq!(
            zone(&sample, "0/DMA32").get(ZONE_PCP),
            Some(Pages::new(2_134 + 2_585))
        );
        let (sample, result) = parse(V6_18);
        result.unwrap();
        assert_eq!(keys(&sample), ["0/DMA", "0/DMA32", "0/Normal"]);
        let kept = |field: &str| {
            let mut all = sample.unknown.iter();
            all.find(|u| u.field == field).map(|u| (u.file, u.value))
        };
        assert_eq!(kept("0/DMA promo"), Some((ZONEINFO, 72)));
        assert_eq!(kept("0/Normal cma"), Some((ZONEINFO, 0)));
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
        assert_eq!(
            row.get(ZONE_HIGH),
            Some(Pages::new(90)),
            "not that of a CPU's list"
        );
        assert_eq!(row.get(ZONE_PROTECTION), Some(Pages::new(8_041)));
        assert_eq!(row.get(ZONE_PCP), Some(Pages::new(7)));

        let (sample, result) = parse(V4_8);
        result.unwrap();
        let row = zone(&sample, "0/Normal");
        assert_eq!(row.get(ZONE_FREE), Some(Pages::new(3_975)));
        assert_eq!(
            row.get(ZONE_FREE_CMA),
            Some(Pages::new(12)),
            "the zone's, not the node's"
        );
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
            (
                "        min      1180591620717411303424",
                "        min      60",
                "line 3",
            ),
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
            (
                "              count: -1",
                "              count: 3",
                "found `-1`",
            ),
        ] {
            let text = String::from_utf8(V2_6_32.to_vec())
                .unwrap()
                .replace(bad, line);
            let (sample, result) = parse(text.as_bytes());
            let error = result.unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
            let row = zone(&sample, "0/DMA");
            assert_eq!(row.get(ZONE_LOW), Some(Pages::new(75)));
            assert_eq!(row.iter().count(), 7, "{line}");
        }
        let (sample, result) = parse(b"Node zero, zone DMA\n  pages free 5\nNode 1, zone Normal\n  pages free 7\n        managed 9");
        assert!(
            result
                .unwrap_err()
                .to_string()
                .contains("line 1: expected `Node 0, zone NAME`")
        );
        assert_eq!(keys(&sample), ["1/Normal"]);
    }

    #[test]
    fn any_bytes_are_survived() {
        hostile::feed(V6_18, |text| drop(parse(text)));
    }
}
