//! Pools of huge pages: by page size if all pools were read, else used and unused pages of all sizes.

use timeline::signals::{HUGEPAGE_SIZE, HUGEPAGES_RSVD};
use timeline::{HugePool, Inventory};
use units::{Bytes, Count};

use super::{MemoryNode, REST, holdings};
use crate::accounting::{Accounting, TermKind};
use crate::evidence::Evidence;

impl Accounting {
    pub(super) fn huge_pages(
        &self,
        cx: &Evidence<'_>,
        inventory: &Inventory,
    ) -> Option<MemoryNode> {
        let bytes = self.known(&[TermKind::HugetlbUsed, TermKind::HugetlbUnused])?;
        let mut node = MemoryNode::new("huge pages", bytes);
        let pools = inventory.huge_pools.iter();
        node.children = pools.filter(|pool| pool.total > Count::ZERO).map(of_pool).collect();
        if node.children.is_empty() {
            self.used_and_unused(cx, &mut node);
        } else {
            node.children.sort_by_key(|pool| std::cmp::Reverse(pool.bytes));
        }
        node.complete(MemoryNode::new(REST, Bytes::ZERO));
        let mapped = holdings::most(&inventory.holdings, |process| process.huge_pages);
        if let Some(mapped) = mapped {
            node.note_also(&format!("mapped by {mapped}"));
        }
        Some(node)
    }

    fn used_and_unused(&self, cx: &Evidence<'_>, node: &mut MemoryNode) {
        node.children.extend(self.leaf(TermKind::HugetlbUsed));
        let promised = cx
            .timeline
            .at(HUGEPAGES_RSVD, self.index)
            .zip(cx.timeline.at(HUGEPAGE_SIZE, self.index))
            .map(|(n, size)| Bytes::new(size.get().saturating_mul(n.get())))
            .filter(|promised| *promised > Bytes::ZERO)
            .map_or_else(String::new, promised_in_words);
        let unused = self.leaf(TermKind::HugetlbUnused);
        node.children.extend(unused.map(|n| n.noted(promised)));
    }
}

fn promised_in_words(promised: Bytes) -> String {
    format!("{promised} of it promised to mappings")
}

/// Returns a pool, with its used and unused pages.
fn of_pool(pool: &HugePool) -> MemoryNode {
    let mut node = MemoryNode::new(format!("pages of {}", pool.page), pool.bytes(pool.total));
    if pool.surplus > Count::ZERO {
        node.note = format!("{} of it surplus", pool.bytes(pool.surplus));
    }
    let used = MemoryNode::new("in use", pool.bytes(pool.total.saturating_sub(pool.free)));
    let mut unused = MemoryNode::new("unused", pool.bytes(pool.free));
    if pool.reserved > Count::ZERO {
        unused.note = promised_in_words(pool.bytes(pool.reserved));
    }
    node.children = [used, unused].into();
    node.children.retain(|part| part.bytes > Bytes::ZERO);
    node.complete(MemoryNode::new(REST, Bytes::ZERO));
    node
}

#[cfg(test)]
mod tests {
    use super::super::tests::{child, facts, host, sizes, tree_with};
    use super::*;
    use timeline::signals::{HUGEPAGES_FREE, HUGEPAGES_TOTAL, MEM_HUGETLB};

    fn pool(page: Bytes, [total, free, reserved, surplus]: [u64; 4]) -> HugePool {
        HugePool {
            page,
            total: Count::new(total),
            free: Count::new(free),
            reserved: Count::new(reserved),
            surplus: Count::new(surplus),
        }
    }

    #[test]
    fn every_pool_has_its_used_and_unused_pages() {
        let mut sample = host();
        sample.host.set(MEM_HUGETLB, Bytes::from_mib(48));
        sample.host.set(HUGEPAGE_SIZE, Bytes::from_mib(2));
        sample.host.set(HUGEPAGES_TOTAL, Count::new(8));
        sample.host.set(HUGEPAGES_FREE, Count::new(3));
        let inventory = Inventory {
            huge_pools: vec![
                pool(Bytes::from_mib(2), [8, 3, 1, 2]),
                pool(Bytes::from_mib(32), [1, 1, 0, 0]),
                pool(Bytes::from_gib(1), [0; 4]),
            ],
            ..Inventory::default()
        };
        let tree = tree_with(&sample, &facts(), &inventory);
        let huge = child(&tree, "huge pages");
        assert_eq!(sizes(huge), [("pages of 32 MiB", 32), ("pages of 2 MiB", 16)]);
        let small = child(huge, "pages of 2 MiB");
        assert_eq!(small.note, "4 MiB of it surplus");
        assert_eq!(sizes(small), [("in use", 10), ("unused", 6)]);
        assert_eq!(child(small, "unused").note, "2 MiB of it promised to mappings");
    }

    #[test]
    fn without_pools_there_is_what_meminfo_counts() {
        let mut sample = host();
        sample.host.set(MEM_HUGETLB, Bytes::from_mib(48));
        sample.host.set(HUGEPAGE_SIZE, Bytes::from_mib(2));
        sample.host.set(HUGEPAGES_FREE, Count::new(3));
        let tree = tree_with(&sample, &facts(), &Inventory::default());
        let parts = sizes(child(&tree, "huge pages"));
        assert_eq!(parts, [("huge pages in use", 42), ("huge pages, unused", 6)]);
    }
}
