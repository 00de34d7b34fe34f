//! Four sizes of a process, VSS, RSS, PSS and USS, and what makes the difference between them.

use probe::SmapsBlock;
use units::Bytes;

use crate::sizes::PartSizes;

/// The four sizes of a process and the differences between them. From VSS to RSS: `without_access` and
/// `never_touched` cost nothing, `swap` costs no RAM. From RSS to USS: `shared`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FourSizes {
    /// Virtual: address space that is mapped.
    pub vss: Bytes,
    /// Resident: pages in RAM that it maps, also those that others map too.
    pub rss: Bytes,
    /// Proportional: each page divided by its users. The only one of these that adds up over processes.
    pub pss: Bytes,
    /// Unique: pages that it alone maps.
    pub uss: Bytes,
    /// In swap.
    pub swap: Bytes,
    /// Address space without access: reserved for growth, guards.
    pub without_access: Bytes,
    /// Address space that may be used but is neither in RAM nor in swap.
    pub never_touched: Bytes,
    /// Resident pages that others map too.
    pub shared: Bytes,
    /// Pages of hugetlbfs; in none of RSS, PSS, USS.
    pub hugetlb: Bytes,
}

impl FourSizes {
    /// Sums the mappings.
    pub fn of(blocks: &[SmapsBlock], not_examined: &PartSizes) -> Self {
        let mut sum = *not_examined;
        let mut without_access = Bytes::ZERO;
        for block in blocks {
            let sizes = PartSizes::of(block);
            sum.add(&sizes);
            let access = &block.mapping.access;
            if !(access.read || access.write || access.execute) {
                without_access += sizes.virtual_size;
            }
        }
        let touched = sum.rss + sum.swap + sum.hugetlb;
        let usable = sum.virtual_size.saturating_sub(without_access);
        Self {
            vss: sum.virtual_size,
            rss: sum.rss,
            pss: sum.pss,
            uss: sum.uss,
            swap: sum.swap,
            without_access,
            never_touched: usable.saturating_sub(touched),
            shared: sum.rss.saturating_sub(sum.uss),
            hugetlb: sum.hugetlb,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_differences_lead_from_one_size_to_the_next() {
        let text = b"1000000-1100000 rw-p 0 0:0 0\nRss: 512 kB\nPss: 300 kB\nPrivate_Dirty: 100 kB\nAnonymous: 512 kB\nSwap: 24 kB\n\
            1100000-2000000 ---p 0 0:0 0\nRss: 0 kB\n\
            3000000-3010000 r--p 0 1:0 7 /x\nRss: 64 kB\nPss: 64 kB\nPrivate_Clean: 64 kB\nAnonymous: 0 kB\n";
        let mut blocks = Vec::new();
        probe::parse_smaps(text, &mut |block| blocks.push(block));
        let sizes = FourSizes::of(&blocks, &PartSizes::default());
        let kib = Bytes::from_kib;
        assert_eq!(sizes.vss, sizes.without_access + sizes.never_touched + sizes.rss + sizes.swap);
        assert_eq!((sizes.rss, sizes.pss, sizes.uss), (kib(576), kib(364), kib(164)));
        assert_eq!(sizes.shared, kib(412));
    }
}
