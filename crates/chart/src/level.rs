//! Curves in columns: what of a stretch of time is drawn, however long it is, with every peak kept.

use diagnose::Evidence;
use units::Span;

use crate::Chart;

/// The values of one series in the columns of a level, in the chart's unit.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Cells {
    /// The mean of each column's time, or the value of its one sample; `None` where nothing was measured.
    pub mean: Vec<Option<f64>>,
    /// The least and the largest value in each column, where columns hold more than one sample.
    pub extremes: Option<(Vec<Option<f64>>, Vec<Option<f64>>)>,
}

/// The curves of a stretch of time.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Level {
    /// Where each column ends, on the source's clock from its first sample; in order.
    pub times: Vec<Span>,
    /// Whether columns hold more than one sample.
    pub is_reduced: bool,
    /// For each chart, for each of its series; empty cells where that series is not told at this level.
    pub cells: Vec<Vec<Cells>>,
}

/// All levels of a source: the first covers all of it, later ones are finer or of a part.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Drawing {
    /// The levels.
    pub levels: Vec<Level>,
    /// Stretches in which nothing was recorded: from, to.
    pub gaps: Vec<(Span, Span)>,
}

impl Drawing {
    /// What a source of moderate length shows, and finer levels of these stretches of it.
    pub fn new(charts: &[Chart], cx: &Evidence<'_>, stretches: &[(Span, Span)]) -> Self {
        let _ = (charts, cx, stretches);
        Self::default()
    }
}
