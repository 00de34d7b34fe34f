//! How malloc heaps grow that were recorded: live and free bytes of a process over time, judged by [`growth`](crate::growth).
//!
//! A process is judged since its start, or since it was first read; a restart is another process. A leak may begin
//! later, with a new version of a configuration: so the rise that lasts until the last reading is judged too. A rise
//! that ended while the process went on is not: the memory is what it needs, as a cache that is full; nor is one that
//! only reaches what the process had before, as load that rises again. So a leak of six
//! hours is found in a week as it is alone, if it lasted until the end of its process, or of the recording.

use std::ops::RangeInclusive;

use timeline::signals::{PROC_HEAP_FREE, PROC_HEAP_LIVE, PROC_RSS, PROC_RUNTIME_HEAP};
use timeline::{Entity, EntitySeries, Gauge, Signal};
use units::{Bytes, Count, Quantity as _};

use crate::evidence::{Evidence, Missing, Need};
use crate::finding::{Affected, Confidence};
use crate::growth::{Growth, GrowthClass, process_series};
use crate::measures::rise::{LONG, Rise};
use crate::trigger::Occurrence;

/// A reading is overdue after this many times the longest time between two: an engineering choice.
const OVERDUE: f64 = 1.5;

/// What a heap had at two readings.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HeapChange {
    /// The samples of the readings.
    first: usize,
    pub(crate) last: usize,
    /// Live bytes at both.
    pub(crate) live: (Bytes, Bytes),
    /// Free bytes at both.
    pub(crate) free: (Bytes, Bytes),
}

impl HeapChange {
    /// Returns the change over readings of live bytes; `None` if there is none.
    fn of(cx: &Evidence<'_>, process: &EntitySeries, read: &[(usize, Bytes)]) -> Option<Self> {
        let ((first, begins), (last, ends)) = (*read.first()?, *read.last()?);
        let free = |at| cx.timeline.at_of(process, PROC_HEAP_FREE, at).unwrap_or_default();
        Some(Self { first, last, live: (begins, ends), free: (free(first), free(last)) })
    }

    /// Returns by how much the live bytes grew.
    pub(crate) fn grew(&self) -> Bytes {
        self.live.1.saturating_sub(self.live.0)
    }
}

/// A course of heaps that a rule looks for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WantedCourse {
    /// What of a heap must have been read, besides its live bytes.
    pub(crate) figure: Signal<Gauge<Bytes>>,
    /// Whether a change is large enough, as any larger one is: that of most processes is not, and no curve is fitted to
    /// it.
    pub(crate) is_large: fn(&HeapChange) -> bool,
    /// Whether a class of growth, once it is confirmed, is this course.
    pub(crate) is_class: fn(GrowthClass) -> bool,
}

impl WantedCourse {
    /// Judges the heap of a process in a range of samples; `None` if it does not take this course.
    pub(crate) fn of<'a>(
        self,
        cx: &Evidence<'_>,
        process: &'a EntitySeries,
        samples: &RangeInclusive<usize>,
    ) -> Option<HeapCourse<'a>> {
        let read = cx.timeline.readings_of(process, PROC_HEAP_LIVE);
        let read: Vec<(usize, Bytes)> = read.filter(|(at, _)| samples.contains(at)).collect();
        self.judged(cx, process, &read)
    }

    /// Judges readings of live bytes.
    fn judged<'a>(
        self,
        cx: &Evidence<'_>,
        process: &'a EntitySeries,
        read: &[(usize, Bytes)],
    ) -> Option<HeapCourse<'a>> {
        let change = HeapChange::of(cx, process, read).filter(self.is_large)?;
        let growth = Growth::of(&process_series(cx, process, change.first, change.last));
        let course = HeapCourse { process, change, growth };
        ((self.is_class)(course.growth.class) && course.is_sure()).then_some(course)
    }

    /// Whether the largest change until the last reading is large enough: that from the least live bytes.
    fn could_be(self, cx: &Evidence<'_>, process: &EntitySeries, read: &[(usize, Bytes)]) -> bool {
        let least = read.iter().map(|(_, live)| *live).min().unwrap_or_default();
        HeapChange::of(cx, process, read).is_some_and(|change| {
            (self.is_large)(&HeapChange { live: (least, change.live.1), ..change })
        })
    }
}

