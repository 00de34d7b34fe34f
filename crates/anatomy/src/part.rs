//! A process's memory as a tree of parts. Costs are at the leaves; every other part is the sum of its parts.

use std::borrow::Cow;
use std::collections::HashMap;

use units::Bytes;

use crate::allocator::AllocatorKind;
use crate::sizes::PartSizes;

/// What a part is.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PartKind {
    /// The whole process.
    Process,
    /// glibc's malloc: its arenas, and large chunks with a mapping each.
    MallocHeap,
    /// The main arena: the program break.
    MallocMain,
    /// Arenas of threads.
    MallocThreadArenas,
    /// Large chunks with a mapping each.
    MallocMapped,
    /// The program break (`[heap]`), if glibc's malloc does not own it.
    ProgramBreak,
    /// The heap of a runtime or of another allocator.
    RuntimeHeap(AllocatorKind),
    /// The pages of a database that it keeps in memory of its own.
    BufferPool,
    /// Machine code that a runtime makes while it runs.
    JitCode,
    Stacks,
    /// The first thread's stack.
    MainStack,
    /// Stacks of the other threads.
    ThreadStacks,
    /// Memory guarded like a stack in which no thread's stack pointer lies.
    IdleStacks,
    /// The program's own file.
    Program,
    Libraries,
    Library,
    /// Machine code of a file.
    Text,
    /// Constants of a file, and data that was made read-only.
    ReadOnlyData,
    /// Variables of a file, including its zeroed data (`.bss`).
    Data,
    /// All files that are mapped as data.
    MappedFiles,
    MappedFile,
    /// All shared memory: tmpfs, System V, `memfd`, anonymous shared memory.
    SharedMemory,
    /// A file of tmpfs or `/dev/shm`.
    TmpfsFile,
    /// A `memfd`.
    Memfd,
    /// A System V segment.
    SystemV,
    /// Shared memory without a file.
    SharedAnonymous,
    /// Pages of hugetlbfs, outside of RSS.
    Hugetlb,
    /// Anonymous memory that malloc does not own.
    OtherAnonymous,
    /// Memory that a driver maps.
    Device,
    /// Mappings of the kernel's own: `[vdso]`, `[vvar]`.
    Kernel,
    /// Address space without access: reserved, it costs nothing.
    Reserved,
    /// Small parts of one kind together.
    Others,
    /// Mappings beyond the number that is examined one by one.
    NotExamined,
}

/// How sure it is what a part is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Certainty {
    /// The owner is unknown.
    Unknown,
    /// Its shape and its place fit, and nothing contradicts.
    Likely,
    /// The kernel, or the owner's own structures, name it.
    Certain,
}

/// A part of a process's memory.
#[derive(Debug, Clone, PartialEq)]
pub struct ProcessPart {
    /// What it is.
    pub kind: PartKind,
    /// Its name: text of this program, a path or a name that the process chose. Not made harmless for a terminal.
    pub label: String,
    /// How sure that is; of a sum, the least sure of its parts.
    pub certainty: Certainty,
    /// By what it was recognised.
    pub recognised_by: String,
    /// Its costs.
    pub sizes: PartSizes,
    /// How many mappings it has, or pieces of one.
    pub mappings: usize,
    /// Its parts, the largest first; empty for a leaf.
    pub parts: Vec<ProcessPart>,
}

impl ProcessPart {
    fn new(step: &PartStep) -> Self {
        Self {
            kind: step.kind,
            label: step.label.clone().into_owned(),
            certainty: Certainty::Certain,
            recognised_by: step.recognised_by.clone().into_owned(),
            sizes: PartSizes::default(),
            mappings: 0,
            parts: Vec::new(),
        }
    }

