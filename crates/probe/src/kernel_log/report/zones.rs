//! Zones: their watermarks, reserves and free blocks; and the lines of nodes; their sum is the host's memory.

use timeline::kernel_report::{FreeBlocks, ZoneReport};
use units::{Bytes, PageSize, Pages};

use super::memory::ReportMemory;
use super::scan::{self, number, size};
use super::taken::Taken;
use crate::text::SplitText as _;

/// The zones of a report, in the order printed.
#[derive(Debug, Default)]
pub(super) struct Zones {
    zones: Vec<Zone>,
    /// Nodes with a line of their own.
    nodes: Vec<u32>,
    /// The smallest block of any list: a page.
    page: Option<Bytes>,
}

/// A zone as far as it is read.
#[derive(Debug, Default)]
struct Zone {
    report: ZoneReport,
    has_watermarks: bool,
    has_blocks: bool,
    is_managed_printed: bool,
    /// In pages; empty until it is read.
    reserve: Vec<u64>,
}

/// More zones than any machine has.
const ZONES_MAX: usize = 4096;

impl Zones {
    pub(super) fn take(&mut self, line: &str, memory: &mut ReportMemory) -> Taken {
        let (node, rest) = scan::node(line);
        if let Some((name, free, pairs)) = zone_line(rest) {
            return self.watermarks(node, name, free, &pairs, memory);
        }
        if let Some(pairs) = node_line(line, rest) {
            return self.node(node, &pairs, memory);
        }
        if let Some((name, blocks)) = block_line(rest) {
            return self.blocks(node, name, blocks);
        }
        match reserve_line(line) {
            Some(reserve) => self.reserve(reserve),
            None => Taken::No,
        }
    }

    /// Whether any of their lines was read.
    pub(super) fn is_begun(&self) -> bool {
        !self.zones.is_empty() || !self.nodes.is_empty()
    }

    /// Returns the page size, from the lists of free blocks.
    pub(super) fn page_size(&self) -> Option<PageSize> {
        PageSize::from_bytes(self.page?.get())
    }

    /// Whether no zone is missing at the end: lists of free blocks follow the last, and no higher zone has a reserve in
    /// it.
    pub(super) fn is_whole(&self) -> bool {
        let is_last =
            |zone: &Zone| !zone.reserve.is_empty() && zone.reserve.iter().all(|pages| *pages == 0);
        self.zones.iter().any(|zone| zone.has_blocks) || self.zones.last().is_some_and(is_last)
    }

    /// Whether the zones have about all of the free memory that the counters show, so that no large one is missing.
    pub(super) fn have_most_of(&self, free: Bytes) -> bool {
        let of_zones: Bytes = self.zones.iter().map(|zone| zone.report.free).sum();
        !self.zones.is_empty() && of_zones.get() >= free.get() - free.get() / 50
    }

    /// Returns the memory that all zones manage, if all were printed with their sizes.
    pub(super) fn managed(&self) -> Option<Bytes> {
        let sizes = self.zones.iter().map(|zone| zone.is_whole().then_some(zone.report.managed));
        let sum: Bytes = sizes.sum::<Option<Bytes>>()?;
        (sum > Bytes::ZERO).then_some(sum)
    }

    /// Returns the zones, with reserves in bytes.
    pub(super) fn into_reports(self, page: PageSize) -> Vec<ZoneReport> {
        let in_bytes = |pages: u64| Pages::new(pages).to_bytes(page);
        let done = |mut zone: Zone| {
            zone.report.reserve = zone.reserve.into_iter().map(in_bytes).collect();
            zone.report
        };
        // Without the zone's watermarks, a list of free blocks does not show how short of memory the zone is.
        self.zones.into_iter().filter(|zone| zone.has_watermarks).map(done).collect()
    }

