use super::*;
use crate::accounting::account;
use proptest::prelude::*;
use timeline::cgroup::ContainerNames;
use timeline::facts::MemoryMount;
use timeline::{
    Facts, HugePool, PageCallSite, ProcessHoldings, Sample, SharedKind, SharedMeasure,
    SharedMemory, SharedObject, Timeline, VmallocCaller,
    signals::{
        HUGEPAGE_SIZE, MEM_ANON, MEM_BUFFERS, MEM_FREE, MEM_HUGETLB, MEM_KERNEL_STACK,
        MEM_PAGE_TABLES, MEM_PERCPU, MEM_SHMEM, MEM_SLAB_RECLAIMABLE, MEM_SLAB_UNRECLAIMABLE,
        MEM_TOTAL, MEM_VMALLOC_USED, PROC_PSS_ANON, PROC_PSS_SHMEM, PROC_RSS_ANON, PROC_RSS_SHMEM,
        SLAB_PAGES, SWAP_FREE, SWAP_TOTAL, ZFS_ARC, ZFS_ARC_DATA,
    },
};
use units::{PageSize, Span};

pub(super) fn host() -> Sample {
    let mut sample = Sample::at(Span::ZERO);
    for (signal, mib) in [
        (MEM_TOTAL, 1000),
        (MEM_FREE, 100),
        (MEM_ANON, 400),
        (MEM_CACHED, 300),
        (MEM_BUFFERS, 10),
        (MEM_SHMEM, 50),
        (MEM_SLAB_RECLAIMABLE, 60),
        (MEM_SLAB_UNRECLAIMABLE, 40),
        (MEM_KERNEL_STACK, 5),
        (MEM_PAGE_TABLES, 15),
        (MEM_DIRTY, 7),
    ] {
        sample.host.set(signal, Bytes::from_mib(mib));
    }
    sample
}

fn tree_of(sample: &Sample, facts: &Facts) -> MemoryNode {
    tree_with(sample, facts, &Inventory::default())
}

pub(super) fn tree_with(sample: &Sample, facts: &Facts, inventory: &Inventory) -> MemoryNode {
    let mut timeline = Timeline::default();
    timeline.push(sample).unwrap();
    let cx = Evidence::new(&timeline, facts);
    account(&cx, 0).unwrap().tree(&cx, inventory)
}

pub(super) fn child<'a>(node: &'a MemoryNode, label: &str) -> &'a MemoryNode {
    let found = node.children.iter().find(|n| n.label == label);
    found.unwrap_or_else(|| panic!("no {label} in {node:#?}"))
}

pub(super) fn sizes(node: &MemoryNode) -> Vec<(&str, u64)> {
    let parts = node.children.iter();
    parts.map(|part| (part.label.as_str(), part.bytes.get() >> 20)).collect()
}

pub(super) fn facts() -> Facts {
    let mut facts = Facts::default();
    facts.page_size = PageSize::from_bytes(4096);
    facts
}

#[test]
fn the_branches_add_up_to_memtotal() {
    let tree = tree_of(&host(), &facts());
    let sum: Bytes = tree.children.iter().map(|n| n.bytes).sum();
    assert_eq!(sum, Bytes::from_mib(1000));
    assert_eq!(child(&tree, "page cache").bytes, Bytes::from_mib(260));
    assert!(child(&tree, "page cache").note.contains("7 MiB dirty"));
    assert_eq!(child(&tree, "kernel").bytes, Bytes::from_mib(120));
}

#[test]
fn anonymous_memory_is_divided_among_services_and_says_how() {
    let mut sample = host();
    for (key, group, pss) in [("1@1", "web.service", 100), ("2@1", "web.service", 50)] {
        let row = sample.table_mut(Entity::Process).entry(key);
        row.group.push_str(group);
        row.row.set(PROC_RSS_ANON, Bytes::from_mib(140));
        row.row.set(PROC_PSS_ANON, Bytes::from_mib(pss));
    }
    let row = sample.table_mut(Entity::Process).entry("3@1");
    row.label.push_str("hog");
    row.row.set(PROC_RSS_ANON, Bytes::from_mib(20));
    let tree = tree_of(&sample, &facts());
    let anonymous = child(&tree, "anonymous");
    assert_eq!(anonymous.note, "by PSS");
    assert_eq!(sizes(anonymous), [("web.service", 150), (REST, 250)]);
    let rest = child(anonymous, REST);
    assert_eq!(rest.kind, SizeKind::Remainder);
    assert!(rest.note.contains("only RSS was read of hog (20 MiB)"), "{}", rest.note);
}

