//! Converts runs of one signal to rows of minutes.

use timeline::{Entity, RollUp, Run};
use units::Span;

use super::{MinuteRange, breaks, index};
use crate::segment::host::StoredSample;

/// One signal in one minute, or in several minutes without a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RollUpRow {
    /// The first minute's number in its segment.
    pub(super) first: u32,
    /// The last minute's number.
    pub(super) last: u32,
    /// The last reading: bits of a u64, like all readings.
    pub(super) value: i64,
    /// The smallest reading of a gauge.
    pub(super) min: Option<i64>,
    /// The largest reading of a gauge, or the highest increase of a counter per second between two readings, rounded
    /// up.
    pub(super) max: Option<i64>,
    /// The mean of all readings of a gauge, rounded.
    pub(super) mean: Option<i64>,
    /// A counter's increase since the last reading before the minute.
    pub(super) increase: Option<i64>,
}

impl RollUpRow {
    pub(super) fn first_minute(&self) -> usize {
        index(self.first)
    }

    pub(super) fn last_minute(&self) -> usize {
        index(self.last)
    }

    /// Returns the roll-up, without the last reading.
    pub(super) fn roll_up(&self) -> RollUp {
        match self.min.zip(self.max) {
            Some((min, max)) => {
                RollUp::Level { min: min.cast_unsigned(), max: max.cast_unsigned() }
            }
            None => RollUp::Increase {
                by: self.increase.map(i64::cast_unsigned),
                fastest: self.max.map(i64::cast_unsigned),
            },
        }
    }

    fn is_unchanged(&self) -> bool {
        match self.increase {
            Some(increase) => increase == 0,
            None => self.min == Some(self.value) && self.max == Some(self.value),
        }
    }
}

/// The minutes of a segment, for one kind of entity.
pub(super) struct Grid<'a> {
    minutes: &'a [MinuteRange],
    /// The minute of each sample.
    minute_of: Vec<u32>,
    /// For each sample, how many reads come before it.
    reads_before: Vec<u32>,
    /// For each sample, how many counter resets are at or before it.
    breaks_until: Vec<u32>,
    /// For each minute, how many minutes with reads come before it.
    rank: Vec<u32>,
    /// The boot clock of each sample, and of the last sample before them.
    boots: Vec<Span>,
    before: Option<Span>,
    /// Whether the highest rate is stored: only for kinds where rules need it, as it takes space.
    has_fastest: bool,
}

/// Whether a signal is a counter, and its previous value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CounterStart {
    /// The signal is a gauge.
    Not,
    /// A counter, with its value at the end of the previous segment, if known.
    From(Option<u64>),
}

/// One minute's readings so far.
struct LevelSum {
    minute: u32,
    min: u64,
    max: u64,
    sum: u128,
    count: u32,
    value: u64,
    grown: Grown,
}

/// The increase of a counter.
#[derive(Debug, Clone, Copy, Default)]
struct Grown {
    by: u64,
    /// The highest increase per second.
    fastest: u64,
}

impl Grown {
    /// Creates an increase over a time that may be unknown.
    fn within(by: u64, time: Option<Span>) -> Self {
        const SECOND: u128 = 1_000_000_000;
        let nanos = time.map_or(0, Span::as_nanos);
        let fastest = match (by, nanos) {
            (0, _) => 0,
            (_, 0) => u64::MAX,
            _ => u64::try_from((u128::from(by) * SECOND).div_ceil(u128::from(nanos)))
                .unwrap_or(u64::MAX),
        };
        Self { by, fastest }
    }

    fn plus(self, other: Self) -> Self {
        Self { by: self.by.saturating_add(other.by), fastest: self.fastest.max(other.fastest) }
    }
}