    fn zone(&mut self, node: u32, name: &str) -> Option<&mut Zone> {
        let is_it = |zone: &Zone| zone.report.node == node && zone.report.name == name;
        let at = match self.zones.iter().position(is_it) {
            Some(at) => at,
            None if self.zones.len() < ZONES_MAX => {
                let mut zone = Zone::default();
                zone.report.node = node;
                name.clone_into(&mut zone.report.name);
                self.zones.push(zone);
                self.zones.len() - 1
            }
            None => return None,
        };
        self.zones.get_mut(at)
    }

    fn watermarks(
        &mut self,
        node: u32,
        name: &str,
        free: Bytes,
        pairs: &Pairs<'_>,
        memory: &mut ReportMemory,
    ) -> Taken {
        let Some(zone) = self.zone(node, name) else {
            return Taken::Yes;
        };
        if zone.has_watermarks {
            return Taken::Again;
        }
        zone.has_watermarks = true;
        zone.report.free = free;
        for (name, value) in &pairs.found {
            if let Some(size) = size(value) {
                zone.note(name, size);
                memory.note_zone_size(name, size);
            }
        }
        // Behind its RAM every kernel prints more: where that is cut off, it is unknown what the zone manages.
        if let Some(("present" | "managed", value)) = pairs.found.last()
            && (size(value).is_none() || !zone.is_managed_printed)
        {
            zone.report.managed = Bytes::ZERO;
        }
        Taken::whole(pairs.is_whole)
    }

    fn node(&mut self, node: u32, pairs: &Pairs<'_>, memory: &mut ReportMemory) -> Taken {
        if self.nodes.contains(&node) {
            return Taken::Again;
        }
        if self.nodes.len() < ZONES_MAX {
            self.nodes.push(node);
        }
        for (name, value) in &pairs.found {
            if let Some(size) = size(value) {
                memory.note_node_size(name, size);
            }
        }
        Taken::whole(pairs.is_whole)
    }

    fn blocks(&mut self, node: u32, name: &str, blocks: Blocks<'_>) -> Taken {
        let smallest = blocks.iter().map(|(_, size, _)| *size).min();
        self.page = self.page.into_iter().chain(smallest).min();
        let Some(zone) = self.zone(node, name) else {
            return Taken::Yes;
        };
        if zone.has_blocks {
            return Taken::Again;
        }
        zone.has_blocks = true;
        let free_blocks = |(count, _, types): (u64, Bytes, &str)| FreeBlocks {
            count,
            types: scan::cut(types, 16),
        };
        zone.report.blocks = blocks.into_iter().map(free_blocks).collect();
        Taken::Yes
    }

    /// Adds a reserve: its line follows its zone's, so it belongs to the first zone without one.
    fn reserve(&mut self, reserve: Vec<u64>) -> Taken {
        let without =
            self.zones.iter_mut().find(|zone| zone.has_watermarks && zone.reserve.is_empty());
        if let Some(zone) = without {
            zone.reserve = reserve;
        }
        Taken::Yes
    }
}

impl Zone {
    /// Whether its size is known. That of a zone without pages is 0.
    fn is_whole(&self) -> bool {
        self.has_watermarks
            && (self.report.managed > Bytes::ZERO || self.report.free == Bytes::ZERO)
    }

    /// Stores a size from the zone's line. Other sizes are for human readers, or are summed over nodes.
    fn note(&mut self, name: &str, size: Bytes) {
        let zone = &mut self.report;
        let slot = match name {
            "min" => &mut zone.min,
            "low" => &mut zone.low,
            "high" => &mut zone.high,
            "boost" => &mut zone.boost,
            "reserved_highatomic" => &mut zone.reserved_highatomic,
            "free_cma" => &mut zone.free_cma,
            "free_pcp" => &mut zone.free_pcp,
            "managed" => {
                self.is_managed_printed = true;
                &mut zone.managed
            }
            // `managed` exists since 3.9; before, the zone's RAM is the best estimate.
            "present" if !self.is_managed_printed => &mut zone.managed,
            "active_file" | "inactive_file" => {
                zone.file += size;
                return;
            }
            _ => return,
        };
        *slot = size;
    }
}

