//! Columns of equal width, and the values of a series in each.

use std::ops::Range;

use timeline::Timeline;
use units::Span;

use super::ColumnCells;

/// Columns of equal width. A moment on a border belongs to the column that ends there.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ColumnGrid {
    from: Span,
    step: Span,
    columns: usize,
}

impl ColumnGrid {
    /// Creates at most `most` columns over all of a timeline.
    pub(super) fn over(timeline: &Timeline, most: usize) -> Self {
        let (from, to) = ends(timeline);
        let columns = u64::try_from(most.max(1)).unwrap_or(u64::MAX);
        let step = (to - from).as_nanos().div_ceil(columns);
        Self::of_step(timeline, Span::from_nanos(step.max(1)))
    }

    /// Creates columns of this width over all of a timeline.
    pub(super) fn of_step(timeline: &Timeline, step: Span) -> Self {
        let (from, to) = ends(timeline);
        let columns = (to - from).as_nanos().div_ceil(step.as_nanos().max(1)).max(1);
        Self { from, step, columns: usize::try_from(columns).unwrap_or(usize::MAX) }
    }

    pub(super) fn columns(&self) -> usize {
        self.columns
    }

    pub(super) fn step(&self) -> Span {
        self.step
    }

    /// Returns the column of a moment; moments beyond the ends belong to the first and the last column.
    fn column(&self, at: Span) -> usize {
        let nanos = (at - self.from).as_nanos();
        let column = nanos.saturating_sub(1) / self.step.as_nanos().max(1);
        usize::try_from(column).unwrap_or(usize::MAX).min(self.columns - 1)
    }

    /// Returns the end of each column.
    pub(super) fn ends(&self) -> Vec<Span> {
        (0..self.columns).map(|column| self.end(column)).collect()
    }

    fn end(&self, column: usize) -> Span {
        let number = u64::try_from(column).unwrap_or(u64::MAX).saturating_add(1);
        let nanos = self.step.as_nanos().saturating_mul(number);
        self.from.plus(Span::from_nanos(nanos))
    }

    /// Returns a grid over the same time with columns `by` times as wide.
    pub(super) fn merged(&self, by: usize) -> Self {
        let times = u64::try_from(by).unwrap_or(u64::MAX);
        Self {
            from: self.from,
            step: Span::from_nanos(self.step.as_nanos().saturating_mul(times)),
            columns: self.columns.div_ceil(by.max(1)),
        }
    }
}

/// Returns the beginning and the end of a timeline.
fn ends(timeline: &Timeline) -> (Span, Span) {
    let times = timeline.times();
    let from = times.first().copied().unwrap_or_default();
    (from, times.last().copied().unwrap_or(from))
}

/// The seconds within a column that a sample speaks for.
#[derive(Debug, Clone, Copy, PartialEq)]
struct SampleSlot {
    sample: usize,
    column: usize,
    seconds: f64,
}

/// The columns that the samples of a part speak for.
#[derive(Debug, Default)]
pub(super) struct Slots(Vec<SampleSlot>);

impl Slots {
    /// The value at a sample speaks for the time since the previous sample. After a break that time is unknown: the
    /// value then speaks for one usual interval at its own moment. `times` are the times of the samples on the clock of
    /// the grid.
    pub(super) fn of(part: &Timeline, times: &[Span], grid: &ColumnGrid) -> Self {
        let usual = part.interval().unwrap_or(Span::from_secs(1));
        let mut slots = Self(Vec::with_capacity(times.len()));
        let mut breaks = part.breaks().iter().peekable();
        for (sample, at) in times.iter().enumerate() {
            let mut is_broken = sample == 0;
            while let Some(gap) = breaks.next_if(|gap| gap.before <= sample) {
                is_broken |= gap.before == sample && gap.kind.breaks_rates();
            }
            match sample.checked_sub(1).filter(|_| !is_broken) {
                Some(before) => slots.spread(sample, times[before], *at, grid),
                None => slots.put(sample, grid.column(*at), usual),
            }
        }
        slots
    }

    /// Keeps the slots of these samples.
    pub(super) fn only(mut self, samples: &Range<usize>) -> Self {
        self.0.retain(|slot| samples.contains(&slot.sample));
        self
    }

