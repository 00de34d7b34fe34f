//! I/O over the size of the cache: one model for a job that was observed and for one that is planned.

use schemars::JsonSchema;
use serde::Serialize;
use units::{Bytes, Quantity, Ratio, Span};

use crate::cliffs::{JobCliff, cliffs};
use crate::pages::{PageTouches, SampleHalf};
use crate::stack_distance::StackDistances;
use crate::touches::Touches;
use crate::two_lists::two_list_misses;

/// Touches of pages that the pass over distances takes; more are sampled. A million are 4 GiB in pages of 4 KiB and 0.2 s.
const LRU_TOUCHES_MAX: u64 = 1 << 20;

/// The same for the two lists, which are run once for each size.
const TWO_LIST_TOUCHES_MAX: u64 = 1 << 17;

/// A run may be slower than the one that was watched by as much: what is dirty for longer is written more often.
const SLOWER_MAX: f64 = 3.0;

/// How many sizes a curve has besides those of its cliffs.
const GRID: i32 = 36;

/// What is this close to the least possible I/O is enough.
const ENOUGH: f64 = 1.01;

/// When the kernel writes what a job made dirty, whether or not the file is removed later.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WriteConditions {
    /// The kernel begins to write when there is more dirty memory than this; `None`: a tenth of the cache.
    pub dirty_background: Option<Bytes>,
    /// It writes what has been dirty for so long.
    pub dirty_expire: Span,
    /// What was seen to be removed unwritten where nothing had to be evicted: no more than that can be.
    pub cancelled_max: Option<Bytes>,
}

impl Default for WriteConditions {
    /// The kernel's defaults.
    fn default() -> Self {
        Self { dirty_background: None, dirty_expire: Span::from_secs(30), cancelled_max: None }
    }
}

impl WriteConditions {
    /// `vm.dirty_background_ratio` by default, of what can be dirty.
    const BACKGROUND_SHARE: Ratio = Ratio::from_percent(10.0);

    fn background(&self, cache: Bytes) -> Bytes {
        self.dirty_background.unwrap_or_else(|| cache.share(Self::BACKGROUND_SHARE))
    }
}

/// I/O with a cache of one size. The kernel is between two models; where they differ, the larger one is the cautious one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct CurvePoint {
    /// The size of the cache that the job has.
    pub cache_bytes: Bytes,
    /// Reads from the disk by the better of both models.
    pub read_bytes_least: Bytes,
    /// Reads from the disk by the worse one.
    pub read_bytes_most: Bytes,
    /// Writes to the disk, without what was removed before it can have been written.
    pub written_bytes: Bytes,
    /// The same without all that may have been removed before it was written.
    pub written_bytes_least: Bytes,
}

impl CurvePoint {
    /// Reads and writes by the worse model.
    pub fn net(&self) -> Bytes {
        self.read_bytes_most + self.written_bytes
    }

    /// Reads and writes by the better model.
    pub fn net_least(&self) -> Bytes {
        self.read_bytes_least + self.written_bytes_least
    }
}

/// The curve of a job.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct JobCurve {
    /// I/O at growing sizes of the cache.
    pub points: Vec<CurvePoint>,
    /// Where more cache makes a difference, the smallest first.
    pub cliffs: Vec<JobCliff>,
    /// I/O without any cache.
    pub net_bytes_most: Bytes,
    /// I/O with as much cache as the job could use.
    pub net_bytes_least: Bytes,
    /// The smallest cache with which the I/O is within 1 % of the least possible.
    pub enough_bytes: Bytes,
    /// The most cache that the job would ever fill.
    pub footprint_bytes: Bytes,
    /// What the job removed after it had written it: with enough cache, memory and speed it is never written.
    pub removed_bytes: Bytes,
    /// The share of pages that the curve was computed from.
    pub sampled_share: Ratio,
    /// By how much two halves of the sample differ at most; `None` where all pages were used.
    pub sampling_error: Option<Ratio>,
}

