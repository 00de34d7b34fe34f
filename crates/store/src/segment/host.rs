//! `host.parquet`: one row for each sample, one column for each signal of the host.

use timeline::{BreakKind, Entity, Run, SignalId, Stamp, Timeline};
use units::{Span, WallClock};

use super::picks::SamplePicks;
use super::runs::{Joined, RunSink};
use super::table::{Cells, ColumnChunk, ColumnShape, OpenedTable};
use super::{boots, names};

/// The time of a sample, its relation to the previous one, and which tables it read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StoredSample {
    /// Its clocks.
    pub(crate) stamp: Stamp,
    /// Whether the time since the previous sample is unknown.
    pub(crate) is_unrelated: bool,
    /// A bit for each kind of entity: whether such entities were read; and [`PARTIAL`] bits higher, whether only some of
    /// them.
    pub(crate) read: i64,
}

impl StoredSample {
    /// Returns all samples of a timeline.
    pub(crate) fn all(timeline: &Timeline) -> Vec<Self> {
        let mut all: Vec<Self> =
            (0..timeline.len()).map(|index| Self::related(timeline, index)).collect();
        for gap in timeline.breaks() {
            if gap.kind == BreakKind::NewSegment {
                all[gap.before].is_unrelated = true;
            }
        }
        all
    }

    fn related(timeline: &Timeline, index: usize) -> Self {
        let bit = |entity: Entity| {
            let part = i64::from(timeline.was_read_in_part(entity, index));
            (i64::from(timeline.was_read(entity, index)) | part << PARTIAL) << bit_of(entity)
        };
        Self {
            stamp: timeline.stamp(index).unwrap_or_default(),
            is_unrelated: false,
            read: Entity::ALL.into_iter().map(bit).sum(),
        }
    }

    /// Whether entities of a kind were read in this sample.
    pub(crate) fn was_read(&self, entity: Entity) -> bool {
        self.read >> bit_of(entity) & 1 == 1
    }

    /// Whether only some entities of a kind were read in this sample.
    pub(crate) fn was_read_in_part(&self, entity: Entity) -> bool {
        self.read >> (bit_of(entity) + PARTIAL) & 1 == 1
    }

    /// Returns the tables that were read in any of these samples, as [`read`](Self::read).
    pub(crate) fn read_in_any(samples: &[Self]) -> i64 {
        const ALL: i64 = (1 << PARTIAL) - 1;
        let whole = |sample: &Self| sample.read & !(sample.read >> PARTIAL) & ALL;
        let (read, whole) = samples
            .iter()
            .fold((0, 0), |(read, all), sample| (read | sample.read & ALL, all | whole(sample)));
        read | (read & !whole) << PARTIAL
    }

    /// Returns the wall clock in nanoseconds.
    pub(crate) fn wall(&self) -> Option<i64> {
        self.stamp.wall.map(WallClock::unix_nanos)
    }
}

/// From the bit of a kind of entity that was read to the bit that only some of its entities were.
const PARTIAL: u32 = 16;

/// Returns the bit of a kind of entity in the column `read`. Files on disk have these bits: a new kind gets the next
/// one, whatever its position in [`Entity::ALL`].
const fn bit_of(entity: Entity) -> u32 {
    match entity {
        Entity::Host => 0,
        Entity::Node => 1,
        Entity::Zone => 2,
        Entity::Disk => 3,
        Entity::SwapArea => 4,
        Entity::Zram => 5,
        Entity::Slab => 6,
        Entity::Cgroup => 7,
        Entity::Process => 8,
        Entity::Service => 9,
    }
}

/// Converts to the nanoseconds of a file: the bits of a u64.
pub(crate) fn nanos(span: Span) -> i64 {
    span.as_nanos().cast_signed()
}

/// Converts back from [`nanos`].
pub(crate) fn span(nanos: i64) -> Span {
    Span::from_nanos(nanos.cast_unsigned())
}

/// Names of the columns before those of the signals.
const CLOCKS: [&str; 5] = ["time", "boot_ns", SUSPENDED, "unrelated", "read"];
/// How far the awake clock is behind the boot clock: usually constant, so it takes less space than a second clock.
const SUSPENDED: &str = "suspended_ns";

