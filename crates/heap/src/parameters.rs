//! malloc's parameters: `mp_`, static data near `main_arena`.
//!
//! Recognised by its counter of mapped chunks and that counter's limit, 65,536 by default: `n_mmaps`, `n_mmaps_max`,
//! `max_n_mmaps`, then `mmapped_mem`, which is whole pages and zero exactly where the counter is.

use std::ops::Range;

use crate::memory::TargetMemory;
use crate::window::{self, PageWindow};

/// The parameters that a heap's figures are checked against.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Parameters {
    /// Chunks with a mapping of their own.
    pub mmapped_chunks: u64,
    /// Their size in bytes.
    pub mmapped_bytes: u64,
    /// Where the main arena's heap begins; 0 if it never used `brk`.
    pub heap_start: u64,
    /// Allocations from this size on get a mapping of their own; malloc raises it.
    pub mmap_threshold_bytes: u64,
    /// The main arena's top is returned when it is larger than this.
    pub trim_threshold_bytes: u64,
    /// The most arenas that malloc may make; 0: 8 for each CPU.
    pub arenas_max: u64,
}

/// `DEFAULT_MMAP_MAX`.
const MMAPS_MAX: u64 = 65_536;
/// All fields lie within this many bytes.
const FIELDS_BYTES: u64 = 256;

/// Returns the parameters in a range of static data. `heap` is the mapping that the kernel calls `[heap]`.
pub(crate) fn find(
    memory: &impl TargetMemory,
    data: &Range<u64>,
    heap: Option<&Range<u64>>,
    page: u64,
) -> Option<Parameters> {
    window::search(memory, data, FIELDS_BYTES, page, |window| {
        let range = window.range();
        (range.start + 72..)
            .step_by(8)
            .take_while(|at| at + 64 <= range.end)
            .flat_map(|at| [at, at + 4])
            .find_map(|at| of(window, at, heap, page))
    })
}

/// Returns the parameters if `n_mmaps` is at this address.
fn of(window: &PageWindow, at: u64, heap: Option<&Range<u64>>, page: u64) -> Option<Parameters> {
    let int = |at: u64| {
        let word = window.word(at / 8 * 8)?;
        Some(if at.is_multiple_of(8) { word & 0xffff_ffff } else { word >> 32 })
    };
    let (n_mmaps, most) = (int(at)?, int(at + 8)?);
    if int(at + 4)? != MMAPS_MAX || n_mmaps > most {
        return None;
    }
    let memory_at = (at + 16).next_multiple_of(8);
    let mmapped_bytes = window.word(memory_at)?;
    if !mmapped_bytes.is_multiple_of(page) || (mmapped_bytes == 0) != (n_mmaps == 0) {
        return None;
    }
    // `max_total_mem` stood before `sbrk_base` until 2.24.
    let starts = [window.word(memory_at + 16)?, window.word(memory_at + 24)?];
    let is_start = |start: &u64| heap.is_some_and(|heap| heap.contains(start));
    let heap_start = starts.iter().copied().find(is_start).unwrap_or(0);
    if heap_start == 0 && heap.is_some() && starts[0] != 0 {
        return None;
    }
    // `n_mmaps` is 40 bytes behind the start until 2.34, 60 since 2.35, 68 since 2.43.
    let start = match at % 8 {
        0 => at - 40,
        _ => [60, 68]
            .into_iter()
            .map(|offset| at - offset)
            .find(|start| window.word(start + 16).is_some_and(is_threshold))?,
    };
    Some(Parameters {
        mmapped_chunks: n_mmaps,
        mmapped_bytes,
        heap_start,
        mmap_threshold_bytes: window.word(start + 16)?,
        trim_threshold_bytes: window.word(start)?,
        arenas_max: window.word(start + 32)?,
    })
}

/// Whether a size may be `mmap_threshold`: it is at most half of a heap by itself, and settings are of that order.
fn is_threshold(bytes: u64) -> bool {
    (1 << 10..=1 << 30).contains(&bytes)
}
