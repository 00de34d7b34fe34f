//! One signal's readings over time, as runs: a value that does not change takes no memory.

use smallvec::SmallVec;

use super::read_set::{ReadSet, SamplesRead};
use crate::signals::SignalId;

/// A value that was the reading in all samples, from the first to the last, in which the entity was read. Where only
/// some entities were read in a sample in between, it is the reading before and after it. Weeks have millions of runs,
/// so a run must be small.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    first: u32,
    last: u32,
    /// The reading, in the catalogue's unit.
    pub value: u64,
}

impl Run {
    /// A run from a first sample to a last one.
    pub fn new(first: usize, last: usize, value: u64) -> Self {
        Self { first: number(first), last: number(last), value }
    }

    /// A run of one sample.
    pub fn at(index: usize, value: u64) -> Self {
        Self::new(index, index, value)
    }

    /// Index of the first sample.
    pub const fn first(self) -> usize {
        self.first as usize
    }

    /// Index of the last sample.
    pub const fn last(self) -> usize {
        self.last as usize
    }

    /// The same run with another last sample.
    #[must_use]
    pub fn ending_at(self, last: usize) -> Self {
        Self { last: number(last), ..self }
    }
}

const _: () = assert!(size_of::<Run>() == 16);

/// Converts an index: no timeline in memory has more samples, because each takes about forty bytes without its
/// readings.
fn number(index: usize) -> u32 {
    debug_assert!(u32::try_from(index).is_ok(), "{index} samples");
    u32::try_from(index).unwrap_or(u32::MAX)
}

/// Consecutive readings of the same value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ValuePart {
    /// The reading before it, with its sample; `None` where the time between is unknown.
    pub(super) before: Option<(usize, u64)>,
    /// The first sample in which it was read.
    pub(super) first: usize,
    /// The last sample in which it was read.
    pub(super) last: usize,
    pub(super) value: u64,
}

/// One signal's readings. A single run has no allocation: most processes and cgroups of a busy host have a dozen columns of
/// one run each.
#[derive(Debug, Clone, Default)]
pub(super) struct ReadingColumn(SmallVec<[Run; 1]>);

const _: () = assert!(size_of::<ReadingColumn>() == size_of::<Vec<Run>>());

impl ReadingColumn {
    /// Sets the reading of a sample, which is the last so far. `before` is the last earlier sample in which the whole
    /// table was read. Returns by how many runs the column grew.
    pub(super) fn set(&mut self, index: usize, before: Option<usize>, value: u64) -> usize {
        let Some(last) = self.0.last_mut() else {
            self.0.push(Run::at(index, value));
            return 1;
        };
        if last.last() == index {
            // Two files have this field: the later reading wins.
            if last.value == value {
                return 0;
            }
            if last.first() == index {
                last.value = value;
                return 0;
            }
            *last = last.ending_at(before.unwrap_or(last.first()).max(last.first()));
        } else if last.value == value && before.is_none_or(|before| before <= last.last()) {
            *last = last.ending_at(index);
            return 0;
        }
        self.0.push(Run::at(index, value));
        1
    }

    /// Sets the reading of any sample, in a table that is read in every one.
    pub(super) fn amend(&mut self, index: usize, value: u64) {
        let end = self.0.partition_point(|run| run.first() <= index);
        let over = end.checked_sub(1).filter(|at| index <= self.0[*at].last());
        let Some(at) = over else {
            self.0.insert(end, Run::at(index, value));
            return;
        };
        let run = self.0[at];
        let mut parts = Vec::with_capacity(3);
        if run.first() < index {
            parts.push(run.ending_at(index - 1));
        }
        parts.push(Run::at(index, value));
        if index < run.last() {
            parts.push(Run::new(index + 1, run.last(), run.value));
        }
        self.0.remove(at);
        self.0.insert_many(at, parts);
    }

    /// The run that covers a sample, whether the table was read in it or not.
    pub(super) fn over(&self, index: usize) -> Option<&Run> {
        self.until(index).filter(|run| index <= run.last())
    }

    /// The last run that begins at or before a sample.
    fn until(&self, index: usize) -> Option<&Run> {
        let end = self.0.partition_point(|run| run.first() <= index);
        self.0[..end].last()
    }

    pub(super) fn get(&self, index: usize, reads: &ReadSet) -> Option<u64> {
        let run = self.over(index)?;
        reads.contains(index).then_some(run.value)
    }

    /// As [`get`](Self::get). `place` is how many runs begin up to an earlier sample, and is moved to this one; 0 if that
    /// is not known.
    pub(super) fn get_near(&self, index: usize, reads: &ReadSet, place: &mut u32) -> Option<u64> {
        let begins = |run: &&Run| run.first() <= index;
        let from = *place as usize;
        let after = &self.0[from..];
        let passed = if from == 0 {
            after.partition_point(|run| begins(&run))
        } else {
            after.iter().take_while(begins).count()
        };
        let end = from + passed;
        *place = number(end);
        let run = self.0[..end].last().filter(|run| index <= run.last())?;
        reads.contains(index).then_some(run.value)
    }