    /// Keeps the slots in columns that do not lie in a gap.
    pub(super) fn outside(mut self, gaps: &[(Span, Span)], grid: &ColumnGrid) -> Self {
        let mut has_data = vec![true; grid.columns()];
        for (from, to) in gaps {
            let first = grid.column(from.plus(Span::from_nanos(1)));
            for (column, has_data) in has_data.iter_mut().enumerate().skip(first) {
                if grid.end(column) > *to {
                    break;
                }
                *has_data &= grid.end(column) - grid.step < *from;
            }
        }
        self.0.retain(|slot| has_data[slot.column]);
        self
    }

    fn put(&mut self, sample: usize, column: usize, time: Span) {
        self.0.push(SampleSlot { sample, column, seconds: time.as_secs_f64() });
    }

    fn spread(&mut self, sample: usize, from: Span, to: Span, grid: &ColumnGrid) {
        let last = grid.column(to);
        let mut from = from;
        // The first moment of a column belongs to the column before.
        let first = grid.column(from.plus(Span::from_nanos(1)));
        for column in first..last {
            let end = grid.end(column);
            self.put(sample, column, end - from);
            from = end;
        }
        self.put(sample, last, to - from);
    }
}

/// The values of a series in one column, added up.
#[derive(Debug, Clone, Copy, PartialEq)]
struct ColumnSum {
    /// Values multiplied by seconds.
    sum: f64,
    seconds: f64,
    least: f64,
    most: f64,
}

impl ColumnSum {
    const NOTHING: Self =
        Self { sum: 0.0, seconds: 0.0, least: f64::INFINITY, most: f64::NEG_INFINITY };

    fn take(&mut self, value: f64, seconds: f64) {
        self.sum += value * seconds;
        self.seconds += seconds;
        self.least = self.least.min(value);
        self.most = self.most.max(value);
    }

    fn add(&mut self, other: &Self) {
        self.sum += other.sum;
        self.seconds += other.seconds;
        self.least = self.least.min(other.least);
        self.most = self.most.max(other.most);
    }

    fn has_data(&self) -> bool {
        self.least <= self.most
    }

    /// Returns the mean, kept within least and largest despite rounding; a value without duration is its own mean.
    fn mean(&self) -> f64 {
        if self.seconds > 0.0 {
            (self.sum / self.seconds).clamp(self.least, self.most)
        } else {
            self.least
        }
    }
}

/// The values of a series in the columns of a grid.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ColumnSums(Vec<ColumnSum>);

impl ColumnSums {
    pub(super) fn new(grid: &ColumnGrid) -> Self {
        Self(vec![ColumnSum::NOTHING; grid.columns()])
    }

    /// Adds the values of a part. NaN and infinity count as not measured.
    pub(super) fn take(&mut self, slots: &Slots, curve: &[Option<f64>]) {
        for slot in &slots.0 {
            if let Some(Some(value)) = curve.get(slot.sample)
                && value.is_finite()
                && let Some(sum) = self.0.get_mut(slot.column)
            {
                sum.take(*value, slot.seconds);
            }
        }
    }

    /// Whether any column has a value.
    pub(super) fn has_data(&self) -> bool {
        self.0.iter().any(ColumnSum::has_data)
    }

    /// Fills columns without values from another series of columns on the same grid.
    pub(super) fn or_else(&mut self, others: &Self) {
        let empty = self.0.iter_mut().zip(&others.0);
        for (sum, other) in empty.filter(|(sum, _)| !sum.has_data()) {
            *sum = *other;
        }
    }

    /// Returns the same values in columns `by` times as wide.
    pub(super) fn merged(&self, by: usize) -> Self {
        let merge = |sums: &[ColumnSum]| {
            let mut merged = ColumnSum::NOTHING;
            sums.iter().for_each(|sum| merged.add(sum));
            merged
        };
        Self(self.0.chunks(by.max(1)).map(merge).collect())
    }

