//! Breaks between samples: events that interrupt rates, and changes of the wall clock.

use units::Span;

/// An event between two samples that interrupts rates or changes the wall clock.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Break {
    /// Index of the first sample after it.
    pub before: usize,
    pub kind: BreakKind,
}

/// What happened between two samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BreakKind {
    /// The machine rebooted: counters began at zero.
    Reboot,
    /// The machine was suspended for this long.
    Suspend(Span),
    /// No samples were taken for this long.
    Gap(Span),
    /// The wall clock was set forward by this much; rates are not affected.
    ClockForward(Span),
    /// The wall clock was set back by this much; rates are not affected.
    ClockBack(Span),
    /// A new segment begins: the order of the samples before and after is unknown (two pastes, two kernel reports).
    NewSegment,
}

impl BreakKind {
    /// Whether the time before the sample is unknown, so that rates cannot cross it; true of all but clock steps.
    pub const fn breaks_rates(self) -> bool {
        match self {
            Self::Reboot | Self::Suspend(_) | Self::Gap(_) | Self::NewSegment => true,
            Self::ClockForward(_) | Self::ClockBack(_) => false,
        }
    }
}
