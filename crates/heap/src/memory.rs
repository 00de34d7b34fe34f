//! What the reader of a heap needs from a process: bytes at addresses, and which pages are in RAM.

use std::cell::Cell;
use std::ops::Range;

use probe::{PageRun, PagesKnown, ProcessFiles, ProcessMemory, ReadError, Root};
use units::{Bytes, PageSize};

/// The memory that holds a heap: of a running process, or an image in a test.
pub trait TargetMemory {
    /// Reads ranges, in order, into `buffer`, which is as long as they are together. Stops at the first byte that
    /// cannot be read, as one on a page that is in neither RAM nor swap, and may stop earlier: at the start of that range, after
    /// 1024 ranges. Returns the number of bytes read.
    fn read_parts(&self, parts: &[Range<u64>], buffer: &mut [u8]) -> usize;

    /// Appends the pages of a page-aligned range that are in RAM or in swap to `runs`: from its start on, as far as one
    /// call reaches, and at least one page. None where they cannot be read.
    fn populated(&self, range: &Range<u64>, runs: &mut Vec<PageRun>) -> PagesKnown;

    /// Returns the bytes of its own that the process has in RAM: what it takes to read them bounds what is read.
    fn resident_bytes(&self) -> u64;

    /// Reads from an address. Returns the number of bytes read.
    fn read_at(&self, address: u64, buffer: &mut [u8]) -> usize {
        let whole = address..address.saturating_add(buffer.len() as u64);
        self.read_parts(std::slice::from_ref(&whole), buffer)
    }

    /// Reads the 64-bit word at an address.
    fn word(&self, address: u64) -> Option<u64> {
        self.words(address).map(|[word]| word)
    }

    /// Reads neighbouring 64-bit words at once; `None` unless all of them can be read.
    fn words<const N: usize>(&self, address: u64) -> Option<[u64; N]> {
        let mut bytes = [[0; 8]; N];
        let buffer = bytes.as_flattened_mut();
        let length = buffer.len();
        (self.read_at(address, buffer) == length).then(|| bytes.map(u64::from_le_bytes))
    }
}

/// The memory of a running process.
#[derive(Debug)]
pub struct LiveMemory {
    memory: ProcessMemory,
    resident: Bytes,
}

impl LiveMemory {
    /// Opens the memory of a process.
    ///
    /// # Errors
    /// [`ReadError`] if it has ended, or this user may not read its memory.
    pub fn open(root: &Root, pid: u32, page: PageSize) -> Result<Self, ReadError> {
        Ok(Self {
            memory: ProcessMemory::open(root, pid, page)?,
            resident: ProcessFiles::own_memory(root, pid)?,
        })
    }
}

impl TargetMemory for LiveMemory {
    fn read_parts(&self, parts: &[Range<u64>], buffer: &mut [u8]) -> usize {
        self.memory.read_parts(parts, buffer).unwrap_or(0)
    }

    fn populated(&self, range: &Range<u64>, runs: &mut Vec<PageRun>) -> PagesKnown {
        self.memory.populated(range, runs).unwrap_or(nothing_in(range))
    }

    fn resident_bytes(&self) -> u64 {
        self.resident.get()
    }
}

const fn nothing_in(range: &Range<u64>) -> PagesKnown {
    PagesKnown { until: range.end, words: 0 }
}

/// The memory of a process that may be hostile: arenas, links and address space cost it nothing. When reading has cost
/// more than the memory that it has in RAM explains, what was not read is as if it were absent.
///
/// Costs are estimates, the same on every machine: a figure does not depend on how busy one is.
#[derive(Debug)]
pub(crate) struct BoundedMemory<'a, M> {
    memory: &'a M,
    left_ns: Cell<u64>,
}

/// What reading any process may cost.
const ALLOWED_NS: u64 = 500_000_000;
/// And for each KiB that it has in RAM: a walk costs 200 ns, if no header is torn.
const ALLOWED_KIB_NS: u64 = 1000;
/// A call that reads another process's memory or page map, or a further range of it.
const PART_NS: u64 = 1000;
/// Copying from there: 0.17 s for a GiB.
const COPIED_KIB_NS: u64 = 170;
/// Four KiB of populated pages, or a word of the page map.
const PAGE_NS: u64 = 24;
/// Looking at a header that was copied.
pub(crate) const HEADER_NS: u64 = 6;

impl<'a, M: TargetMemory> BoundedMemory<'a, M> {
    pub(crate) fn new(memory: &'a M) -> Self {
        let resident = memory.resident_bytes() / 1024 * ALLOWED_KIB_NS;
        Self { memory, left_ns: Cell::new(ALLOWED_NS + resident) }
    }

    pub(crate) fn charge(&self, ns: u64) {
        self.left_ns.set(self.left_ns.get().saturating_sub(ns));
    }

    pub(crate) const fn is_used_up(&self) -> bool {
        self.left_ns.get() == 0
    }
}

impl<M: TargetMemory> TargetMemory for BoundedMemory<'_, M> {
    fn read_parts(&self, parts: &[Range<u64>], buffer: &mut [u8]) -> usize {
        if self.is_used_up() {
            return 0;
        }
        let got = self.memory.read_parts(parts, buffer);
        self.charge(parts.len() as u64 * PART_NS + got as u64 * COPIED_KIB_NS / 1024);
        got
    }

    fn populated(&self, range: &Range<u64>, runs: &mut Vec<PageRun>) -> PagesKnown {
        if self.is_used_up() {
            return nothing_in(range);
        }
        // The last run may become longer.
        let last = runs.len().saturating_sub(1);
        let bytes = |runs: &[PageRun]| -> u64 {
            let runs = runs.get(last..).unwrap_or_default().iter();
            runs.map(|run| run.range.end - run.range.start).sum()
        };
        let before = bytes(runs);
        let known = self.memory.populated(range, runs);
        let pages = known.words + (bytes(runs) - before) / 4096;
        self.charge(PART_NS + pages * PAGE_NS);
        known
    }

    fn resident_bytes(&self) -> u64 {
        self.memory.resident_bytes()
    }
}
