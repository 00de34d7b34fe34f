//! Fast bins: free chunks that keep their in-use bit, so the walk takes them for live ones (up to 2.42).
//!
//! A fast chunk's first word links to the next one, so the walk collects chunks that may be one: small, with a word
//! that decodes to a place in the same arena. Which of them are is decided afterwards in memory, without reading the
//! process again: following the lists there took 2.6 s and 7.9 GiB of reads for 3.2 M entries.
//!
//! Each chunk of a list is pointed at exactly once, by the list's head or another chunk. If the sums of all candidates
//! and of all links agree, the candidates are exactly the lists. Otherwise a candidate that nothing points at is
//! removed, and its link with it, until none is left.

use std::ops::Range;

/// The largest chunk that may be in a fast bin.
pub(crate) const FAST_BYTES_MAX: u64 = 176;
/// Candidates of one arena that are remembered: 36 MiB.
const CANDIDATES_MAX: usize = 4 << 20;
/// The largest arena in which links are counted: 32 MiB of bits.
const SPAN_BYTES_MAX: u64 = 2 << 30;

/// The parts of an arena in order of address, numbered through in units of 16 bytes.
#[derive(Debug, Clone, Default)]
pub(crate) struct ArenaSpan {
    parts: Vec<(Range<u64>, u64)>,
    units: u64,
}

impl ArenaSpan {
    pub(crate) fn new(mut ranges: Vec<Range<u64>>) -> Self {
        ranges.sort_by_key(|range| range.start);
        let mut span = Self::default();
        for range in ranges {
            let units = range.end.saturating_sub(range.start) / 16;
            span.parts.push((range, span.units));
            span.units = span.units.saturating_add(units);
        }
        span
    }

    /// The number of an address; `None` outside of the arena.
    #[inline]
    fn unit(&self, address: u64) -> Option<u32> {
        let part = match &self.parts[..] {
            [only] => only,
            parts => {
                let index = parts.partition_point(|(range, _)| range.end <= address);
                parts.get(index)?
            }
        };
        let (range, before) = part;
        range
            .contains(&address)
            .then(|| u32::try_from(before + (address - range.start) / 16).ok())?
    }
}

/// Chunks of one arena that may be in fast bins.
#[derive(Debug, Default)]
pub(crate) struct FastCandidates {
    chunks: Vec<FastCandidate>,
    sizes: Vec<u8>,
    left_out: u64,
    /// Sums over chunks minus sums over links; zero where they are the same set.
    balance: u64,
    ends: u64,
    /// Chunks with a thread cache's key. One that was flushed into a fast bin when its thread ended keeps the key.
    keyed: Vec<(FastCandidate, u8)>,
}

/// Set in a candidate's size if it has a thread cache's key.
const KEYED: u8 = 1 << 7;
/// Keyed chunks of one arena that are remembered.
const KEYED_MAX: usize = 1 << 20;

#[derive(Debug, Clone, Copy)]
struct FastCandidate {
    unit: u32,
    /// Unit of the next chunk; [`END`] at a list's end.
    next: u32,
}

const END: u32 = u32::MAX;

/// Chunks that are not what the walk took them for, by their size in units of 16 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Settled {
    /// Counted as fast, but live.
    pub(crate) live: [u64; 12],
    /// Counted as cached, but in a fast bin.
    pub(crate) fast: [u64; 12],
    /// Whether the lists could not be verified.
    pub(crate) is_uncertain: bool,
}

