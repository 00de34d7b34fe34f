//! The course of a finding's main signal, for a small graph.

use timeline::{Stretch, Track};
use units::Quantity;

/// The course of a signal, for a small graph beside the finding.
#[derive(Debug, Clone, PartialEq)]
pub struct Graph {
    /// What it draws: `swapped in`.
    pub label: String,
    /// Its peak, printed: `20 MiB/s`.
    pub peak: String,
    /// Index of the first value's sample.
    pub first: usize,
    /// One value per sample from there on.
    pub values: Vec<Option<f64>>,
    print: Print,
}

impl Graph {
    /// Creates the graph of a track; `None` if the track is empty.
    pub(super) fn new<Q: Quantity>(label: &str, track: &Track<Q>) -> Option<Self> {
        track.max().map(|(peak, _)| Self {
            label: label.to_owned(),
            peak: peak.to_string(),
            first: 0,
            values: track.values().to_vec(),
            print: Print(|value| Q::from_f64(value).to_string()),
        })
    }

    /// Limits the peak to the interval that the finding is about. The time before and after it is drawn, but does not
    /// count.
    pub(crate) fn peak_within(&mut self, stretch: &Stretch) {
        let from = stretch.first.saturating_sub(self.first);
        let to = (stretch.last + 1).saturating_sub(self.first);
        let values = self.values.iter().take(to).skip(from);
        if let Some(peak) = values.flatten().copied().reduce(f64::max) {
            self.peak = (self.print.0)(peak);
        }
    }
}

/// How a value of a graph is printed. Not part of equality: graphs with equal values are equal.
#[derive(Debug, Clone, Copy)]
struct Print(fn(f64) -> String);

impl PartialEq for Print {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
