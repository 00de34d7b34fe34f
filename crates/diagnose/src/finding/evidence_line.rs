//! Evidence: a sentence with the measurement that it is about, in the unit of its signal.

use timeline::{AnySignal, Counter, Gauge, Signal};
use units::{
    Bytes, BytesPerSecond, Limit, Micros, Millis, Pages, PerSecond, Quantity, Ratio, Span, Ticks,
    Unit,
};

/// One line of evidence: a sentence, and what was measured where it is about a measurement.
#[derive(Debug, Clone, PartialEq)]
pub struct EvidenceLine {
    /// The measured value; `None` where the sentence is not about one.
    pub measured: Option<Measured>,
    /// When, on the timeline's clock.
    pub at: Option<Span>,
    /// The sentence a person reads, numbers included.
    pub text: String,
}

/// A value as it leaves the types: named, in its unit, against its threshold.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// Name of the signal or fact in its catalogue.
    pub signal: &'static str,
    /// The value in `unit`.
    pub value: f64,
    /// Unit of the value: `bytes`, `pages/s`, `ratio`.
    pub unit: &'static str,
    /// The value as people read it: `9.9 MiB/s`.
    pub text: String,
    /// From where on (or down from where) it counts.
    pub threshold: Option<Threshold>,
}

/// From where on a value counts.
#[derive(Debug, Clone, PartialEq)]
pub struct Threshold {
    /// In the value's unit.
    pub value: f64,
    /// On which side of it a value counts.
    pub side: ThresholdSide,
    /// For people: `≥ 1 MiB/s`.
    pub text: String,
}

/// On which side of a threshold a value counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThresholdSide {
    /// From it up.
    From,
    /// From it down.
    Below,
}

impl ThresholdSide {
    pub(super) const fn symbol(self) -> &'static str {
        match self {
            Self::From => "≥",
            Self::Below => "≤",
        }
    }
}

/// A signal that can say `Q`, without computing anything but what its kind and unit mean: a gauge its level, a counter
/// its rate or its total; pages may be shown in bytes, time per time as a share. Anything else is [`Computed`].
pub(crate) trait Says<Q: Quantity> {
    /// The signal's name.
    fn name(&self) -> &'static str;
}

/// A quantity that a rule computed from this signal and others: a share of a whole, a sum, bytes counted as blocks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Computed<S>(pub(crate) S);

macro_rules! says {
    ($(for[$($u:ident)?] $signal:ty => $quantity:ty;)*) => {$(
        impl<$($u: Unit)?> Says<$quantity> for Signal<$signal> {
            fn name(&self) -> &'static str {
                self.definition().name
            }
        }
    )*};
}

says! {
    for[U] Gauge<U> => U;
    for[U] Counter<U> => U;
    for[U] Counter<U> => PerSecond<U>;
    for[] Gauge<Pages> => Bytes;
    for[] Counter<Pages> => Bytes;
    for[] Counter<Pages> => BytesPerSecond;
    for[] Gauge<Limit> => Bytes;
    for[] Counter<Micros> => Ratio;
    for[] Counter<Millis> => Ratio;
    for[] Counter<Ticks> => Ratio;
}

impl<S: AnySignal, Q: Quantity> Says<Q> for Computed<S> {
    fn name(&self) -> &'static str {
        self.0.definition().name
    }
}
