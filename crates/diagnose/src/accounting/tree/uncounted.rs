//! Owners of what no counter has: objects that were searched for, the ARC of ZFS, and call sites in the kernel that took
//! whole pages.
//!
//! A call site may be in slab (kmalloc of pages), vmalloc or per-CPU memory, and then it is counted. Its memory is of one
//! kind, as it is one call in the source. So it is in no counter if it is larger than all that could be of it in each.

use timeline::{Inventory, PageCallSite};
use units::Bytes;

use super::{MemoryNode, REST, TermKind, and_others, holdings};
use crate::accounting::Accounting;
use crate::evidence::Evidence;
use crate::measures::{arc, slab};

/// Less is not worth a line.
const OWNER_MIN: Bytes = Bytes::from_mib(4);
/// The modules that allocate the ARC of ZFS.
const ARC_MODULES: [&str; 2] = ["zfs", "spl"];
/// The module that allocates buffers for drivers of GPUs.
const GPU_MODULE: &str = "ttm";
/// At most 3 call sites in a note.
const NOTED_MAX: usize = 3;

impl Accounting {
    /// Divides the remainder of MemTotal among its owners.
    pub(super) fn divide_unaccounted(
        &self,
        cx: &Evidence<'_>,
        inventory: &Inventory,
        rest: &mut MemoryNode,
    ) {
        if self.unaccounted_bytes <= 0 || !self.is_broken_down() {
            return;
        }
        rest.children = holdings::uncounted_objects(&inventory.holdings);
        let arc = self.arc(cx, rest.lacks());
        let has_gpus = holdings::has_gpu_buffers(&inventory.holdings);
        let is_named = |site: &PageCallSite| {
            let module = site.module.as_str();
            arc.is_some() && ARC_MODULES.contains(&module) || has_gpus && module == GPU_MODULE
        };
        let sites = inventory.page_call_sites.iter();
        let sites: Vec<&PageCallSite> = sites
            .filter(|site| (OWNER_MIN..=self.total).contains(&site.bytes) && !is_named(site))
            .collect();
        rest.children.extend(arc);
        let counted_max = self.counted_max(cx, inventory);
        let (mut uncounted, mut perhaps) = (Vec::new(), Vec::new());
        let mut room = rest.lacks();
        for site in sites {
            if counted_max.is_some_and(|max| site.bytes > max) && site.bytes <= room {
                room = room.saturating_sub(site.bytes);
                uncounted.push(node_of(site));
            } else {
                perhaps.push(site);
            }
        }
        let (named, others) = self.largest(&uncounted, Self::NAMED);
        rest.children.extend(named.iter().cloned());
        rest.children.sort_by_key(|owner| std::cmp::Reverse(owner.bytes));
        let others = super::others(others.len(), others.iter().map(|node| node.bytes).sum());
        rest.children.extend(others.map(|others| others.estimated(true)));
        rest.note_also(&in_words(&perhaps));
        if !rest.children.is_empty() {
            let owners = std::mem::take(&mut rest.note);
            rest.complete(MemoryNode::new(REST, Bytes::ZERO).noted(owners));
        }
    }

    /// Returns the pages of the ARC of ZFS, as far as no counter has them. Some versions keep metadata in slab.
    fn arc(&self, cx: &Evidence<'_>, room: Bytes) -> Option<MemoryNode> {
        let bytes = arc::pages(cx, self.index)?.min(room);
        let kept = arc::kept(cx, self.index)
            .filter(|kept| *kept <= bytes)
            .map_or_else(String::new, |kept| format!(" to {kept}"));
        (bytes >= OWNER_MIN).then(|| {
            MemoryNode::new("ZFS's ARC", bytes)
                .noted(format!("shrinks{kept} when programs want memory"))
                .estimated(true)
        })
    }

