//! Which addresses glibc's malloc owns, as the reader of its heap found them.

use std::ops::Range;

use heap::{Heap, HeapError, HeapNotRead, HeapPart};
use units::Bytes;

/// A range of malloc's, and how much of it is in RAM and in swap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MallocRange {
    /// Its addresses.
    pub range: Range<u64>,
    /// Resident bytes. They matter where the range is only a part of a mapping.
    pub resident: Bytes,
    /// Bytes in swap.
    pub swapped: Bytes,
}

impl MallocRange {
    fn new(range: Range<u64>, resident: u64, swapped: u64) -> Self {
        Self { range, resident: Bytes::new(resident), swapped: Bytes::new(swapped) }
    }
}

/// All ranges that glibc's malloc owns.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MallocRanges {
    /// The main arena: the program break, and blocks that it mapped where the break could not grow.
    pub main: Vec<MallocRange>,
    /// Heaps of thread arenas, without the part that is reserved for growth.
    pub thread: Vec<MallocRange>,
    /// Large chunks with a mapping each.
    pub mmapped: Vec<MallocRange>,
}

impl MallocRanges {
    /// Returns what the reader found: nothing of a process that does not use glibc's malloc, `None` if it could not read.
    pub fn of(read: &Result<Heap, HeapNotRead>) -> Option<Self> {
        match read {
            Ok(heap) => Some(Self::in_heap(heap)),
            Err(HeapNotRead::NoHeap(HeapError::NoArena | HeapError::Unused)) => {
                Some(Self::default())
            }
            Err(_) => None,
        }
    }

    fn in_heap(heap: &Heap) -> Self {
        let of = |is_main: bool| {
            let wanted = heap.arenas.iter().filter(move |arena| arena.is_main == is_main);
            wanted.flat_map(|arena| &arena.parts).flat_map(without_foreign)
        };
        let mmapped = heap.mmapped.iter();
        Self {
            main: of(true).collect(),
            thread: of(false).collect(),
            mmapped: mmapped
                .map(|chunk| MallocRange::new(chunk.range.clone(), chunk.resident, chunk.swapped))
                .collect(),
        }
    }

    /// Whether malloc owns nothing: the process does not use glibc's.
    pub fn is_empty(&self) -> bool {
        self.main.is_empty() && self.thread.is_empty() && self.mmapped.is_empty()
    }
}

/// The stretches of a part of a heap that are malloc's. What is in RAM of them is known of all together.
fn without_foreign(part: &HeapPart) -> Vec<MallocRange> {
    let (mut resident, mut swapped) = (part.resident, part.swapped);
    let mut take = |range: Range<u64>| {
        let most = range.end - range.start;
        let (in_ram, in_swap) = (resident.min(most), swapped.min(most));
        (resident, swapped) = (resident - in_ram, swapped - in_swap);
        MallocRange::new(range, in_ram, in_swap)
    };
    let mut from = part.range.start;
    let mut ranges = Vec::new();
    for foreign in &part.foreign {
        ranges.push(take(from..foreign.start));
        from = foreign.end;
    }
    ranges.push(take(from..part.range.end));
    ranges
}

/// Which kind of range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Region {
    Main,
    Thread,
    Mapped,
}

/// The ranges in order of address, and what of each is not yet found in a mapping.
#[derive(Debug)]
pub(crate) struct RangesInOrder(Vec<(Region, MallocRange)>);

impl RangesInOrder {
    pub(crate) fn new(ranges: &MallocRanges) -> Self {
        let of = |region, ranges: &[MallocRange]| -> Vec<_> {
            let valid = ranges.iter().filter(|one| one.range.start < one.range.end);
            valid.map(|one| (region, one.clone())).collect()
        };
        let mut all = of(Region::Main, &ranges.main);
        all.extend(of(Region::Thread, &ranges.thread));
        all.extend(of(Region::Mapped, &ranges.mmapped));
        all.sort_by_key(|(_, one)| one.range.start);
        // Of ranges that overlap, the first keeps the addresses; nothing is counted twice.
        let mut end = 0;
        all.retain_mut(|(_, one)| {
            one.range.start = one.range.start.max(end);
            let is_left = one.range.start < one.range.end;
            end = end.max(one.range.end);
            is_left
        });
        Self(all)
    }

    /// The ranges that overlap a mapping, with the overlap.
    pub(crate) fn within(
        &mut self,
        mapping: &Range<u64>,
    ) -> impl Iterator<Item = (Region, Range<u64>, &mut MallocRange)> {
        let (start, end) = (mapping.start, mapping.end);
        let first = self.0.partition_point(|(_, one)| one.range.end <= start);
        let overlapping = self.0[first..].iter_mut();
        overlapping.take_while(move |(_, one)| one.range.start < end).map(move |(region, one)| {
            let overlap = one.range.start.max(start)..one.range.end.min(end);
            (*region, overlap, one)
        })
    }

    /// Whether a range ends at this address.
    pub(crate) fn thread_ends_at(&self, address: u64) -> bool {
        let at = self.0.partition_point(|(_, one)| one.range.end < address);
        let found = self.0.get(at);
        found.is_some_and(|(region, one)| *region == Region::Thread && one.range.end == address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_ranges_are_counted_once() {
        let one =
            |range: Range<u64>| MallocRange { range, resident: Bytes::ZERO, swapped: Bytes::ZERO };
        let ranges = MallocRanges {
            main: vec![one(10..30)],
            thread: vec![one(20..40), one(12..14), one(9..9)],
            mmapped: vec![one(50..60)],
        };
        let mut ordered = RangesInOrder::new(&ranges);
        let all = ordered.within(&(0..100));
        let all: Vec<_> = all.map(|(region, overlap, _)| (region, overlap)).collect();
        assert_eq!(
            all,
            [(Region::Main, 10..30), (Region::Thread, 30..40), (Region::Mapped, 50..60)]
        );
        let part: Vec<_> = ordered.within(&(35..55)).map(|(_, one, _)| one).collect();
        assert_eq!(part, [35..40, 50..55]);
        assert!(ordered.thread_ends_at(40) && !ordered.thread_ends_at(30));
    }
}