/// What the touches of a job mean for a cache of any size.
#[derive(Debug)]
pub struct JobModel {
    unit: Bytes,
    read: Bytes,
    written: Bytes,
    list: PageTouches,
    distances: StackDistances,
    /// A sample that is small enough to be run for each size.
    small: PageTouches,
    small_reads: u64,
    footprint: Bytes,
    removed: Bytes,
    /// Of that, what lived for so short a time that a slower run changes nothing.
    removed_soon: Bytes,
    conditions: WriteConditions,
    /// What a slower run writes more.
    written_in_slower_run: Bytes,
    /// Memory of the job itself, which is cache as long as the job does not have it.
    own_memory: Bytes,
    in_turns: InTurns,
}

/// Files that are read in turns: what the kernel reads ahead in each may be evicted before it is used.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct InTurns {
    /// What is read of such files, each time counted.
    pub(crate) read: Bytes,
    /// What the kernel reads ahead in all of them together.
    pub(crate) read_ahead: Bytes,
    /// What it reads ahead in one; nothing for a planned job.
    pub(crate) read_ahead_of_one: Bytes,
}

impl JobModel {
    /// One pass over all touches.
    pub fn of(touches: &Touches, conditions: WriteConditions) -> Self {
        let list = PageTouches::of(touches, LRU_TOUCHES_MAX, SampleHalf::Both);
        let distances = StackDistances::of(&list);
        let small = PageTouches::of(touches, TWO_LIST_TOUCHES_MAX, SampleHalf::Both);
        let is_read = |touch: &&crate::pages::PageTouch| touch.kind == crate::TouchKind::Read;
        let removed_within = |most: Span| -> Bytes {
            let is_it = |file: &&crate::TouchedFile| {
                let lived = file.removed.zip(file.first_written).map(|(at, first)| at - first);
                lived.is_some_and(|lived| lived < most)
            };
            let pages = touches.files().iter().filter(is_it).map(|file| file.written).sum();
            touches.unit().times(pages)
        };
        let footprint = Bytes::from_f64(
            touches.unit().as_f64() * distances.pages_max as f64 / list.rate.max(f64::MIN_POSITIVE),
        );
        Self {
            unit: touches.unit(),
            read: touches.read(),
            written: touches.written(),
            footprint,
            removed: removed_within(conditions.dirty_expire),
            removed_soon: removed_within(conditions.dirty_expire.times(1.0 / SLOWER_MAX)),
            written_in_slower_run: Bytes::ZERO,
            own_memory: Bytes::ZERO,
            in_turns: InTurns::default(),
            small_reads: small.touches.iter().filter(is_read).count() as u64,
            list,
            distances,
            small,
            conditions,
        }
    }

    /// The same, with what the kernel counts as made dirty where touches show less: metadata of the file system, which a slower
    /// run makes dirty more often.
    #[must_use]
    pub fn with_written(mut self, counted: Bytes) -> Self {
        let metadata = counted.saturating_sub(self.written);
        self.written_in_slower_run = Bytes::from_f64(metadata.as_f64() * (SLOWER_MAX - 1.0));
        self.written = self.written.max(counted);
        self
    }

    /// The same for a job with so much memory of its own at most, which reads some files in turns.
    #[must_use]
    pub(crate) fn with_own(mut self, own_memory: Bytes, in_turns: InTurns) -> Self {
        self.own_memory = own_memory;
        self.in_turns = in_turns;
        self
    }

    /// What is read again with a cache of this size because it was read ahead and evicted before it was used: at most each
    /// read of files in turns as often as the cache is too small for their read-ahead.
    fn read_ahead_again(&self, cache: Bytes) -> Bytes {
        let InTurns { read, read_ahead, .. } = self.in_turns;
        if cache >= read_ahead || cache == Bytes::ZERO {
            return Bytes::ZERO;
        }
        /// Of a file with less than this of its own, nothing is read ahead.
        const TIMES_MAX: f64 = 8.0;
        let times = (read_ahead.as_f64() / cache.as_f64()).min(TIMES_MAX);
        Bytes::from_f64(read.as_f64() * times)
    }