/// Names and values in a line, up to the first word of another form.
struct Pairs<'a> {
    found: Vec<(&'a str, &'a str)>,
    /// Whether there is no word of another form.
    is_whole: bool,
}

/// Parses `DMA32 free:43760kB min:31812kB … all_unreclaimable? no`: the zone, its free memory and the rest.
fn zone_line(line: &str) -> Option<(&str, Bytes, Pairs<'_>)> {
    let (name, rest) = line.split_once(' ')?;
    let pairs = pairs(rest);
    match pairs.found.as_slice() {
        [("free", free), rest @ ..]
            if scan::is_name(name) && rest.iter().take(2).any(|(name, _)| *name == "min") =>
        {
            Some((name, size(free)?, pairs))
        }
        _ => None,
    }
}

/// Parses `Node 0 active_anon:134528kB inactive_anon:5310856kB …`, since 4.8.
fn node_line<'a>(line: &str, rest: &'a str) -> Option<Pairs<'a>> {
    let pairs = line.starts_with("Node ").then(|| pairs(rest))?;
    (pairs.found.first()?.0 == "active_anon").then_some(pairs)
}

/// Parses words `name:value` with sizes or counts; the value of `all_unreclaimable?` comes after a blank.
fn pairs(text: &str) -> Pairs<'_> {
    let mut found = Vec::new();
    let mut words = scan::words(text);
    while let Some(word) = words.next() {
        let Some(pair) = pair(word, &mut words) else {
            return Pairs { found, is_whole: false };
        };
        found.push(pair);
    }
    Pairs { found, is_whole: true }
}

fn pair<'a>(
    word: &'a str,
    words: &mut impl Iterator<Item = &'a str>,
) -> Option<(&'a str, &'a str)> {
    if word == "all_unreclaimable?" {
        let answer = words.next().filter(|it| matches!(*it, "yes" | "no"))?;
        return Some((word, answer));
    }
    let (name, mut value) = word.split_once(':')?;
    // Kernels 4.8 to 5.9 wrote `shmem_thp: 0kB`.
    if value.is_empty() {
        value = words.next()?;
    }
    let is_value = size(value).is_some() || number(value).is_some();
    (is_value && scan::is_name(name)).then_some((name, value))
}

/// Counts, sizes and kinds of free blocks, by order.
type Blocks<'a> = Vec<(u64, Bytes, &'a str)>;

/// Parses `DMA: 1*4kB (U) 0*8kB … = 15036kB`: the zone and its blocks by order; also `DMA32: empty`.
fn block_line(line: &str) -> Option<(&str, Blocks<'_>)> {
    let (name, rest) = line.around(": ")?;
    if !scan::is_name(name) {
        return None;
    }
    if rest.trim() == "empty" {
        return Some((name, Vec::new()));
    }
    let mut blocks = Blocks::new();
    let mut words = scan::words(rest);
    while let Some(word) = words.next() {
        if word == "=" {
            size(words.next()?)?;
            return words.next().is_none().then_some((name, blocks));
        }
        if let Some(types) = word.strip_prefix('(') {
            blocks.last_mut()?.2 = types.strip_suffix(')')?;
            continue;
        }
        let (count, block) = word.split_once('*')?;
        blocks.push((number(count)?, size(block)?, ""));
    }
    (blocks.len() > 1).then_some((name, blocks))
}

/// Parses `lowmem_reserve[]: 0 2655 5626 5626 5626`; `protections[]:` before 2.6.12.
fn reserve_line(line: &str) -> Option<Vec<u64>> {
    let rest =
        line.strip_prefix("lowmem_reserve[]:").or_else(|| line.strip_prefix("protections[]:"))?;
    let pages: Option<Vec<u64>> = scan::words(rest).map(number).collect();
    pages.filter(|pages| pages.len() <= 16)
}
