//! Every mapping of a process is given to its owner; a mapping that malloc owns in part is divided.
//!
//! Pure: the costs of the leaves add up to the sums of smaps, whatever the input. The order of the questions is that of
//! their certainty: names of the kernel, files, stacks, malloc's own structures, names that the process gave, shapes.

use probe::{Mapping, SmapsBlock, SmapsField, VmFlag};
use units::Bytes;

use crate::allocator::AllocatorKind;
use crate::files::FileRoles;
use crate::input::AnatomyInput;
use crate::malloc_ranges::{MallocRanges, RangesInOrder, Region};
use crate::part::{self, Certainty, PartKind, PartStep, Place, ProcessPart, TreeBuilder};
use crate::runtimes::RuntimeShapes;
use crate::sizes::PartSizes;
use crate::stacks::StackRoles;

/// A process's memory by owner.
#[derive(Debug, Clone, PartialEq)]
pub struct Anatomy {
    /// The whole process; its parts add up.
    pub root: ProcessPart,
    /// Names of sizes that this kernel prints for no mapping: they count as nothing above.
    pub absent: Vec<&'static str>,
}

impl Anatomy {
    /// Divides the memory of a process.
    pub fn new(input: &AnatomyInput<'_>) -> Self {
        let mut division = Division::new(input);
        let mut tree = TreeBuilder::new();
        for index in 0..input.blocks.len() {
            division.divide(index, &mut tree);
        }
        let (sizes, count) = &input.not_examined;
        if *count > 0 {
            let by = "more mappings than are examined one by one";
            let step = PartStep::new(PartKind::NotExamined, "not examined").by(by);
            let place = Place::new([step], Certainty::Unknown);
            tree.add(&place, sizes, *count);
        }
        let has = |field: &SmapsField| input.blocks.iter().any(|block| block.get(*field).is_some());
        let missing = SmapsField::ALL.iter().filter(|field| !has(field));
        Self { root: tree.finish(), absent: missing.map(|field| field.name()).collect() }
    }

    /// Resident bytes of all heaps of runtimes, and of allocators other than glibc's malloc.
    pub fn runtime_resident(&self) -> Bytes {
        part::resident_of(&self.root, &|part| matches!(part, PartKind::RuntimeHeap(_)))
    }

    /// Resident bytes of all parts that an allocator or runtime owns, as far as they were recognised.
    pub fn resident_of(&self, kind: AllocatorKind) -> Bytes {
        part::resident_of(&self.root, &|part| match part {
            PartKind::MallocHeap => kind == AllocatorKind::Ptmalloc,
            PartKind::RuntimeHeap(owner) => owner == kind,
            _ => false,
        })
    }
}

/// Everything that is needed to place a block.
struct Division<'a> {
    input: &'a AnatomyInput<'a>,
    stacks: StackRoles,
    files: FileRoles<'a>,
    shapes: RuntimeShapes<'a>,
    ranges: RangesInOrder,
    /// The unnamed memory of which most is in RAM and not malloc's.
    largest_unnamed: Option<usize>,
}

impl<'a> Division<'a> {
    fn new(input: &'a AnatomyInput<'a>) -> Self {
        let mappings = input.blocks.iter().map(|block| &block.mapping);
        let nothing = MallocRanges::default();
        let ranges = input.malloc.unwrap_or(&nothing);
        Self {
            stacks: StackRoles::find(input.blocks, input.stack_pointers, input.stack_limit),
            files: FileRoles::new(input.blocks, input.program, input.tmpfs, input.image_sizes),
            shapes: RuntimeShapes::new(mappings, input),
            ranges: RangesInOrder::new(ranges),
            largest_unnamed: largest_unnamed(input.blocks, RangesInOrder::new(ranges)),
            input,
        }
    }

    /// Adds all costs of a block to the tree.
    fn divide(&mut self, index: usize, tree: &mut TreeBuilder) {
        let block = &self.input.blocks[index];
        let mapping = &block.mapping;
        let mut sizes = PartSizes::of(block);
        if let Some(place) = self.by_kernel(block) {
            return tree.add(&place, &sizes, 1);
        }
        let is_whole_malloc = self.take_malloc(mapping, &mut sizes, tree);
        if is_whole_malloc {
            return;
        }
        let place = self.anonymous(index);
        // What is left of a mapping that malloc shares is a piece of its own only if it costs something.
        if !sizes.is_empty() {
            tree.add(&place, &sizes, 1);
        }
    }

