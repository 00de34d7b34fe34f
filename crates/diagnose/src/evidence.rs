//! A rule's view of a source: it asks for signals and facts and gets tracks, or a [`Missing`] to pass on with `?`.
//!
//! Quantities that several rules need and that no kernel file holds (page cache, swap traffic of all kinds, the floor)
//! are computed here, once.

use timeline::{
    AnySignal, Condition, Counter, Entity, EntitySeries, Fact, Facts, Gauge, Kind, Signal, Stretch,
    Timeline, Track,
    signals::{
        ALLOCSTALL, MEM_BUFFERS, MEM_CACHED, MEM_SHMEM, MEM_TOTAL, PSWPIN, PSWPOUT, REFAULT_ANON,
        REFAULT_BOTH, REFAULT_FILE, SWAP_FREE, SWAP_TOTAL, SWAP_USED, SWPIN_ZERO, SWPOUT_ZERO,
        ZSWPIN, ZSWPOUT,
    },
};
use units::{
    Bytes, BytesPerSecond, Count, Micros, PageSize, Pages, PerSecond, Quantity, Ratio, Span, Unit,
};

use crate::finding::{Confidence, Held};
use crate::floor::Floor;
use crate::missing::{Missing, Need};

/// What a rule may ask.
#[derive(Debug)]
pub struct Evidence<'a> {
    /// The samples.
    pub timeline: &'a Timeline,
    /// The host's slowly changing truth.
    pub facts: &'a Facts,
}

impl<'a> Evidence<'a> {
    /// No stall or thrash is claimed from less than this: three intervals of a second and one of slack.
    const SHORTEST_HOLD: Span = Span::from_secs(4);
    /// What lasts this long is no burst, however long the look around it: a short look that is continued while the host
    /// is calm must not forget it.
    const LONG_BURST: Span = Span::from_secs(15);
    /// A look shorter than the catalogue's holding time must show the condition for this share of itself. In the
    /// labelled captures the sick phase takes 28 % to 93 % of the look; the longest burst on a calm one takes 9 %.
    const HOLD_SHARE: f64 = 0.2;
    /// A look shorter than this lowers confidence.
    const SHORT_LOOK: Span = Span::from_mins(1);

    /// A rule's view of a source.
    pub const fn new(timeline: &'a Timeline, facts: &'a Facts) -> Self {
        Self { timeline, facts }
    }

    /// How long was looked: from the first sample to the last, without the time that nobody recorded.
    pub fn look(&self) -> Span {
        self.timeline.recorded()
    }

    /// Whether there is one sample only: levels, no rates.
    pub fn is_single_look(&self) -> bool {
        self.timeline.len() < 2
    }

    /// Whether the look is too short for any rate or stall to be sustained in it.
    pub fn is_too_short(&self) -> bool {
        self.look() < Self::SHORTEST_HOLD
    }

    /// A fifth of the look, at least what counts as holding at all: what is growth, and not a jump, takes as long.
    pub fn fifth(&self) -> Span {
        self.look().times(Self::HOLD_SHARE).max(Self::SHORTEST_HOLD)
    }

    /// How long a condition must hold that the catalogue gives `full` for: a fifth of a short look, a quarter of a
    /// minute in one of minutes, and `full` in a recording of an hour or more.
    pub fn hold(&self, full: Span) -> Span {
        let short = self.fifth().min(Self::LONG_BURST);
        let hours = self.look().as_secs_f64() / 3600.0;
        let long = full.times(hours.min(1.0));
        short.max(long).clamp(Self::SHORTEST_HOLD.min(full), full)
    }

    /// The longest stretch where the condition is sustained, if it is long enough for a catalogue time of `full`.
    pub fn sustained(&self, condition: &Condition, full: Span) -> Option<Stretch> {
        condition
            .longest()
            .filter(|stretch| stretch.lasts() >= self.hold(full))
    }

    /// Every time at which the condition was [`sustained`](Self::sustained), `longest` among them, that a rule `accepts` as
    /// it did that one.
    pub(crate) fn each_time(
        &self,
        longest: Stretch,
        condition: &Condition,
        full: Span,
        accepts: impl Fn(&Stretch) -> bool,
    ) -> Held {
        let all = condition.stretches(self.hold(full));
        Held::new(longest, all.into_iter().filter(accepts))
    }

    /// Like [`sustained`](Self::sustained), for a level: one look shows it as well as many.
    pub fn sustained_level(&self, condition: &Condition, full: Span) -> Option<Stretch> {
        if self.look() == Span::ZERO {
            condition.longest()
        } else {
            self.sustained(condition, full)
        }
    }