    /// Returns what is in RAM of it, each page once: ZGC maps each page of its heap up to three times, and RSS counts each of
    /// these. Shared with nobody else, its share by users is its size.
    pub fn once(&self) -> Bytes {
        match self.kind {
            PartKind::RuntimeHeap(AllocatorKind::Jvm) if self.label == ZGC_LABEL => self.sizes.pss,
            _ if self.parts.is_empty() => self.sizes.rss,
            _ => self.parts.iter().map(Self::once).sum(),
        }
    }

    /// Calls `each` for every leaf.
    pub fn each_leaf<'a>(&'a self, each: &mut dyn FnMut(&'a ProcessPart)) {
        if self.parts.is_empty() {
            each(self);
        }
        for part in &self.parts {
            part.each_leaf(each);
        }
    }

    /// Returns the first part of a kind, itself included, at any depth.
    pub fn find(&self, kind: PartKind) -> Option<&ProcessPart> {
        if self.kind == kind {
            return Some(self);
        }
        self.parts.iter().find_map(|part| part.find(kind))
    }

    /// Sums its parts, sorts them, and joins the smallest of more than [`PARTS_MAX`].
    fn sum_up(&mut self) {
        if self.parts.is_empty() {
            return;
        }
        for part in &mut self.parts {
            part.sum_up();
        }
        let weight = |part: &ProcessPart| {
            let sizes = &part.sizes;
            let resident = sizes.rss + sizes.hugetlb;
            (resident, sizes.swap, sizes.virtual_size)
        };
        self.parts.sort_by_key(|part| std::cmp::Reverse(weight(part)));
        self.join_smallest();
        for part in &self.parts {
            self.sizes.add(&part.sizes);
            self.mappings += part.mappings;
            self.certainty = self.certainty.min(part.certainty);
        }
    }

    fn join_smallest(&mut self) {
        if self.parts.len() <= PARTS_MAX {
            return;
        }
        let small = self.parts.split_off(PARTS_MAX - 1);
        let mut others = Self::new(&PartStep::new(PartKind::Others, "others"));
        others.recognised_by = self.recognised_by.clone();
        for part in &small {
            others.sizes.add(&part.sizes);
            others.mappings += part.mappings;
            others.certainty = others.certainty.min(part.certainty);
        }
        others.label = format!("{} others", small.len());
        self.parts.push(others);
    }
}

/// What ZGC's heap is called.
pub(crate) const ZGC_LABEL: &str = "Java heap (ZGC)";
/// A part has at most this many parts.
pub(crate) const PARTS_MAX: usize = 64;

/// One step on the way from the process to a leaf.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PartStep {
    pub(crate) kind: PartKind,
    pub(crate) label: Cow<'static, str>,
    pub(crate) recognised_by: Cow<'static, str>,
}

impl PartStep {
    pub(crate) fn new(kind: PartKind, label: impl Into<Cow<'static, str>>) -> Self {
        Self { kind, label: label.into(), recognised_by: Cow::Borrowed("") }
    }

    pub(crate) fn by(mut self, evidence: impl Into<Cow<'static, str>>) -> Self {
        self.recognised_by = evidence.into();
        self
    }
}

/// Where a piece of memory belongs: the steps to its leaf, and how sure that is.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) steps: Vec<PartStep>,
    pub(crate) certainty: Certainty,
}

impl Place {
    pub(crate) fn certain(steps: impl IntoIterator<Item = PartStep>) -> Self {
        Self::new(steps, Certainty::Certain)
    }

    pub(crate) fn likely(steps: impl IntoIterator<Item = PartStep>) -> Self {
        Self::new(steps, Certainty::Likely)
    }

    pub(crate) fn new(steps: impl IntoIterator<Item = PartStep>, certainty: Certainty) -> Self {
        Self { steps: steps.into_iter().collect(), certainty }
    }
}

/// Adds pieces to a tree.
pub(crate) struct TreeBuilder {
    root: PartNode,
}

struct PartNode {
    part: ProcessPart,
    children: Vec<PartNode>,
    index: HashMap<(PartKind, String), usize>,
}

impl PartNode {
    fn new(step: &PartStep) -> Self {
        Self { part: ProcessPart::new(step), children: Vec::new(), index: HashMap::new() }
    }

