//! Stretches of a timeline.

use units::Span;

/// A part of a timeline, from one sample to a later one; both ends are included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stretch {
    /// Index of the sample at which it starts.
    pub first: usize,
    /// Index of the sample at which it ends.
    pub last: usize,
    /// Time of the first sample on the timeline's clock.
    pub from: Span,
    /// Time of the last sample on the timeline's clock.
    pub to: Span,
    /// The recorded part of that time: without gaps, suspends and reboots.
    pub recorded: Span,
}

impl Stretch {
    /// The stretch of a source without samples.
    pub const fn empty() -> Self {
        Self { first: 0, last: 0, from: Span::ZERO, to: Span::ZERO, recorded: Span::ZERO }
    }

    /// The recorded time: without gaps, suspends and reboots.
    pub fn duration(&self) -> Span {
        self.recorded
    }

    /// The mean interval of its samples; the whole duration where it has at most one interval.
    pub fn interval(&self) -> Span {
        #[allow(clippy::cast_precision_loss)] // a count of samples
        let intervals = self.last.saturating_sub(self.first).max(1) as f64;
        self.duration().times(1.0 / intervals)
    }

    /// The time from its first sample to its last on the clock, gaps included.
    pub fn elapsed(&self) -> Span {
        self.to - self.from
    }

    /// Whether the two have any time in common.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.from <= other.to && other.from <= self.to
    }
}
