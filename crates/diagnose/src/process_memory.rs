//! What is one process's memory like at this moment: free heap that stays in RAM, live data, another owner's, or several's?
//!
//! One reading shows a state, not a course: whether live data leaks, or free memory will be used again, takes
//! [`growth`](crate::growth). The verdict is given only if it is the same with all that is uncertain added and taken off.

use units::{Bytes, Count, Ratio};

/// The sizes that decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ProcessFigures {
    /// Resident memory of the whole process.
    pub rss: Bytes,
    /// Its memory in swap.
    pub swapped: Bytes,
    /// The largest part that is not malloc's.
    pub largest_other: Bytes,
    /// Its malloc heap, nothing of it if the process has none; `None` if it was not read.
    pub heap: Option<HeapFigures>,
}

/// The sizes of a malloc heap that decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeapFigures {
    /// In RAM, large chunks included.
    pub resident: Bytes,
    /// Free, but in RAM; thread caches included.
    pub free_resident: Bytes,
    /// By how much both may be wrong.
    pub uncertain: Bytes,
    /// Whether all of it was found.
    pub is_whole: bool,
}

/// What the memory of a process is like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryVerdict {
    /// Much of its malloc heap is free, but in RAM.
    Fragmented,
    /// Its malloc heap is mostly live data, and most of its memory.
    Live,
    /// Most of its memory is another owner's.
    OtherOwner,
    /// No owner has most of its memory.
    SeveralOwners,
    /// It has hardly any memory.
    Small,
    /// Too much of its heap changed while it was read.
    Unclear,
    /// Its heap could not be read.
    NotRead,
}

/// Free memory below this share of a heap is usual: of programs that only allocate, and of idle Python, Redis and Node
/// processes, at most 10 % was free; of Ruby with 25 threads and of MariaDB after a burst 55 to 92 %.
pub(crate) const FREE_SHARE_MIN: Ratio = Ratio::from_percent(25.0);
/// Free memory below this share of the process is not where its memory is: an engineering choice, as the sizes below.
pub(crate) const FREE_OF_RSS_MIN: Ratio = Ratio::from_percent(10.0);
/// Free memory below this size is not worth an action.
pub(crate) const FREE_MIN: Bytes = Bytes::from_mib(16);
/// So many arenas may keep free memory because of their number: a program with one or a few has no use for fewer.
pub(crate) const ARENAS_MANY: Count = Count::new(8);
/// A process below this size has no memory worth a diagnosis.
const SIZE_MIN: Bytes = Bytes::from_mib(16);
/// The owner of this share of a process decides what it is like.
pub const OWNER_SHARE_MIN: Ratio = Ratio::new(0.5);

impl MemoryVerdict {
    /// Judges a process.
    pub fn of(figures: &ProcessFigures) -> Self {
        if figures.rss + figures.swapped < SIZE_MIN {
            return Self::Small;
        }
        let Some(heap) = &figures.heap else {
            return Self::NotRead;
        };
        let least = heap.free_resident.saturating_sub(heap.uncertain);
        let most = heap.free_resident + heap.uncertain;
        if !heap.is_whole {
            return Self::Unclear;
        }
        match (heap.is_fragmented(least, figures.rss), heap.is_fragmented(most, figures.rss)) {
            (true, true) => Self::Fragmented,
            (false, true) => Self::Unclear,
            _ if heap.resident >= figures.rss.share(OWNER_SHARE_MIN) => Self::Live,
            _ if figures.largest_other >= figures.rss.share(OWNER_SHARE_MIN) => Self::OtherOwner,
            _ => Self::SeveralOwners,
        }
    }

    /// Returns the verdict with this name in JSON.
    pub fn named(name: &str) -> Option<Self> {
        const ALL: [MemoryVerdict; 7] = [
            MemoryVerdict::Fragmented,
            MemoryVerdict::Live,
            MemoryVerdict::OtherOwner,
            MemoryVerdict::SeveralOwners,
            MemoryVerdict::Small,
            MemoryVerdict::Unclear,
            MemoryVerdict::NotRead,
        ];
        ALL.into_iter().find(|verdict| verdict.name() == name)
    }

