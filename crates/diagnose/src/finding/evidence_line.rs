//! Evidence: a sentence with the measurement it is about, in the unit of the signal.

use schemars::JsonSchema;
use serde::Serialize;
use timeline::{AnySignal, Counter, Gauge, Signal};
use units::{
    Bytes, BytesPerSecond, Limit, Micros, Millis, Pages, PerSecond, Quantity, Ratio, Span, Ticks,
    Unit,
};

/// One line of evidence: a sentence, with its measurement if it is about one.
#[derive(Debug, Clone, PartialEq)]
pub struct EvidenceLine {
    /// The measured value; `None` if the sentence is not about one.
    pub measured: Option<Measured>,
    /// The time of the measurement, on the timeline's clock.
    pub at: Option<Span>,
    /// The sentence for readers, numbers included.
    pub text: String,
}

/// A measured value without its Rust type: with name, unit and threshold.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// Name of the signal or fact in its catalogue.
    pub signal: &'static str,
    /// The value in `unit`.
    pub value: f64,
    /// Unit of the value: `bytes`, `pages/s`, `ratio`.
    pub unit: &'static str,
    /// The value for readers: `9.9 MiB/s`.
    pub text: String,
    /// The threshold from which up (or down) it counts.
    pub threshold: Option<Threshold>,
}

/// The threshold at which a value starts to count.
#[derive(Debug, Clone, PartialEq)]
pub struct Threshold {
    /// In the value's unit.
    pub value: f64,
    /// The side of the threshold on which a value counts.
    pub side: ThresholdSide,
    /// The threshold for readers: `≥ 1 MiB/s`.
    pub text: String,
}

/// On which side of a threshold a value counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
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

/// A signal that measures `Q` directly, by its kind and unit: a gauge its level, a counter its rate or its total. Pages
/// may be shown in bytes, time per time as a share. Any other quantity is [`Computed`].
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