    /// Returns the most that one call site may have in a counter: in vmalloc, per-CPU memory, what drivers call reclaimable, or
    /// the part of slab that may be of whole pages. `None` if one of them is unknown.
    fn counted_max(&self, cx: &Evidence<'_>, inventory: &Inventory) -> Option<Bytes> {
        let page = cx.facts.page_size?;
        let [percpu, in_vmalloc] =
            [TermKind::Percpu, TermKind::Vmalloc].map(|kind| self.term(kind));
        let (percpu, in_vmalloc) = (percpu?, in_vmalloc?);
        let slab =
            self.sum(&[TermKind::Slab, TermKind::SlabUnreclaimable, TermKind::SlabReclaimable]);
        // kmalloc takes what is larger than its caches from the page allocator, and slabinfo lists none of that.
        let objects = slab::caches(cx, self.index);
        let objects = objects.iter().filter(|c| !c.name.starts_with("kmalloc"));
        let slab = slab.saturating_sub(objects.map(|cache| cache.bytes).sum());
        let callers = inventory.vmalloc.iter();
        let vmalloc = callers.map(|caller| caller.pages.to_bytes(page)).max();
        let vmalloc = vmalloc.unwrap_or(in_vmalloc);
        // Only some kernels have it.
        let reclaimable = self.sum(&[TermKind::KernelReclaimable]);
        Some(percpu.max(slab).max(vmalloc).max(reclaimable))
    }
}

/// `ice_alloc_mapped_page [ice]`.
fn label_of(site: &PageCallSite) -> String {
    match site.module.as_str() {
        "" => site.function.clone(),
        module => format!("{} [{module}]", site.function),
    }
}

fn node_of(site: &PageCallSite) -> MemoryNode {
    let calls = site.calls.named("allocation", "allocations");
    // Paths are longer than a line of the tree.
    let file = site.file.rsplit('/').next().unwrap_or(&site.file);
    MemoryNode::new(label_of(site), site.bytes).noted(format!("{calls} in {file}")).estimated(true)
}

