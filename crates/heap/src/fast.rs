//! Fast bins: free chunks that keep their in-use bit, so the walk takes them for live ones (up to 2.42).
//!
//! A fast chunk's first word links to the next one, so the walk collects chunks that may be one: small, with a word
//! that decodes to a place in the same arena. Which of them are is decided afterwards in memory, without reading the
//! process again: following the lists there took 2.6 s and 7.9 GiB of reads for 3.2 M entries.
//!
//! Each chunk of a list is pointed at exactly once, by the list's head or another chunk. If the sums of all candidates
//! and of all links agree, the candidates are exactly the lists. Otherwise the lists are followed among the candidates.
//! One that is torn, as in a process that frees meanwhile, would lose all that follows: then a candidate stays if
//! a head or another one that stays points at it.

use std::ops::Range;

/// The largest chunk that may be in a fast bin.
pub(crate) const FAST_BYTES_MAX: u64 = 176;
/// Candidates of one arena that are remembered: 36 MiB.
const CANDIDATES_MAX: usize = 4 << 20;

/// The parts of an arena in order of address, numbered through in units of 16 bytes.
#[derive(Debug, Clone, Default)]
pub(crate) struct ArenaSpan {
    parts: Vec<(Range<u64>, u64)>,
    units: u64,
    /// From the first part's start to the last one's end.
    whole: Range<u64>,
    /// For each stretch of `whole`, the first part that ends behind its start: all but few stretches have one part.
    firsts: Vec<u32>,
    /// Size of a stretch, as a power of two.
    shift: u32,
}

/// Stretches of an arena's addresses, about.
const STRETCHES: u64 = 1024;

impl ArenaSpan {
    pub(crate) fn new(mut ranges: Vec<Range<u64>>) -> Self {
        ranges.sort_by_key(|range| range.start);
        let mut span = Self::default();
        for range in ranges {
            let units = range.end.saturating_sub(range.start) / 16;
            let start = span.parts.first().map_or(range.start, |_| span.whole.start);
            span.whole = start..range.end.max(span.whole.end);
            span.parts.push((range, span.units));
            span.units = span.units.saturating_add(units);
        }
        let bytes = span.whole.end - span.whole.start;
        span.shift = (bytes / STRETCHES).checked_ilog2().unwrap_or(0) + 1;
        span.firsts = (0..(bytes >> span.shift) + 2)
            .map(|index| span.whole.start.saturating_add(index << span.shift))
            .map(|start| span.parts.partition_point(|(range, _)| range.end <= start))
            .map(|first| u32::try_from(first).unwrap_or(u32::MAX))
            .collect();
        span
    }

