//! The kernel's own memory: slab by cache, vmalloc by caller, and counters without parts.

use timeline::{Inventory, VmallocCaller};
use units::Bytes;

use super::{MemoryNode, REST, others};
use crate::accounting::{Accounting, TermKind};
use crate::evidence::Evidence;
use crate::measures::slab;

impl Accounting {
    pub(super) fn kernel(&self, cx: &Evidence<'_>, inventory: &Inventory) -> Option<MemoryNode> {
        const PARTS: [TermKind; 3] =
            [TermKind::Percpu, TermKind::KernelReclaimable, TermKind::Bounce];
        let divided = [
            self.slab(cx),
            self.vmalloc(cx, &inventory.vmalloc),
            self.page_tables(&inventory.holdings),
            self.kernel_stacks(cx.facts.page_size, &inventory.holdings),
        ];
        let parts = PARTS.into_iter().map(|kind| self.leaf(kind));
        let mut parts: Vec<MemoryNode> = divided.into_iter().chain(parts).flatten().collect();
        parts.retain(|part| part.bytes > Bytes::ZERO);
        parts.sort_by_key(|part| std::cmp::Reverse(part.bytes));
        let mut node = MemoryNode::new("kernel", parts.iter().map(|part| part.bytes).sum());
        node.children = parts;
        Some(node)
    }

    /// Returns slab by cache. slabinfo lists no allocation of kmalloc that is too large for a cache, and a source has the
    /// largest caches only.
    fn slab(&self, cx: &Evidence<'_>) -> Option<MemoryNode> {
        let bytes =
            self.known(&[TermKind::Slab, TermKind::SlabUnreclaimable, TermKind::SlabReclaimable])?;
        let mut node = MemoryNode::new("slab", bytes);
        if let Some(reclaimable) = self.term(TermKind::SlabReclaimable) {
            node.note = format!("{reclaimable} reclaimable");
        }
        let caches = slab::caches(cx, self.index);
        let (named, rest) = self.largest(&caches, Self::NAMED);
        let named = named.iter().map(|c| MemoryNode::new(c.name.clone(), c.bytes));
        node.children.extend(named);
        let others = others(rest.len(), rest.iter().map(|c| c.bytes).sum());
        node.children.extend(others);
        node.complete(
            MemoryNode::new("smaller caches", Bytes::ZERO)
                .noted("and what kmalloc allocates outside caches, as it is larger"),
        );
        Some(node)
    }

    /// Returns vmalloc by calling function. Stacks of threads are a term of their own.
    fn vmalloc(&self, cx: &Evidence<'_>, callers: &[VmallocCaller]) -> Option<MemoryNode> {
        let mut node = self.leaf(TermKind::Vmalloc)?;
        let Some(page) = cx.facts.page_size else {
            return Some(node);
        };
        let (named, rest) = self.largest(callers, Self::NAMED);
        let named = named.iter().map(|caller| {
            let areas = caller.areas.named("area", "areas");
            MemoryNode::new(caller.name.clone(), caller.pages.to_bytes(page)).noted(areas)
        });
        node.children.extend(named);
        let rest_bytes = rest.iter().map(|caller| caller.pages.to_bytes(page)).sum();
        node.children.extend(others(rest.len(), rest_bytes));
        node.complete(
            MemoryNode::new(REST, Bytes::ZERO).noted("stacks of ended threads, kept for new ones"),
        );
        Some(node)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{child, facts, host, sizes, tree_with};
    use super::*;
    use timeline::signals::{MEM_PERCPU, MEM_VMALLOC_USED};
    use units::{Count, Pages};

    #[test]
    fn vmalloc_names_its_callers() {
        let mut sample = host();
        sample.host.set(MEM_PERCPU, Bytes::ZERO);
        // Of these, 5 MiB are kernel stacks.
        sample.host.set(MEM_VMALLOC_USED, Bytes::from_mib(45));
        let caller = |i: u64| VmallocCaller {
            name: format!("caller_{i}"),
            pages: Pages::new((10 - i) * 256),
            areas: Count::new(i),
        };
        let inventory =
            Inventory { vmalloc: (1..=6).map(caller).collect(), ..Inventory::default() };
        let tree = tree_with(&sample, &facts(), &inventory);
        let vmalloc = child(child(&tree, "kernel"), "vmalloc");
        assert_eq!(vmalloc.bytes, Bytes::from_mib(40));
        assert_eq!(
            sizes(vmalloc),
            [
                ("caller_1", 9),
                ("caller_2", 8),
                ("caller_3", 7),
                ("caller_4", 6),
                ("caller_5", 5),
                ("1 other", 4),
                (REST, 1),
            ]
        );
        assert_eq!(vmalloc.children[0].note, "1 area");
    }
}
