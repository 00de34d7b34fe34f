//! A rule's view of a source: the rule asks for signals and facts and gets tracks, or a [`Missing`] to pass on with
//! `?`.
//!
//! Quantities that several rules need and no kernel file contains (page cache, swap traffic of all kinds, the floor)
//! are computed here, once.

mod missing;
pub(crate) mod rounding;

use std::sync::{Arc, OnceLock};

use timeline::{
    AnySignal, Counter, Entity, EntitySeries, Fact, Facts, Gauge, Kind, Signal, SignalId, Stretch,
    Timeline, Track,
    signals::{ALLOCSTALL, MEM_TOTAL, REFAULT_ANON},
};
use units::{
    Bytes, BytesPerSecond, Count, Micros, PageSize, Pages, PerSecond, Quantity, Ratio, Span, Unit,
};

use crate::finding::Confidence;
use crate::oom::kills::GroupKills;

pub use missing::{Missing, Need};

/// A stall or a thrash that lasts this long is evidence: four samples, one per second.
pub(crate) const STALL: Span = Span::from_secs(4);

/// The kills in cgroups, once a rule asked for them: with many cgroups they are costly to find.
pub(crate) type KnownKills = Arc<OnceLock<Result<Arc<[GroupKills]>, Missing>>>;

/// What a rule can ask for.
#[derive(Debug)]
pub struct Evidence<'a> {
    /// The samples.
    pub timeline: &'a Timeline,
    /// The host's settings and other facts that rarely change.
    pub facts: &'a Facts,
    /// The number of samples that show the incident a story explains; `None` if it has no interval, or is a moment.
    shown: Option<usize>,
    /// The moment that was asked about, on the timeline's clock; `None` if none was.
    asked: Option<Span>,
    group_kills: KnownKills,
}

impl<'a> Evidence<'a> {
    /// A shorter recording shows no stall and no thrash.
    const HOLD_MIN: Span = STALL;
    /// An incident in fewer samples is less sure: an engineering choice.
    const FEW_SAMPLES: usize = 10;

    /// Creates a rule's view of a source.
    pub fn new(timeline: &'a Timeline, facts: &'a Facts) -> Self {
        Self { timeline, facts, shown: None, asked: None, group_kills: Arc::default() }
    }

    /// Returns the same view for a moment that was asked about: what happened at it leads.
    pub(crate) fn asked_about(self, at: Option<Span>) -> Self {
        Self { asked: at, ..self }
    }

    /// Whether a moment was asked about.
    pub(crate) const fn is_asked(&self) -> bool {
        self.asked.is_some()
    }

    /// How far a stretch is from the moment that was asked about; `None` if none was.
    pub(crate) fn away_from_asked(&self, stretch: Option<Stretch>) -> Option<Span> {
        let (asked, stretch) = (self.asked?, stretch?);
        Some(stretch.from.saturating_sub(asked).max(asked.saturating_sub(stretch.to)))
    }

    /// Returns the same view for the story of an incident.
    pub(crate) fn about(mut self, incident: &Stretch) -> Self {
        // A kill or a kernel report is as sure in one sample as in many.
        let samples = incident.last - incident.first;
        self.shown = Some(samples).filter(|samples| *samples > 0);
        self
    }

    /// Returns the same view, which takes kills from and adds them to `known`: those of the same samples and facts.
    pub(crate) fn sharing(mut self, known: &KnownKills) -> Self {
        self.group_kills = Arc::clone(known);
        self
    }

    /// Returns the kills in cgroups, found by `find` on the first call.
    pub(crate) fn group_kills(
        &self,
        find: impl FnOnce() -> Result<Arc<[GroupKills]>, Missing>,
    ) -> Result<Arc<[GroupKills]>, Missing> {
        self.group_kills.get_or_init(find).clone()
    }

    /// Returns the recorded time: from the first sample to the last, without gaps.
    pub fn recorded(&self) -> Span {
        self.timeline.recorded()
    }

    /// Whether there is only one sample: levels, but no rates.
    pub fn is_single_sample(&self) -> bool {
        self.timeline.len() < 2
    }

    /// Whether the recorded time is too short for any rate or stall to be sustained.
    pub fn is_too_short(&self) -> bool {
        self.recorded() < Self::HOLD_MIN
    }

    /// Returns the lowest level of a gauge in a stretch and its sample; `None` if it was not measured.
    pub(crate) fn lowest_in<U: Unit>(
        &self,
        signal: Signal<Gauge<U>>,
        stretch: &Stretch,
    ) -> Option<(U, usize)> {
        self.timeline.gauge(signal)?.min_in(stretch)
    }

