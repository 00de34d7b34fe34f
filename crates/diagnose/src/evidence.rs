//! A rule's view of a source: it asks for signals and facts and gets tracks, or a [`Missing`] to pass on with `?`.
//!
//! Quantities that several rules need and that no kernel file holds (page cache, swap traffic of all kinds, the floor)
//! are computed here, once.

mod missing;
pub(crate) mod rounding;

use timeline::{
    AnySignal, Counter, Entity, EntitySeries, Fact, Facts, Gauge, Kind, Signal, SignalId, Stretch,
    Timeline, Track,
    signals::{ALLOCSTALL, MEM_TOTAL, REFAULT_ANON},
};
use units::{
    Bytes, BytesPerSecond, Count, Micros, PageSize, Pages, PerSecond, Quantity, Ratio, Span, Unit,
};

use crate::finding::Confidence;

pub use missing::{Missing, Need};

/// A stall or a thrash is evidence from here on: four samples of a second.
pub(crate) const STALL: Span = Span::from_secs(4);

/// What a rule may ask.
#[derive(Debug)]
pub struct Evidence<'a> {
    /// The samples.
    pub timeline: &'a Timeline,
    /// The host's slowly changing truth.
    pub facts: &'a Facts,
    /// In how many samples the incident shows that a story is asked of; `None` where it is of no time, or a moment.
    shown: Option<usize>,
}

impl<'a> Evidence<'a> {
    /// No stall or thrash is claimed from less than this.
    const SHORTEST_HOLD: Span = STALL;
    /// What fewer samples show is less sure: an engineering choice.
    const FEW_SAMPLES: usize = 10;

    /// A rule's view of a source.
    pub const fn new(timeline: &'a Timeline, facts: &'a Facts) -> Self {
        Self {
            timeline,
            facts,
            shown: None,
        }
    }

    /// The same, asked of an incident.
    pub(crate) fn about(mut self, incident: &Stretch) -> Self {
        // A kill or a kernel report is as sure in one sample as in many.
        let samples = incident.last - incident.first;
        self.shown = Some(samples).filter(|samples| *samples > 0);
        self
    }

    /// The recorded time: from the first sample to the last, without gaps.
    pub fn recorded(&self) -> Span {
        self.timeline.recorded()
    }

    /// Whether there is one sample only: levels, no rates.
    pub fn is_single_sample(&self) -> bool {
        self.timeline.len() < 2
    }

    /// Whether the recorded time is too short for any rate or stall to be sustained.
    pub fn is_too_short(&self) -> bool {
        self.recorded() < Self::SHORTEST_HOLD
    }

    /// The lowest level of a gauge in a stretch and its sample; `None` where it was not measured.
    pub(crate) fn lowest_in<U: Unit>(
        &self,
        signal: Signal<Gauge<U>>,
        stretch: &Stretch,
    ) -> Option<(U, usize)> {
        self.timeline.gauge(signal)?.min_in(stretch)
    }

    /// The mean level of a gauge in a stretch; `None` where it was not measured.
    pub(crate) fn mean_level<U: Unit>(
        &self,
        signal: Signal<Gauge<U>>,
        stretch: &Stretch,
    ) -> Option<U> {
        self.timeline.gauge(signal)?.mean_in(stretch)
    }

    /// The mean rate of a counter in a stretch; `None` where it was not measured.
    pub(crate) fn mean_rate<U: Unit>(
        &self,
        signal: Signal<Counter<U>>,
        stretch: &Stretch,
    ) -> Option<PerSecond<U>> {
        self.timeline.rate(signal)?.mean_in(stretch)
    }

    /// The level of a gauge at a sample; `None` where it was not measured.
    pub(crate) fn level<U: Unit>(&self, signal: Signal<Gauge<U>>, index: usize) -> Option<U> {
        self.timeline.gauge(signal)?.at(index)
    }

    /// When a sample was taken.
    pub(crate) fn time(&self, index: usize) -> Option<Span> {
        self.timeline.times().get(index).copied()
    }