    /// By how much reads of an observed job may be more: read-ahead and metadata differ from run to run, and with a cache of less
    /// than four times the read-ahead even one file at a time is read in part again (17 % of tar's reads at 24 MiB with 8 MiB
    /// of read-ahead).
    fn inexact(&self, read: Bytes, cache: Bytes) -> Bytes {
        const USUAL: Ratio = Ratio::new(0.02);
        const SMALL: Ratio = Ratio::new(0.25);
        let is_small = cache > Bytes::ZERO && cache < self.in_turns.read_ahead_of_one.times(4);
        match self.in_turns.read_ahead_of_one {
            Bytes::ZERO => Bytes::ZERO,
            _ => read.share(if is_small { SMALL } else { USUAL }),
        }
    }

    /// How many pages of a list a cache of this size has.
    fn pages(&self, cache: Bytes, list: &PageTouches) -> f64 {
        cache.as_f64() / self.unit.as_f64().max(1.0) * list.rate
    }

    /// Reads from the disk by LRU.
    pub fn lru_read(&self, cache: Bytes) -> Bytes {
        let misses = self.distances.misses(self.pages(cache, &self.list));
        self.share_of_reads(misses, self.distances.reads())
    }

    /// Reads from the disk by two lists.
    pub fn two_list_read(&self, cache: Bytes) -> Bytes {
        let misses = two_list_misses(&self.small, self.pages(cache, &self.small));
        self.share_of_reads(misses, self.small_reads)
    }

    /// As a share of all reads, which were counted, it is exact where nothing is read twice.
    fn share_of_reads(&self, misses: u64, reads: u64) -> Bytes {
        if reads == 0 {
            return Bytes::ZERO;
        }
        self.read.share(Ratio::new(misses as f64 / reads as f64))
    }

    /// What is removed unwritten with a cache of this size: all or nothing. Once a page must be evicted while others are
    /// dirty, the kernel writes nearly all of them (measured: at 300 of 300 MiB 105 of 105 MB were cancelled, at 216 4 to 46).
    pub fn cancelled(&self, cache: Bytes) -> Bytes {
        let has_room = cache >= self.footprint;
        let stays_dirty = self.removed < self.conditions.background(cache);
        if !has_room || !stays_dirty {
            return Bytes::ZERO;
        }
        self.conditions.cancelled_max.map_or(self.removed, |most| most.min(self.removed))
    }

    /// Of that, what is removed unwritten in a slower run as well.
    fn surely_cancelled(&self, cache: Bytes) -> Bytes {
        self.cancelled(cache).min(self.removed_soon)
    }

    /// I/O with a cache of this size.
    pub fn at(&self, cache: Bytes) -> CurvePoint {
        let (lru, two_lists) = (self.lru_read(cache), self.two_list_read(cache));
        let most = lru.max(two_lists);
        let mut least = lru.min(two_lists);
        if self.own_memory > Bytes::ZERO && cache > Bytes::ZERO {
            let with_own = cache + self.own_memory;
            least = least.min(self.lru_read(with_own)).min(self.two_list_read(with_own));
        }
        CurvePoint {
            cache_bytes: cache,
            read_bytes_least: least,
            read_bytes_most: most + self.read_ahead_again(cache) + self.inexact(most, cache),
            written_bytes: self.written.saturating_sub(self.surely_cancelled(cache))
                + self.written_in_slower_run,
            written_bytes_least: self.written.saturating_sub(self.cancelled(cache)),
        }
    }

    /// Reads from the disk of each of so many steps, by LRU.
    pub fn read_by_step(&self, cache: Bytes, steps: usize) -> Vec<Bytes> {
        let misses = self.distances.misses_by_step(self.pages(cache, &self.list), steps);
        let reads = self.distances.reads();
        misses.into_iter().map(|misses| self.share_of_reads(misses, reads)).collect()
    }

    /// What the job removed so soon after it wrote it that it need not be written.
    pub const fn removed(&self) -> Bytes {
        self.removed
    }

    /// The most cache that the job would ever fill.
    pub const fn footprint(&self) -> Bytes {
        self.footprint
    }

