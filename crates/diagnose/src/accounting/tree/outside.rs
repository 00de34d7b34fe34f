//! What MemTotal lacks of the RAM that the firmware gave: the kernel had it for itself before it gave memory out.

use timeline::PhysicalMemory;
use units::{Bytes, PageSize};

use crate::accounting::Accounting;
use crate::accounting::totals::Checks;
use crate::evidence::Evidence;

/// Less is not worth naming.
const PART_MIN: Bytes = Bytes::from_mib(1);

/// `struct page` of most kernels: one for each page of RAM.
const PAGE_ENTRY: u64 = 64;

impl Accounting {
    /// Returns where the RAM is that MemTotal lacks, as a sentence; empty if that is unknown.
    pub(super) fn outside(&self, cx: &Evidence<'_>, memory: Option<&PhysicalMemory>) -> String {
        // A container's MemTotal is its limit, and then RAM is that of its host.
        let is_host = cx.facts.container.is_none() && !Checks::run(cx).disagree();
        let Some(memory) = memory.filter(|_| is_host) else {
            return String::new();
        };
        let installed = memory.firmware.unwrap_or(memory.ram).max(memory.ram);
        let outside = installed.saturating_sub(self.total);
        if outside < PART_MIN {
            return String::new();
        }
        let page = cx.facts.page_size.unwrap_or(PageSize::USUAL).bytes();
        let entries = memory.ram.get() / page.get().max(1);
        let entries = Bytes::new(entries.saturating_mul(PAGE_ENTRY));
        let cut_off = installed.saturating_sub(memory.ram);
        let parts = [
            ("left out by the kernel (mem=, memmap=, MTRR)", "", cut_off),
            ("for a crash kernel", "", memory.crash_kernel),
            ("for the kernel's image", "", memory.kernel_image),
            ("for the table of pages", "≈", entries),
        ];
        let mut left = outside;
        let mut words: Vec<String> = Vec::new();
        for (name, sign, size) in parts {
            // The table of pages is an estimate. Other parts that do not fit are not what is missing.
            let size = if sign.is_empty() { size } else { size.min(left) };
            if size >= PART_MIN && size <= left {
                left = left.saturating_sub(size);
                words.push(format!("{sign}{size} {name}"));
            }
        }
        if left >= PART_MIN {
            words.push(format!("{left} for other early allocations, offline memory or a balloon"));
        }
        format!("{outside} less than the {installed} of RAM: {}", words.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{facts, host, tree_with};
    use super::*;
    use timeline::{Facts, Inventory};

    fn note(memory: PhysicalMemory, facts: &Facts) -> String {
        let inventory = Inventory { physical: Some(memory), ..Inventory::default() };
        // A host with a MemTotal of 1000 MiB.
        tree_with(&host(), facts, &inventory).note
    }

    #[test]
    fn the_parts_are_what_memtotal_lacks() {
        let memory = PhysicalMemory {
            ram: Bytes::from_mib(1280),
            firmware: Some(Bytes::from_mib(1536)),
            crash_kernel: Bytes::from_mib(200),
            kernel_image: Bytes::from_mib(30),
        };
        assert_eq!(
            note(memory, &facts()),
            "536 MiB less than the 1.5 GiB of RAM: 256 MiB left out by the kernel (mem=, memmap=, \
             MTRR), 200 MiB for a crash kernel, 30 MiB for the kernel's image, ≈20 MiB for the \
             table of pages, 30 MiB for other early allocations, offline memory or a balloon"
        );
    }

    #[test]
    fn parts_are_never_more_than_the_whole_and_unknown_ram_is_no_sentence() {
        let memory = |mib| PhysicalMemory {
            ram: Bytes::from_mib(mib),
            crash_kernel: Bytes::from_gib(4),
            ..PhysicalMemory::default()
        };
        let words = "200 MiB less than the 1.2 GiB of RAM: ≈19 MiB for the table of pages, 181 MiB \
                     for other early allocations, offline memory or a balloon";
        assert_eq!(note(memory(1200), &facts()), words);
        assert_eq!(note(memory(900), &facts()), "", "less than MemTotal");
    }
}