impl<'a> Grid<'a> {
    /// `before`: the last sample before these, if they continue from it.
    pub(super) fn new(
        minutes: &'a [MinuteRange],
        taken: &[StoredSample],
        entity: Entity,
        before: Option<&StoredSample>,
    ) -> Self {
        let mut grid = Self {
            boots: taken.iter().map(|sample| sample.stamp.boot).collect(),
            before: before.map(|before| before.stamp.boot),
            has_fastest: matches!(entity, Entity::Host | Entity::Node | Entity::Cgroup),
            minutes,
            minute_of: Vec::with_capacity(taken.len()),
            reads_before: vec![0],
            breaks_until: Vec::with_capacity(taken.len()),
            rank: vec![0],
        };
        for (number, minute) in (0..).zip(minutes) {
            let samples = minute.last + 1 - minute.first;
            grid.minute_of.extend(std::iter::repeat_n(number, samples));
        }
        let (mut reads, mut broken) = (0, 0);
        for (index, sample) in taken.iter().enumerate() {
            reads += u32::from(sample.was_read(entity));
            let before = index.checked_sub(1).map(|at| &taken[at]);
            broken += u32::from(before.is_some_and(|before| breaks(before, sample)));
            grid.reads_before.push(reads);
            grid.breaks_until.push(broken);
        }
        let mut rank = 0;
        for minute in minutes {
            rank += u32::from(grid.reads(minute.first, minute.last) > 0);
            grid.rank.push(rank);
        }
        grid
    }

    fn reads(&self, first: usize, last: usize) -> u32 {
        self.reads_before[last + 1] - self.reads_before[first]
    }

    /// Appends one signal's rows.
    pub(super) fn roll(&self, runs: &[Run], counted: CounterStart, rows: &mut Vec<RollUpRow>) {
        let start = rows.len();
        let is_counter = counted != CounterStart::Not;
        let mut sum: Option<LevelSum> = None;
        let mut before: Option<&Run> = None;
        for run in runs {
            let mut grown = match (before, counted) {
                (Some(before), _) => self.grown(before, run),
                (None, CounterStart::From(Some(end))) if self.breaks_until[run.first()] == 0 => {
                    // It was read in the last sample before these or earlier.
                    let time = self.before.map(|before| self.boots[run.first()] - before);
                    Grown::within(run.value.saturating_sub(end), time)
                }
                (None, _) => Grown::default(),
            };
            before = Some(run);
            for number in self.minute_of[run.first()]..=self.minute_of[run.last()] {
                let minute = self.minutes[index(number)];
                let count = self.reads(minute.first.max(run.first()), minute.last.min(run.last()));
                if count == 0 {
                    continue;
                }
                if let Some(full) = sum.take_if(|sum| sum.minute != number) {
                    self.put(&full, is_counter, start, rows);
                }
                sum.get_or_insert(LevelSum::starting_at(number, run.value)).add(
                    run.value,
                    count,
                    std::mem::take(&mut grown),
                );
            }
        }
        if let Some(full) = sum {
            self.put(&full, is_counter, start, rows);
        }
    }

    /// Returns the increase of a counter from one run to the next; after a reset or a reboot the time before is
    /// unknown.
    fn grown(&self, before: &Run, run: &Run) -> Grown {
        let is_broken = self.breaks_until[before.last()] != self.breaks_until[run.first()];
        let by = run.value.checked_sub(before.value).filter(|_| !is_broken).unwrap_or(0);
        Grown::within(by, Some(self.boots[run.first()] - self.boots[before.last()]))
    }

    fn put(&self, sum: &LevelSum, is_counter: bool, start: usize, rows: &mut Vec<RollUpRow>) {
        let mut row = sum.row(is_counter);
        if is_counter && !self.has_fastest {
            row.max = None;
        }
        let is_next = |last: u32| self.rank[index(last) + 1] == self.rank[index(row.first)];
        let open = rows[start..].last_mut();
        match open.filter(|open| {
            open.value == row.value
                && open.is_unchanged()
                && row.is_unchanged()
                && is_next(open.last)
        }) {
            Some(open) => open.last = row.last,
            None => rows.push(row),
        }
    }
}

impl LevelSum {
    fn starting_at(minute: u32, value: u64) -> Self {
        Self { minute, min: value, max: value, sum: 0, count: 0, value, grown: Grown::default() }
    }

    fn add(&mut self, value: u64, count: u32, grown: Grown) {
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        self.sum += u128::from(value) * u128::from(count);
        self.count += count;
        self.value = value;
        self.grown = self.grown.plus(grown);
    }