    /// The size of the smallest cache in which no dirty page of a removed file would be written, with all conditions of it.
    fn unwritten_from(&self) -> Option<Bytes> {
        let by_background = match self.conditions.dirty_background {
            Some(_) => Bytes::ZERO,
            None => Bytes::from_f64(
                (self.removed.as_f64() + 1.0) / WriteConditions::BACKGROUND_SHARE.get(),
            ),
        };
        let from = self.footprint.max(by_background);
        (self.cancelled(from) > Bytes::ZERO).then_some(from)
    }

    /// The whole curve; sizes of interest are points of it.
    pub fn curve(&self, of_interest: &[Bytes]) -> JobCurve {
        let weight = match self.distances.reads() {
            0 => 0.0,
            reads => self.read.as_f64() / reads as f64,
        };
        let per_page = self.unit.as_f64() / self.list.rate.max(f64::MIN_POSITIVE);
        let sizes = self
            .distances
            .rereads
            .iter()
            .map(|reread| Bytes::from_f64((f64::from(reread.distance) + 1.0) * per_page));
        let most = self.at(Bytes::ZERO);
        let unwritten = self.unwritten_from().map(|from| (from, self.cancelled(from)));
        let cliffs = cliffs(sizes, weight, unwritten, most.net());
        let points = self.points(&cliffs, of_interest);
        let least = points.iter().map(CurvePoint::net).min().unwrap_or(most.net());
        let is_enough = |point: &&CurvePoint| point.net().as_f64() <= least.as_f64() * ENOUGH;
        JobCurve {
            net_bytes_most: most.net(),
            net_bytes_least: least,
            enough_bytes: points.iter().find(is_enough).map_or(Bytes::ZERO, |at| at.cache_bytes),
            footprint_bytes: self.footprint,
            removed_bytes: self.removed,
            sampled_share: Ratio::new(self.list.rate),
            sampling_error: None,
            cliffs,
            points,
        }
    }

    fn points(&self, cliffs: &[JobCliff], of_interest: &[Bytes]) -> Vec<CurvePoint> {
        /// The smallest size as a share of the largest: below it even a small job has nothing.
        const SPAN: f64 = 1.0 / 512.0;
        /// Sizes within a cliff.
        const STEPS_OF_CLIFF: u64 = 10;
        let top = cliffs.iter().map(|cliff| cliff.to_bytes).max().unwrap_or_default();
        let top = top.max(self.footprint).as_f64() * 1.1;
        let grid = (0..=GRID)
            .map(|at| Bytes::from_f64(top * SPAN.powf(1.0 - f64::from(at) / f64::from(GRID))));
        let within = cliffs.iter().flat_map(|cliff| {
            let height = cliff.to_bytes.saturating_sub(cliff.from_bytes).get();
            (0..=STEPS_OF_CLIFF)
                .map(move |at| cliff.from_bytes + Bytes::new(height / STEPS_OF_CLIFF * at))
                .chain([cliff.to_bytes])
        });
        let mut sizes: Vec<Bytes> = [Bytes::ZERO]
            .into_iter()
            .chain(grid)
            .chain(within)
            .chain(of_interest.iter().copied())
            .collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes.into_iter().map(|size| self.at(size)).collect()
    }