    /// Where the condition is [`sustained`](Self::sustained), and the mean of `track` there.
    pub fn held<Q: Quantity>(
        &self,
        condition: &Condition,
        track: &Track<Q>,
        full: Span,
    ) -> Option<(Stretch, Q)> {
        let stretch = self.sustained(condition, full)?;
        Some((stretch, track.mean_in(&stretch)?))
    }

    /// Where a level's condition is [`sustained`](Self::sustained_level), and the largest value of `track` there with
    /// its sample.
    pub fn held_peak<Q: Quantity>(
        &self,
        condition: &Condition,
        track: &Track<Q>,
        full: Span,
    ) -> Option<(Stretch, Q, usize)> {
        let stretch = self.sustained_level(condition, full)?;
        let (most, index) = track.max_in(&stretch)?;
        Some((stretch, most, index))
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
    /// two or more confirm, one makes probable. A short look lowers it. `open` says what would settle the rest.
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
        if self.is_single_look() {
            value = value.min(0.75);
            why.push_str("; a single look");
        } else if self.look() < Self::SHORT_LOOK {
            value -= 0.05;
            why.push_str(&format!("; watched for {} only", self.look()));
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
            return Err(Missing::because(vec![signal.def().name], Need::TwoLooks));
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

    /// Page cache that can be dropped: Cached − Shmem + Buffers.
    pub fn page_cache(&self) -> Result<Track<Bytes>, Missing> {
        let cached = self.gauge(MEM_CACHED)?.minus(&self.gauge(MEM_SHMEM)?);
        Ok(match self.timeline.gauge(MEM_BUFFERS) {
            Some(buffers) => cached.plus(&buffers),
            None => cached,
        })
    }

    /// Used swap as the source prints it (where `free -h` rounds, the finer figure), or SwapTotal − SwapFree.
    pub fn swap_used(&self) -> Result<Track<Bytes>, Missing> {
        if let Some(used) = self.timeline.gauge(SWAP_USED) {
            return Ok(used);
        }
        Ok(self.gauge(SWAP_TOTAL)?.minus(&self.gauge(SWAP_FREE)?))
    }

    /// Pages swapped in from anywhere: devices, the zswap pool, zero pages.
    pub fn swapped_in(&self) -> Result<Track<PerSecond<Pages>>, Missing> {
        self.sum(PSWPIN, &[ZSWPIN, SWPIN_ZERO])
    }

    /// Pages swapped out to anywhere: devices, the zswap pool, zero pages.
    pub fn swapped_out(&self) -> Result<Track<PerSecond<Pages>>, Missing> {
        self.sum(PSWPOUT, &[ZSWPOUT, SWPOUT_ZERO])
    }

    /// One counter's rate plus those of others that this kernel may have.
    fn sum(
        &self,
        main: Signal<Counter<Pages>>,
        others: &[Signal<Counter<Pages>>],
    ) -> Result<Track<PerSecond<Pages>>, Missing> {
        let mut sum = self.rate(main)?;
        for other in others {
            if let Some(rate) = self.timeline.rate(*other) {
                sum = sum.plus(&rate);
            }
        }
        Ok(sum)
    }

    /// File pages read again after eviction. Kernels before 5.9 count anonymous ones too: then swap-ins are taken off.
    pub fn refaults_file(&self) -> Result<Track<PerSecond<Pages>>, Missing> {
        if let Some(rate) = self.timeline.rate(REFAULT_FILE).filter(|r| !r.is_empty()) {
            return Ok(rate);
        }
        match self.rate(REFAULT_BOTH) {
            Ok(both) => Ok(match self.rate(PSWPIN) {
                Ok(swapped_in) => both.minus(&swapped_in),
                Err(_) => both,
            }),
            Err(_) => self.rate(REFAULT_FILE),
        }
    }

    /// Anonymous pages swapped in again after eviction; kernels before 5.9 do not count them apart.
    pub fn refaults_anon(&self) -> Result<Track<PerSecond<Pages>>, Missing> {
        self.rate(REFAULT_ANON)
    }

    /// Allocations that had to reclaim memory themselves.
    pub fn allocation_stalls(&self) -> Result<Track<PerSecond<Count>>, Missing> {
        self.rate(ALLOCSTALL)
    }

    /// Where free memory rests under load, from the zones' marks of each sample.
    pub fn floor(&self) -> Result<Floor, Missing> {
        Floor::measured(self)
    }
}

// Entities.
impl Evidence<'_> {
    /// Rows that are older than this many of their usual distances say nothing of a sample any more.
    const ROWS_HOLD: f64 = 2.0;

    /// The sample whose rows of such entities speak for sample `index`: it, or where they are read more rarely than the
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
            return Err(Missing::because(vec![signal.def().name], Need::TwoLooks));
        }
        Ok(track)
    }
}