#[test]
fn a_container_that_owns_memory_is_called_by_its_name() {
    let id = "a59e4e7d3090c04c6ce5a4b7a8bc85228eb9b96ac00b1284643a8c7c11dda661";
    let mut sample = host();
    let row = sample.table_mut(Entity::Process).entry("1@1");
    let scope = format!("docker-{id}.scope");
    row.group.push_str(&scope);
    row.row.set(PROC_RSS_ANON, Bytes::from_mib(300));
    let mut facts = facts();
    let label = |facts: &Facts| {
        let tree = tree_with(&sample, facts, &Inventory::default());
        child(&tree, "anonymous").children[0].label.clone()
    };
    assert_eq!(label(&facts), "docker a59e4e7d3090");
    let named = ContainerNames { name: "web".to_owned(), pod: None };
    facts.names.containers.insert(scope, named);
    assert_eq!(label(&facts), "web (docker a59e4e7d3090)");
}

#[test]
fn resident_sets_that_exceed_anonymous_memory_are_scaled_and_estimates() {
    let mut sample = host();
    for (key, mib) in [("1@1", 600), ("2@1", 200)] {
        let row = sample.table_mut(Entity::Process).entry(key);
        row.label.push_str(key);
        row.row.set(PROC_RSS_ANON, Bytes::from_mib(mib));
    }
    let tree = tree_of(&sample, &facts());
    let anonymous = child(&tree, "anonymous");
    assert_eq!(sizes(anonymous), [("1@1", 300), ("2@1", 100)]);
    let is_estimate = |part: &MemoryNode| part.kind == SizeKind::Estimate;
    assert!(anonymous.children.iter().all(is_estimate));
    assert!(anonymous.note.contains("800 MiB"), "{}", anonymous.note);
}

#[test]
fn slab_names_its_caches_and_shared_memory_its_mounts() {
    let mut sample = host();
    let row = sample.table_mut(Entity::Slab).entry("dentry");
    row.row.set(SLAB_PAGES, Pages::new(30 * 256));
    let mut facts = facts();
    facts.memory_mounts.push(MemoryMount {
        point: "/dev/shm".to_owned(),
        kind: "tmpfs".to_owned(),
        size: Some(Bytes::from_mib(500)),
    });
    let tree = tree_of(&sample, &facts);
    let slab = child(child(&tree, "kernel"), "slab");
    assert_eq!(sizes(slab), [("dentry", 30), ("smaller caches", 70)]);
    let shared = child(&tree, "shared memory");
    assert_eq!(shared.note, "files in /dev/shm (tmpfs, at most 500 MiB)");
}

#[test]
fn counters_that_exceed_memtotal_are_reduced_to_it() {
    for (total, kind, words) in
        [(925, SizeKind::Measured, "they drift"), (440, SizeKind::Estimate, "add up to 930 MiB")]
    {
        let mut sample = host();
        sample.host.set(MEM_TOTAL, Bytes::from_mib(total));
        let tree = tree_of(&sample, &facts());
        let sum: Bytes = tree.children.iter().map(|n| n.bytes).sum();
        assert_eq!(sum, Bytes::from_mib(total));
        assert_eq!(child(&tree, "free").kind, kind);
        let rest = child(&tree, "unaccounted");
        assert_eq!(rest.bytes, Bytes::ZERO);
        assert!(rest.note.contains(words), "{}", rest.note);
    }
}

#[test]
fn the_output_of_free_is_not_called_unaccounted() {
    let mut sample = Sample::at(Span::ZERO);
    for (signal, mib) in [(MEM_TOTAL, 1000), (MEM_FREE, 100), (MEM_CACHED, 300)] {
        sample.host.set(signal, Bytes::from_mib(mib));
    }
    let tree = tree_of(&sample, &Facts::default());
    let rest = child(&tree, "not broken down");
    assert_eq!(rest.bytes, Bytes::from_mib(600));
    assert!(rest.note.contains("mem.anon"));
}

#[test]
fn what_must_not_be_added_up_is_explained_with_the_hosts_numbers() {
    let mut sample = host();
    sample.host.set(MEM_ANON_HUGE, Bytes::from_mib(120));
    let mut timeline = Timeline::default();
    timeline.push(&sample).unwrap();
    let facts = facts();
    let cx = Evidence::new(&timeline, &facts);
    let accounting = account(&cx, 0).unwrap();
    let texts = accounting.explanations(&cx, &Inventory::default()).join("\n");
    assert!(texts.contains("Cached (300 MiB) contains 50 MiB"), "{texts}");
    assert!(texts.contains("AnonHugePages (120 MiB)"), "{texts}");
    assert!(!texts.contains("SwapCached"), "{texts}");
}

