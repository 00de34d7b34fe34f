//! What is in a process's malloc heap? Read from outside, while it runs: no preload, no debugger, no stop.
//!
//! Three nouns: an **arena** is a heap of its own with a lock ([`Arena`]); a **chunk** is what malloc hands out, with
//! a header that says its size; a **page** is what the kernel counts. malloc knows chunks, RSS counts pages, and
//! fragmentation is the difference: chunks that are free on pages that cannot be returned.
//!
//! glibc's data is recognised by its form ([`read`]); one pass over the resident pages of the heap then gives all
//! figures. Nothing is written, the process is not stopped, and a page that is not in RAM is not read. The pages that
//! are read count as accessed: working-set figures of the kernel's accessed bits are spoilt until their next epoch.
//!
//! ```no_run
//! use heap::{LiveMemory, read};
//! use probe::{Mappings, Root};
//! use units::PageSize;
//!
//! let (root, pid) = (Root::default(), 4711);
//! let mappings = Mappings::read(&root, pid)?;
//! let memory = LiveMemory::open(&root, pid, PageSize::USUAL)?;
//! let heap = read(&memory, &mappings, 4096).unwrap();
//! println!("{} live chunks in {} arenas", heap.chunks().live.chunks, heap.arenas.len());
//! # Ok::<(), probe::ReadError>(())
//! ```

mod arena;
mod chunk;
mod fast;
mod forecast;
mod heap;
mod layout;
mod main_arena;
mod memory;
mod mmapped;
mod pages;
mod parameters;
mod process;
mod settle;
mod tcache;
mod totals;
mod walk;
mod window;

pub use forecast::ArenaForecast;
pub use heap::{Arena, Heap, HeapError, HeapPart, read};
pub use layout::{ArenaLayout, TcacheLayout};
pub use memory::{LiveMemory, TargetMemory};
pub use mmapped::MmappedChunk;
pub use pages::{Cell, CellRow, PageTotals};
pub use parameters::Parameters;
pub use process::{HeapNotRead, read_process};
pub use settle::read_settled;
pub use totals::{Amount, ChunkTotals, Histogram};
