//! The course of a finding's main signal, for a small graph.

use timeline::{Stretch, Track};
use units::Quantity;

/// How a signal ran, for a small graph beside the finding.
#[derive(Debug, Clone, PartialEq)]
pub struct Graph {
    /// What it draws: `swapped in`.
    pub label: String,
    /// Its peak, printed: `20 MiB/s`.
    pub peak: String,
    /// Index of the sample that the first value is of.
    pub first: usize,
    /// Values of the samples from there on.
    pub values: Vec<Option<f64>>,
    print: Print,
}

impl Graph {
    /// Of a track; `None` where it is empty.
    pub(super) fn new<Q: Quantity>(label: &str, track: &Track<Q>) -> Option<Self> {
        track.max().map(|(peak, _)| Self {
            label: label.to_owned(),
            peak: peak.to_string(),
            first: 0,
            values: track.values().to_vec(),
            print: Print(|value| Q::from_f64(value).to_string()),
        })
    }

    /// Its peak is that of the time that the finding is about: what was before and after is drawn beside it at most.
    pub(crate) fn peak_within(&mut self, stretch: &Stretch) {
        let from = stretch.first.saturating_sub(self.first);
        let to = (stretch.last + 1).saturating_sub(self.first);
        let values = self.values.iter().take(to).skip(from);
        if let Some(peak) = values.flatten().copied().reduce(f64::max) {
            self.peak = (self.print.0)(peak);
        }
    }
}

/// How a value of a graph is printed; two graphs are the same whatever prints them.
#[derive(Debug, Clone, Copy)]
struct Print(fn(f64) -> String);

impl PartialEq for Print {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
