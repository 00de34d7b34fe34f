//! Anonymous memory of runtimes and of other allocators, by its name, its address and its shape.
//!
//! A shape alone is never enough: the runtime must be in the process, and malloc must not own the memory. What fits no
//! shape stays without an owner. Shapes are of the projects' sources: Go grows its heap by 4 MiB (`mheap.grow`,
//! `pallocChunkBytes`) from an arena of 64 MiB; V8 has pages of 256 KiB (`kPageSizeBits`); Ruby has pages of 16 KiB, of
//! 64 KiB since 3.2 (`HEAP_PAGE_ALIGN_LOG`); pymalloc has arenas of 1 MiB since 3.10, of 256 KiB before
//! (`ARENA_BITS`); HotSpot places a heap of up to 32 GiB below that address to compress its pointers, and commits parts of
//! ranges that it reserved; PHP has chunks of 2 MiB (`ZEND_MM_CHUNK_SIZE`).

use probe::Mapping;

use crate::allocator::{Allocator, AllocatorKind};
use crate::input::AnatomyInput;
use crate::part::{Certainty, PartKind, PartStep, Place};

/// The runtimes and allocators of a process, and what their heaps look like.
pub(crate) struct RuntimeShapes<'a> {
    allocators: &'a [Allocator],
    /// Mappings that were read and are pymalloc's, by their first address; `None` if none were read.
    python_arenas: Option<&'a [u64]>,
    /// The same of Ruby's pages of objects.
    ruby_pages: Option<&'a [u64]>,
    /// Addresses of the Java heap, below 32 GiB.
    java_heap: Option<std::ops::Range<u64>>,
}

/// The name of the memfd that is ZGC's heap (`ZPhysicalMemoryBacking`).
pub(crate) const ZGC_HEAP: &[u8] = b"/memfd:java_heap";
const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const COMPRESSED_POINTERS_END: u64 = 32 << 30;

/// Beginnings of names that runtimes give to their memory.
const NAMES: [(&[u8], AllocatorKind); 8] = [
    (b"[anon: Go:", AllocatorKind::Go),
    (b"[anon:mimalloc", AllocatorKind::Mimalloc),
    (b"[anon:mi-", AllocatorKind::Mimalloc),
    (b"[anon:tcmalloc_region", AllocatorKind::GoogleTcmalloc),
    (b"[anon:jemalloc", AllocatorKind::Jemalloc),
    (b"[anon:v8", AllocatorKind::V8),
    (b"[anon:Ruby:", AllocatorKind::Ruby),
    (b"[anon: glibc: malloc", AllocatorKind::Ptmalloc),
];

impl<'a> RuntimeShapes<'a> {
    pub(crate) fn new(
        mappings: impl Iterator<Item = &'a Mapping> + Clone,
        input: &AnatomyInput<'a>,
    ) -> Self {
        let mut shapes = Self {
            allocators: input.allocators,
            python_arenas: input.python_arenas,
            ruby_pages: input.ruby_pages,
            java_heap: None,
        };
        // ZGC's heap is a memfd, and has its name.
        let is_zgc = mappings.clone().any(|one| one.name.starts_with(ZGC_HEAP));
        if shapes.has(AllocatorKind::Jvm) && !is_zgc {
            shapes.java_heap = java_heap(mappings);
        }
        shapes
    }

    pub(crate) fn has(&self, kind: AllocatorKind) -> bool {
        self.allocators.iter().any(|one| one.kind == kind)
    }

    /// The only runtime with a heap of its own beside malloc; `None` if there are several or none.
    pub(crate) fn only_runtime(&self) -> Option<AllocatorKind> {
        let mut runtimes = self.allocators.iter().filter(|one| !one.kind.is_malloc());
        let first = runtimes.next()?;
        runtimes.next().is_none().then_some(first.kind)
    }

    /// Whether a mapping is part of the Java heap, reserved address space included.
    pub(crate) fn java_heap(&self, mapping: &Mapping) -> Option<Place> {
        let heap = self.java_heap.as_ref()?;
        let is_inside = heap.start <= mapping.range.start && mapping.range.end <= heap.end;
        let by =
            "the largest anonymous range of a Java virtual machine, below 32 GiB if there is one";
        is_inside.then(|| Place::likely(heap_of(AllocatorKind::Jvm, "Java heap", by)))
    }