    /// By how much two disjoint halves of the sample differ at most over these sizes, as a share of all reads; `None` where
    /// every page was used. The error of both together is about half of it.
    pub fn sampling_error(&self, touches: &Touches, sizes: &[Bytes]) -> Option<Ratio> {
        if self.list.rate >= 1.0 {
            return None;
        }
        let halves = [SampleHalf::First, SampleHalf::Second].map(|half| {
            let list = PageTouches::of(touches, LRU_TOUCHES_MAX, half);
            (StackDistances::of(&list), list)
        });
        let ratio = |(distances, list): &(StackDistances, PageTouches), size: Bytes| {
            let reads = distances.reads().max(1) as f64;
            distances.misses(self.pages(size, list)) as f64 / reads
        };
        let [first, second] = &halves;
        let differences =
            sizes.iter().map(|size| (ratio(first, *size) - ratio(second, *size)).abs());
        Some(Ratio::new(differences.fold(0.0, f64::max) / 2.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TouchKind;

    const PAGE: Bytes = Bytes::from_kib(4);

    /// tar of 20,000 pages of logs to a file, then gzip of that to 2,000 pages, and the tar file is removed.
    fn backup(seconds: u64) -> Touches {
        let mut touches = Touches::of_unit(PAGE);
        let [logs, tar, gz] = [1, 2, 3].map(|inode| touches.file((1, inode)));
        for page in (0..20_000).step_by(10) {
            touches.touch(TouchKind::Read, (logs, 0), (page, 10), Span::ZERO);
            touches.touch(TouchKind::Written, (tar, 0), (page, 10), Span::ZERO);
        }
        for page in (0..20_000).step_by(10) {
            touches.touch(TouchKind::Read, (tar, 1), (page, 10), Span::from_secs(seconds));
            touches.touch(TouchKind::Written, (gz, 1), (page / 10, 1), Span::from_secs(seconds));
        }
        touches.remove(tar, 0, Span::from_secs(seconds));
        touches
    }

    fn in_pages(bytes: Bytes) -> u64 {
        bytes.get() / PAGE.get()
    }

    #[test]
    fn a_backup_has_three_plateaus() {
        let enough = WriteConditions {
            dirty_background: Some(Bytes::from_gib(1)),
            ..WriteConditions::default()
        };
        let model = JobModel::of(&backup(1), enough);
        let net = |pages: u64| in_pages(model.at(PAGE.times(pages)).net());
        assert_eq!((net(0), net(19_000)), (62_000, 62_000));
        assert_eq!((net(40_200), net(41_999), net(42_000)), (42_000, 42_000, 22_000));
        let curve = model.curve(&[]);
        assert_eq!(in_pages(curve.net_bytes_most), 62_000);
        assert_eq!(in_pages(curve.net_bytes_least), 22_000);
        assert_eq!(in_pages(curve.enough_bytes), 42_000);
        assert_eq!(curve.cliffs.len(), 2, "{:?}", curve.cliffs);
        let reads = &curve.cliffs[0];
        assert!((20_000..22_500).contains(&in_pages(reads.from_bytes)), "{reads:?}");
        assert!((39_500..40_500).contains(&in_pages(reads.to_bytes)), "{reads:?}");
    }

    #[test]
    fn a_file_that_lives_long_or_is_large_is_written_at_any_size() {
        for (seconds, background) in [(40, Some(Bytes::from_gib(1))), (1, Some(Bytes::from_mib(1)))]
        {
            let conditions =
                WriteConditions { dirty_background: background, ..WriteConditions::default() };
            let model = JobModel::of(&backup(seconds), conditions);
            assert_eq!(in_pages(model.at(PAGE.times(90_000)).net()), 42_000);
            assert_eq!(in_pages(model.curve(&[]).net_bytes_least), 42_000);
        }
    }

    #[test]
    fn a_sample_gives_the_curve_of_the_whole_and_its_error() {
        // Three times 3 GiB in a ring, in pages: 2.4 million touches.
        let mut touches = Touches::of_unit(PAGE);
        let file = touches.file((1, 1));
        for _ in 0..3 {
            for page in (0..800_000).step_by(256) {
                touches.touch(TouchKind::Read, (file, 0), (page, 256), Span::ZERO);
            }
        }
        let model = JobModel::of(&touches, WriteConditions::default());
        let point = |pages: u64| in_pages(model.at(PAGE.times(pages)).read_bytes_most);
        assert_eq!(point(700_000), 2_400_000);
        let cached = point(820_000);
        assert!(cached.abs_diff(800_000) < 8_000, "{cached}");
        let error = model.sampling_error(&touches, &[PAGE.times(700_000), PAGE.times(820_000)]);
        assert!(error.is_some_and(|error| error < Ratio::from_percent(2.0)), "{error:?}");
    }

    #[test]
    fn a_job_without_any_touch_has_a_curve() {
        let curve = JobModel::of(&Touches::of_unit(PAGE), WriteConditions::default()).curve(&[]);
        assert_eq!((curve.net_bytes_most, curve.enough_bytes), (Bytes::ZERO, Bytes::ZERO));
        assert!(curve.cliffs.is_empty());
    }
}