    /// The number of an address; `None` outside of the arena.
    #[inline]
    fn unit(&self, address: u64) -> Option<u32> {
        if !self.whole.contains(&address) {
            return None;
        }
        let stretch = usize::try_from((address - self.whole.start) >> self.shift).ok()?;
        let (mut first, last) = (*self.firsts.get(stretch)?, *self.firsts.get(stretch + 1)?);
        if first != last {
            let parts = self.parts.get(first as usize..last as usize)?;
            let behind = parts.partition_point(|(range, _)| range.end <= address);
            first += u32::try_from(behind).ok()?;
        }
        let (range, before) = self.parts.get(first as usize)?;
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
    /// Where the part begins that is walked, and its number.
    here: Option<(u64, u64)>,
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
/// Links that are removed in a row from torn lists without safe-linking, where many a live chunk begins with a zero or
/// a pointer. Chains of such chunks are short.
const PLAIN_ROUNDS: u32 = 64;

/// Chunks that are not what the walk took them for, by their size in units of 16 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Settled {
    /// Counted as fast, but live.
    pub(crate) live: [u64; 12],
    /// Counted as cached, but in a fast bin.
    pub(crate) fast: [u64; 12],
    /// Of either kind: a torn list, or one that could not be verified.
    pub(crate) doubtful: [u64; 12],
}

fn mixed(unit: u64) -> u64 {
    let x = unit.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (x ^ (x >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

impl FastCandidate {
    /// A chunk with a link that decodes to a list's end or to a place in the arena; else `None`.
    #[inline]
    fn of(span: &ArenaSpan, unit: u32, link: u64) -> Option<Self> {
        let next = if link == 0 {
            END
        } else if link.is_multiple_of(16) {
            span.unit(link)?
        } else {
            return None;
        };
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

    /// Begins a part of the arena: the chunks that follow lie in it.
    pub(crate) fn enter(&mut self, span: &ArenaSpan, part: &Range<u64>) {
        self.here = (span.unit(part.start)).map(|before| (part.start, u64::from(before)));
    }

    #[inline]
    fn unit_here(&self, chunk: u64) -> Option<u32> {
        let (start, before) = self.here?;
        u32::try_from(before + chunk.wrapping_sub(start) / 16).ok()
    }

    /// Adds a chunk if its link, decoded, is a list's end or a place in the arena. Returns whether it was.
    #[inline]
    pub(crate) fn offer(&mut self, span: &ArenaSpan, chunk: u64, size: u64, link: u64) -> bool {
        let Some(unit) = self.unit_here(chunk) else {
            return false;
        };
        let Some(FastCandidate { unit, next }) = FastCandidate::of(span, unit, link) else {
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
            && let Some(unit) = self.unit_here(chunk)
            && let Some(candidate) = FastCandidate::of(span, unit, link)
        {
            let size = u8::try_from(size / 16).unwrap_or(0) | KEYED;
            self.keyed.push((candidate, size));
        }
    }

    /// Returns which chunks are not what the walk took them for. `heads` are the arena's lists.
    pub(crate) fn settle(&mut self, span: &ArenaSpan, heads: &[u64], is_safe: bool) -> Settled {
        let heads: Vec<u64> = heads.iter().copied().filter(|head| *head != 0).collect();
        let known: Vec<u32> = heads.iter().filter_map(|head| span.unit(*head)).collect();
        let links = known.iter().map(|unit| mixed(u64::from(*unit)));
        let balance = links.fold(self.balance, u64::wrapping_sub);
        if balance == 0 && self.ends == heads.len() as u64 && known.len() == heads.len() {
            return Settled::default();
        }
        if self.left_out > 0 {
            return self.unverified();
        }
        for (candidate, size) in self.keyed.drain(..) {
            self.chunks.push(candidate);
            self.sizes.push(size);
        }
        self.sort();
        let index = UnitIndex::new(span.units, &self.chunks);
        let starts: Vec<Option<usize>> =
            heads.iter().map(|head| span.unit(*head).and_then(|unit| index.place(unit))).collect();
        let mut is_listed = vec![0_u64; self.chunks.len().div_ceil(64)];
        // Not short-circuiting: what each list reaches counts, whole or torn.
        let torn =
            starts.iter().filter(|start| !self.chase(&index, **start, &mut is_listed)).count();
        if torn > 0 {
            let rounds = if is_safe { 1 } else { PLAIN_ROUNDS };
            self.add_linked(&index, &starts, rounds, &mut is_listed);
        }
        let mut settled = self.settled(&is_listed);
        if torn > 0 && is_safe {
            settled.doubtful = settled.live;
        }
        settled
    }

    /// All candidates that are remembered, and what they stand for, are in doubt.
    fn unverified(&self) -> Settled {
        let mut settled = Settled::default();
        for size in &self.sizes {
            settled.doubtful[usize::from(size & !KEYED).min(11)] += 1;
        }
        let remembered = self.chunks.len().max(1) as u64;
        for count in &mut settled.doubtful {
            *count += *count * self.left_out / remembered;
        }
        settled
    }

    /// Follows one list among the candidates and notes them in `is_listed`. Returns whether it ended as a list does.
    fn chase(&self, index: &UnitIndex, start: Option<usize>, is_listed: &mut [u64]) -> bool {
        let Some(mut place) = start else { return false };
        let size = self.sizes[place] & !KEYED;
        loop {
            let (word, bit) = (place / 64, 1 << (place % 64));
            if is_listed[word] & bit != 0 || self.sizes[place] & !KEYED != size {
                return false;
            }
            is_listed[word] |= bit;
            let next = self.chunks[place].next;
            if next == END {
                return true;
            }
            match index.place(next) {
                Some(next) => place = next,
                None => return false,
            }
        }
    }

    /// Adds what is left of torn lists: candidates that a head or another candidate points at. One that nothing points
    /// at is removed with its link; then those that only removed ones pointed at, for `rounds` links.
    ///
    /// A fast bin is a stack: what is deep in it stays as it is, and only its first chunks come and go. The bound keeps
    /// the deep part where the chunk above it was taken meanwhile.
    fn add_linked(
        &self,
        index: &UnitIndex,
        starts: &[Option<usize>],
        rounds: u32,
        is_listed: &mut [u64],
    ) {
        let mut counts = vec![0_u8; self.chunks.len()];
        for place in starts.iter().copied().flatten() {
            counts[place] = 1;
        }
        for place in 0..self.chunks.len() {
            if let Some(next) = self.next(index, place) {
                counts[next] = counts[next].saturating_add(1);
            }
        }
        let mut gone: Vec<usize> = (0..counts.len()).filter(|i| counts[*i] == 0).collect();
        let mut is_gone = vec![0_u64; is_listed.len()];
        for _ in 0..rounds {
            let mut next_gone = Vec::new();
            for place in gone {
                is_gone[place / 64] |= 1 << (place % 64);
                if let Some(next) = self.next(index, place)
                    && (1..u8::MAX).contains(&counts[next])
                {
                    counts[next] -= 1;
                    if counts[next] == 0 {
                        next_gone.push(next);
                    }
                }
            }
            gone = next_gone;
        }
        for (listed, gone) in is_listed.iter_mut().zip(is_gone) {
            *listed |= !gone;
        }
    }

    /// Where the candidate is that another one of the same size links to.
    fn next(&self, index: &UnitIndex, place: usize) -> Option<usize> {
        let next = index.place(self.chunks[place].next)?;
        (self.sizes[next] & !KEYED == self.sizes[place] & !KEYED).then_some(next)
    }

    fn settled(&self, is_listed: &[u64]) -> Settled {
        let mut settled = Settled::default();
        for (place, size) in self.sizes.iter().enumerate() {
            let is_listed = is_listed[place / 64] & (1 << (place % 64)) != 0;
            let units = usize::from(size & !KEYED).min(11);
            if !is_listed && size & KEYED == 0 {
                settled.live[units] += 1;
            } else if is_listed && size & KEYED != 0 {
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

/// Where the candidate of a unit is among candidates in order of address: they are divided into about as many stretches
/// as there are candidates.
struct UnitIndex<'a> {
    candidates: &'a [FastCandidate],
    /// For each stretch, the first candidate that is not before it.
    firsts: Vec<u32>,
    shift: u32,
}

impl<'a> UnitIndex<'a> {
    fn new(units: u64, candidates: &'a [FastCandidate]) -> Self {
        let each = units / candidates.len().max(1) as u64;
        let shift = each.checked_ilog2().unwrap_or(0);
        let stretch = |candidate: &FastCandidate| candidate.unit >> shift;
        let last = candidates.last().map_or(0, stretch);
        let mut firsts = Vec::with_capacity(last as usize + 2);
        for (candidate, place) in candidates.iter().zip(0..) {
            let stretches = stretch(candidate) as usize + 1;
            firsts.resize(stretches.max(firsts.len()), place);
        }
        firsts.push(u32::try_from(candidates.len()).unwrap_or(u32::MAX));
        Self { candidates, firsts, shift }
    }

    fn place(&self, unit: u32) -> Option<usize> {
        let stretch = (unit >> self.shift) as usize;
        let (first, end) = (*self.firsts.get(stretch)?, *self.firsts.get(stretch + 1)?);
        let within = self.candidates.get(first as usize..end as usize)?;
        let place = within.binary_search_by_key(&unit, |one| one.unit).ok()?;
        Some(first as usize + place)
    }
}