    /// Returns the owner of anonymous memory that the process has named.
    pub(crate) fn by_name(mapping: &Mapping) -> Option<Place> {
        let name = mapping.name.as_slice();
        if !name.starts_with(b"[anon:") {
            return None;
        }
        let found = NAMES.iter().find(|(start, _)| name.starts_with(start));
        let by = "the process has given it this name";
        let label = String::from_utf8_lossy(name).into_owned();
        Some(Place::certain(match found {
            Some((_, kind)) => {
                let group = PartStep::new(PartKind::RuntimeHeap(*kind), kind.name()).by(by);
                vec![group, PartStep::new(PartKind::RuntimeHeap(*kind), label).by(by)]
            }
            None => vec![other(), PartStep::new(PartKind::OtherAnonymous, label).by(by)],
        }))
    }

    /// Returns the owner of memory without a name that malloc does not own. `is_reserved`: whether it is a part of a range of
    /// which the rest is without access.
    pub(crate) fn by_shape(&self, mapping: &Mapping, is_reserved: bool) -> Option<Place> {
        if mapping.access.execute {
            return Some(self.machine_code());
        }
        self.java_heap(mapping)
            .or_else(|| self.go(mapping))
            .or_else(|| self.python(mapping))
            .or_else(|| self.v8(mapping))
            .or_else(|| self.ruby(mapping))
            .or_else(|| self.php(mapping))
            .or_else(|| self.other_malloc(mapping))
            .or_else(|| self.erlang())
            .or_else(|| self.java_tables(is_reserved))
    }

    /// Memory that nothing explains.
    pub(crate) fn unknown(&self, is_malloc_known: bool) -> Place {
        let by = if is_malloc_known {
            "malloc's own structures do not contain it, and it fits no runtime's shape"
        } else {
            "it fits no runtime's shape; malloc's own structures were not read"
        };
        let is_glibcs = |one: &Allocator| one.kind == AllocatorKind::Ptmalloc;
        if is_malloc_known && self.allocators.iter().all(is_glibcs) {
            // Nobody else is there: a buffer pool or a cache of the program, or of one of its libraries.
            let label = "mapped by the program itself";
            let by = "malloc's own structures do not contain it, and no other allocator is there";
            let leaf = PartStep::new(PartKind::OtherAnonymous, label).by(by);
            return Place::likely([other(), leaf]);
        }
        let label = match self.only_runtime() {
            Some(kind) => format!("owner unknown, perhaps {}", kind.name()),
            None => "owner unknown".to_owned(),
        };
        let leaf = PartStep::new(PartKind::OtherAnonymous, label).by(by);
        Place::new([other(), leaf], Certainty::Unknown)
    }

    fn machine_code(&self) -> Place {
        let makes_code =
            |kind| matches!(kind, AllocatorKind::Jvm | AllocatorKind::V8 | AllocatorKind::Ruby);
        match self.only_runtime().filter(|kind| makes_code(*kind)) {
            Some(kind) => {
                let by = "anonymous memory that may be executed, and the only runtime here that \
                          makes code";
                let label = format!("code made by {}", kind.name());
                Place::likely([PartStep::new(PartKind::JitCode, label).by(by)])
            }
            None => {
                let by = "anonymous memory that may be executed";
                let step = PartStep::new(PartKind::JitCode, "code made at run time").by(by);
                Place::certain([step])
            }
        }
    }

    fn go(&self, mapping: &Mapping) -> Option<Place> {
        if !self.has(AllocatorKind::Go) {
            return None;
        }
        let is_heap = is_multiple(mapping.range.start, 4 * MIB)
            && (is_multiple(mapping.size_bytes(), 4 * MIB) || mapping.range.start >> 32 == 0xc0);
        if is_heap {
            let by = "a Go program's memory that starts at and grows by 4 MiB";
            return Some(Place::likely(heap_of(AllocatorKind::Go, "Go heap", by)));
        }
        // Without any malloc, nobody else in the process maps memory.
        let has_malloc = self.allocators.iter().any(|one| one.kind.is_malloc());
        let by = "a Go program without a malloc: its runtime maps all memory";
        (!has_malloc && self.only_runtime().is_some())
            .then(|| Place::likely(heap_of(AllocatorKind::Go, "tables of the Go runtime", by)))
    }