fn mixed(unit: u64) -> u64 {
    let x = unit.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (x ^ (x >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

impl FastCandidate {
    /// A chunk with a link that decodes to a list's end or to a place in the arena; else `None`.
    #[inline]
    fn of(span: &ArenaSpan, chunk: u64, link: u64) -> Option<Self> {
        let next = if link == 0 {
            END
        } else if link.is_multiple_of(16) {
            span.unit(link)?
        } else {
            return None;
        };
        let unit = span.unit(chunk)?;
        Some(Self { unit, next })
    }
}

impl FastCandidates {
    pub(crate) fn clear(&mut self) {
        self.chunks.clear();
        self.sizes.clear();
        self.keyed.clear();
        (self.left_out, self.balance, self.ends) = (0, 0, 0);
    }

    /// Adds a chunk if its link, decoded, is a list's end or a place in the arena. Returns whether it was.
    #[inline]
    pub(crate) fn offer(&mut self, span: &ArenaSpan, chunk: u64, size: u64, link: u64) -> bool {
        let Some(FastCandidate { unit, next }) = FastCandidate::of(span, chunk, link) else {
            return false;
        };
        self.balance = self.balance.wrapping_add(mixed(u64::from(unit)));
        if next == END {
            self.ends += 1;
        } else {
            self.balance = self.balance.wrapping_sub(mixed(u64::from(next)));
        }
        if self.chunks.len() < CANDIDATES_MAX {
            self.chunks.push(FastCandidate { unit, next });
            self.sizes.push(u8::try_from(size / 16).unwrap_or(u8::MAX));
        } else {
            self.left_out += 1;
        }
        true
    }

    /// Remembers a chunk with a thread cache's key, which a fast bin may hold.
    pub(crate) fn offer_keyed(&mut self, span: &ArenaSpan, chunk: u64, size: u64, link: u64) {
        if self.keyed.len() < KEYED_MAX
            && let Some(candidate) = FastCandidate::of(span, chunk, link)
        {
            let size = u8::try_from(size / 16).unwrap_or(0) | KEYED;
            self.keyed.push((candidate, size));
        }
    }

    /// Returns which chunks are not what the walk took them for. `heads` are the arena's lists.
    pub(crate) fn settle(&mut self, span: &ArenaSpan, heads: &[u64]) -> Settled {
        let heads: Vec<u64> = heads.iter().copied().filter(|head| *head != 0).collect();
        let known: Vec<u32> = heads.iter().filter_map(|head| span.unit(*head)).collect();
        let links = known.iter().map(|unit| mixed(u64::from(*unit)));
        let balance = links.fold(self.balance, u64::wrapping_sub);
        if balance == 0 && self.ends == heads.len() as u64 && known.len() == heads.len() {
            return Settled::default();
        }
        if self.left_out > 0 || span.units * 16 > SPAN_BYTES_MAX {
            return Settled {
                is_uncertain: true,
                ..Settled::default()
            };
        }
        for (candidate, size) in self.keyed.drain(..) {
            self.chunks.push(candidate);
            self.sizes.push(size);
        }
        self.sort();
        self.unlinked(span, &known)
    }

    /// Removes candidates that nothing points at, and then those that only removed ones pointed at.
    fn unlinked(&self, span: &ArenaSpan, heads: &[u32]) -> Settled {
        let mut counts = LinkCounts::new(span.units);
        for unit in heads
            .iter()
            .copied()
            .chain(self.chunks.iter().map(|one| one.next))
        {
            counts.add(unit);
        }
        let mut gone = vec![0_u64; self.chunks.len().div_ceil(64)];
        let mut open = Vec::new();
        for start in 0..self.chunks.len() {
            open.push(start);
            while let Some(index) = open.pop() {
                let FastCandidate { unit, next } = self.chunks[index];
                let (word, bit) = (index / 64, 1 << (index % 64));
                if gone[word] & bit != 0 || counts.is_linked(unit) {
                    continue;
                }
                gone[word] |= bit;
                if next != END && counts.remove(next) {
                    let found = self.chunks.partition_point(|one| one.unit < next);
                    if self.chunks.get(found).is_some_and(|one| one.unit == next) {
                        open.push(found);
                    }
                }
            }
        }
        let mut settled = Settled::default();
        for (index, size) in self.sizes.iter().enumerate() {
            let is_gone = gone[index / 64] & (1 << (index % 64)) != 0;
            let units = usize::from(size & !KEYED).min(11);
            if is_gone && size & KEYED == 0 {
                settled.live[units] += 1;
            } else if !is_gone && size & KEYED != 0 {
                settled.fast[units] += 1;
            }
        }
        settled
    }

    /// Puts the candidates into order of address.
    fn sort(&mut self) {
        if self.chunks.is_sorted_by_key(|one| one.unit) {
            return;
        }
        let mut order: Vec<u32> = (0..u32::try_from(self.chunks.len()).unwrap_or(0)).collect();
        order.sort_unstable_by_key(|index| self.chunks[*index as usize].unit);
        self.chunks = order.iter().map(|i| self.chunks[*i as usize]).collect();
        self.sizes = order.iter().map(|i| self.sizes[*i as usize]).collect();
    }
}

/// How many links point at each unit: none, one, or more.
struct LinkCounts {
    once: Vec<u64>,
    more: Vec<u64>,
}

impl LinkCounts {
    fn new(units: u64) -> Self {
        let words = usize::try_from(units.div_ceil(64)).unwrap_or(0);
        Self {
            once: vec![0; words],
            more: vec![0; words],
        }
    }

    fn add(&mut self, unit: u32) {
        let (word, bit) = (unit as usize / 64, 1_u64 << (unit % 64));
        let Some(once) = self.once.get_mut(word) else {
            return;
        };
        if *once & bit != 0 {
            self.more[word] |= bit;
        }
        *once |= bit;
    }

    /// Removes a link. Returns whether none is left.
    fn remove(&mut self, unit: u32) -> bool {
        let (word, bit) = (unit as usize / 64, 1_u64 << (unit % 64));
        let (Some(once), Some(more)) = (self.once.get_mut(word), self.more.get_mut(word)) else {
            return false;
        };
        if *more & bit != 0 {
            *more &= !bit;
            return false;
        }
        *once &= !bit;
        true
    }

    fn is_linked(&self, unit: u32) -> bool {
        let word = self.once.get(unit as usize / 64).copied().unwrap_or(0);
        word & (1 << (unit % 64)) != 0
    }
}