    /// The mean of what was computed from `signal`, over a stretch found by other signals.
    pub fn mean_in<Q: Quantity>(
        &self,
        stretch: &Stretch,
        signal: impl AnySignal,
        track: &Track<Q>,
    ) -> Result<Q, Missing> {
        track
            .mean_in(stretch)
            .ok_or_else(|| Missing::because(vec![signal.definition().name], Need::SameTime))
    }

    /// Confidence from the number of independent kinds of evidence that agree (flow, level, stall, event, setting):
    /// two or more confirm, one makes probable. Few samples lower it, however much was watched around them. `open` says what
    /// would settle the rest. The values lie in the middle of the bands that their words stand for: an engineering choice.
    pub fn confidence(&self, kinds: &[&str], open: &str) -> Confidence {
        let mut value: f64 = match kinds.len() {
            0 => 0.4,
            1 => 0.75,
            _ => 0.96,
        };
        let mut why = kinds.join(" and ");
        if !why.is_empty() {
            why = format!("rests on {why}");
        }
        if self.is_single_sample() {
            value = value.min(0.75);
            why.push_str("; a single sample");
        } else if let Some(samples) = self.shown.filter(|shown| *shown < Self::FEW_SAMPLES) {
            value -= 0.05;
            why.push_str(&format!("; seen in {samples} samples only"));
        }
        if !open.is_empty() {
            why.push_str("; ");
            why.push_str(open);
        }
        Confidence {
            value,
            why: why.trim_start_matches("; ").to_owned(),
        }
    }
}

// Signals and facts of the host.
impl<'a> Evidence<'a> {
    /// The levels of a gauge.
    pub fn gauge<U: Unit>(&self, signal: Signal<Gauge<U>>) -> Result<Track<U>, Missing> {
        self.timeline
            .gauge(signal)
            .ok_or_else(|| self.lacks(signal))
    }

    /// The last reading of a signal: a gauge's level, a counter's total since boot.
    pub fn last<K: Kind>(&self, signal: Signal<K>) -> Result<K::Unit, Missing> {
        self.timeline.last(signal).ok_or_else(|| self.lacks(signal))
    }

    /// The rates of a counter.
    pub fn rate<U: Unit>(
        &self,
        signal: Signal<Counter<U>>,
    ) -> Result<Track<PerSecond<U>>, Missing> {
        let track = self
            .timeline
            .rate(signal)
            .ok_or_else(|| self.lacks(signal))?;
        if track.is_empty() {
            return Err(Missing::because(vec![signal.def().name], Need::TwoSamples));
        }
        Ok(track)
    }

    /// The rates of a counter of pages, in bytes.
    pub fn bytes_rate(
        &self,
        signal: Signal<Counter<Pages>>,
    ) -> Result<Track<BytesPerSecond>, Missing> {
        Ok(self.rate(signal)?.to_bytes(self.page_size()?))
    }

    /// A gauge of pages, in bytes.
    pub fn bytes(&self, signal: Signal<Gauge<Pages>>) -> Result<Track<Bytes>, Missing> {
        Ok(self.gauge(signal)?.to_bytes(self.page_size()?))
    }

    /// The share of time stalled, from a pressure total.
    pub fn stall(&self, signal: Signal<Counter<Micros>>) -> Result<Track<Ratio>, Missing> {
        Ok(self.rate(signal)?.to_share())
    }

    /// How much a counter rose while the source was watched.
    pub fn increase<U: Unit>(&self, signal: Signal<Counter<U>>) -> Result<f64, Missing> {
        let rate = self.rate(signal)?;
        Ok(rate.whole().map_or(0.0, |whole| rate.integral_in(&whole)))
    }

    /// A fact as a number.
    pub fn number(&self, fact: Fact) -> Result<u64, Missing> {
        self.facts.number(fact).ok_or_else(|| Missing::fact(fact))
    }

