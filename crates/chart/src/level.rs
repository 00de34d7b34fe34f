//! Reduces curves to columns: an interval of any length fits, and every peak stays visible.
//!
//! There are three ways to a [`Drawing`]. A source with all samples in memory is [drawn](Drawing::new) at once. Of a
//! long recording only the minutes are in memory: a [`Reducer`] takes its samples part by part and keeps the least and
//! the largest value of each column. The most important intervals are then [sharpened](Drawing::sharpen) from all their
//! samples.

mod clock;
mod gaps;
mod grid;
mod peaks;
mod reducer;
mod stretches;
#[cfg(test)]
mod tests;

use std::ops::Range;

use diagnose::Evidence;
use timeline::Timeline;
use units::Span;

use crate::{Chart, Curve, pack};
use clock::SourceClock;
use grid::{ColumnGrid, ColumnSums, Slots};
use reducer::{FINE_BYTES_MAX, FINE_MAX};
pub use reducer::{Reducer, scanned};
pub use stretches::worth_sharpening;

/// The greatest width of a page in columns. A source with no more samples than this is drawn sample by sample.
const COLUMNS_MAX: usize = 1_500;
/// A source with no more samples than this is drawn sample by sample in a finer level, if there is room.
const SAMPLES_MAX: usize = 10_000;

/// The values of one series in the columns of a level, in the chart's unit.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ColumnCells {
    /// The mean over each column's time, or the value of its only sample; `None` if nothing was measured.
    pub mean: Curve,
    /// The least and the largest value in each column, if columns contain more than one sample.
    pub extremes: Option<(Curve, Curve)>,
}

/// The curves of an interval.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CurveLevel {
    /// The end of each column, on the source's clock from its first sample; in order.
    pub times: Vec<Span>,
    /// Whether columns contain more than one sample.
    pub is_reduced: bool,
    /// For each chart, for each of its series; empty if this level has no data.
    pub cells: Vec<Vec<ColumnCells>>,
}

/// All levels of a source: the first covers all of it, later ones are finer or cover a part.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Drawing {
    pub levels: Vec<CurveLevel>,
    /// Intervals in which nothing was recorded: from, to.
    pub gaps: Vec<(Span, Span)>,
    /// The approximate size of the packed levels.
    bytes: usize,
}

impl ColumnCells {
    /// Whether nothing was measured.
    pub fn is_empty(&self) -> bool {
        self.mean.iter().all(Option::is_none)
    }
}

impl Drawing {
    /// Draws a source with all samples in memory, with finer levels of these intervals, the most important first. A
    /// moment is an interval without length.
    pub fn new(charts: &[Chart], cx: &Evidence<'_>, stretches: &[(Span, Span)]) -> Self {
        let samples = cx.timeline.len();
        let mut drawing = Self { gaps: gaps::of(cx.timeline), ..Self::default() };
        if samples <= COLUMNS_MAX {
            drawing.push(charts, CurveLevel::raw(charts, cx, cx.timeline.times()));
            return drawing;
        }
        drawing.push(charts, CurveLevel::reduced(charts, cx, COLUMNS_MAX));
        let is_whole = samples <= SAMPLES_MAX && drawing.add_part(charts, cx, 0..samples);
        if !is_whole {
            drawing.add_finer(charts, cx);
            let interval = cx.timeline.interval().unwrap_or_default();
            let stretches = peaks::among(stretches, cx);
            for (from, to) in worth_sharpening(&stretches, cx.timeline, interval) {
                drawing.add_part(charts, cx, stretches::samples(cx.timeline, from, to));
            }
        }
        drawing
    }

    /// Whether a chart has anything to show; `chart` is its index among those that were drawn.
    pub fn has(&self, chart: usize) -> bool {
        let cells = self.levels.iter().filter_map(|level| level.cells.get(chart));
        cells.flatten().any(|cells| !cells.is_empty())
    }

    /// Adds every sample of a part of a recording as a level; `whole` is the timeline that the drawing was made of.
    /// Returns whether there was room for it.
    pub fn sharpen(&mut self, charts: &[Chart], part: &Evidence<'_>, whole: &Timeline) -> bool {
        let Some(placed) = SourceClock::of(whole).place(part.timeline) else {
            return false;
        };
        self.add(charts, CurveLevel::raw(charts, part, &placed.times))
    }

    /// Adds the whole in as many columns as fit into half of the page; the other half is for sharpened intervals.
    fn add_finer(&mut self, charts: &[Chart], cx: &Evidence<'_>) {
        let halves = std::iter::successors(Some(FINE_MAX), |columns| Some(columns / 2));
        let finer = halves.take_while(|columns| *columns > COLUMNS_MAX);
        for columns in finer.filter(|columns| *columns < cx.timeline.len()) {
            let level = CurveLevel::reduced(charts, cx, columns);
            if pack::size(charts, &level) <= FINE_BYTES_MAX {
                self.add(charts, level);
                return;
            }
        }
    }

    fn add_part(&mut self, charts: &[Chart], cx: &Evidence<'_>, samples: Range<usize>) -> bool {
        let part = cx.timeline.part(samples.start, samples.end);
        let times = part.times().to_vec();
        let part = Evidence::new(&part, cx.facts);
        self.add(charts, CurveLevel::raw(charts, &part, &times))
    }

    /// Adds a level if the page stays within its size limit. Returns whether it did.
    fn add(&mut self, charts: &[Chart], level: CurveLevel) -> bool {
        let bytes = self.bytes + pack::size(charts, &level);
        if bytes > pack::BYTES_MAX {
            return false;
        }
        self.bytes = bytes;
        self.levels.push(level);
        true
    }

    /// Adds a level whatever its size.
    fn push(&mut self, charts: &[Chart], level: CurveLevel) {
        self.bytes += pack::size(charts, &level);
        self.levels.push(level);
    }
}

impl CurveLevel {
    /// Returns every sample of a part, at these times.
    fn raw(charts: &[Chart], part: &Evidence<'_>, times: &[Span]) -> Self {
        let cells = charts.iter().map(|chart| {
            let curves = draw(chart, part).into_iter();
            curves.map(|mean| ColumnCells { mean, extremes: None }).collect()
        });
        Self { cells: cells.collect(), times: times.to_vec(), is_reduced: false }
    }

    /// Returns all of a source in this many columns.
    fn reduced(charts: &[Chart], cx: &Evidence<'_>, columns: usize) -> Self {
        let grid = ColumnGrid::over(cx.timeline, columns);
        let slots = Slots::of(cx.timeline, cx.timeline.times(), &grid);
        let cells = charts.iter().map(|chart| {
            let sums = draw(chart, cx).into_iter().map(|curve| {
                let mut sums = ColumnSums::new(&grid);
                sums.take(&slots, &curve);
                sums.cells(true)
            });
            sums.collect()
        });
        Self { cells: cells.collect(), times: grid.ends(), is_reduced: true }
    }
}

/// Returns a chart's curves, one per series; empty if there is none, or if its length differs from the part's. NaN and
/// infinity count as not measured.
fn draw(chart: &Chart, part: &Evidence<'_>) -> Vec<Curve> {
    let mut curves = (chart.draw)(part);
    curves.resize(chart.series.len(), Curve::new());
    for curve in curves.iter_mut().filter(|curve| curve.len() != part.timeline.len()) {
        curve.clear();
    }
    for value in curves.iter_mut().flatten() {
        *value = value.filter(|value| value.is_finite());
    }
    curves
}
