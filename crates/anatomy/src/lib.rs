//! Where is the memory of one process, what owns each part, and which allocators does it have?
//!
//! Three nouns: a **part** ([`ProcessPart`]) is a piece of the process's memory with its costs, and parts of its own that add up
//! to it; an **allocator** ([`Allocator`]) is what manages memory inside the process, with the signs by which it was
//! recognised; **malloc's ranges** ([`MallocRanges`]) are what the reader of glibc's heap found, and are the only truth
//! about what malloc owns. What nothing explains is shown as anonymous memory without an owner: an honest "unknown" is
//! worth more than a wrong name. What a runtime reports about its own memory is read from a file: [`runtime_stats`].
//!
//! ```
//! use anatomy::{Anatomy, AnatomyInput, PartKind};
//! let text = b"7ffc000-7ffd000 rw-p 00000000 00:00 0   [stack]\nRss:  4 kB\nPss:  4 kB\n";
//! let mut blocks = Vec::new();
//! probe::parse_smaps(text, &mut |block| blocks.push(block));
//! let anatomy = Anatomy::new(&AnatomyInput { blocks: &blocks, ..AnatomyInput::default() });
//! let stacks = anatomy.root.find(PartKind::Stacks).unwrap();
//! assert_eq!(stacks.sizes.rss, units::Bytes::from_kib(4));
//! ```

#![cfg_attr(test, allow(clippy::string_slice))] // tests cut texts of their own

mod allocator;
mod anatomy;
mod effective_allocator;
mod elf;
mod explained;
mod file_rows;
mod files;
mod find_allocators;
mod find_library;
mod glibc_tunables;
mod input;
mod ld_cache;
mod malloc_ranges;
mod part;
mod preload_prospect;
mod program_file;
mod provider_file;
mod pymalloc;
mod read;
mod ruby_pages;
pub mod runtime_stats;
mod runtimes;
mod sampled_pages;
mod sizes;
mod stacks;

pub use allocator::{Allocator, AllocatorKind};
pub use anatomy::Anatomy;
pub use effective_allocator::{
    AllocatorNotSeen, EffectiveAllocator, EnvironmentUse, MallocCaller, MallocProvider,
    ProviderPlace, UnreadImage, effective_allocator,
};
pub use elf::ElfMachine;
pub use explained::FourSizes;
pub use file_rows::{FileRow, MappedFiles, PageCache, ROWS_MAX};
pub use find_allocators::AllocatorSearch;
pub use find_library::{CLibrary, FoundLibrary, LibraryNotFound, UnfitLibrary, find_library};
pub use glibc_tunables::{GlibcTunable, TunablesUnknown, glibc_tunables};
pub use input::AnatomyInput;
pub use malloc_ranges::{MallocRange, MallocRanges};
pub use part::{Certainty, PartKind, ProcessPart};
pub use preload_prospect::{
    ExtraRights, LinkedAllocator, NoProspect, PreloadProspect, ProgramLinkage, RunPlace,
    SettingEffect, SettingLimit,
};
pub use program_file::preload_prospect;
pub use provider_file::ProviderFile;
pub use pymalloc::python_arenas;
pub use read::{EXAMINED_MAX, ProcessAnatomy, ReadOptions};
pub use ruby_pages::ruby_pages;
pub use sizes::PartSizes;
