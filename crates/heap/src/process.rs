//! The heap of a running process: its mappings, its memory and its page map together.

use probe::{Mappings, NoAnswer, ReadError, Root};
use units::PageSize;

use crate::heap::{Heap, HeapError};
use crate::memory::LiveMemory;
use crate::settle::read_settled;

/// Why the heap of a process was not read.
#[derive(Debug, thiserror::Error)]
pub enum HeapNotRead {
    /// It has none that can be read.
    #[error(transparent)]
    NoHeap(HeapError),
    /// This user may not read its memory, or it ended.
    #[error(transparent)]
    Denied(ReadError),
    /// It gave no answer in time: whoever read it waited for the process.
    #[error("its memory {0}")]
    NoAnswer(NoAnswer),
}

/// Reads the heap of a process; up to three times if it changes meanwhile.
///
/// # Errors
/// [`HeapNotRead`] if it has none that can be read, ended, or may not be read.
pub fn read_process(root: &Root, pid: u32, page: PageSize) -> Result<Heap, HeapNotRead> {
    let mappings = Mappings::read(root, pid).map_err(HeapNotRead::Denied)?;
    let memory = LiveMemory::open(root, pid, page).map_err(HeapNotRead::Denied)?;
    let again = || Mappings::read(root, pid).ok();
    read_settled(&memory, &mappings, again, page.bytes().get()).map_err(HeapNotRead::NoHeap)
}