    fn python(&self, mapping: &Mapping) -> Option<Place> {
        if !self.has(AllocatorKind::Python) {
            return None;
        }
        let steps = |by| heap_of(AllocatorKind::Python, "pymalloc arenas", by);
        match self.python_arenas {
            Some(arenas) => {
                let by = "headers of pymalloc's pools stand in it";
                let is_arena = arenas.contains(&mapping.range.start);
                is_arena.then(|| Place::certain(steps(by)))
            }
            None => {
                let by = "Python's memory outside of malloc, a multiple of 1 MiB as its arenas are";
                is_multiple(mapping.size_bytes(), MIB).then(|| Place::likely(steps(by)))
            }
        }
    }

    fn v8(&self, mapping: &Mapping) -> Option<Place> {
        let fits = self.has(AllocatorKind::V8)
            && is_multiple(mapping.range.start, 256 * KIB)
            && mapping.size_bytes() >= 256 * KIB;
        let by = "V8's pages start at multiples of 256 KiB";
        fits.then(|| Place::likely(heap_of(AllocatorKind::V8, "V8 heap", by)))
    }

    fn ruby(&self, mapping: &Mapping) -> Option<Place> {
        let ruby = (self.allocators.iter()).find(|one| one.kind == AllocatorKind::Ruby)?;
        let version = ruby.version.as_deref().and_then(major_minor);
        let is_in =
            |versions: std::ops::Range<(u32, u32)>| version.is_some_and(|v| versions.contains(&v));
        let size = mapping.size_bytes();
        // `TRANSIENT_HEAP_TOTAL_SIZE`.
        if is_in((2, 6)..(3, 3)) && size == 32 * MIB {
            let by = "32 MiB, as large as the transient heap of Ruby 2.6 to 3.2";
            let steps = heap_of(AllocatorKind::Ruby, "Ruby transient heap", by);
            return Some(Place::likely(steps));
        }
        let steps = |by| heap_of(AllocatorKind::Ruby, "Ruby object pages", by);
        if let Some(pages) = self.ruby_pages {
            let by = "its pages and their descriptors in Ruby point at each other";
            let is_rubys = pages.contains(&mapping.range.start);
            return is_rubys.then(|| Place::certain(steps(by)));
        }
        let page = if is_in((0, 0)..(3, 2)) { 16 * KIB } else { 64 * KIB };
        let fits = is_multiple(mapping.range.start, page) && is_multiple(size, page);
        let by = "Ruby's memory outside of malloc, whole pages of objects";
        fits.then(|| Place::likely(steps(by)))
    }

    fn php(&self, mapping: &Mapping) -> Option<Place> {
        let fits = self.has(AllocatorKind::Php)
            && is_multiple(mapping.range.start, 2 * MIB)
            && mapping.size_bytes() >= 2 * MIB;
        let by = "PHP's chunks start at multiples of 2 MiB";
        fits.then(|| Place::likely(heap_of(AllocatorKind::Php, "PHP heap", by)))
    }

    fn erlang(&self) -> Option<Place> {
        let is_only = self.only_runtime() == Some(AllocatorKind::Erlang);
        let by = "an Erlang virtual machine maps the carriers of its allocators itself, and malloc's \
                  own structures do not contain it";
        is_only.then(|| Place::likely(heap_of(AllocatorKind::Erlang, "Erlang carriers", by)))
    }

    /// What a Java virtual machine has beside its heap and the code that it makes.
    fn java_tables(&self, is_reserved: bool) -> Option<Place> {
        let is_only = self.only_runtime() == Some(AllocatorKind::Jvm);
        let by = "a part of a reserved range in a Java virtual machine, which commits its metaspace \
                  and the tables of its collector so";
        let leaf = PartStep::new(PartKind::OtherAnonymous, "Java metaspace and tables").by(by);
        (is_only && is_reserved).then(|| Place::likely([other(), leaf]))
    }

    /// The only allocator besides glibc's that provides malloc.
    pub(crate) fn other_than_glibc(&self) -> Option<AllocatorKind> {
        let is_other = |kind: &AllocatorKind| kind.is_malloc() && *kind != AllocatorKind::Ptmalloc;
        let mut others = self.allocators.iter().map(|one| one.kind).filter(is_other);
        let first = others.next()?;
        others.next().is_none().then_some(first)
    }

