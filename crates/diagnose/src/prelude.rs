//! Imports that nearly every rule needs. Signals and facts are left out: a rule's own imports show what it reads.

pub(crate) use timeline::{Counter, Entity, EntitySeries, Signal, Stretch, Track};
pub(crate) use units::{Bytes, BytesPerSecond, Count, Pages, PerSecond, Quantity, Ratio, Span};

pub(crate) use crate::evidence::Evidence;
pub(crate) use crate::evidence::{Missing, Need};
pub(crate) use crate::finding::{
    Affected, Computed, Finding, Fix, Outcome, Severity, Title, capital,
};
pub(crate) use crate::measures::pressure::{self, PressureWindow, Waited, WindowPart};
pub(crate) use crate::measures::processes;
pub(crate) use crate::measures::readings::{AVAILABLE_LOW_SHARE, READ_AGAIN};
pub(crate) use crate::rule::Incident;
pub(crate) use crate::rule::{Explains, WANT_AND_THRASH, clear, declare_rule};
pub(crate) use crate::trigger::{
    FoundBy, LEVEL, Numbers, Occurrence, Predicate, Reading, STALL, Subjects, Trigger, all, any,
    computed, fact, gauge, joined, limit, over, ram, rate, stall,
};