/// The course of a process's heap between two readings.
#[derive(Debug)]
pub(crate) struct HeapCourse<'a> {
    pub(crate) process: &'a EntitySeries,
    pub(crate) change: HeapChange,
    pub(crate) growth: Growth,
}

impl HeapCourse<'_> {
    /// Whether the answer is confirmed, and the time long enough that start-up and warm-up are over.
    fn is_sure(&self) -> bool {
        let growth = &self.growth;
        // The last reading stands for the time until the next one: 360 of ten seconds are an hour.
        let readings = Count::new(growth.readings as u64).as_f64();
        let covered = growth.judged.times(readings / (readings - 1.0).max(1.0));
        growth.is_sure() && covered >= LONG
    }

    /// Returns the name and the PID: `web (pid 4711)`.
    pub(crate) fn name(&self) -> String {
        named(self.process)
    }

    /// Returns the confidence of the classifier, for a finding.
    pub(crate) fn confidence(&self) -> Confidence {
        Confidence {
            value: self.growth.confidence.get(),
            why: format!(
                "rests on {} readings of its malloc heap in {}",
                self.growth.readings, self.growth.judged
            ),
        }
    }

    /// Returns the process as affected.
    pub(crate) fn affected(&self) -> Affected {
        affected(self.process, format!("{} live", self.change.live.1))
    }
}

/// Returns the name and the PID of a process: `web (pid 4711)`. Lines of a log may lack the PID.
pub(crate) fn named(process: &EntitySeries) -> String {
    match process.pid() {
        "0" => process.label.clone(),
        pid => format!("{} (pid {pid})", process.label),
    }
}

/// Returns a process as affected, with what it has.
pub(crate) fn affected(process: &EntitySeries, what: String) -> Affected {
    Affected::new(
        "process",
        &process.label,
        match process.pid() {
            "0" => what,
            pid => format!("PID {pid}, {what}"),
        },
    )
}

/// Returns the processes of which a figure of a heap was read.
///
/// # Errors
/// [`Missing`] if no heap of any process was read.
fn processes<'a>(
    cx: &Evidence<'a>,
    figure: Signal<Gauge<Bytes>>,
) -> Result<Vec<&'a EntitySeries>, Missing> {
    let with = |figure| {
        let all = cx.timeline.entities(Entity::Process);
        all.filter(move |one| cx.timeline.last_of(one, figure).is_some())
    };
    let any = [PROC_HEAP_LIVE, PROC_RUNTIME_HEAP];
    if any.into_iter().flat_map(with).next().is_none() {
        return Err(Missing::because(vec![figure.def().name], Need::Heaps));
    }
    Ok(with(figure).collect())
}

/// Returns the samples in which a figure of a process's heap was read.
fn readings(cx: &Evidence<'_>, process: &EntitySeries, figure: Signal<Gauge<Bytes>>) -> Vec<usize> {
    cx.timeline.readings_of(process, figure).map(|(index, _)| index).collect()
}

/// Returns the last sample, up to this one, in which a figure of a process's heap was read.
pub(crate) fn last_reading(
    cx: &Evidence<'_>,
    process: &EntitySeries,
    figure: Signal<Gauge<Bytes>>,
    last: usize,
) -> usize {
    let read = readings(cx, process, figure);
    let until = read.into_iter().rfind(|index| *index <= last);
    until.unwrap_or(last)
}

/// So many readings in a row: one alone may be a moment between two bursts.
const READINGS_IN_ROW_MIN: usize = 2;