    /// Returns the mean level of a gauge in a stretch; `None` if it was not measured.
    pub(crate) fn mean_level<U: Unit>(
        &self,
        signal: Signal<Gauge<U>>,
        stretch: &Stretch,
    ) -> Option<U> {
        self.timeline.gauge(signal)?.mean_in(stretch)
    }

    /// Returns the mean rate of a counter in a stretch; `None` if it was not measured.
    pub(crate) fn mean_rate<U: Unit>(
        &self,
        signal: Signal<Counter<U>>,
        stretch: &Stretch,
    ) -> Option<PerSecond<U>> {
        self.timeline.rate(signal)?.mean_in(stretch)
    }

    /// Returns the level of a gauge at a sample; `None` if it was not measured.
    pub(crate) fn level<U: Unit>(&self, signal: Signal<Gauge<U>>, index: usize) -> Option<U> {
        self.timeline.gauge(signal)?.at(index)
    }

    /// Returns the time of a sample.
    pub(crate) fn time(&self, index: usize) -> Option<Span> {
        self.timeline.times().get(index).copied()
    }

    /// Returns the mean of a track that was computed from `signal`, over a stretch found by other signals.
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

    /// Returns the confidence from the number of independent kinds of evidence that agree (flow, level, stall, event,
    /// setting): two or more confirm, one makes probable. Few samples of the incident lower it, however long the
    /// recording is. `open` says what would settle the rest.
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
        Confidence { value, why: why.trim_start_matches("; ").to_owned() }
    }
}

// Signals and facts of the host.
impl<'a> Evidence<'a> {
    /// Returns the levels of a gauge.
    pub fn gauge<U: Unit>(&self, signal: Signal<Gauge<U>>) -> Result<Track<U>, Missing> {
        self.timeline.gauge(signal).ok_or_else(|| self.lacks(signal))
    }

    /// Returns the last reading of a signal: a gauge's level, a counter's total since boot.
    pub fn last<K: Kind>(&self, signal: Signal<K>) -> Result<K::Unit, Missing> {
        self.timeline.last(signal).ok_or_else(|| self.lacks(signal))
    }

    /// Returns the rates of a counter.
    pub fn rate<U: Unit>(
        &self,
        signal: Signal<Counter<U>>,
    ) -> Result<Track<PerSecond<U>>, Missing> {
        let track = self.timeline.rate(signal).ok_or_else(|| self.lacks(signal))?;
        if track.is_empty() {
            return Err(Missing::because(vec![signal.def().name], Need::TwoSamples));
        }
        Ok(track)
    }

    /// Returns the rates of a counter of pages, in bytes.
    pub fn bytes_rate(
        &self,
        signal: Signal<Counter<Pages>>,
    ) -> Result<Track<BytesPerSecond>, Missing> {
        Ok(self.rate(signal)?.to_bytes(self.page_size()?))
    }

    /// Returns a gauge of pages, in bytes.
    pub fn bytes(&self, signal: Signal<Gauge<Pages>>) -> Result<Track<Bytes>, Missing> {
        Ok(self.gauge(signal)?.to_bytes(self.page_size()?))
    }

    /// Returns the share of time stalled, from a pressure total.
    pub fn stall(&self, signal: Signal<Counter<Micros>>) -> Result<Track<Ratio>, Missing> {
        Ok(self.rate(signal)?.to_share())
    }

    /// Returns how much a counter rose in the recorded time.
    pub fn increase<U: Unit>(&self, signal: Signal<Counter<U>>) -> Result<f64, Missing> {
        let rate = self.rate(signal)?;
        Ok(rate.whole().map_or(0.0, |whole| rate.integral_in(&whole)))
    }

    /// Returns a fact as a number.
    pub fn number(&self, fact: Fact) -> Result<u64, Missing> {
        self.facts.number(fact).ok_or_else(|| Missing::fact(fact))
    }

    /// Returns the chosen word of a fact: `madvise`.
    pub fn choice(&self, fact: Fact) -> Result<&'a str, Missing> {
        self.facts.choice(fact).ok_or_else(|| Missing::fact(fact))
    }

    /// Returns the page size.
    pub fn page_size(&self) -> Result<PageSize, Missing> {
        self.facts.page_size.ok_or_else(|| Missing::because(vec![], Need::PageSize))
    }

    fn lacks<K: Kind>(&self, signal: Signal<K>) -> Missing {
        self.lacks_signal(signal.id())
    }

    /// Returns why the source does not have a signal.
    pub(crate) fn lacks_signal(&self, signal: SignalId) -> Missing {
        let def = signal.def();
        Missing::signal(def, self.timeline.absent.get(def.file)).on(self.facts.kernel())
    }
}