fn adds_up(node: &MemoryNode) -> bool {
    let sum: u128 = node.children.iter().map(|n| u128::from(n.bytes.get())).sum();
    let is_whole = node.children.is_empty() || sum == u128::from(node.bytes.get());
    is_whole && node.children.iter().all(adds_up)
}

/// Any counters, processes, caches and owners: also such as no host has.
fn any_host() -> impl Strategy<Value = (Sample, Inventory)> {
    const HOST: [Signal<Gauge<Bytes>>; 19] = [
        MEM_TOTAL,
        MEM_FREE,
        MEM_ANON,
        MEM_CACHED,
        MEM_BUFFERS,
        MEM_SHMEM,
        MEM_SLAB_RECLAIMABLE,
        MEM_SLAB_UNRECLAIMABLE,
        MEM_KERNEL_STACK,
        MEM_PAGE_TABLES,
        MEM_PERCPU,
        MEM_VMALLOC_USED,
        MEM_HUGETLB,
        MEM_SWAP_CACHED,
        SWAP_TOTAL,
        SWAP_FREE,
        HUGEPAGE_SIZE,
        ZFS_ARC,
        ZFS_ARC_DATA,
    ];
    const PROCESS: [Signal<Gauge<Bytes>>; 4] =
        [PROC_RSS_ANON, PROC_PSS_ANON, PROC_RSS_SHMEM, PROC_PSS_SHMEM];
    let size = || prop::option::of(0_u64..1 << 40);
    let sizes = |n| prop::collection::vec(size(), n);
    let host = sizes(HOST.len());
    let processes = prop::collection::vec(sizes(PROCESS.len()), 0..9);
    let owners = prop::collection::vec((0_u64..1 << 40, 0_u64..1 << 20), 0..9);
    (host, processes, owners).prop_map(|(host, processes, owners)| {
        let mut sample = Sample::at(Span::ZERO);
        for (signal, bytes) in HOST.into_iter().zip(host) {
            if let Some(bytes) = bytes {
                sample.host.set(signal, Bytes::new(bytes));
            }
        }
        for (i, sizes) in processes.into_iter().enumerate() {
            let row = sample.table_mut(Entity::Process).entry(&format!("{i}@1"));
            row.row.set(PROC_RSS, Pages::new(1));
            for (signal, bytes) in PROCESS.into_iter().zip(sizes) {
                if let Some(bytes) = bytes {
                    row.row.set(signal, Bytes::new(bytes));
                }
            }
        }
        for (i, (_, pages)) in owners.iter().enumerate() {
            let row = sample.table_mut(Entity::Slab).entry(&i.to_string());
            row.row.set(SLAB_PAGES, Pages::new(*pages));
        }
        (sample, inventory(&owners))
    })
}

fn inventory(owners: &[(u64, u64)]) -> Inventory {
    let object = |(bytes, _): &(u64, u64)| SharedObject {
        kind: SharedKind::Memfd(bytes.to_string()),
        bytes: Bytes::new(*bytes),
        measure: SharedMeasure::InRamOrSwap,
        users: 1,
        first_user: None,
    };
    let caller = |(bytes, pages): &(u64, u64)| VmallocCaller {
        name: bytes.to_string(),
        pages: Pages::new(*pages),
        areas: Count::new(1),
    };
    let pool = |(bytes, pages): &(u64, u64)| HugePool {
        page: Bytes::new(*bytes),
        total: Count::new(*pages),
        free: Count::new(*bytes),
        ..HugePool::default()
    };
    let site = |(bytes, pages): &(u64, u64)| PageCallSite {
        function: bytes.to_string(),
        bytes: Bytes::new(*pages << 12),
        ..PageCallSite::default()
    };
    let process = |(bytes, pages): &(u64, u64)| ProcessHoldings {
        gpu_pages: Bytes::new(*bytes),
        pipes: Bytes::new(*pages << 12),
        ..ProcessHoldings::default()
    };
    Inventory {
        holdings: owners.iter().map(process).collect(),
        page_call_sites: owners.iter().map(site).collect(),
        huge_pools: owners.iter().map(pool).collect(),
        vmalloc: owners.iter().map(caller).collect(),
        shared: Some(SharedMemory {
            objects: owners.iter().map(object).collect(),
            ..SharedMemory::default()
        }),
        ..Inventory::default()
    }
}

proptest! {
    #[test]
    fn every_level_adds_up((sample, inventory) in any_host()) {
        let mut timeline = Timeline::default();
        timeline.push(&sample).unwrap();
        let facts = facts();
        let cx = Evidence::new(&timeline, &facts);
        for inventory in [&inventory, &Inventory::default()] {
            if let Ok(accounting) = account(&cx, 0) {
                let tree = accounting.tree(&cx, inventory);
                prop_assert!(adds_up(&tree), "{tree:#?}");
            }
        }
    }
}
