//! A process and its memory, in the terms of the report.

use anatomy::{
    Allocator, AllocatorKind, Certainty, EffectiveAllocator, FileRow, MallocProvider, PageCache,
    PartKind, PartSizes, ProcessAnatomy, ProcessPart,
};
use probe::{ProcessIdentity, ProcessLimits, Root, SoftHard};
use report::model::explain::{
    ExplainedProcess, FoundAllocator, LimitEntry, MallocCallsEntry, MappedFileEntry, MemoryPart,
    ProcessSizes,
};
use units::{Bytes, Limit};

pub(super) fn process(anatomy: &ProcessAnatomy) -> ExplainedProcess {
    let identity = &anatomy.identity;
    ExplainedProcess {
        pid: identity.pid,
        namespace_pid: inner_pid(identity),
        name: lossy(&identity.name),
        program: identity.program.as_deref().map(lossy),
        is_program_deleted: identity.is_program_deleted,
        service: identity.service.clone(),
        cgroup: identity.cgroup.clone(),
        age_s: identity.age,
        threads: identity.facts.threads,
        oom_score: identity.oom_score,
        oom_score_adj: identity.oom_score_adj,
        thp_enabled: identity.facts.thp_enabled,
        memory_variables: anatomy
            .memory_variables
            .as_ref()
            .map(|all| all.iter().map(|one| one.name).collect()),
        memory_values: anatomy
            .memory_variables
            .iter()
            .flatten()
            .filter_map(|one| Some((one.name, one.value.clone()?)))
            .collect(),
        ignores_variables: anatomy.ignores_variables,
        limits: anatomy.limits.as_ref().map(limits),
    }
}

fn inner_pid(identity: &ProcessIdentity) -> Option<u32> {
    let pids = &identity.facts.namespace_pids;
    pids.last().copied().filter(|inner| *inner != identity.pid)
}

fn limits(limits: &ProcessLimits) -> Vec<LimitEntry> {
    let named = [
        ("address-space", limits.address_space),
        ("data", limits.data),
        ("stack", limits.stack),
        ("locked", limits.locked),
    ];
    let entry = |(name, limit): (&'static str, Option<SoftHard>)| match limit?.soft {
        Limit::Bytes(size) => Some(LimitEntry { name, bytes: size }),
        Limit::Unlimited => None,
    };
    named.into_iter().filter_map(entry).collect()
}

pub(super) fn sizes(anatomy: &ProcessAnatomy) -> ProcessSizes {
    let sizes = &anatomy.sizes;
    let whole = &anatomy.anatomy.root.sizes;
    ProcessSizes {
        vss_bytes: sizes.vss,
        rss_bytes: sizes.rss,
        ram_bytes: anatomy.anatomy.root.once(),
        pss_bytes: sizes.pss,
        uss_bytes: sizes.uss,
        swap_bytes: sizes.swap,
        never_touched_bytes: sizes.never_touched,
        without_access_bytes: sizes.without_access,
        shared_bytes: sizes.shared,
        hugetlb_bytes: sizes.hugetlb,
        huge_bytes: whole.huge,
        anonymous_bytes: whole.anonymous,
    }
}

/// The tree, without what costs nothing but address space.
pub(super) fn part(part: &ProcessPart) -> MemoryPart {
    let costs = |sizes: &PartSizes| sizes.rss + sizes.swap + sizes.hugetlb > Bytes::ZERO;
    let parts = part.parts.iter().filter(|one| costs(&one.sizes));
    MemoryPart {
        label: part.label.clone(),
        is_malloc_heap: part.kind == PartKind::MallocHeap,
        rss_bytes: part.sizes.rss,
        ram_bytes: part.once(),
        pss_bytes: part.sizes.pss,
        uss_bytes: part.sizes.uss,
        swap_bytes: part.sizes.swap,
        huge_bytes: part.sizes.huge,
        hugetlb_bytes: part.sizes.hugetlb,
        virtual_bytes: part.sizes.virtual_size,
        mappings: part.mappings as u64,
        owner: match part.kind {
            PartKind::RuntimeHeap(kind) => Some(kind.id()),
            PartKind::MallocHeap => Some(AllocatorKind::Ptmalloc.id()),
            PartKind::BufferPool => Some("innodb"),
            _ => None,
        },
        certainty: match part.certainty {
            Certainty::Certain => "certain",
            Certainty::Likely => "likely",
            Certainty::Unknown => "unknown",
        },
        recognised_by: part.recognised_by.clone(),
        parts: parts.map(self::part).collect(),
    }
}

pub(super) fn allocator(one: &Allocator) -> FoundAllocator {
    FoundAllocator {
        name: one.kind.name().to_owned(),
        version: one.version.clone(),
        file: one.file.clone(),
        evidence: one.evidence.clone(),
    }
}

pub(super) fn malloc_calls(seen: &EffectiveAllocator) -> Vec<MallocCallsEntry> {
    let entry = |provider: &MallocProvider| MallocCallsEntry {
        name: provider.kind().map(|kind| kind.name().to_owned()),
        version: provider.file().and_then(|file| file.version.clone()),
        file: provider.file().map(|file| file.path.clone()),
        callers: provider.callers.len() as u64,
    };
    seen.providers.iter().map(entry).collect()
}

/// Other users of a file are named up to this number.
const NAMES_MAX: usize = 4;

pub(super) fn file(root: &Root, row: &FileRow) -> MappedFileEntry {
    let cached = match row.cached {
        PageCache::Known(cached) => Some(cached.cached),
        PageCache::NotPermitted | PageCache::NotAsked => None,
    };
    MappedFileEntry {
        name: lossy(&row.name),
        is_deleted: row.is_deleted,
        rss_bytes: row.sizes.rss,
        pss_bytes: row.sizes.pss,
        cached_bytes: cached,
        length_bytes: row.length,
        other_users: row.users.as_ref().map(|users| users.count as u64),
        other_names: row.users.as_ref().map_or_else(Vec::new, |users| names(root, &users.first)),
    }
}

/// Returns the names of processes, each once.
fn names(root: &Root, pids: &[u32]) -> Vec<String> {
    let mut names = Vec::new();
    for pid in pids.iter().take(NAMES_MAX) {
        // A process that ended meanwhile has no name.
        let comm = root.read(&format!("/proc/{pid}/comm")).unwrap_or_default();
        let name = lossy(comm.trim_ascii_end());
        if !name.is_empty() && !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
