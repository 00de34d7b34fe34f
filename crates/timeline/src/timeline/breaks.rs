//! Breaks between samples: what interrupts rates, or sets the wall clock.

use units::Span;

/// Something between two samples that breaks the chain of rates, or the wall clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Break {
    /// Index of the sample after it.
    pub before: usize,
    /// What happened.
    pub kind: BreakKind,
}

/// What happened between two samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BreakKind {
    /// The machine rebooted: counters began at zero.
    Reboot,
    /// The machine was suspended for this long.
    Suspend(Span),
    /// No samples for this long.
    Gap(Span),
    /// The wall clock was set forward by this much; rates are not affected.
    ClockForward(Span),
    /// The wall clock was set back by this much; rates are not affected.
    ClockBack(Span),
    /// A new segment begins: the order of the samples before and after is unknown (two pastes, two kernel reports).
    NewSegment,
}

impl BreakKind {
    /// Whether the time before the sample is unknown, so that it has no rates; a clock step does not hide anything.
    pub const fn breaks_rates(self) -> bool {
        match self {
            Self::Reboot | Self::Suspend(_) | Self::Gap(_) | Self::NewSegment => true,
            Self::ClockForward(_) | Self::ClockBack(_) => false,
        }
    }
}
