//! What the memory of a process is divided by.

use std::collections::HashMap;

use probe::{FileKey, SmapsBlock, StackPointer};
use units::Limit;

use crate::allocator::Allocator;
use crate::malloc_ranges::MallocRanges;
use crate::sizes::PartSizes;

/// What the tree is made of.
#[derive(Debug, Clone, Default)]
pub struct AnatomyInput<'a> {
    /// The mappings with their costs, in order of address.
    pub blocks: &'a [SmapsBlock],
    /// What glibc's malloc owns; `None` if its structures were not read, and empty if the process has none.
    pub malloc: Option<&'a MallocRanges>,
    /// Allocators and runtimes of the process.
    pub allocators: &'a [Allocator],
    /// Stack pointers of threads.
    pub stack_pointers: &'a [StackPointer],
    /// The soft limit of stacks: the usual size of a thread's.
    pub stack_limit: Option<Limit>,
    /// Path of the program.
    pub program: Option<&'a [u8]>,
    /// Devices of tmpfs file systems.
    pub tmpfs: &'a [(u32, u32)],
    /// Size in memory of each image, if images were read.
    pub image_sizes: Option<&'a HashMap<FileKey, u64>>,
    /// First addresses of mappings that are pymalloc's; `None` if memory was not read.
    pub python_arenas: Option<&'a [u64]>,
    /// First addresses of mappings that are Ruby's pages of objects; `None` if no memory was read.
    pub ruby_pages: Option<&'a [u64]>,
    /// Costs and number of mappings that are not among the blocks.
    pub not_examined: (PartSizes, usize),
}
