//! What the reader of a heap needs from a process: bytes at addresses, and which pages are in RAM.

use std::ops::Range;

use probe::{PageState, Pagemap, ProcessMemory};

/// The memory that holds a heap: of a running process, or an image in a test.
pub trait TargetMemory {
    /// Reads ranges, in order, into `buffer`, which is as long as they are together. Stops at the first byte that
    /// cannot be read, and may stop earlier after 1024 ranges. Returns the number of bytes read.
    fn read_parts(&self, parts: &[Range<u64>], buffer: &mut [u8]) -> usize;

    /// Reads the states of the pages of a page-aligned range into `states`, which it replaces; none of them if the
    /// states cannot be read.
    fn page_states(&self, range: &Range<u64>, states: &mut Vec<PageState>);

    /// Returns where the first page of a page-aligned range is that is in RAM or in swap, or the range's end. `None` if
    /// only the states show it.
    fn populated_from(&self, _range: &Range<u64>) -> Option<u64> {
        None
    }

    /// Reads from an address. Returns the number of bytes read.
    fn read_at(&self, address: u64, buffer: &mut [u8]) -> usize {
        let whole = address..address.saturating_add(buffer.len() as u64);
        self.read_parts(std::slice::from_ref(&whole), buffer)
    }

    /// Reads the 64-bit word at an address.
    fn word(&self, address: u64) -> Option<u64> {
        self.words(address).map(|[word]| word)
    }

    /// Reads neighbouring 64-bit words at once; `None` unless all of them can be read.
    fn words<const N: usize>(&self, address: u64) -> Option<[u64; N]> {
        let mut bytes = [[0; 8]; N];
        let buffer = bytes.as_flattened_mut();
        let length = buffer.len();
        (self.read_at(address, buffer) == length).then(|| bytes.map(u64::from_le_bytes))
    }
}

/// The memory of a running process.
#[derive(Debug)]
pub struct LiveMemory {
    /// Its bytes.
    pub bytes: ProcessMemory,
    /// Its page map.
    pub pages: Pagemap,
}

impl TargetMemory for LiveMemory {
    fn read_parts(&self, parts: &[Range<u64>], buffer: &mut [u8]) -> usize {
        self.bytes.read_parts(parts, buffer).unwrap_or(0)
    }

    fn page_states(&self, range: &Range<u64>, states: &mut Vec<PageState>) {
        if self.pages.read(range, states).is_err() {
            states.clear();
        }
    }

    fn populated_from(&self, range: &Range<u64>) -> Option<u64> {
        self.pages.populated_from(range)
    }
}