    /// The program break, where glibc's malloc has none of it.
    pub(crate) fn program_break(&self) -> Place {
        if let Some(kind) = self.other_than_glibc() {
            let by = "the program break, which glibc's malloc does not own; this is the other malloc \
                      of the process";
            return Place::likely(heap_of(kind, kind.name(), by));
        }
        let by = "the kernel names it [heap]; glibc's malloc does not own it";
        Place::certain([PartStep::new(PartKind::ProgramBreak, "program break").by(by)])
    }

    /// Memory of an allocator that replaces glibc's malloc, or of musl's.
    fn other_malloc(&self, mapping: &Mapping) -> Option<Place> {
        let (start, size) = (mapping.range.start, mapping.size_bytes());
        let has_runtime = self.allocators.iter().any(|one| !one.kind.is_malloc());
        let (kind, by) = if self.has(AllocatorKind::Jemalloc) && size >= MIB && !has_runtime {
            (
                AllocatorKind::Jemalloc,
                "1 MiB or more; jemalloc is this process's malloc, and no runtime is in it",
            )
        } else if self.has(AllocatorKind::Jemalloc) && size >= MIB && is_multiple(size, 64 * KIB) {
            (AllocatorKind::Jemalloc, "jemalloc's extents: 1 MiB or more, a multiple of 64 KiB")
        } else if self.has(AllocatorKind::Mimalloc) && is_multiple(start, 4 * MIB) {
            (AllocatorKind::Mimalloc, "mimalloc's segments start at multiples of 4 MiB")
        } else if self.has(AllocatorKind::GoogleTcmalloc) && is_multiple(start, 2 * MIB) {
            (AllocatorKind::GoogleTcmalloc, "tcmalloc's huge pages start at multiples of 2 MiB")
        } else if self.has(AllocatorKind::Gperftools) && size >= MIB && is_multiple(size, 8 * KIB) {
            (AllocatorKind::Gperftools, "tcmalloc takes 1 MiB or more at once, in pages of 8 KiB")
        } else if self.has(AllocatorKind::Musl) && self.only_runtime().is_none() {
            (AllocatorKind::Musl, "a program with musl maps anonymous memory for its malloc")
        } else {
            return None;
        };
        Some(Place::likely(heap_of(kind, kind.name(), by)))
    }
}

fn major_minor(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.split('.').map(str::parse);
    Some((parts.next()?.ok()?, parts.next()?.ok()?))
}

/// The steps to a heap.
fn heap_of(kind: AllocatorKind, label: &'static str, by: &'static str) -> Vec<PartStep> {
    vec![PartStep::new(PartKind::RuntimeHeap(kind), label).by(by)]
}

fn other() -> PartStep {
    PartStep::new(PartKind::OtherAnonymous, "other anonymous")
}

const fn is_multiple(value: u64, of: u64) -> bool {
    value.is_multiple_of(of)
}

/// Finds the Java heap: all anonymous memory between 256 MiB and 32 GiB of address, or else the longest run of unnamed
/// neighbours, with and without access.
fn java_heap<'a>(mappings: impl Iterator<Item = &'a Mapping>) -> Option<std::ops::Range<u64>> {
    /// Programs that are not position-independent lie below.
    const LOW: u64 = 0x1000_0000;
    /// A heap that is smaller is not recognised by its length.
    const RUN_MIN: u64 = 64 << 20;
    let mut low: Option<std::ops::Range<u64>> = None;
    let mut longest = 0..0;
    let mut run = 0..0;
    let plain = |one: &&Mapping| {
        one.is_anonymous() && one.name.is_empty() && !one.access.execute && !one.access.shared
    };
    for mapping in mappings.filter(plain) {
        let range = mapping.range.clone();
        if range.start >= LOW && range.end <= COMPRESSED_POINTERS_END {
            let start = low.map_or(range.start, |low| low.start);
            low = Some(start..range.end);
        }
        let start = if range.start == run.end { run.start } else { range.start };
        run = start..range.end;
        if run.end - run.start > longest.end - longest.start {
            longest = run.clone();
        }
    }
    low.or_else(|| (longest.end - longest.start >= RUN_MIN).then_some(longest))
}