// Quantities that several rules need.
impl Evidence<'_> {
    /// Returns MemTotal; 0 counts as missing.
    pub fn ram(&self) -> Result<Bytes, Missing> {
        self.last(MEM_TOTAL)
            .ok()
            .filter(|ram| *ram > Bytes::ZERO)
            .ok_or_else(|| self.lacks(MEM_TOTAL))
    }

    /// Returns `part` as a share of RAM.
    pub fn of_ram(&self, part: Bytes) -> Result<Ratio, Missing> {
        part.ratio_of(self.ram()?).ok_or_else(|| self.lacks(MEM_TOTAL))
    }

    /// Returns ` (12 % of RAM)`; empty if RAM is unknown.
    pub(crate) fn remark_of_ram(&self, part: Bytes) -> String {
        let share = self.of_ram(part);
        share.map_or_else(|_| String::new(), |share| format!(" ({share} of RAM)"))
    }

    /// Returns the rate of refaulted anonymous pages (swapped in after eviction). Kernels before 5.9 do not count
    /// them.
    pub fn refaults_anon(&self) -> Result<Track<PerSecond<Pages>>, Missing> {
        self.rate(REFAULT_ANON)
    }

    /// Returns the rate of allocation stalls: allocations that had to reclaim memory themselves.
    pub fn allocation_stalls(&self) -> Result<Track<PerSecond<Count>>, Missing> {
        self.rate(ALLOCSTALL)
    }
}

// Entities.
impl Evidence<'_> {
    /// Rows older than this many usual intervals between readings do not speak for a sample any more.
    const ROWS_HOLD: f64 = 2.0;
    /// How long a reading of all of them is better than a newer one of some; its age is named.
    const ALL_ROWS_HOLD: Span = Span::from_mins(30);

    /// Returns the sample with the rows of these entities for sample `index`: `index` itself, or the last one before
    /// it if these entities are read more rarely than the host. `None` if that reading is too old.
    pub(crate) fn rows_at(&self, entity: Entity, index: usize) -> Option<usize> {
        let at = self.timeline.read_before(entity, index)?;
        let usual = self.timeline.interval_of(entity).unwrap_or_default();
        (self.age_at(at, index)? <= usual.times(Self::ROWS_HOLD)).then_some(at)
    }

    /// As [`rows_at`](Self::rows_at), where a sum over all of these entities is asked for: of cgroups most samples of a
    /// recorder have the busiest only, and where a user has thousands, all of them are read every few minutes.
    pub(crate) fn all_rows_at(&self, entity: Entity, index: usize) -> Option<usize> {
        let whole = self.timeline.all_read_before(entity, index);
        let holds = |at: &usize| {
            let age = self.age_at(*at, index);
            age.is_some_and(|age| age <= Self::ALL_ROWS_HOLD)
        };
        whole.filter(holds).or_else(|| self.rows_at(entity, index))
    }

    /// Returns how long before sample `index` sample `at` is.
    fn age_at(&self, at: usize, index: usize) -> Option<Span> {
        let times = self.timeline.times();
        Some(times.get(index)?.saturating_sub(*times.get(at)?))
    }

    /// Returns the first sample from `index` on in which these entities were read.
    pub(crate) fn rows_from(&self, entity: Entity, index: usize) -> Option<usize> {
        (index..self.timeline.len()).find(|at| self.timeline.was_read(entity, *at))
    }

    /// Returns the levels of an entity's gauge.
    pub fn gauge_of<U: Unit>(
        &self,
        series: &EntitySeries,
        signal: Signal<Gauge<U>>,
    ) -> Result<Track<U>, Missing> {
        self.timeline.gauge_of(series, signal).ok_or_else(|| self.lacks(signal))
    }

    /// Returns the rates of an entity's counter.
    pub fn rate_of<U: Unit>(
        &self,
        series: &EntitySeries,
        signal: Signal<Counter<U>>,
    ) -> Result<Track<PerSecond<U>>, Missing> {
        let track = self.timeline.rate_of(series, signal).ok_or_else(|| self.lacks(signal))?;
        if track.is_empty() {
            return Err(Missing::because(vec![signal.def().name], Need::TwoSamples));
        }
        Ok(track)
    }
}
