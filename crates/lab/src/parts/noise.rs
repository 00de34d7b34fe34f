//! Bytes that no compressor makes smaller.

use super::PAGE;

/// Numbers without a pattern: xorshift64* (Vigna, 2016). The same seed gives the same numbers.
#[derive(Debug)]
pub(crate) struct Noise(u64);

impl Noise {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below an end.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end.max(1) as u64).unwrap_or_default()
    }

    pub(crate) fn page(&mut self) -> Vec<u8> {
        (0..PAGE / 8).flat_map(|_| self.next().to_ne_bytes()).collect()
    }
}
