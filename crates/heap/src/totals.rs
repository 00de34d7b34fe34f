//! Sums over chunks: by kind, and by size.

/// Chunks and bytes of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Amount {
    /// Number of chunks.
    pub chunks: u64,
    /// Their size in bytes, headers included.
    pub bytes: u64,
}

impl Amount {
    /// Adds another amount.
    pub(crate) fn join(&mut self, other: Self) {
        self.chunks += other.chunks;
        self.bytes += other.bytes;
    }

    pub(crate) fn take(&mut self, other: Self) {
        self.chunks = self.chunks.saturating_sub(other.chunks);
        self.bytes = self.bytes.saturating_sub(other.bytes);
    }
}

/// Chunks by size: class `n` has sizes from 2^n bytes to just below 2^(n+1).
pub type Histogram = [Amount; 48];

/// Sums over chunks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChunkTotals {
    /// Allocated by the program.
    pub live: Amount,
    /// In thread caches.
    pub cached: Amount,
    /// In fast bins.
    pub fast: Amount,
    /// In other bins.
    pub binned: Amount,
    /// Behind the last chunk.
    pub top_bytes: u64,
    /// malloc's own.
    pub overhead_bytes: u64,
    /// Torn by writes during the walk, or corrupt.
    pub unknown_bytes: u64,
    /// Headers in swap: not read.
    pub swapped_bytes: u64,
    /// Not the heap's: between blocks of a main arena that could not grow by `brk`.
    pub foreign_bytes: u64,
    /// Times that the walk lost its place and found it again.
    pub resyncs: u64,
    /// Live chunks by size.
    pub live_sizes: Histogram,
    /// Free chunks by size, those in fast bins and thread caches included.
    pub free_sizes: Histogram,
}

impl Default for ChunkTotals {
    fn default() -> Self {
        Self {
            live: Amount::default(),
            cached: Amount::default(),
            fast: Amount::default(),
            binned: Amount::default(),
            top_bytes: 0,
            overhead_bytes: 0,
            unknown_bytes: 0,
            swapped_bytes: 0,
            foreign_bytes: 0,
            resyncs: 0,
            live_sizes: [Amount::default(); 48],
            free_sizes: [Amount::default(); 48],
        }
    }
}

impl ChunkTotals {
    /// Returns all bytes that are the arena's: those of all chunks, and malloc's own.
    pub(crate) const fn arena_bytes(&self) -> u64 {
        let chunks = self.live.bytes + self.cached.bytes + self.fast.bytes + self.binned.bytes;
        chunks + self.top_bytes + self.overhead_bytes + self.unknown_bytes + self.swapped_bytes
    }

    /// Adds chunks of one size.
    fn join(&mut self, kind: ChunkKind, amount: Amount, size: u64) {
        let class = size_class(size);
        let (sum, sizes) = match kind {
            ChunkKind::Live => (&mut self.live, &mut self.live_sizes),
            ChunkKind::Cached => (&mut self.cached, &mut self.free_sizes),
            ChunkKind::Fast => (&mut self.fast, &mut self.free_sizes),
            ChunkKind::Binned => (&mut self.binned, &mut self.free_sizes),
        };
        sum.join(amount);
        sizes[class].join(amount);
    }

    /// Adds the totals of another part.
    pub(crate) fn add(&mut self, other: &Self) {
        self.live.join(other.live);
        self.cached.join(other.cached);
        self.fast.join(other.fast);
        self.binned.join(other.binned);
        self.top_bytes += other.top_bytes;
        self.overhead_bytes += other.overhead_bytes;
        self.unknown_bytes += other.unknown_bytes;
        self.swapped_bytes += other.swapped_bytes;
        self.foreign_bytes += other.foreign_bytes;
        self.resyncs += other.resyncs;
        for (to, from) in self.live_sizes.iter_mut().zip(other.live_sizes) {
            to.join(from);
        }
        for (to, from) in self.free_sizes.iter_mut().zip(other.free_sizes) {
            to.join(from);
        }
    }
}

/// The class of a size in a [`Histogram`].
pub(crate) fn size_class(size: u64) -> usize {
    size.checked_ilog2().unwrap_or(0).min(47) as usize
}

/// What a chunk is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChunkKind {
    Live,
    Cached,
    Fast,
    Binned,
}

const KINDS: [ChunkKind; 4] =
    [ChunkKind::Live, ChunkKind::Cached, ChunkKind::Fast, ChunkKind::Binned];
/// Sizes below this, in units of 16 bytes, have a counter each.
const UNITS: usize = 128;

/// Chunks as the walk counts them. Small ones, nearly all, cost one increment each; sums are made afterwards.
#[derive(Debug)]
pub(crate) struct ChunkCounts {
    small: [[u64; UNITS]; KINDS.len()],
    large: ChunkTotals,
}

impl ChunkCounts {
    pub(crate) fn new() -> Self {
        Self { small: [[0; UNITS]; KINDS.len()], large: ChunkTotals::default() }
    }

    /// Counts a chunk; its size is a multiple of 16.
    #[inline]
    pub(crate) fn add(&mut self, kind: ChunkKind, bytes: u64) {
        let units = usize::try_from(bytes / 16).unwrap_or(usize::MAX);
        match self.small[kind as usize].get_mut(units) {
            Some(chunks) => *chunks += 1,
            None => self.large.join(kind, Amount { chunks: 1, bytes }, bytes),
        }
    }

    /// The sums.
    pub(crate) fn add_to(&self, totals: &mut ChunkTotals) {
        totals.add(&self.large);
        for kind in KINDS {
            let sizes = (0_u64..).step_by(16).zip(self.small[kind as usize]);
            for (size, chunks) in sizes.filter(|(_, chunks)| *chunks > 0) {
                let bytes = chunks * size;
                totals.join(kind, Amount { chunks, bytes }, size);
            }
        }
    }
}