    /// Mappings that the kernel itself explains.
    fn by_kernel(&self, block: &SmapsBlock) -> Option<Place> {
        let mapping = &block.mapping;
        let name = mapping.name.as_slice();
        if block.has(VmFlag::Hugetlb) || name.starts_with(b"/anon_hugepage") {
            let by = "its flag ht, or its name";
            let label = match mapping.path() {
                Some(path) => String::from_utf8_lossy(path).into_owned(),
                None => "anonymous".to_owned(),
            };
            let group = PartStep::new(PartKind::Hugetlb, "hugetlbfs, outside of RSS").by(by);
            return Some(Place::certain([group, PartStep::new(PartKind::Hugetlb, label).by(by)]));
        }
        let is_own = [&b"[vdso"[..], b"[vvar", b"[vsyscall", b"[vectors", b"[sigpage", b"[uprobes"];
        if is_own.iter().any(|start| name.starts_with(start)) {
            let step = PartStep::new(PartKind::Kernel, "kernel's own");
            return Some(Place::certain([step.by("the kernel's name for it")]));
        }
        (!mapping.is_anonymous() || name.starts_with(b"/") || name.starts_with(b"anon_inode:"))
            .then(|| self.files.place(block))
    }

    /// Gives malloc its pieces of a mapping. Returns whether nothing is left.
    fn take_malloc(
        &mut self,
        mapping: &Mapping,
        sizes: &mut PartSizes,
        tree: &mut TreeBuilder,
    ) -> bool {
        let mut covered = 0;
        let whole = mapping.size_bytes();
        for (region, overlap, range) in self.ranges.within(&mapping.range) {
            let length = overlap.end - overlap.start;
            covered += length;
            // The last piece of a mapping that is malloc's as a whole takes what is left: all of it is malloc's.
            let (resident, swapped) = if covered >= whole {
                (sizes.rss, sizes.swap)
            } else {
                let most = Bytes::new(length);
                (range.resident.min(most), range.swapped.min(most))
            };
            let piece = sizes.take(Bytes::new(length), resident, swapped);
            range.resident = range.resident.saturating_sub(piece.rss);
            range.swapped = range.swapped.saturating_sub(piece.swap);
            tree.add(&malloc(region), &piece, 1);
        }
        covered >= whole
    }

    /// The owner of anonymous memory, or of what malloc leaves of it.
    fn anonymous(&self, index: usize) -> Place {
        let block = &self.input.blocks[index];
        let mapping = &block.mapping;
        if let Some(place) = self.stacks.of(index) {
            return place.clone();
        }
        let access = &mapping.access;
        if !(access.read || access.write || access.execute) {
            return self.reserved(index);
        }
        if let Some(place) = self.zeroed_data(index) {
            return place;
        }
        if mapping.name.starts_with(b"[heap") {
            return self.program_break();
        }
        if let Some(place) = RuntimeShapes::by_name(mapping) {
            return place;
        }
        if self.input.malloc.is_none() && self.is_like_arena(index) {
            let by = "it starts at a multiple of 64 MiB and is reserved to the next one; malloc's \
                      structures were not read";
            return likely_malloc(PartKind::MallocThreadArenas, "thread arenas", by);
        }
        let is_known = self.input.malloc.is_some();
        let found = self.shapes.by_shape(mapping, self.is_of_reservation(index));
        found
            .or_else(|| self.of_known_program(index))
            .unwrap_or_else(|| self.shapes.unknown(is_known))
    }

    /// Whether a block is a part of a range of which the rest, directly before or behind it, is without access.
    fn is_of_reservation(&self, index: usize) -> bool {
        let range = &self.input.blocks[index].mapping.range;
        let before = index.checked_sub(1).and_then(|before| self.input.blocks.get(before));
        let behind = self.input.blocks.get(index + 1);
        let is_reserved = |one: &&SmapsBlock| {
            let access = &one.mapping.access;
            one.mapping.is_anonymous() && !(access.read || access.write || access.execute)
        };
        before.filter(is_reserved).is_some_and(|one| one.mapping.range.end == range.start)
            || behind.filter(is_reserved).is_some_and(|one| one.mapping.range.start == range.end)
    }