/// Returns runs of readings of a figure that show something; of a process that was read once, that reading.
///
/// # Errors
/// [`Missing`] if no heap was read.
pub(crate) fn runs<'a, F: Fn(usize) -> bool>(
    cx: &Evidence<'a>,
    figure: Signal<Gauge<Bytes>>,
    shown_by: impl Fn(&'a EntitySeries) -> F,
) -> Result<Vec<Occurrence>, Missing> {
    let mut found = Vec::new();
    for process in processes(cx, figure)? {
        let read = readings(cx, process, figure);
        let least = READINGS_IN_ROW_MIN.min(read.len());
        let is_shown = shown_by(process);
        let shown: Vec<_> = read.iter().map(|index| (*index, is_shown(*index))).collect();
        for run in shown.chunk_by(|(_, a), (_, b)| a == b) {
            let ends = run.first().zip(run.last()).filter(|((_, is_shown), _)| *is_shown);
            let Some(((first, _), (last, _))) = ends.filter(|_| run.len() >= least) else {
                continue;
            };
            let is_last = read.last() == Some(last);
            let until = if is_last { speaks_until(cx, process, &read) } else { *last };
            found.push(Occurrence { first: *first, last: until, key: Some(process.key.clone()) });
        }
    }
    Ok(found)
}

/// Returns where the heap of a process takes a wanted course: since it was first read, or else since its last rise.
///
/// # Errors
/// [`Missing`] if no heap was read.
pub(crate) fn find(cx: &Evidence<'_>, wanted: WantedCourse) -> Result<Vec<Occurrence>, Missing> {
    let mut found = Vec::new();
    let live = processes(cx, PROC_HEAP_LIVE)?;
    let has_figure =
        |process: &&EntitySeries| cx.timeline.last_of(process, wanted.figure).is_some();
    if !live.is_empty() && !live.iter().any(has_figure) {
        return Err(Missing::because(vec![wanted.figure.def().name], Need::Heaps));
    }
    for process in live.into_iter().filter(has_figure) {
        let read: Vec<(usize, Bytes)> = cx.timeline.readings_of(process, PROC_HEAP_LIVE).collect();
        let (Some((first, _)), Some((last, _))) = (read.first(), read.last()) else {
            continue;
        };
        if !wanted.could_be(cx, process, &read) {
            continue;
        }
        let mut starts = [Some(*first), last_rise(cx, process, *last)].into_iter().flatten();
        let start = starts.find(|start| {
            let from = read.partition_point(|(at, _)| at < start);
            wanted.judged(cx, process, &read[from..]).is_some()
        });
        found.extend(start.map(|first| Occurrence {
            first,
            last: speaks_until(cx, process, &readings(cx, process, PROC_HEAP_LIVE)),
            key: Some(process.key.clone()),
        }));
    }
    Ok(found)
}

/// Returns the last sample of a process for which its last reading speaks: heaps are read rarely, and what one shows
/// lasts until the next one is overdue.
fn speaks_until(cx: &Evidence<'_>, process: &EntitySeries, read: &[usize]) -> usize {
    let last = read.last().copied().unwrap_or_default();
    let times = cx.timeline.times();
    let pairs = read.windows(2).map(|two| times[two[1]] - times[two[0]]);
    let overdue = times[last].plus(pairs.max().unwrap_or_default().times(OVERDUE));
    let end = times.partition_point(|time| *time <= overdue);
    let is_there = |index: &usize| cx.timeline.at_of(process, PROC_RSS, *index).is_some();
    (last..end).rev().find(is_there).unwrap_or(last)
}

/// Returns where the rise of live bytes began that lasts until the last reading.
fn last_rise(cx: &Evidence<'_>, process: &EntitySeries, last: usize) -> Option<usize> {
    let live = cx.timeline.gauge_of(process, PROC_HEAP_LIVE)?;
    let rise = Rise::lasting(&live, cx.time(last)?)?;
    Some(rise.stretch.first)
}
