//! Which anonymous mappings have a runtime's own headers in them? Some of their pages are read, the present ones only.

use probe::{PageState, Pagemap, SmapsBlock, SmapsField};
use units::Bytes;

/// Pages that are read of a mapping.
const PAGES_MAX: u64 = 256;
/// Mappings beyond this number are not read.
const MAPPINGS_MAX: usize = 4096;

/// The mappings of a process, and which of their pages are in RAM.
pub(crate) struct SampledPages<'a> {
    pub(crate) pagemap: &'a Pagemap,
    pub(crate) blocks: &'a [SmapsBlock],
}

impl SampledPages<'_> {
    /// Returns the first addresses of resident, unnamed mappings of at least `size_min` bytes that satisfy `is_wanted`.
    pub(crate) fn mappings(
        &self,
        size_min: u64,
        is_wanted: &dyn Fn(&SmapsBlock) -> bool,
    ) -> Vec<u64> {
        let is_candidate = |block: &&SmapsBlock| {
            let mapping = &block.mapping;
            mapping.is_anonymous()
                && mapping.name.is_empty()
                && mapping.is_private_writable()
                && mapping.size_bytes() >= size_min
                && block.get(SmapsField::Rss) > Some(Bytes::ZERO)
        };
        let candidates = self.blocks.iter().filter(is_candidate).take(MAPPINGS_MAX);
        let found = candidates.filter(|block| is_wanted(block));
        found.map(|block| block.mapping.range.start).collect()
    }

    /// Calls `each` for present pages of this size, spread over a mapping.
    pub(crate) fn each(&self, block: &SmapsBlock, page_bytes: u64, each: &mut dyn FnMut(u64)) {
        let range = &block.mapping.range;
        let first = range.start.next_multiple_of(page_bytes);
        let pages = range.end.saturating_sub(first) / page_bytes;
        let step = pages.div_ceil(PAGES_MAX).max(1) * page_bytes;
        let mut at = first;
        while at.saturating_add(page_bytes) <= range.end {
            if is_present(self.pagemap, at) {
                each(at);
            }
            at += step;
        }
    }
}

/// Reading an absent page would map one.
pub(crate) fn is_present(pagemap: &Pagemap, address: u64) -> bool {
    let Some(end) = address.checked_add(1) else {
        return false;
    };
    let mut states = Vec::with_capacity(1);
    let read = pagemap.read(&(address..end), &mut states);
    read.is_ok() && states.first().copied().is_some_and(PageState::is_present)
}