    fn child(&mut self, step: &PartStep) -> &mut Self {
        let key = (step.kind, step.label.clone().into_owned());
        let next = self.children.len();
        let at = *self.index.entry(key).or_insert(next);
        if at == next {
            self.children.push(Self::new(step));
        }
        &mut self.children[at]
    }

    fn into_part(self) -> ProcessPart {
        let mut part = self.part;
        part.parts = self.children.into_iter().map(Self::into_part).collect();
        // A part that is also the place of pieces keeps them in a leaf of its own.
        if !part.parts.is_empty() && part.mappings > 0 {
            let mut own = part.clone();
            own.parts.clear();
            part.sizes = PartSizes::default();
            part.mappings = 0;
            part.certainty = Certainty::Certain;
            part.parts.push(own);
        }
        part
    }
}

impl TreeBuilder {
    pub(crate) fn new() -> Self {
        let step = PartStep::new(PartKind::Process, "process");
        Self { root: PartNode::new(&step) }
    }

    pub(crate) fn add(&mut self, place: &Place, sizes: &PartSizes, mappings: usize) {
        let mut node = &mut self.root;
        for step in &place.steps {
            node = node.child(step);
        }
        node.part.sizes.add(sizes);
        node.part.mappings += mappings;
        node.part.certainty = node.part.certainty.min(place.certainty);
    }

    pub(crate) fn finish(self) -> ProcessPart {
        let mut root = self.root.into_part();
        root.sum_up();
        root
    }
}

/// The bytes of every part of a kind, wherever it is in the tree.
pub(crate) fn resident_of(part: &ProcessPart, wanted: &dyn Fn(PartKind) -> bool) -> Bytes {
    if wanted(part.kind) {
        return part.sizes.rss;
    }
    let parts = part.parts.iter();
    parts.map(|part| resident_of(part, wanted)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_rss(kib: u64) -> PartSizes {
        PartSizes { rss: Bytes::from_kib(kib), ..PartSizes::default() }
    }

    #[test]
    fn a_part_is_the_sum_of_its_parts_and_as_sure_as_the_least_sure() {
        let mut tree = TreeBuilder::new();
        let stacks = || PartStep::new(PartKind::Stacks, "stacks");
        let main = PartStep::new(PartKind::MainStack, "main").by("its name");
        let thread = PartStep::new(PartKind::ThreadStacks, "threads");
        tree.add(&Place::certain([stacks(), main]), &of_rss(4), 1);
        tree.add(&Place::likely([stacks(), thread.clone()]), &of_rss(8), 1);
        tree.add(&Place::certain([stacks(), thread]), &of_rss(8), 1);
        let root = tree.finish();
        let stacks = root.find(PartKind::Stacks).unwrap();
        assert_eq!(stacks.sizes.rss, Bytes::from_kib(20));
        assert_eq!((stacks.mappings, stacks.certainty), (3, Certainty::Likely));
        assert_eq!(stacks.parts[0].kind, PartKind::ThreadStacks, "the largest");
        assert_eq!(root.find(PartKind::MainStack).unwrap().recognised_by, "its name");
    }

    #[test]
    fn thousands_of_files_are_a_bounded_number_of_parts() {
        let mut tree = TreeBuilder::new();
        for n in 0..5_000 {
            let file = PartStep::new(PartKind::MappedFile, format!("/data/{n}"));
            tree.add(
                &Place::certain([PartStep::new(PartKind::MappedFiles, "files"), file]),
                &of_rss(n),
                1,
            );
        }
        let root = tree.finish();
        let files = &root.parts[0];
        assert_eq!(files.parts.len(), PARTS_MAX);
        assert_eq!(files.sizes.rss, Bytes::from_kib((0..5_000).sum()));
        assert_eq!(files.mappings, 5_000);
        assert!(files.parts.iter().any(|part| part.label == "4937 others"));
    }
}