/// Returns the columns of a timeline.
pub(super) fn columns<'a>(
    timeline: &'a Timeline,
    taken: &'a [StoredSample],
) -> Vec<ColumnChunk<'a>> {
    let clock = |name, shape, of: fn(&StoredSample) -> Option<i64>| {
        ColumnChunk::numbers(name, shape, move |cells| {
            taken.iter().for_each(|sample| cells.push(of(sample)));
        })
    };
    let mut columns = vec![
        clock(CLOCKS[0], ColumnShape::Time, StoredSample::wall),
        clock(CLOCKS[1], ColumnShape::Reading, |sample| Some(nanos(sample.stamp.boot))),
        clock(CLOCKS[2], ColumnShape::Reading, |sample| {
            let awake = sample.stamp.awake.map(nanos);
            awake.map(|awake| nanos(sample.stamp.boot).wrapping_sub(awake))
        }),
        clock(CLOCKS[3], ColumnShape::Ordinal, |sample| Some(i64::from(sample.is_unrelated))),
        clock(CLOCKS[4], ColumnShape::Ordinal, |sample| Some(sample.read)),
    ];
    let rows = taken.len();
    columns.extend(timeline.host_runs().map(|(signal, runs)| {
        ColumnChunk::numbers(signal.def().name, ColumnShape::Reading, move |cells| {
            fill(runs, rows, cells);
        })
    }));
    columns
}

fn fill(runs: &[Run], rows: usize, cells: &mut Cells) {
    let mut at = 0;
    for run in runs {
        cells.skip(run.first() - at);
        cells.repeat(run.value.cast_signed(), run.last() + 1 - run.first());
        at = run.last() + 1;
    }
    cells.skip(rows.saturating_sub(at));
}

/// Reads the samples of a file.
pub(super) fn read_taken(file: &OpenedTable) -> Result<Vec<StoredSample>, String> {
    let names = file.columns();
    let column = |name: &str| {
        let found = names.iter().position(|found| found == name);
        found.ok_or_else(|| format!("it has no column `{name}`"))
    };
    let part = file.part(0).map_err(|e| e.to_string())?;
    let clock = |name: &str| {
        let mut cells = Cells::default();
        let read = part.numbers(column(name)?, &mut cells);
        read.map_err(|e| e.to_string())?;
        let mut values = cells.values.into_iter();
        let present = cells.present.into_iter();
        let clock = present.map(|present| (present > 0).then(|| values.next()).flatten());
        Ok::<_, String>(clock.collect::<Vec<_>>())
    };
    let ordinals = |name: &str| {
        let mut values = Vec::new();
        let read = part.ordinals(column(name)?, &mut values);
        read.map_err(|e| e.to_string()).map(|()| values)
    };
    let (walls, boots) = (clock(CLOCKS[0])?, clock(CLOCKS[1])?);
    let behind = clock(CLOCKS[2])?;
    let ids = boots::read(file)?;
    let (unrelated, read) = (ordinals(CLOCKS[3])?, ordinals(CLOCKS[4])?);
    let clocks = walls.into_iter().zip(boots).zip(behind).zip(ids);
    let taken = clocks.zip(unrelated.into_iter().zip(read)).map(
        |((((wall, boot), behind), boot_id), (unrelated, read))| StoredSample {
            stamp: Stamp {
                boot: span(boot.unwrap_or_default()),
                awake: behind.map(|behind| span(boot.unwrap_or_default().wrapping_sub(behind))),
                wall: wall.map(WallClock::from_unix_nanos),
                boot_id,
            },
            is_unrelated: unrelated != 0,
            read: i64::from(read),
        },
    );
    Ok(taken.collect())
}

/// Appends the readings of the requested signals to a timeline.
pub(super) fn read(
    file: &OpenedTable,
    wanted: impl Fn(SignalId) -> bool,
    picks: &SamplePicks,
    timeline: &mut impl RunSink,
) -> Result<(), String> {
    let part = file.part(0).map_err(|e| e.to_string())?;
    let mut cells = Cells::default();
    let mut runs = Vec::new();
    for (column, name) in file.columns().iter().enumerate() {
        let Some(signal) = names::signal(name).filter(|signal| wanted(*signal)) else {
            continue;
        };
        part.numbers(column, &mut cells).map_err(|e| format!("column `{name}`: {e}"))?;
        if signal.def().entity != Entity::Host || cells.values.is_empty() {
            continue;
        }
        runs.clear();
        match picks.all_from() {
            Some(first) => cells.push_runs(first, &mut runs),
            None => join(&cells, picks, &mut runs),
        }
        timeline.host(signal, &runs);
    }
    Ok(())
}

fn join(cells: &Cells, picks: &SamplePicks, runs: &mut Vec<Run>) {
    let mut joined = Joined::new(picks, runs);
    let mut values = cells.values.iter();
    for (row, present) in (0..).zip(&cells.present) {
        if *present == 0 {
            continue;
        }
        let Some(value) = values.next() else {
            break;
        };
        if let Some(ranks) = picks.within(row, row) {
            joined.push(ranks, *value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_entity_has_a_bit_of_its_own() {
        let bits: i64 = Entity::ALL.into_iter().map(|kind| 1 << bit_of(kind)).sum();
        assert_eq!(bits, (1 << Entity::ALL.len()) - 1);
        assert!(bits < 1 << PARTIAL);
    }
}
