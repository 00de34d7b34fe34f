//! Is a mapping pymalloc's? Headers of its pools are read and checked.
//!
//! An arena is divided into pools of 16 KiB (Python 3.10 and later) or 4 KiB; each begins with a header of 48 bytes:
//! blocks in use (u32, padded to 8), first free block, next and previous pool (pointers), index of the arena and of the
//! size class (u32 each), next and last offset (u32 each). `struct pool_header` in CPython's `Objects/obmalloc.c`. Cost:
//! 2 µs a pool; at most 256 pools of a mapping are read, which count as accessed then. Only present pages are read.

use probe::{ProcessMemory, SmapsBlock};

use crate::malloc_ranges::MallocRanges;
use crate::sampled_pages::SampledPages;

/// An arena of Python before 3.10; a smaller mapping has none.
const ARENA_MIN: u64 = 256 << 10;
const POOLS: [u64; 2] = [16 << 10, 4 << 10];
const HEADER: usize = 48;

/// Returns the first addresses of the mappings in which most pools have a valid header.
pub fn python_arenas(
    memory: &ProcessMemory,
    blocks: &[SmapsBlock],
    malloc: Option<&MallocRanges>,
) -> Vec<u64> {
    let sampled = SampledPages::new(memory, blocks, ARENA_MIN).without(malloc);
    sampled.first_addresses(|block| {
        let has_pools = |pool_size: u64| {
            let (mut valid, mut used) = (0, 0);
            sampled.each(block, pool_size, &mut |pool| {
                let mut header = [0; HEADER];
                if memory.read_at(pool, &mut header) == Ok(HEADER) {
                    // A pool that was never used is zeros.
                    used += u32::from(header != [0; HEADER]);
                    valid += u32::from(is_pool_header(&header, pool_size));
                }
            });
            valid >= 4 && valid * 2 > used
        };
        POOLS.into_iter().any(has_pools)
    })
}

/// Whether these bytes can be the header of a pool.
fn is_pool_header(header: &[u8; HEADER], pool_size: u64) -> bool {
    let word = |at: usize| {
        let bytes = header.get(at..at + 4).and_then(<[u8]>::first_chunk);
        u64::from(bytes.map_or(0, |bytes| u32::from_ne_bytes(*bytes)))
    };
    let (count, class) = (word(0), word(36));
    let (next, last) = (word(40), word(44));
    // Size classes are multiples of 16 bytes, up to 512.
    let size = (class + 1) * 16;
    let capacity = (pool_size - HEADER as u64) / size;
    // A pool of which all blocks are free keeps its header; one that was never used has none.
    class < 32 && count <= capacity
        // The offset is that of the next block that was never used.
        && (HEADER as u64..=pool_size).contains(&next)
        && (next - HEADER as u64).is_multiple_of(size)
        && last == pool_size - size
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(count: u32, class: u32, next: u32, last: u32) -> [u8; HEADER] {
        let mut header = [0; HEADER];
        for (at, value) in [(0, count), (36, class), (40, next), (44, last)] {
            header[at..at + 4].copy_from_slice(&value.to_ne_bytes());
        }
        header
    }

    #[test]
    fn a_pools_header_is_consistent_in_itself() {
        // Class 3: blocks of 64 bytes, 255 of them in 16 KiB.
        let pool =
            |count, class, next, last| is_pool_header(&header(count, class, next, last), 16 << 10);
        assert!(pool(200, 3, 48 + 200 * 64, 16_384 - 64));
        assert!(!pool(0, 0, 0, 0), "zeros");
        assert!(pool(0, 3, 48 + 200 * 64, 16_384 - 64), "all blocks are free");
        assert!(!pool(300, 3, 48 + 200 * 64, 16_384 - 64), "more blocks than fit");
        assert!(!pool(200, 3, 50, 16_384 - 64));
        assert!(!pool(200, 3, 48 + 200 * 64, 16_384 - 48));
        assert!(!pool(1, 40, 48, 0));
        assert!(!is_pool_header(&[0xff; HEADER], 16 << 10));
    }
}