    fn row(&self, is_counter: bool) -> RollUpRow {
        let count = u128::from(self.count.max(1));
        let mean = u64::try_from((self.sum + count / 2) / count).unwrap_or(u64::MAX);
        let gauge = |value: u64| (!is_counter).then(|| value.cast_signed());
        let counter = |value: u64| is_counter.then(|| i64::try_from(value).unwrap_or(i64::MAX));
        RollUpRow {
            first: self.minute,
            last: self.minute,
            value: self.value.cast_signed(),
            min: gauge(self.min),
            max: gauge(self.max).or_else(|| counter(self.grown.fastest)),
            mean: gauge(mean),
            increase: counter(self.grown.by),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::minutes;
    use super::*;
    use timeline::Stamp;
    use units::WallClock;

    /// Samples every 20 s from the start of a minute; `boots` are the boot clock's seconds.
    fn taken(boots: &[u64]) -> Vec<StoredSample> {
        let sample = |(at, boot): (usize, &u64)| StoredSample {
            stamp: Stamp {
                boot: Span::from_secs(*boot),
                awake: None,
                wall: Some(WallClock::from_unix_nanos(
                    i64::try_from(at).unwrap_or_default() * 20_000_000_000,
                )),
                ..Stamp::default()
            },
            is_unrelated: false,
            read: 1,
        };
        boots.iter().enumerate().map(sample).collect()
    }

    fn roll(boots: &[u64], values: &[u64], is_counter: bool) -> Vec<RollUpRow> {
        let taken = taken(boots);
        let minutes = minutes(&taken);
        let grid = Grid::new(&minutes, &taken, Entity::Host, None);
        let run = |(at, value): (usize, &u64)| Run::at(at, *value);
        let runs: Vec<Run> = values.iter().enumerate().map(run).collect();
        let counted = if is_counter { CounterStart::From(None) } else { CounterStart::Not };
        let mut rows = Vec::new();
        grid.roll(&runs, counted, &mut rows);
        rows
    }

    const STEADY: [u64; 9] = [20, 40, 60, 80, 100, 120, 140, 160, 180];

    #[test]
    fn a_gauge_has_its_range_and_mean_and_rests_in_one_row() {
        let rows = roll(&STEADY, &[1, 5, 3, 7, 7, 7, 7, 7, 7], false);
        assert_eq!(rows.len(), 2);
        let (min, max, mean) = (rows[0].min, rows[0].max, rows[0].mean);
        assert_eq!((min, max, mean), (Some(1), Some(5), Some(3)));
        assert_eq!((rows[0].value, rows[0].increase), (3, None));
        assert_eq!((rows[1].first, rows[1].last, rows[1].value), (1, 2, 7));
    }

    #[test]
    fn a_counter_has_its_fastest_second_rounded_up() {
        let taken = taken(&STEADY);
        let minutes = minutes(&taken);
        let run = |at, value| Run::at(at, value);
        // Read in every other sample of the second minute, and 10 s after the last sample before these.
        let runs = [run(0, 50), run(1, 50), run(2, 91), run(4, 91 + 801)];
        let before = StoredSample {
            stamp: Stamp { boot: Span::from_secs(10), ..taken[0].stamp },
            ..taken[0]
        };
        let fastest = |entity| {
            let grid = Grid::new(&minutes, &taken, entity, Some(&before));
            let mut rows = Vec::new();
            grid.roll(&runs, CounterStart::From(Some(0)), &mut rows);
            rows.iter().map(|row| row.max).collect::<Vec<_>>()
        };
        assert_eq!(fastest(Entity::Host), [Some(5), Some(21)]);
    }

    #[test]
    fn increases_add_up_over_minutes_and_are_never_negative() {
        let total = |rows: &[RollUpRow]| rows.iter().filter_map(|row| row.increase).sum::<i64>();
        let rising = roll(&STEADY, &[10, 11, 12, 20, 21, 30, 30, 30, 31], true);
        assert_eq!(total(&rising), 21);
        assert_eq!(rising[0].min, None);
        let reset = roll(&STEADY, &[10, 11, 12, 3, 4, 5, 5, 5, 5], true);
        assert_eq!(total(&reset), 4);
        let reboot = [20, 40, 60, 80, 5, 25, 45, 65, 85];
        let rebooted = roll(&reboot, &[10, 11, 12, 13, 100, 101, 101, 101, 101], true);
        assert_eq!(total(&rebooted), 4, "what lies before the reboot does not count");
        assert_eq!(rebooted.len(), 4, "a minute ends with its boot");
    }
}
