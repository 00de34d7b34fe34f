//! Is a mapping Ruby's? Headers of its pages of objects are read and checked.
//!
//! A page of objects is 16 KiB, 64 KiB since 3.2, at a multiple of that (`HEAP_PAGE_ALIGN_LOG`). It begins with a pointer
//! to its descriptor, which malloc has (`struct heap_page_header` in Ruby's `gc.c`); the descriptor has the address of
//! the page's first object (`struct heap_page`, field `start`). That both point at each other is no accident, and is the
//! same in all versions. Cost: two reads of 2 µs a page; at most 256 pages of a mapping are read, which count as accessed
//! then. Only present pages are read.

use probe::{ProcessMemory, SmapsBlock};

use crate::malloc_ranges::MallocRanges;
use crate::sampled_pages::SampledPages;

/// Sizes of a page of objects.
const PAGES: [u64; 2] = [64 << 10, 16 << 10];
/// The first object follows the header within this distance.
const FIRST_OBJECT_MAX: u64 = 256;
/// The field is among the first words of a descriptor.
const DESCRIPTOR: usize = 64;

/// Returns the first addresses of the mappings in which most pages are Ruby's.
pub fn ruby_pages(
    memory: &ProcessMemory,
    blocks: &[SmapsBlock],
    malloc: Option<&MallocRanges>,
) -> Vec<u64> {
    let sampled = SampledPages::new(memory, blocks, PAGES[1]).without(malloc);
    sampled.first_addresses(|block| {
        let is_rubys = |page_bytes: u64| {
            let (mut valid, mut used) = (0_u32, 0);
            sampled.each(block, page_bytes, &mut |page| {
                used += 1;
                valid += u32::from(is_page(memory, page));
            });
            valid > 0 && valid * 2 > used
        };
        PAGES.into_iter().any(is_rubys)
    })
}

fn is_page(memory: &ProcessMemory, page: u64) -> bool {
    let mut header = [0; 8];
    if memory.read_at(page, &mut header) != Ok(header.len()) {
        return false;
    }
    let address = u64::from_ne_bytes(header);
    if !address.is_multiple_of(8) || !memory.is_present(address) {
        return false;
    }
    let mut descriptor = [0; DESCRIPTOR];
    memory.read_at(address, &mut descriptor) == Ok(DESCRIPTOR) && points_at(&descriptor, page)
}

/// Whether a descriptor has the address of a page's first object.
fn points_at(descriptor: &[u8; DESCRIPTOR], page: u64) -> bool {
    let (words, _) = descriptor.as_chunks::<8>();
    let mut words = words.iter().map(|bytes| u64::from_ne_bytes(*bytes));
    words.any(|word| word > page && word - page <= FIRST_OBJECT_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_descriptor_points_at_the_first_object_of_its_page() {
        let page = 0x7f9b_63b0_8000_u64;
        let descriptor = |word: u64| {
            let mut bytes = [0; DESCRIPTOR];
            bytes[24..32].copy_from_slice(&word.to_ne_bytes());
            bytes
        };
        assert!(points_at(&descriptor(page + 8), page));
        assert!(points_at(&descriptor(page + 40), page));
        assert!(!points_at(&descriptor(page), page), "a pointer to the header");
        assert!(!points_at(&descriptor(page + 16_384), page), "to the next page");
        assert!(!points_at(&[0xff; DESCRIPTOR], page));
        assert!(!points_at(&[0; DESCRIPTOR], page));
    }
}
