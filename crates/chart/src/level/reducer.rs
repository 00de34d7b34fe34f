//! Reduces a long recording to columns: its minutes are in memory, and its samples are read once.

use std::collections::HashSet;

use diagnose::Evidence;
use timeline::{Entity, SignalId, Timeline};
use units::Span;

use super::clock::{PlacedSamples, SourceClock};
use super::grid::{ColumnGrid, ColumnSums, Slots};
use super::{COLUMNS_MAX, CurveLevel, Drawing, draw, gaps};
use crate::{Chart, ChartKind, pack};

/// Columns of the finest level of the whole: one per minute of a week.
pub(super) const FINE_MAX: usize = 10_080;
/// The most bytes of the page for that level; the rest is for intervals drawn sample by sample.
pub(super) const FINE_BYTES_MAX: usize = pack::BYTES_MAX / 2;

/// Keeps what the columns show of every sample of a recording.
///
/// Only charts of the host's own signals that are not stacks are drawn from samples: lines have a band from the least
/// to the largest value. Stacks have none, as least values do not add up to anything. All other charts are drawn from
/// the minutes, and only their means are known.
#[derive(Debug)]
pub struct Reducer<'a> {
    charts: &'a [Chart],
    whole: &'a Evidence<'a>,
    clock: SourceClock<'a>,
    grid: ColumnGrid,
    /// For each chart, for each of its series; empty for charts that are drawn from the minutes.
    sums: Vec<Vec<ColumnSums>>,
    /// The time up to which samples were taken in.
    until: Option<Span>,
    /// The shortest usual interval between samples of any part.
    interval: Option<Span>,
    gaps: Vec<(Span, Span)>,
}

impl<'a> Reducer<'a> {
    /// Creates a reducer of these charts, for the recording that consists of these minutes.
    pub fn new(charts: &'a [Chart], whole: &'a Evidence<'a>) -> Self {
        let grid = ColumnGrid::of_step(whole.timeline, step(whole.timeline));
        let sums = charts.iter().map(|chart| {
            if is_scanned(chart) {
                vec![ColumnSums::new(&grid); chart.series.len()]
            } else {
                Vec::new()
            }
        });
        Self {
            charts,
            whole,
            clock: SourceClock::of(whole.timeline),
            sums: sums.collect(),
            grid,
            until: None,
            interval: None,
            gaps: Vec::new(),
        }
    }

    /// Takes in the next part, which may begin with samples of the one before.
    pub fn take(&mut self, part: &Evidence<'_>) {
        let Some(PlacedSamples { times, within }) = self.clock.place(part.timeline) else {
            return;
        };
        let is_new = |at: &usize| self.until.is_none_or(|until| times[*at] > until);
        let Some(first) = within.clone().find(is_new) else {
            return;
        };
        let new = first..within.end;
        let slots = Slots::of(part.timeline, &times, &self.grid).only(&new);
        for (chart, sums) in self.charts.iter().zip(&mut self.sums) {
            if sums.is_empty() {
                continue;
            }
            for (sums, curve) in sums.iter_mut().zip(draw(chart, part)) {
                sums.take(&slots, &curve);
            }
        }
        let gaps = gaps::at(part.timeline, &times).into_iter();
        self.gaps.extend(gaps.filter(|(_, to)| self.until.is_none_or(|until| *to > until)));
        self.until = Some(times[new.end - 1]);
        let interval = part.timeline.interval();
        self.interval = self.interval.into_iter().chain(interval).min();
    }

    /// Returns the usual interval between samples, as far as parts were taken in.
    pub fn interval(&self) -> Option<Span> {
        self.interval
    }