    /// The chosen word of a fact: `madvise`.
    pub fn choice(&self, fact: Fact) -> Result<&'a str, Missing> {
        self.facts.choice(fact).ok_or_else(|| Missing::fact(fact))
    }

    /// The page size.
    pub fn page_size(&self) -> Result<PageSize, Missing> {
        self.facts
            .page_size
            .ok_or_else(|| Missing::because(vec![], Need::PageSize))
    }

    fn lacks<K: Kind>(&self, signal: Signal<K>) -> Missing {
        self.lacks_signal(signal.id())
    }

    /// Why the source does not have a signal.
    pub(crate) fn lacks_signal(&self, signal: SignalId) -> Missing {
        let def = signal.def();
        Missing::signal(def, self.timeline.absent.get(def.file)).on(self.facts.kernel())
    }
}

// Quantities that several rules need.
impl Evidence<'_> {
    /// MemTotal; 0 is no host's.
    pub fn ram(&self) -> Result<Bytes, Missing> {
        self.last(MEM_TOTAL)
            .ok()
            .filter(|ram| *ram > Bytes::ZERO)
            .ok_or_else(|| self.lacks(MEM_TOTAL))
    }

    /// What part of RAM that is.
    pub fn of_ram(&self, part: Bytes) -> Result<Ratio, Missing> {
        part.ratio_of(self.ram()?)
            .ok_or_else(|| self.lacks(MEM_TOTAL))
    }

    /// ` (12 % of RAM)`; empty where RAM is not known.
    pub(crate) fn remark_of_ram(&self, part: Bytes) -> String {
        let share = self.of_ram(part);
        share.map_or_else(|_| String::new(), |share| format!(" ({share} of RAM)"))
    }

    /// Anonymous pages swapped in again after eviction; kernels before 5.9 do not count them apart.
    pub fn refaults_anon(&self) -> Result<Track<PerSecond<Pages>>, Missing> {
        self.rate(REFAULT_ANON)
    }

    /// Allocations that had to reclaim memory themselves.
    pub fn allocation_stalls(&self) -> Result<Track<PerSecond<Count>>, Missing> {
        self.rate(ALLOCSTALL)
    }
}

// Entities.
impl Evidence<'_> {
    /// Rows that are older than this many of their usual distances say nothing of a sample any more.
    const ROWS_HOLD: f64 = 2.0;

    /// The sample that has the rows of such entities for sample `index`: it, or where they are read more rarely than the
    /// host the last one before it, unless that was too long ago.
    pub(crate) fn rows_at(&self, entity: Entity, index: usize) -> Option<usize> {
        let at = self.timeline.read_before(entity, index)?;
        let times = self.timeline.times();
        let age = times.get(index)?.saturating_sub(times[at]);
        let usual = self.timeline.interval_of(entity).unwrap_or_default();
        (age <= usual.times(Self::ROWS_HOLD)).then_some(at)
    }

    /// The first sample at `index` or behind it in which such entities were read.
    pub(crate) fn rows_from(&self, entity: Entity, index: usize) -> Option<usize> {
        (index..self.timeline.len()).find(|at| self.timeline.was_read(entity, *at))
    }

    /// The levels of an entity's gauge.
    pub fn gauge_of<U: Unit>(
        &self,
        series: &EntitySeries,
        signal: Signal<Gauge<U>>,
    ) -> Result<Track<U>, Missing> {
        self.timeline
            .gauge_of(series, signal)
            .ok_or_else(|| self.lacks(signal))
    }

    /// The rates of an entity's counter.
    pub fn rate_of<U: Unit>(
        &self,
        series: &EntitySeries,
        signal: Signal<Counter<U>>,
    ) -> Result<Track<PerSecond<U>>, Missing> {
        let track = self
            .timeline
            .rate_of(series, signal)
            .ok_or_else(|| self.lacks(signal))?;
        if track.is_empty() {
            return Err(Missing::because(vec![signal.def().name], Need::TwoSamples));
        }
        Ok(track)
    }
}
