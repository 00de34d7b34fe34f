//! Reads everything that is needed of a living process, and divides its memory.

use probe::{
    MemoryVariable, ProcessIdentity, ProcessLimits, ProcessMemory, ReadError, Root, SmapsBlock,
    StackPointers,
};
use units::PageSize;

use crate::allocator::{Allocator, AllocatorKind};
use crate::anatomy::Anatomy;
use crate::explained::FourSizes;
use crate::file_rows::MappedFiles;
use crate::find_allocators::AllocatorSearch;
use crate::input::AnatomyInput;
use crate::malloc_ranges::MallocRanges;
use crate::pymalloc;
use crate::ruby_pages;
use crate::sizes::PartSizes;
use crate::stacks;

/// Mappings beyond this number are summed up, not examined: 16 times the kernel's default limit, 300 MB.
pub const EXAMINED_MAX: usize = 16 * 65_530;

/// What is read, and how far.
#[derive(Debug, Clone, Copy)]
pub struct ReadOptions {
    /// The page size of this host.
    pub page: PageSize,
    /// Whether only what the kernel itself knows is read: neither the process's memory nor its files, which may not answer.
    /// Reading headers in its memory sets these pages' accessed bits.
    pub mappings_alone: bool,
}

impl ReadOptions {
    /// Everything, within the usual bounds.
    pub fn usual(page: PageSize) -> Self {
        Self { page, mappings_alone: false }
    }

    /// Only what the kernel itself knows.
    pub fn by_mappings(page: PageSize) -> Self {
        Self { page, mappings_alone: true }
    }
}

/// A process and its memory.
#[derive(Debug, Clone)]
pub struct ProcessAnatomy {
    /// Which process it is.
    pub identity: ProcessIdentity,
    /// Its limits; absent if they cannot be read.
    pub limits: Option<ProcessLimits>,
    /// Settings for allocators that it was started with; absent if they cannot be read.
    pub memory_variables: Option<Vec<MemoryVariable>>,
    /// Whether it ignores them, as it was started with more rights than its user has; absent if that cannot be read.
    pub ignores_variables: Option<bool>,
    /// Its allocators, and files that could not be opened.
    pub allocators: AllocatorSearch,
    /// Its memory by owner.
    pub anatomy: Anatomy,
    /// VSS, RSS, PSS, USS.
    pub sizes: FourSizes,
    /// Its mapped files.
    pub files: MappedFiles,
    /// Its threads, and how many of them showed their stack pointer; absent if they cannot be listed.
    pub threads: Option<(usize, usize)>,
    /// What was malformed or could not be read, in sentences.
    pub problems: Vec<String>,
}

impl ProcessAnatomy {
    /// Reads a process. `malloc` is what the reader of its heap found; `None` if it could not read.
    ///
    /// # Errors
    /// [`ReadError`] if there is no such process, or this user may not trace it.
    pub fn read(
        root: &Root,
        pid: u32,
        malloc: Option<&MallocRanges>,
        options: &ReadOptions,
    ) -> Result<Self, ReadError> {
        let identity = ProcessIdentity::read(root, pid)?;
        let mut problems = Vec::new();
        let smaps = Smaps::read(root, pid, &mut problems)?;
        let mappings: Vec<_> = smaps.blocks.iter().map(|block| block.mapping.clone()).collect();
        let program = identity.program.as_deref();
        let is_asked = !options.mappings_alone;
        let mut allocators = if is_asked {
            AllocatorSearch::run(root, pid, &mappings, program)
        } else {
            AllocatorSearch::by_names(&mappings, program)
        };
        if malloc.is_some_and(|ranges| !ranges.is_empty()) {
            allocators.add_found_in_memory(program);
        }
        let limits =
            noted(ProcessLimits::read(root, pid), &mut problems).map(|(limits, _malformed)| limits);
        let stacks = noted(StackPointers::read(root, pid), &mut problems);
        let mountinfo = root.read(&format!("/proc/{pid}/mountinfo"));
        let tmpfs = noted(mountinfo, &mut problems).map(|text| probe::tmpfs_devices(&text));
        let headers = if is_asked {
            let found = &allocators.allocators;
            RuntimeHeaders::read(root, pid, options.page, &smaps.blocks, malloc, found)
        } else {
            RuntimeHeaders::default()
        };
        let input = AnatomyInput {
            blocks: &smaps.blocks,
            malloc,
            allocators: &allocators.allocators,
            stack_pointers: stacks.as_ref().map_or(&[], |stacks| &stacks.known),
            stack_limit: stacks::soft(limits.and_then(|limits| limits.stack)),
            program,
            tmpfs: tmpfs.as_deref().unwrap_or_default(),
            image_sizes: Some(&allocators.image_sizes),
            python_arenas: headers.python.as_deref(),
            ruby_pages: headers.ruby.as_deref(),
            not_examined: (smaps.beyond, smaps.left_out),
        };
        let anatomy = Anatomy::new(&input);
        let mut files = MappedFiles::of(&smaps.blocks);
        if is_asked {
            files.read_cache(root, pid, &smaps.blocks, options.page);
        }
        let variables = is_asked.then(|| probe::memory_variables(root, pid));
        let is_secure = || probe::is_secure_start(root, pid).ok().flatten();
        Ok(Self {
            ignores_variables: if is_asked { is_secure() } else { None },
            sizes: FourSizes::of(&smaps.blocks, &smaps.beyond),
            memory_variables: variables.and_then(|read| noted(read, &mut problems)),
            threads: stacks.as_ref().map(|stacks| (stacks.threads, stacks.known.len())),
            anatomy,
            allocators,
            identity,
            limits,
            files,
            problems,
        })
    }
}

/// The blocks that are examined, and the sum of the others.
#[derive(Default)]
struct Smaps {
    blocks: Vec<SmapsBlock>,
    beyond: PartSizes,
    left_out: usize,
}

impl Smaps {
    fn read(root: &Root, pid: u32, problems: &mut Vec<String>) -> Result<Self, ReadError> {
        let mut smaps = Self::default();
        let malformed = probe::each_smaps_block(root, pid, &mut |block| {
            if smaps.blocks.len() < EXAMINED_MAX {
                smaps.blocks.push(block);
            } else {
                smaps.beyond.add(&PartSizes::of(&block));
                smaps.left_out += 1;
            }
        })?;
        problems.extend(malformed.map(|error| error.to_string()));
        Ok(smaps)
    }
}

fn noted<T>(read: Result<T, ReadError>, problems: &mut Vec<String>) -> Option<T> {
    read.map_err(|error| problems.push(probe::with_causes(&error))).ok()
}

/// First addresses of mappings in which a runtime's own headers stand; `None` where memory may not be read, or without
/// that runtime.
#[derive(Default)]
struct RuntimeHeaders {
    python: Option<Vec<u64>>,
    ruby: Option<Vec<u64>>,
}

impl RuntimeHeaders {
    fn read(
        root: &Root,
        pid: u32,
        page: PageSize,
        blocks: &[SmapsBlock],
        malloc: Option<&MallocRanges>,
        allocators: &[Allocator],
    ) -> Self {
        let has = |kind| allocators.iter().any(|one| one.kind == kind);
        let Ok(memory) = ProcessMemory::open(root, pid, page) else {
            return Self::default();
        };
        Self {
            python: has(AllocatorKind::Python)
                .then(|| pymalloc::python_arenas(&memory, blocks, malloc)),
            ruby: has(AllocatorKind::Ruby).then(|| ruby_pages::ruby_pages(&memory, blocks, malloc)),
        }
    }
}
