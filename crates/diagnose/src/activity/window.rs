//! The readings of one kind of entity that a moment's levels, rates and growth are taken from.

use timeline::{Counter, Entity, EntitySeries, Gauge, Kind, Signal};
use units::{PerSecond, SignedBytes, Span, Unit};

use crate::evidence::Evidence;

/// Rates are means over this long: a reader can follow them, and one late sample does not show. An engineering choice.
const RATES_OVER: Span = Span::from_secs(5);
/// Growth is that of this long.
const GROWTH_OVER: Span = Span::from_mins(1);
/// What was watched for less shows no growth: an engineering choice.
const GROWTH_OVER_MIN: Span = Span::from_secs(5);

/// Samples at which entities of one kind were read: the one that levels are of, and those before it.
#[derive(Debug, Clone, Copy)]
pub(super) struct RecentReadings<'a> {
    cx: &'a Evidence<'a>,
    /// The sample of the levels.
    pub(super) now: usize,
    /// The sample that rates start from.
    rates_from: Option<usize>,
    /// The sample that growth starts from.
    growth_from: Option<usize>,
}

impl<'a> RecentReadings<'a> {
    /// The window that ends at sample `now`; nothing before a reboot or a gap is looked at.
    pub(super) fn ending_at(cx: &'a Evidence<'_>, entity: Entity, now: usize) -> Self {
        let timeline = cx.timeline;
        let breaks = timeline.breaks().iter().filter(|one| one.kind.breaks_rates());
        let first = breaks.map(|one| one.before).filter(|at| *at <= now).max().unwrap_or(0);
        let before = |long: Span| {
            let times = timeline.times();
            let from = times.get(now)?.saturating_sub(long);
            let at = times.partition_point(|time| *time <= from).saturating_sub(1);
            match entity {
                Entity::Host => Some(at.max(first)),
                _ => timeline
                    .read_before(entity, at)
                    .filter(|at| *at >= first)
                    .or_else(|| timeline.read_after(entity, first)),
            }
            .filter(|at| *at < now)
        };
        Self { cx, now, rates_from: before(RATES_OVER), growth_from: before(GROWTH_OVER) }
    }

    /// The last reading of these entities before sample `index`, unless it is long ago.
    pub(super) fn of_table(cx: &'a Evidence<'_>, entity: Entity, index: usize) -> Option<Self> {
        Some(Self::ending_at(cx, entity, cx.rows_at(entity, index)?))
    }

    /// How far apart two samples are.
    fn between(&self, from: usize, to: usize) -> Option<Span> {
        Some(self.cx.time(to)?.saturating_sub(self.cx.time(from)?))
    }

    /// The mean rate of a counter of an entity, or of the host.
    pub(super) fn rate<U: Unit>(
        &self,
        series: Option<&EntitySeries>,
        signal: Signal<Counter<U>>,
    ) -> Option<PerSecond<U>> {
        let from = self.rates_from?;
        let (before, now) = (self.at(series, signal, from)?, self.at(series, signal, self.now)?);
        let increase = now.raw().checked_sub(before.raw())?;
        #[allow(clippy::cast_precision_loss)] // as all quantities do
        PerSecond::over(increase as f64, self.between(from, self.now)?)
    }

    /// The reading of an entity, or of the host, at exactly this sample.
    fn at<K: Kind>(
        &self,
        series: Option<&EntitySeries>,
        signal: Signal<K>,
        index: usize,
    ) -> Option<K::Unit> {
        match series {
            Some(series) => self.cx.timeline.at_of(series, signal, index),
            None => self.cx.timeline.at(signal, index),
        }
    }

    /// The level of a gauge of an entity.
    pub(super) fn level<U: Unit>(
        &self,
        series: &EntitySeries,
        signal: Signal<Gauge<U>>,
    ) -> Option<U> {
        self.at(Some(series), signal, self.now)
    }

    /// By how much a size of an entity grew in the last minute, or in what was watched of it: no growth is stretched to a time
    /// that nobody watched.
    pub(super) fn growth(
        &self,
        size_at: impl Fn(usize) -> Option<units::Bytes>,
    ) -> Option<SignedBytes> {
        let from = self.growth_from?;
        let seen = self.between(from, self.now).filter(|seen| *seen >= GROWTH_OVER_MIN)?;
        let [before, now] = [size_at(from)?, size_at(self.now)?]
            .map(|size| i64::try_from(size.get()).unwrap_or(i64::MAX));
        let grown = SignedBytes::between(before, now);
        // Readings that are further apart than a minute have the growth of more than that.
        let minutes = seen.as_secs_f64() / GROWTH_OVER.as_secs_f64();
        #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)] // saturates
        Some(if minutes > 1.5 {
            SignedBytes::new((grown.get() as f64 / minutes) as i64)
        } else {
            grown
        })
    }
}
