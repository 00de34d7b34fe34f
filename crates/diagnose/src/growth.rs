//! Growth: does the memory of a process leak, fragment, warm up, follow a season, or stand still?
//!
//! Input is a series of total bytes (RSS, or anonymous memory and swap), and where it is known what the program has
//! allocated (*live*) and what its allocator keeps (*free*). A leak is a live size that keeps rising; fragmentation is
//! free memory beyond what the peak of the live size explains. The total alone shows neither: growth that levels off
//! may then be either, and the answer says so. What is judged is the lower envelope, after cycles are taken off: noise,
//! collections and daily load only add to it.
//!
//! Nothing depends on the scale of sizes or times, apart from a floor below which growth is noise. Cost: one pass over
//! the samples, then at most 2,000 medians of them; curves are fitted only to what its trend does not decide. Reads no
//! clock and no file.

mod answer;
mod class;
mod curve;
mod cycles;
mod decision;
mod features;
mod few_readings;
mod fit;
mod judged;
mod levels;
mod numbers;
mod owners;
mod reason;
mod series;
mod shape;
mod trend;

use units::{Bytes, BytesPerSecond, Ratio, Span};

pub use class::GrowthClass;
pub(crate) use decision::READINGS_SURE;
pub(crate) use judged::{NOTED, late_line};
pub use judged::{is_listed, judge, leaks_on};
pub(crate) use owners::process_series;
pub use owners::{GrowthEnd, GrowthOwner, GrowthOwnerKind, owners, owners_such};
pub use reason::{CurveKind, GrowthAndFall, GrowthChange, GrowthFit, GrowthMethod, GrowthReason};
pub use series::{GrowthPoint, GrowthSeries};

use features::Features;
use series::Prepared;

/// Rules rest on an answer from this confidence on: an engineering choice.
pub(crate) const CONFIDENCE_MIN: Ratio = Ratio::from_percent(80.0);
/// Growth below this is noise in any process.
pub(crate) const NOISE_FLOOR: Bytes = Bytes::from_kib(512);

/// How a series grows, and how sure that is.
#[derive(Debug, Clone, PartialEq)]
pub struct Growth {
    /// What the series does.
    pub class: GrowthClass,
    /// How sure that is.
    pub confidence: Ratio,
    /// How it was found.
    pub method: GrowthMethod,
    /// The mean of the last readings.
    pub now: Bytes,
    /// The time that was judged, after the last restart.
    pub judged: Span,
    /// The number of readings that were judged.
    pub readings: usize,
    /// The slope, of a class that grows without an end, and of a line that has no class yet.
    pub rate: Option<GrowthRate>,
    /// Where growth ends, of a class that levels off.
    pub levels_off_at: Option<Bytes>,
    /// How long it takes at this rate until the limit is reached.
    pub limit_in: Option<Span>,
    /// For how long to record on, where the series is too short to judge.
    pub needs: Option<Span>,
    /// Whether what was judged lasts to the last reading; not where an earlier part was, which ended with a restart or a kill.
    pub goes_on: bool,
    /// What the class rests on; empty where there are too few readings for a class.
    pub reasons: Vec<GrowthReason>,
}

/// A slope and its 95 % interval, in bytes per second; the lower end may be below zero.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GrowthRate {
    /// The slope.
    pub rate: BytesPerSecond,
    /// The lower end of the interval.
    pub from: BytesPerSecond,
    /// The upper end.
    pub to: BytesPerSecond,
}

impl Growth {
    /// Judges a series. Where the kernel killed in it and nothing leaks since, the longest part that ended with a kill is
    /// judged, if that rose in a line.
    pub fn of(series: &GrowthSeries) -> Self {
        let prepared = series.prepared();
        let features = Features::of(&prepared);
        let decision = decision::decide(&features);
        let leak = || {
            let leak = |part: &Prepared| Self::leak_of(part, series.limit);
            (!series.killed.is_empty() && !decision.class.leaks())
                .then(|| leak(&prepared).or_else(|| leak(&series.killed_part()?)))
        };
        let growth = || answer::growth(&prepared, &features, &decision, series.limit);
        leak().flatten().unwrap_or_else(growth)
    }

    /// Judges whether a series leaks; one with fewer readings than a class needs, whether it rises in a line. `None` if
    /// not: of most processes no more than their trend is computed.
    pub(crate) fn of_leak(series: &GrowthSeries) -> Option<Self> {
        Self::leak_of(&series.prepared(), series.limit)
    }

    fn leak_of(prepared: &Prepared, limit: Option<Bytes>) -> Option<Self> {
        few_readings::line(prepared, limit).or_else(|| {
            let features = Features::of(prepared);
            let decision = decision::decide(&features);
            let growth = || answer::growth(prepared, &features, &decision, limit);
            decision.class.leaks().then(growth)
        })
    }

    /// Whether it grew for a while and gave that back.
    pub fn gave_back(&self) -> bool {
        self.reasons.iter().any(|reason| matches!(reason, GrowthReason::RoseAndFell(_)))
    }

    /// Whether a rule may rest on it; never without the live size.
    pub(crate) fn is_sure(&self) -> bool {
        self.confidence >= CONFIDENCE_MIN
    }
}
