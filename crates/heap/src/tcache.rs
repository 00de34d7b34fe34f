//! Thread caches: freed chunks that a thread keeps for its next allocations. They count as in use everywhere else.
//!
//! Since 2.34 each cached chunk holds a word that is the same in the whole process, so one cached chunk shows it, and
//! the walk recognises all others. From 2.29 to 2.33 that word is the address of the owner's cache, and up to 2.28
//! there is none: the lists of each cache found are followed instead, a few hundred short reads for each thread.

use crate::chunk::{SizeWord, decode_link};
use crate::layout::TcacheLayout;
use crate::memory::TargetMemory;

/// What was learned about thread caches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TcacheForm {
    pub(crate) layout: TcacheLayout,
    /// Whether links are stored XORed with their own address.
    pub(crate) is_safe: bool,
    /// The word in each cached chunk; `None` if it differs by owner.
    pub(crate) key: Option<u64>,
}

/// The chunks in one thread's cache.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct CachedChunks {
    /// Address of the chunk and its size.
    pub(crate) chunks: Vec<(u64, u64)>,
}

/// No list has more entries, unless a setting says otherwise.
const ENTRIES_MAX: usize = 65_536;

/// Returns the form of thread caches if the chunk at `chunk` holds one with at least one entry.
pub(crate) fn form(memory: &impl TargetMemory, chunk: u64) -> Option<TcacheForm> {
    let size = SizeWord(memory.word(chunk.checked_add(8)?)?).size();
    let layout = TcacheLayout::ALL.into_iter().find(|layout| layout.chunk_bytes == size)?;
    [true, false].into_iter().find_map(|is_safe| {
        let cached = entries(memory, chunk, layout, is_safe)?;
        let mut keys = cached.chunks.iter().filter_map(|(chunk, _)| memory.word(chunk + 24));
        let first = keys.next()?;
        // A key of its own owner is the address of the cache; before 2.29 that word is the program's old data.
        let is_shared = first != chunk + 16 && first != 0 && keys.all(|key| key == first);
        Some(TcacheForm { layout, is_safe, key: (is_shared && is_safe).then_some(first) })
    })
}

/// Returns the chunks in a cache; `None` if it is none: a counter, a link or a size contradicts.
pub(crate) fn entries(
    memory: &impl TargetMemory,
    chunk: u64,
    layout: TcacheLayout,
    is_safe: bool,
) -> Option<CachedChunks> {
    let mut bytes = [0; 0x300];
    let length = usize::try_from(layout.chunk_bytes - 16).ok()?;
    let user = chunk.checked_add(16)?;
    if memory.read_at(user, &mut bytes[..length]) != length {
        return None;
    }
    let mut cached = CachedChunks::default();
    for bin in 0..layout.bins {
        let count = count(&bytes, layout, bin)?;
        let at = usize::try_from(layout.entries_offset() + bin * 8).ok()?;
        let head = u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?);
        if !layout.counts_room && (count == 0) != (head == 0) {
            return None;
        }
        let bound = if layout.counts_room { ENTRIES_MAX } else { count };
        let list = CacheList { head, bin, bound, is_safe };
        list.follow(memory, &mut cached)?;
    }
    Some(cached)
}

/// One list of a cache.
struct CacheList {
    head: u64,
    bin: u64,
    bound: usize,
    is_safe: bool,
}

fn count(bytes: &[u8], layout: TcacheLayout, bin: u64) -> Option<usize> {
    let at = usize::try_from(bin * layout.count_bytes).ok()?;
    let low = usize::from(*bytes.get(at)?);
    let high = if layout.count_bytes == 2 { usize::from(*bytes.get(at + 1)?) } else { 0 };
    Some(low | high << 8)
}

impl CacheList {
    /// Follows the list for at most `bound` entries; `None` if an entry is no chunk of its size.
    fn follow(&self, memory: &impl TargetMemory, cached: &mut CachedChunks) -> Option<()> {
        let mut entry = self.head;
        for _ in 0..self.bound {
            if entry == 0 {
                return Some(());
            }
            let (size, link) = self.entry(memory, entry)?;
            cached.chunks.push((entry - 16, size));
            if cached.chunks.len() > ENTRIES_MAX {
                return None;
            }
            entry = decode_link(link, entry, self.is_safe);
        }
        // A list that goes on behind its count with another chunk is being changed, or damaged; with anything else it is
        // none.
        (entry == 0 || self.entry(memory, entry).is_some()).then_some(())
    }

    /// Returns the size of an entry's chunk, and its link; `None` if it is no chunk of the list's size.
    fn entry(&self, memory: &impl TargetMemory, entry: u64) -> Option<(u64, u64)> {
        let header = entry.is_multiple_of(16).then(|| entry.checked_sub(16))?? + 8;
        let [size, link] = memory.words(header)?;
        let size = SizeWord(size).size();
        let is_expected = TcacheLayout::size_of_bin(self.bin).is_none_or(|all| all == size);
        is_expected.then_some((size, link))
    }
}