    /// Returns the means, and the extremes if they are known for every sample.
    pub(super) fn cells(&self, with_extremes: bool) -> ColumnCells {
        let all = |of: fn(&ColumnSum) -> f64| {
            let cells = self.0.iter().map(|sum| sum.has_data().then(|| of(sum)));
            cells.collect::<Vec<_>>()
        };
        if !self.has_data() {
            return ColumnCells::default();
        }
        ColumnCells {
            mean: all(ColumnSum::mean),
            extremes: with_extremes.then(|| (all(|sum| sum.least), all(|sum| sum.most))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use timeline::Sample;

    const fn second(n: u64) -> Span {
        Span::from_secs(n)
    }

    fn watched(at: &[u64]) -> Timeline {
        let mut timeline = Timeline::default();
        for second in at {
            timeline.push(&Sample::at(Span::from_secs(*second))).unwrap();
        }
        timeline
    }

    fn cells(at: &[u64], columns: usize, curve: &[Option<f64>]) -> ColumnCells {
        let timeline = watched(at);
        let grid = ColumnGrid::over(&timeline, columns);
        let mut sums = ColumnSums::new(&grid);
        sums.take(&Slots::of(&timeline, timeline.times(), &grid), curve);
        sums.cells(true)
    }

    #[test]
    fn a_moment_on_a_border_belongs_to_the_column_that_ends_there() {
        let grid = ColumnGrid::over(&watched(&[0, 100]), 10);
        assert_eq!(grid.ends()[..2], [second(10), second(20)]);
        let columns = [0, 1, 10, 11, 100, 5_000].map(|at| grid.column(second(at)));
        assert_eq!(columns, [0, 0, 0, 1, 9, 9]);
        let later = watched(&[0, 500, 600]).part(1, 3);
        assert_eq!(ColumnGrid::over(&later, 10).ends()[0], second(510));
    }

    #[test]
    fn a_grid_never_has_more_columns_than_are_asked_for_and_reaches_the_end() {
        for to in [1, 2, 1_499, 1_500, 1_501, 86_399, 604_799] {
            let grid = ColumnGrid::over(&watched(&[0, to]), 1_500);
            assert!(grid.columns() <= 1_500, "{to}");
            assert!(*grid.ends().last().unwrap() >= second(to), "{to}");
            let merged = grid.merged(7);
            assert!(*merged.ends().last().unwrap() >= second(to), "{to}");
        }
        assert_eq!(ColumnGrid::over(&watched(&[0]), 1_500).columns(), 1);
    }

    #[test]
    fn a_value_speaks_for_the_time_since_the_sample_before() {
        // 30 s of value 8 cover three columns; 1 s of 2 and 9 s of 4 share one.
        let found = cells(&[0, 1, 10, 40], 4, &[None, Some(2.0), Some(4.0), Some(8.0)]);
        let mean = [Some(3.8), Some(8.0), Some(8.0), Some(8.0)];
        assert_eq!(found.mean, mean);
        let (least, most) = found.extremes.unwrap();
        assert_eq!((least[0], most[0]), (Some(2.0), Some(4.0)));
    }

    #[test]
    fn nothing_is_told_of_the_time_before_a_sample_after_a_gap() {
        let mut at: Vec<u64> = (0..50).collect();
        at.extend(500..550);
        let curve: Vec<_> = (0..100).map(|i| Some(f64::from(i))).collect();
        let found = cells(&at, 55, &curve);
        let has_data = |column: usize| found.mean[column].is_some();
        assert!((0..5).all(has_data) && (50..55).all(has_data));
        assert!((5..50).all(|column| !has_data(column)));
    }

    #[test]
    fn merged_columns_are_those_of_a_wider_grid() {
        let timeline = watched(&(0..1_000).collect::<Vec<_>>());
        let curve: Vec<_> =
            (0..1_000).map(|i| (i % 7 > 1).then(|| f64::from(i * i % 101))).collect();
        let fine = ColumnGrid::of_step(&timeline, second(5));
        let of = |grid: &ColumnGrid| {
            let mut sums = ColumnSums::new(grid);
            sums.take(&Slots::of(&timeline, timeline.times(), grid), &curve);
            sums
        };
        let (merged, wide) = (of(&fine).merged(4), of(&fine.merged(4)));
        let (merged, wide) = (merged.cells(true), wide.cells(true));
        assert_eq!(merged.extremes, wide.extremes);
        for (a, b) in merged.mean.iter().zip(&wide.mean) {
            assert!((a.unwrap() - b.unwrap()).abs() < 1e-9);
        }
    }

    #[test]
    fn what_is_no_number_was_not_measured() {
        let curve = [Some(f64::NAN), Some(f64::INFINITY), Some(1.0)];
        let found = cells(&[0, 1, 2], 2, &curve);
        assert_eq!(found.mean, [None, Some(1.0)]);
    }
}
