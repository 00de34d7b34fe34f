//! A heap that changes during the walk: several walks, and the one in the middle.
//!
//! A walk takes as long as reading the heap, and what the program frees behind it and allocates before it counts twice
//! or not at all. The walks' difference shows how much that is, so a busy heap is walked three times.
//!
//! Three sums are few, and may agree by chance. What each MiB of the heap changed by from walk to walk are hundreds of
//! differences of the same cause: the root of the sum of their squares is what the sums differ by on average, where
//! changes in one MiB say nothing about another. Changes that do, as of a heap that grows, show in the sums.

use std::collections::BTreeMap;

use probe::Mappings;

use crate::heap::{Heap, HeapError, read_within};
use crate::memory::{BoundedMemory, TargetMemory};

/// Walks over a heap that changes.
const WALKS: usize = 3;
/// Blocks of which changes are independent: larger than all but few chunks. With 64 KiB a chunk of 600 KiB counted as
/// ten small changes, and the result was half of what walks really differ by; from 1 MiB on it is the same.
const BLOCK_BYTES: u64 = 1 << 20;

/// Reads the heap of a process; up to three times if it changes meanwhile, and returns the walk with live bytes that are
/// the median. [`Heap::spread_bytes`] and [`Heap::scatter_bytes`] are by how much the walks differed. `again` returns the process's mappings as they
/// are by then; `None` ends the repetition.
///
/// # Errors
/// [`HeapError`] if it has none that can be read.
pub fn read_settled(
    memory: &impl TargetMemory,
    mappings: &Mappings,
    mut again: impl FnMut() -> Option<Mappings>,
    page: u64,
) -> Result<Heap, HeapError> {
    let memory = BoundedMemory::new(memory);
    let mut first = read_within(&memory, mappings, page);
    for _ in 1..WALKS {
        // A heap that grew behind the mappings that were read has no data of the form that they say.
        let Err(HeapError::NoArena | HeapError::UnknownLayout(_)) = first else {
            break;
        };
        let Some(mappings) = again() else { break };
        first = read_within(&memory, &mappings, page);
    }
    let first = first?;
    if !first.has_changed() {
        return Ok(first);
    }
    let mut walks = vec![first];
    while walks.len() < WALKS {
        let Some(mappings) = again() else { break };
        // All walks together have one bound.
        match read_within(&memory, &mappings, page) {
            Ok(heap) if !heap.is_cut => walks.push(heap),
            _ => break,
        }
    }
    let scatter = scatter(&walks);
    walks.sort_by_key(Heap::live_bytes);
    let live = |heap: Option<&Heap>| heap.map_or(0, Heap::live_bytes);
    let spread = live(walks.last()) - live(walks.first());
    let mut heap = walks.swap_remove(walks.len() / 2);
    (heap.spread_bytes, heap.scatter_bytes) = (spread, scatter);
    Ok(heap)
}

/// Returns what the changes of blocks from walk to walk add up to if they are independent: the quadratic mean over the
/// pairs of walks.
fn scatter(walks: &[Heap]) -> u64 {
    let cells = walks.iter().map(|heap| heap.cell_bytes);
    let block = cells.max().unwrap_or(0).max(BLOCK_BYTES);
    let blocks: Vec<_> = walks.iter().map(|heap| live_by_block(heap, block)).collect();
    let mut squares = 0_u128;
    for pair in blocks.windows(2) {
        let (before, after) = (&pair[0], &pair[1]);
        let gone = before.iter().filter(|(at, _)| !after.contains_key(at));
        let changes = after
            .iter()
            .map(|(at, bytes)| bytes.abs_diff(before.get(at).copied().unwrap_or(0)))
            .chain(gone.map(|(_, bytes)| *bytes));
        squares += changes.map(|change| u128::from(change).pow(2)).sum::<u128>();
    }
    let pairs = blocks.len().saturating_sub(1).max(1) as u128;
    u64::try_from((squares / pairs).isqrt()).unwrap_or(u64::MAX)
}

/// Returns the live bytes in each block of a heap's addresses.
fn live_by_block(heap: &Heap, block: u64) -> BTreeMap<u64, u64> {
    let mut blocks = BTreeMap::new();
    let mut add = |at: u64, bytes: u64| *blocks.entry(at / block).or_default() += bytes;
    for part in heap.arenas.iter().flat_map(|arena| &arena.parts) {
        let cells =
            (part.row.start..).step_by(usize::try_from(heap.cell_bytes).unwrap_or(usize::MAX));
        for (at, cell) in cells.zip(&part.row.cells) {
            add(at, cell.live);
        }
    }
    for chunk in &heap.mmapped {
        add(chunk.range.start, chunk.range.end - chunk.range.start);
    }
    blocks
}