    /// Memory that a program of which the sources are known maps itself.
    fn of_known_program(&self, index: usize) -> Option<Place> {
        /// InnoDB's smallest buffer pool is 5 MiB.
        const POOL_MIN: u64 = 5 << 20;
        let is_pool = self.files.is_mariadb()
            && self.input.malloc.is_some()
            && self.largest_unnamed == Some(index)
            && self.input.blocks[index].mapping.size_bytes() >= POOL_MIN;
        let by = "the largest memory that MariaDB or MySQL maps itself, outside of malloc";
        let label = "InnoDB buffer pool";
        is_pool.then(|| Place::likely([PartStep::new(PartKind::BufferPool, label).by(by)]))
    }

    /// Address space without access.
    fn reserved(&self, index: usize) -> Place {
        let mapping = &self.input.blocks[index].mapping;
        let below = index.checked_sub(1);
        let is_arena = self.ranges.thread_ends_at(mapping.range.start)
            || (self.input.malloc.is_none()
                && below.is_some_and(|below| self.is_like_arena(below)));
        if is_arena {
            return malloc(Region::Thread);
        }
        if let Some(place) = self.shapes.java_heap(mapping) {
            return place;
        }
        let by = "no access is permitted: address space only";
        Place::certain([PartStep::new(PartKind::Reserved, "reserved, without access").by(by)])
    }

    fn zeroed_data(&self, index: usize) -> Option<Place> {
        let block = &self.input.blocks[index];
        if !block.mapping.name.is_empty() {
            return None;
        }
        let before = self.input.blocks.get(index.checked_sub(1)?)?;
        self.files.zeroed_data(&before.mapping, block)
    }

    fn program_break(&self) -> Place {
        let has_glibc = self.shapes.has(AllocatorKind::Ptmalloc);
        if self.input.malloc.is_none() && has_glibc {
            let by = "the program break of a process with glibc; malloc's structures were not read";
            return likely_malloc(PartKind::MallocMain, "main arena", by);
        }
        self.shapes.program_break()
    }

    /// Whether a block has the shape of a thread arena's heap: 64 MiB, in use from their start.
    fn is_like_arena(&self, index: usize) -> bool {
        const HEAP: u64 = 64 << 20;
        let block = &self.input.blocks[index].mapping;
        let Some(next) = self.input.blocks.get(index + 1).map(|next| &next.mapping) else {
            return false;
        };
        self.shapes.has(AllocatorKind::Ptmalloc)
            && block.is_anonymous()
            && block.is_private_writable()
            && !block.access.execute
            && block.range.start.is_multiple_of(HEAP)
            && next.range.start == block.range.end
            && next.range.end == block.range.start.saturating_add(HEAP)
            && next.is_anonymous()
            && !(next.access.read || next.access.write)
    }
}

/// Finds the unnamed memory of which most is in RAM and in no range of malloc's.
fn largest_unnamed(blocks: &[SmapsBlock], mut malloc: RangesInOrder) -> Option<usize> {
    let is_plain =
        |one: &Mapping| one.is_anonymous() && one.name.is_empty() && one.is_private_writable();
    let candidates = blocks.iter().enumerate().filter(|(_, block)| is_plain(&block.mapping));
    let own = candidates.map(|(index, block)| {
        let within = malloc.within(&block.mapping.range);
        let mallocs: Bytes = within
            .map(|(_, overlap, range)| range.resident.min(Bytes::new(overlap.end - overlap.start)))
            .sum();
        (PartSizes::of(block).rss.saturating_sub(mallocs), index)
    });
    own.max().map(|(_, index)| index)
}

fn malloc_heap() -> PartStep {
    PartStep::new(PartKind::MallocHeap, "malloc heap")
}

/// The place of memory that malloc's structures contain.
fn malloc(region: Region) -> Place {
    let (kind, label) = match region {
        Region::Main => (PartKind::MallocMain, "main arena"),
        Region::Thread => (PartKind::MallocThreadArenas, "thread arenas"),
        Region::Mapped => (PartKind::MallocMapped, "large chunks"),
    };
    let leaf = PartStep::new(kind, label).by("malloc's own structures contain it");
    Place::certain([malloc_heap(), leaf])
}

fn likely_malloc(kind: PartKind, label: &'static str, by: &'static str) -> Place {
    Place::likely([malloc_heap(), PartStep::new(kind, label).by(by)])
}
