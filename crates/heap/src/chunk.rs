//! A malloc chunk: 16 bytes of header, of which `prev_size` belongs to the previous chunk while that is in use.
//!
//! The size word carries three flags: 1 the previous chunk is in use, 2 the chunk has a mapping of its own, 4 it
//! belongs to a thread arena (reliable on chunks in use only).

/// The size word of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SizeWord(pub(crate) u64);

/// The smallest chunk; smaller sizes are fenceposts.
pub(crate) const CHUNK_BYTES_MIN: u64 = 32;
/// Size of a fencepost, at the end of a part of a heap.
pub(crate) const FENCEPOST_BYTES: u64 = 16;
/// Chunks are aligned to this, on every 64-bit machine.
pub(crate) const ALIGNMENT: u64 = 16;

impl SizeWord {
    pub(crate) const fn size(self) -> u64 {
        self.0 & !7
    }

    pub(crate) const fn is_previous_in_use(self) -> bool {
        self.0 & 1 != 0
    }

    pub(crate) const fn is_mmapped(self) -> bool {
        self.0 & 2 != 0
    }

    /// Whether a chunk of a heap may have this size word, with `room` bytes up to the end of its part of the heap.
    pub(crate) const fn is_plausible(self, room: u64) -> bool {
        let size = self.size();
        size >= CHUNK_BYTES_MIN
            && size.is_multiple_of(ALIGNMENT)
            && size <= room
            && !self.is_mmapped()
    }
}

/// Decodes a link of a thread cache or fast bin. Since 2.32 it is stored XORed with its own address ("safe-linking").
pub(crate) const fn decode_link(stored: u64, field_address: u64, is_safe: bool) -> u64 {
    if is_safe { stored ^ (field_address >> 12) } else { stored }
}