    /// Returns the name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fragmented => "fragmented",
            Self::Live => "live",
            Self::OtherOwner => "other-owner",
            Self::SeveralOwners => "several-owners",
            Self::Small => "small",
            Self::Unclear => "unclear",
            Self::NotRead => "not-read",
        }
    }

    /// Returns the name for people.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Fragmented => "fragmented",
            Self::Live => "live data",
            Self::OtherOwner => "another owner",
            Self::SeveralOwners => "several owners",
            Self::Small => "small",
            Self::Unclear => "unclear",
            Self::NotRead => "heap not read",
        }
    }
}

impl HeapFigures {
    /// Of a process that has no such heap.
    pub const NONE: Self = Self {
        resident: Bytes::ZERO,
        free_resident: Bytes::ZERO,
        uncertain: Bytes::ZERO,
        is_whole: true,
    };

    fn is_fragmented(&self, free: Bytes, rss: Bytes) -> bool {
        free >= FREE_MIN
            && free >= self.resident.share(FREE_SHARE_MIN)
            && free >= rss.share(FREE_OF_RSS_MIN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(rss: u64, heap: Option<(u64, u64, u64)>) -> MemoryVerdict {
        let mib = Bytes::from_mib;
        let figures = |(resident, free, uncertain)| HeapFigures {
            resident: mib(resident),
            free_resident: mib(free),
            uncertain: mib(uncertain),
            is_whole: true,
        };
        let mallocs = heap.map_or(0, |(resident, ..)| resident);
        MemoryVerdict::of(&ProcessFigures {
            rss: mib(rss),
            swapped: Bytes::ZERO,
            largest_other: mib(rss - mallocs),
            heap: heap.map(figures),
        })
    }

    #[test]
    fn malloc_may_be_the_largest_of_several_owners() {
        let heap = HeapFigures { resident: Bytes::from_mib(216), ..HeapFigures::NONE };
        let figures = ProcessFigures {
            rss: Bytes::from_mib(484),
            swapped: Bytes::ZERO,
            largest_other: Bytes::from_mib(200),
            heap: Some(heap),
        };
        assert_eq!(MemoryVerdict::of(&figures), MemoryVerdict::SeveralOwners);
    }

    #[test]
    fn a_process_in_swap_is_not_small() {
        let figures = ProcessFigures {
            rss: Bytes::from_mib(10),
            swapped: Bytes::from_gib(4),
            ..ProcessFigures::default()
        };
        assert_eq!(MemoryVerdict::of(&figures), MemoryVerdict::NotRead);
    }

    #[test]
    fn free_memory_decides_where_it_is_a_large_part_of_heap_and_process() {
        use MemoryVerdict as V;
        assert_eq!(verdict(236, Some((225, 130, 1))), V::Fragmented);
        assert_eq!(verdict(227, Some((94, 86, 0))), V::Fragmented, "a buffer pool beside it");
        assert_eq!(verdict(2000, Some((94, 86, 0))), V::OtherOwner, "4 % of the process");
        assert_eq!(verdict(400, Some((390, 12, 0))), V::Live);
        assert_eq!(verdict(40, Some((30, 12, 0))), V::Live, "12 MiB are worth no action");
        assert_eq!(verdict(129, Some((12, 0, 0))), V::OtherOwner);
        assert_eq!(verdict(129, Some((0, 0, 0))), V::OtherOwner, "another allocator");
    }

    #[test]
    fn what_is_uncertain_never_decides() {
        use MemoryVerdict as V;
        assert_eq!(verdict(400, Some((390, 100, 1))), V::Fragmented);
        assert_eq!(verdict(400, Some((390, 100, 5))), V::Unclear);
        assert_eq!(verdict(400, Some((390, 300, 5))), V::Fragmented);
        assert_eq!(verdict(400, None), V::NotRead);
        assert_eq!(verdict(4, None), V::Small);
    }
}
