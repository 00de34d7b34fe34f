//! The text form: totals, then tables of all arenas together, then those of each arena.
//!
//! Columns come and go between versions: the table of bins is read by the names in its header. A column `(#/sec)` has a
//! number of its own in each row. Figures stand in the part `Merged arenas stats:`; later parts repeat them for each arena.

use units::{Bytes, Count};

use super::super::{RuntimeStatsError, StatsKind, printable};
use super::{BINS_MAX, JemallocBin, JemallocStats};

/// Reads the report that begins at `start`.
pub(super) fn read(text: &[u8], start: usize) -> Result<JemallocStats, RuntimeStatsError> {
    let kind = StatsKind::Jemalloc;
    let mut reader = TextReader::default();
    let mut has_totals = false;
    for (number, line) in probe::text::lines(text) {
        if line.as_ptr().addr() - text.as_ptr().addr() < start {
            continue;
        }
        let Some(totals) = line.strip_prefix(b"Allocated: ") else {
            reader.read(line);
            continue;
        };
        let malformed = || RuntimeStatsError::Malformed {
            kind,
            line: number,
            expected: "`Allocated: N, active: N, metadata: N, resident: N`",
            found: printable(line),
        };
        reader.read_totals(totals).ok_or_else(malformed)?;
        has_totals = true;
    }
    if !has_totals {
        let field = "`Allocated: N, active: N` (option `g` omits it)";
        return Err(RuntimeStatsError::Missing { kind, field });
    }
    Ok(reader.finish())
}

/// The part of the text that is being read.
#[derive(Default, PartialEq, Eq)]
enum StatsPart {
    #[default]
    Head,
    Merged,
    /// Figures of single arenas.
    Later,
}

#[derive(Default)]
struct TextReader {
    stats: JemallocStats,
    part: StatsPart,
    page_size: Option<u64>,
    dirty_pages: Option<u64>,
    muzzy_pages: Option<u64>,
    columns: Option<Columns>,
}

/// Columns of the table of bins: each the index of a word in a row.
struct Columns {
    size: usize,
    used: usize,
    slabs: usize,
    regions_of_slab: usize,
}

impl Columns {
    fn of(header: &[u8]) -> Option<Self> {
        let names: Vec<&[u8]> = probe::text::words(header).take(64).collect();
        let place = |name: &str| names.iter().position(|word| *word == name.as_bytes());
        Some(Self {
            size: place("size")?,
            used: place("curregs")?,
            slabs: place("curslabs").or_else(|| place("curruns"))?,
            regions_of_slab: place("regs")?,
        })
    }

    fn read(&self, row: &[u8]) -> Option<JemallocBin> {
        let words: Vec<&[u8]> = probe::text::words(row).take(64).collect();
        let number = |place: usize| probe::text::number(words.get(place)?);
        let slabs = number(self.slabs)?;
        Some(JemallocBin {
            region_size: Bytes::new(number(self.size)?),
            slabs: Count::new(slabs),
            regions: Count::new(slabs.saturating_mul(number(self.regions_of_slab)?)),
            used: Count::new(number(self.used)?),
        })
    }
}

impl TextReader {
    /// Reads `N, active: N, metadata: N (n_thp 0), resident: N, mapped: N, retained: N`.
    fn read_totals(&mut self, text: &[u8]) -> Option<()> {
        let after = |name: &str| {
            let at = memchr::memmem::find(text, name.as_bytes())?;
            let (value, _) = probe::text::leading_number(text.get(at + name.len()..)?)?;
            Some(Bytes::new(value))
        };
        self.stats.allocated = Bytes::new(probe::text::leading_number(text)?.0);
        self.stats.active = after("active: ")?;
        self.stats.metadata = after("metadata: ")?;
        self.stats.resident = after("resident: ")?;
        self.stats.retained = after("retained: ");
        Some(())
    }

    fn read(&mut self, line: &[u8]) {
        let line_end = line.trim_ascii_end();
        if line.starts_with(b"Merged arenas stats:") {
            self.part = StatsPart::Merged;
        } else if line.starts_with(b"arenas[") || line.starts_with(b"Destroyed arenas stats:") {
            self.part = StatsPart::Later;
        }
        match self.part {
            StatsPart::Head => self.read_head(line_end),
            StatsPart::Merged => self.read_merged(line_end),
            StatsPart::Later => {}
        }
    }

    fn read_head(&mut self, line: &[u8]) {
        let after = |name: &str| line.strip_prefix(name.as_bytes());
        if let Some(version) = after("Version: ") {
            let version = version.strip_prefix(b"\"").unwrap_or(version);
            let version = version.strip_suffix(b"\"").unwrap_or(version);
            self.stats.version = Some(probe::text::lossy(version).into_owned());
        } else if let Some(count) = after("Arenas: ") {
            self.stats.arenas = probe::text::number(count).map(Count::new);
        } else if let Some(size) = after("Page size: ") {
            self.page_size = probe::text::number(size);
        } else if let Some(value) = after("  opt.background_thread: ") {
            self.stats.background_thread = Some(value.starts_with(b"true"));
        }
    }

    fn read_merged(&mut self, line: &[u8]) {
        let third = |line: &[u8]| probe::text::number(probe::text::words(line).nth(2)?);
        if let Some(header) = line.strip_prefix(b"bins:") {
            self.columns = Columns::of(header);
        } else if let Some(size) = line.strip_prefix(b"tcache_bytes:") {
            self.stats.thread_caches = probe::text::number(size.trim_ascii()).map(Bytes::new);
        } else if line.starts_with(b"   dirty:") {
            self.dirty_pages = third(line);
        } else if line.starts_with(b"   muzzy:") {
            self.muzzy_pages = third(line);
        } else if line.starts_with(b" ") {
            let bin = self.columns.as_ref().and_then(|columns| columns.read(line));
            self.stats.bins.extend(bin.filter(|_| self.stats.bins.len() < BINS_MAX));
        } else {
            // Another table begins.
            self.columns = None;
        }
    }

    fn finish(mut self) -> JemallocStats {
        // Without general settings the size of a page is not printed.
        const USUAL: u64 = 4096;
        let page_size = self.page_size.unwrap_or(USUAL);
        let size = |pages: u64| Bytes::new(pages.saturating_mul(page_size));
        self.stats.dirty = self.dirty_pages.map(size);
        self.stats.muzzy = self.muzzy_pages.map(size);
        self.stats
    }
}