    /// The reading at a sample, or else the nearest earlier one.
    pub(super) fn latest(&self, index: usize) -> Option<u64> {
        self.until(index).map(|run| run.value)
    }

    pub(super) fn last(&self) -> Option<u64> {
        self.0.last().map(|run| run.value)
    }

    /// What [`latest`](Self::latest) returns of a [`cut`](Self::cut), without cutting.
    pub(super) fn latest_in(
        &self,
        (first, end): (usize, usize),
        index: usize,
        reads: &ReadSet,
    ) -> Option<u64> {
        let last = first.saturating_add(index).min(end.saturating_sub(1));
        let until = self.0.partition_point(|run| run.first() <= last);
        self.clipped((first, end), until, reads).next_back().map(|run| run.value)
    }

    pub(super) fn runs(&self) -> &[Run] {
        &self.0
    }

    /// The readings that exist, with their samples.
    pub(super) fn readings<'a>(
        &'a self,
        reads: &'a ReadSet,
    ) -> impl Iterator<Item = (usize, u64)> + 'a {
        let samples = |run: &Run| (run.first()..=run.last(), run.value);
        let runs = self.0.iter().map(samples);
        runs.flat_map(|(samples, value)| samples.map(move |index| (index, value)))
            .filter(|(index, _)| reads.contains(*index))
    }

    /// The readings as parts of one value each, which no break interrupts. `breaks` are the samples before which
    /// nothing is known, in order.
    pub(super) fn unbroken<'a>(
        &'a self,
        reads: &'a SamplesRead,
        breaks: &'a [usize],
    ) -> impl Iterator<Item = ValuePart> + 'a {
        let (reads, whole) = (&reads.all, &reads.whole);
        let mut runs = self.0.iter();
        let mut rest: Option<Run> = None;
        // The part before, and how many breaks were passed until its end.
        let mut before: Option<(usize, u64)> = None;
        let (mut passed, mut passed_before) = (0, 0);
        std::iter::from_fn(move || {
            loop {
                let run = rest.take().or_else(|| runs.next().copied())?;
                let Some(first) = reads.at_or_after(run.first()).filter(|at| *at <= run.last())
                else {
                    continue;
                };
                while breaks.get(passed).is_some_and(|at| *at <= first) {
                    passed += 1;
                }
                let end = breaks.get(passed).map_or(run.last() + 1, |at| (run.last() + 1).min(*at));
                let last = reads.before(end).unwrap_or(first);
                if end <= run.last() {
                    rest = Some(Run::new(end, run.last(), run.value));
                }
                // The reading before counts only if neither a break nor a read of the whole table without this signal
                // is in between. That of the sample before has nothing in between.
                let follows = |at: usize| {
                    passed == passed_before
                        && (at + 1 == first
                            || whole.before(first).is_none_or(|before| before <= at))
                };
                let part = ValuePart {
                    before: before.filter(|(at, _)| follows(*at)),
                    first,
                    last,
                    value: run.value,
                };
                before = Some((last, run.value));
                passed_before = passed;
                return Some(part);
            }
        })
    }

    /// The readings, each changed; for a table that is read in every sample.
    pub(super) fn changed(
        &self,
        reads: &ReadSet,
        mut change: impl FnMut(usize, u64) -> u64,
    ) -> Self {
        let mut changed = Self::default();
        for (index, value) in self.readings(reads) {
            changed.set(index, index.checked_sub(1), change(index, value));
        }
        changed
    }

    /// As [`cut`](Self::cut) from `first` to the end, in place.
    fn keep_from(&mut self, first: usize, reads: &ReadSet) {
        let from = self.0.partition_point(|run| run.last() < first);
        self.0.drain(..from);
        self.0.retain_mut(|run| {
            let (from, to, value) = (run.first().max(first), run.last(), run.value);
            let is_read = reads.touches(from, to);
            *run = Run::new(from - first, to - first, value);
            is_read
        });
    }

    /// The samples of its first and its last reading.
    pub(super) fn ends(&self) -> Option<(usize, usize)> {
        Some((self.0.first()?.first(), self.0.last()?.last()))
    }

    /// The runs within samples `first` to before `end`, counted from `first`, where the table was read in them.
    /// `reads` are those of these samples in which it was read.
    pub(super) fn cut(&self, first: usize, end: usize, reads: &ReadSet) -> Self {
        let mut cut: SmallVec<[Run; 1]> = self.within(first, end, reads).collect();
        cut.shrink_to_fit();
        Self(cut)
    }

    /// The same runs as an iterator.
    fn within<'a>(
        &'a self,
        first: usize,
        end: usize,
        reads: &'a ReadSet,
    ) -> impl Iterator<Item = Run> + 'a {
        let until = self.0.partition_point(|run| run.first() < end);
        self.clipped((first, end), until, reads)
    }

    /// Those of them that are before the run at `until`, in the whole column.
    fn clipped<'a>(
        &'a self,
        (first, end): (usize, usize),
        until: usize,
        reads: &'a ReadSet,
    ) -> impl DoubleEndedIterator<Item = Run> + 'a {
        let from = self.0.partition_point(|run| run.last() < first);
        let runs = self.0.get(from..until).unwrap_or_default().iter();
        let runs = runs.map(move |run| {
            Run::new(run.first().max(first) - first, run.last().min(end - 1) - first, run.value)
        });
        runs.filter(|run| reads.touches(run.first(), run.last()))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The columns of one entity, by signal.
