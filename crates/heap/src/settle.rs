//! A heap that changes during the walk: several walks, and the one in the middle.
//!
//! A walk takes as long as reading the heap, and what the program frees behind it and allocates before it counts twice
//! or not at all. The walks' difference shows how much that is, so a busy heap is walked three times.

use probe::Mappings;

use crate::heap::{DOUBT, Heap, HeapError, read};
use crate::memory::TargetMemory;

/// Walks over a heap that changes.
const WALKS: usize = 3;

/// Reads the heap of a process; up to three times if it changes meanwhile, and returns the walk with live bytes that are
/// the median. [`Heap::spread_bytes`] is by how much the walks differed. `again` returns the process's mappings as they
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
    let mut first = read(memory, mappings, page);
    for _ in 1..WALKS {
        // A heap that grew behind the mappings that were read has no data of the form that they say.
        let Err(HeapError::NoArena | HeapError::UnknownLayout(_)) = first else {
            break;
        };
        let Some(mappings) = again() else { break };
        first = read(memory, &mappings, page);
    }
    let first = first?;
    if is_settled(&first) {
        return Ok(first);
    }
    let mut walks = vec![first];
    while walks.len() < WALKS {
        let Some(mappings) = again() else { break };
        let Ok(heap) = read(memory, &mappings, page) else {
            break;
        };
        walks.push(heap);
    }
    walks.sort_by_key(Heap::live_bytes);
    let live = |heap: Option<&Heap>| heap.map_or(0, Heap::live_bytes);
    let spread = live(walks.last()) - live(walks.first());
    let mut heap = walks.swap_remove(walks.len() / 2);
    heap.spread_bytes = spread;
    Ok(heap)
}

fn is_settled(heap: &Heap) -> bool {
    !heap.has_changed() && heap.uncertain_bytes() <= heap.system_bytes() / DOUBT
}