/// `call sites with most pages, some of which other lines may count: f [m] 3 MiB and 2 others`; empty without any.
fn in_words(sites: &[&PageCallSite]) -> String {
    let (named, rest) = sites.split_at(sites.len().min(NOTED_MAX));
    if named.is_empty() {
        return String::new();
    }
    let named: Vec<String> =
        named.iter().map(|site| format!("{} {}", label_of(site), site.bytes)).collect();
    let rest = and_others(rest.len() as u64);
    format!("call sites with most pages, which other lines may count: {}{rest}", named.join(", "))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{child, facts, host, sizes, tree_with};
    use super::*;
    use crate::accounting::SizeKind;
    use timeline::signals::{
        MEM_PERCPU, MEM_TOTAL, MEM_VMALLOC_USED, SLAB_PAGES, ZFS_ARC, ZFS_ARC_DATA,
        ZFS_ARC_METADATA, ZFS_ARC_MIN,
    };
    use timeline::{
        Entity, ProcessHoldings, Sample, SharedKind, SharedMeasure, SharedMemory, SharedObject,
        UserProcess, VmallocCaller,
    };
    use units::{Count, Pages};

    fn site(function: &str, module: &str, mib: u64) -> PageCallSite {
        PageCallSite {
            function: function.to_owned(),
            module: module.to_owned(),
            file: format!("drivers/{module}.c"),
            bytes: Bytes::from_mib(mib),
            calls: Count::new(mib),
        }
    }

    /// A host with 200 MiB that no counter has, 60 of 100 MiB of slab in dentries, and 60 MiB of vmalloc.
    fn busy_host() -> Sample {
        let mut sample = host();
        sample.host.set(MEM_TOTAL, Bytes::from_mib(1200));
        sample.host.set(MEM_PERCPU, Bytes::from_mib(10));
        sample.host.set(MEM_VMALLOC_USED, Bytes::from_mib(65));
        let row = sample.table_mut(Entity::Slab).entry("dentry");
        row.row.set(SLAB_PAGES, Pages::new(60 * 256));
        sample
    }

    fn unaccounted(sample: &Sample, sites: &[PageCallSite], vmalloc: u64) -> MemoryNode {
        let caller = VmallocCaller {
            name: "htab_map_alloc".to_owned(),
            pages: Pages::new(vmalloc * 256),
            areas: Count::new(1),
        };
        let inventory = Inventory {
            page_call_sites: sites.to_vec(),
            vmalloc: vec![caller],
            ..Inventory::default()
        };
        let tree = tree_with(sample, &facts(), &inventory);
        child(&tree, "unaccounted").clone()
    }

    #[test]
    fn a_call_site_that_no_counter_can_have_is_an_owner() {
        let sites = [site("rx_page", "ice", 80), site("alloc_page_ext", "", 41)];
        let node = unaccounted(&busy_host(), &sites, 30);
        let whole = node.bytes.get() >> 20;
        assert_eq!(
            sizes(&node),
            [("rx_page [ice]", 80), ("alloc_page_ext", 41), (REST, whole - 121)]
        );
        assert_eq!(node.children[0].kind, SizeKind::Estimate);
        assert_eq!(node.children[0].note, "80 allocations in ice.c");
    }

    #[test]
    fn one_that_a_counter_may_have_is_in_the_note_only() {
        let sites = [site("rx_page", "ice", 40), site("small", "", 3)];
        for (vmalloc, sites) in [(30, &sites[..]), (45, &[site("rx_page", "ice", 44)][..])] {
            let node = unaccounted(&busy_host(), sites, vmalloc);
            assert_eq!(sizes(&node), []);
            let words =
                "; call sites with most pages, which other lines may count: rx_page [ice] 4";
            assert!(node.note.contains(words), "{}", node.note);
            assert!(!node.note.contains("small"), "{}", node.note);
        }
        // Without per-CPU memory and vmalloc nothing is known of what they count.
        let node = unaccounted(&host(), &[site("rx_page", "ice", 100)], 0);
        assert_eq!(sizes(&node), []);
        assert!(node.note.contains("rx_page [ice] 100 MiB"), "{}", node.note);
    }

    #[test]
    fn call_sites_beyond_what_is_unaccounted_are_no_owners() {
        let node = unaccounted(&busy_host(), &[site("a", "", 9000), site("b", "", 50)], 30);
        assert_eq!(sizes(&node)[0], ("b", 50));
        assert_eq!(node.children.len(), 2);
    }

    #[test]
    fn the_arc_of_zfs_is_an_owner_with_what_it_keeps() {
        let mut sample = busy_host();
        sample.host.set(ZFS_ARC, Bytes::from_mib(180));
        sample.host.set(ZFS_ARC_MIN, Bytes::from_mib(30));
        sample.host.set(ZFS_ARC_DATA, Bytes::from_mib(140));
        sample.host.set(ZFS_ARC_METADATA, Bytes::from_mib(20));
        let sites = [site("abd_alloc_chunks", "zfs", 160)];
        let node = unaccounted(&sample, &sites, 30);
        let whole = node.bytes.get() >> 20;
        assert_eq!(sizes(&node), [("ZFS's ARC", 160), (REST, whole - 160)]);
        let note = "shrinks to 30 MiB when programs want memory";
        assert_eq!(node.children[0].note, note);
        assert!(!node.children[1].note.contains("ZFS"), "{node:#?}");
        // A counter has the rest: the ARC is larger than what is unaccounted.
        sample.host.set(ZFS_ARC_DATA, Bytes::from_mib(900));
        sample.host.set(ZFS_ARC, Bytes::from_mib(1000));
        let node = unaccounted(&sample, &[], 30);
        assert_eq!(sizes(&node), [("ZFS's ARC", whole)]);
        assert_eq!(node.children[0].kind, SizeKind::Estimate);
    }

    #[test]
    fn buffers_of_gpus_name_their_processes_and_not_their_allocator() {
        let process = |pid, pages, shared| ProcessHoldings {
            process: UserProcess { pid, name: "game".to_owned(), ..UserProcess::default() },
            gpu_pages: Bytes::from_mib(pages),
            gpu_shared: Bytes::from_mib(shared),
            ..ProcessHoldings::default()
        };
        let inventory = Inventory {
            holdings: vec![process(7, 90, 0), process(8, 30, 6)],
            page_call_sites: vec![site("ttm_pool_alloc_page", "ttm", 150)],
            shared: Some(SharedMemory {
                objects: vec![SharedObject {
                    kind: SharedKind::Mapping,
                    bytes: Bytes::from_mib(1),
                    measure: SharedMeasure::InRam,
                    users: 1,
                    first_user: None,
                }],
                ..SharedMemory::default()
            }),
            ..Inventory::default()
        };
        let tree = tree_with(&busy_host(), &facts(), &inventory);
        let node = child(&tree, "unaccounted");
        let whole = node.bytes.get() >> 20;
        assert_eq!(sizes(node), [("buffers of GPUs", 120), (REST, whole - 120)]);
        assert_eq!(node.children[0].note, "game (7) 90 MiB, game (8) 30 MiB");
        assert_eq!(node.children[0].kind, SizeKind::Estimate);
        let note = &child(child(&tree, "shared memory"), REST).note;
        assert!(note.ends_with("buffers of GPU drivers (≈6 MiB: game (8) 6 MiB)"), "{note}");
    }
}