#[derive(Debug, Clone, Default)]
pub(super) struct ReadingColumns {
    all: Vec<(SignalId, ReadingColumn)>,
    /// The samples of the first and the last reading: they allow to skip an entity without checking each column.
    within: Option<(usize, usize)>,
}

impl ReadingColumns {
    /// The samples of its first and its last reading.
    pub(super) fn within(&self) -> Option<(usize, usize)> {
        self.within
    }

    /// How many columns there are.
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// The index of the column of a signal.
    pub(super) fn find(&self, signal: SignalId) -> Option<usize> {
        self.all.binary_search_by_key(&signal, |(id, _)| *id).ok()
    }

    /// The column with an index that [`find`](Self::find) returned.
    pub(super) fn column(&self, at: usize) -> &ReadingColumn {
        &self.all[at].1
    }

    pub(super) fn get_mut(&mut self, signal: SignalId) -> Option<&mut ReadingColumn> {
        let at = self.find(signal)?;
        Some(&mut self.all[at].1)
    }

    /// The signals that have columns, in order.
    pub(super) fn signals(&self) -> impl Iterator<Item = SignalId> + '_ {
        self.all.iter().map(|(signal, _)| *signal)
    }

    /// The column of a signal, added if absent.
    fn entry(&mut self, signal: SignalId) -> &mut ReadingColumn {
        let at = self.find_or_add(signal);
        &mut self.all[at].1
    }

    /// Appends runs, which for each signal are in order and begin after its last run. Returns how many.
    pub(super) fn fill<R: AsRef<[Run]>>(
        &mut self,
        columns: impl IntoIterator<Item = (SignalId, R)>,
    ) -> usize {
        let mut filled = 0;
        for (signal, runs) in columns {
            let runs = runs.as_ref();
            let (Some(first), Some(last)) = (runs.first(), runs.last()) else {
                continue;
            };
            self.reach(first.first(), last.last());
            self.entry(signal).0.extend_from_slice(runs);
            filled += runs.len();
        }
        filled
    }

    /// The index of the column of a signal, added if absent.
    fn find_or_add(&mut self, signal: SignalId) -> usize {
        match self.all.binary_search_by_key(&signal, |(id, _)| *id) {
            Ok(at) => at,
            Err(at) => {
                self.all.insert(at, (signal, ReadingColumn::default()));
                at
            }
        }
    }

    /// Drops what is before sample `first`, in place.
    pub(super) fn keep_from(&mut self, first: usize, reads: &ReadSet) {
        for (_, column) in &mut self.all {
            column.keep_from(first, reads);
        }
        self.all.retain(|(_, column)| !column.is_empty());
        self.within = self.ends();
    }

    /// The readings within samples `first` to before `end`, as [`ReadingColumn::cut`] returns them.
    pub(super) fn cut(&self, first: usize, end: usize, reads: &ReadSet) -> Self {
        let columns = self.all.iter();
        let cut = columns.map(|(signal, column)| (*signal, column.cut(first, end, reads)));
        let mut cut =
            Self { all: cut.filter(|(_, column)| !column.is_empty()).collect(), within: None };
        cut.within = cut.ends();
        cut
    }

    /// Whether any reading is within samples `first` to before `end`. `reads` are those of these in which the table
    /// was read.
    pub(super) fn has_any(&self, first: usize, end: usize, reads: &ReadSet) -> bool {
        let is_near = |(from, to): (usize, usize)| from < end && first <= to;
        let may_have = reads.last().is_some() && self.within.is_some_and(is_near);
        let has = |column: &ReadingColumn| column.within(first, end, reads).next().is_some();
        may_have && self.all.iter().any(|(_, column)| has(column))
    }

    /// Sets the reading of a signal in a sample, the last so far. Returns by how many runs its column grew.
    pub(super) fn set(
        &mut self,
        signal: SignalId,
        index: usize,
        before: Option<usize>,
        value: u64,
    ) -> usize {
        self.reach(index, index);
        self.entry(signal).set(index, before, value)
    }

    /// Sets the reading of a signal in any sample, in a table that is read in every one.
    pub(super) fn amend(&mut self, signal: SignalId, index: usize, value: u64) {
        self.reach(index, index);
        self.entry(signal).amend(index, value);
    }

    fn reach(&mut self, first: usize, last: usize) {
        self.within = Some(match self.within {
            Some((from, to)) => (from.min(first), to.max(last)),
            None => (first, last),
        });
    }

    /// The samples of its first and its last reading.
    fn ends(&self) -> Option<(usize, usize)> {
        let ends = self.all.iter().filter_map(|(_, column)| column.ends());
        ends.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reads(samples: &[usize]) -> ReadSet {
        let mut reads = ReadSet::default();
        samples.iter().for_each(|index| reads.note(*index));
        reads
    }

    fn column(reads: &ReadSet, readings: &[(usize, u64)]) -> ReadingColumn {
        let mut column = ReadingColumn::default();
        for (index, value) in readings {
            column.set(*index, reads.before(*index), *value);
        }
        column
    }

    #[test]
    fn a_constant_value_is_one_run_however_rarely_it_is_read() {
        let reads = reads(&[0, 10, 20, 130]);
        let column = column(&reads, &[(0, 7), (10, 7), (20, 7), (130, 9)]);
        assert_eq!(column.runs().len(), 2);
        let found: Vec<_> = column.readings(&reads).collect();
        assert_eq!(found, [(0, 7), (10, 7), (20, 7), (130, 9)]);
        assert_eq!(column.get(15, &reads), None);
        assert_eq!(column.latest(15), Some(7));
    }

    #[test]
    fn what_was_missed_once_is_two_runs() {
        let reads = reads(&[0, 1, 2]);
        let column = column(&reads, &[(0, 7), (2, 7)]);
        assert_eq!(column.runs().len(), 2);
        assert_eq!(column.get(1, &reads), None);
    }

    #[test]
    fn a_reading_is_amended_wherever_it_is() {
        let reads = reads(&[0, 1, 2, 3, 4]);
        let mut amended = column(&reads, &[(0, 7), (1, 7), (2, 7), (4, 9)]);
        for index in [1, 3, 4] {
            amended.amend(index, 5);
        }
        let found: Vec<_> = amended.readings(&reads).collect();
        assert_eq!(found, [(0, 7), (1, 5), (2, 7), (3, 5), (4, 5)]);
    }

    #[test]
    fn the_later_of_two_readings_of_a_sample_counts() {
        let reads = reads(&[3, 4]);
        let twice = column(&reads, &[(3, 1), (4, 1), (4, 5)]);
        let found: Vec<_> = twice.readings(&reads).collect();
        assert_eq!(found, [(3, 1), (4, 5)]);
        let first = column(&reads, &[(3, 1), (3, 2), (4, 2)]);
        assert_eq!(first.runs().len(), 1);
    }

    #[test]
    fn a_break_cuts_what_does_not_change() {
        let reads = reads(&[0, 1, 2, 3, 9]);
        let column = column(&reads, &[(0, 7), (1, 7), (2, 7), (3, 8), (9, 8)]);
        let reads = SamplesRead { whole: reads.clone(), all: reads };
        let parts: Vec<_> = column.unbroken(&reads, &[2, 5]).collect();
        let part = |before, first, last, value| ValuePart { before, first, last, value };
        assert_eq!(
            parts,
            [
                part(None, 0, 1, 7),
                part(None, 2, 2, 7),
                part(Some((2, 7)), 3, 3, 8),
                part(None, 9, 9, 8),
            ]
        );
    }

    #[test]
    fn a_cut_keeps_what_was_read_in_it() {
        let reads = reads(&[0, 10, 20]);
        let column = column(&reads, &[(0, 7), (10, 7), (20, 9)]);
        let part_reads = reads.cut(5, 21);
        let part = column.cut(5, 21, &part_reads);
        let found: Vec<_> = part.readings(&part_reads).collect();
        assert_eq!(found, [(5, 7), (15, 9)]);
        let unread = column.cut(1, 9, &reads.cut(1, 9));
        assert!(unread.is_empty(), "not read in this part");
    }

    #[test]
    fn the_read_before_a_sample_is_found_across_words() {
        let reads = reads(&[3, 64, 200]);
        for (index, before) in [
            (3, None),
            (4, Some(3)),
            (64, Some(3)),
            (65, Some(64)),
            (200, Some(64)),
            (9999, Some(200)),
        ] {
            assert_eq!(reads.before(index), before, "{index}");
        }
    }
}