    /// Returns the drawing: all of the recording in as many columns as a page is wide, and finer as far as there is
    /// room.
    pub fn drawing(self) -> Drawing {
        let sums = self.all();
        let level = |by: usize| self.level(&sums, by);
        let stored = self.interval.unwrap_or_default().as_nanos();
        let coarsest = self.grid.columns().div_ceil(COLUMNS_MAX);
        let finest = stored.div_ceil(self.grid.step().as_nanos().max(1)).max(1);
        let mut finest = usize::try_from(finest).unwrap_or(usize::MAX).min(coarsest);
        let mut drawing = Drawing { gaps: self.gaps(), ..Drawing::default() };
        drawing.push(self.charts, level(coarsest));
        while finest < coarsest {
            let fine = level(finest);
            let bytes = pack::size(self.charts, &fine);
            if bytes <= FINE_BYTES_MAX {
                drawing.push(self.charts, fine);
                break;
            }
            finest = (finest * bytes.div_ceil(FINE_BYTES_MAX)).max(finest + 1);
        }
        drawing
    }

    fn level(&self, sums: &[Vec<ColumnSums>], by: usize) -> CurveLevel {
        let cells = sums.iter().zip(&self.sums).map(|(sums, scanned)| {
            let sums = sums.iter().enumerate();
            let cells = sums.map(|(place, sums)| {
                let is_scanned = scanned.get(place).is_some_and(ColumnSums::has_data);
                sums.merged(by).cells(is_scanned)
            });
            cells.collect()
        });
        CurveLevel { cells: cells.collect(), times: self.grid.merged(by).ends(), is_reduced: true }
    }

    /// Returns the sums of the samples, completed by minutes in columns without a sample.
    fn all(&self) -> Vec<Vec<ColumnSums>> {
        let timeline = self.whole.timeline;
        let slots = Slots::of(timeline, timeline.times(), &self.grid);
        // A late minute speaks for the time before it, in which the samples may show a gap.
        let slots = slots.outside(&self.gaps(), &self.grid);
        let charts = self.charts.iter().zip(&self.sums).map(|(chart, scanned)| {
            let curves = draw(chart, self.whole).into_iter().enumerate();
            let sums = curves.map(|(place, curve)| {
                let mut by_minute = ColumnSums::new(&self.grid);
                by_minute.take(&slots, &curve);
                let Some(mut sums) = scanned.get(place).cloned() else {
                    return by_minute;
                };
                sums.or_else(&by_minute);
                sums
            });
            sums.collect()
        });
        charts.collect()
    }

    /// Returns gaps. Samples show them more exactly than minutes do. A part that cannot be read is not a gap if its
    /// minutes exist.
    fn gaps(&self) -> Vec<(Span, Span)> {
        let times = self.whole.timeline.times();
        if self.until.is_none() {
            return gaps::of(self.whole.timeline);
        }
        let is_empty = |(from, to): &&(Span, Span)| {
            let after = times.partition_point(|time| time <= from);
            times.get(after).is_none_or(|time| time >= to)
        };
        self.gaps.iter().filter(is_empty).copied().collect()
    }
}

/// Returns the width of a column of the finest level: a round number.
fn step(whole: &Timeline) -> Span {
    const SECONDS: [u64; 12] = [1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600, 1_800];
    let fits = |step: &Span| ColumnGrid::of_step(whole, *step).columns() <= FINE_MAX;
    let steps = SECONDS.into_iter().map(Span::from_secs);
    let hours = (1..).map(Span::from_hours);
    steps.chain(hours).find(fits).unwrap_or(Span::from_hours(1))
}

fn is_scanned(chart: &Chart) -> bool {
    chart.is_of_host && chart.kind != ChartKind::Stack && chart.absent.is_none()
}

/// Returns the host's signals that charts draw sample by sample: a recording must be scanned for these. A test in
/// `memtide` draws all captures from these only.
pub fn scanned(charts: &[Chart]) -> Vec<SignalId> {
    let scanned = charts.iter().filter(|chart| is_scanned(chart));
    let series = scanned.flat_map(|chart| &chart.series);
    let needed: HashSet<SignalId> = series.flat_map(|series| series.needs()).collect();
    let host = Entity::Host.signals().filter_map(SignalId::from_index);
    host.filter(|id| needed.contains(id)).collect()
}
