//! What headroom is computed of: the host's RAM, or a limit around a cgroup.

use timeline::signals::SWAP_FREE;
use timeline::{Stamp, Stretch};
use units::{Bytes, Ratio};

use super::chain::{self, ChainLimit, GroupShort};
use super::read_cache::CacheReadings;
use super::terms::{Levels, RoomSeries};
use super::{ReadCache, Room, Short, Terms, Unknown, short};
use crate::evidence::Evidence;

/// One of them, with the figures of the whole source.
pub(super) struct FitPlace {
    /// The cgroup's limit; `None`: the host's RAM.
    pub(super) limit: Option<ChainLimit>,
    pub(super) levels: Levels,
    pub(super) cache: ReadCache,
    /// When memory was short there.
    pub(super) short: Vec<Short>,
    pub(super) unknown: Vec<Unknown>,
}

impl FitPlace {
    /// # Errors
    /// If available memory is unknown, or larger than RAM.
    pub(super) fn host(cx: &Evidence<'_>) -> Result<Self, Unknown> {
        let mut unknown = Vec::new();
        let levels = Levels::measured(cx, &mut unknown)?;
        let short = short::times(cx);
        let readings = CacheReadings::of_host(cx, &levels, &short);
        let cache = ReadCache::estimated(cx, &readings, &mut unknown);
        Ok(Self { limit: None, levels, cache, short, unknown })
    }

    /// Returns `None` where the use of the cgroup is unknown.
    fn below(cx: &Evidence<'_>, limit: &ChainLimit, shortages: &[GroupShort]) -> Option<Self> {
        let mut unknown = Vec::new();
        let levels = limit.levels(cx)?;
        let own = || shortages.iter().filter(|short| short.path == limit.path);
        let thrashed: Option<Stretch> = own().find_map(|short| short.thrashed);
        let readings = limit.cache(cx, &levels, thrashed)?;
        let cache = ReadCache::estimated(cx, &readings, &mut unknown);
        let felt = own().filter(|short| !short.is_harmless);
        let short = felt.flat_map(|short| short.times.clone()).collect();
        Some(Self { limit: Some(limit.clone()), levels, cache, short, unknown })
    }

    /// Those around a cgroup, the one that binds first at the front: where memory was short, else the one with least
    /// room. Without the host if that is unknown.
    pub(super) fn around(
        cx: &Evidence<'_>,
        limits: &[ChainLimit],
        shortages: &[GroupShort],
        host: Option<Self>,
        quantile: Ratio,
    ) -> Vec<(Self, Room)> {
        let below = limits.iter().filter_map(|limit| Self::below(cx, limit, shortages));
        let with_room = |place: Self| Some((place.room(cx, quantile)?, place));
        let rooms = below.chain(host).filter_map(with_room);
        let mut places: Vec<_> = rooms.map(|(room, place)| (place, room)).collect();
        places.sort_by_key(|(place, room)| {
            (place.limit.is_none() || place.short.is_empty(), room.least.best())
        });
        places
    }

    pub(super) fn room(&self, cx: &Evidence<'_>, quantile: Ratio) -> Option<Room> {
        let is_short = |index: usize| self.short.iter().any(|short| short.covers(index));
        let series = RoomSeries::new(cx, &self.levels, &self.cache, is_short);
        series.room(cx, quantile, |index| self.swap_left(cx, index))
    }

    fn swap_left(&self, cx: &Evidence<'_>, index: usize) -> Option<Bytes> {
        match &self.limit {
            Some(limit) => limit.swap_left(cx, index),
            None => cx.timeline.at(SWAP_FREE, index),
        }
    }

    /// The terms at one sample.
    pub(super) fn terms(&self, cx: &Evidence<'_>, index: usize) -> Terms {
        let limit = self.limit.as_ref().and_then(|limit| limit.terms(cx, index));
        Terms { limit, ..self.levels.at(&self.cache, index) }
    }

    /// When memory was short: from, to.
    pub(super) fn short_ends(&self, cx: &Evidence<'_>) -> Vec<(Stamp, Stamp)> {
        let ends = |short: &Short| {
            let when = short.when?;
            cx.timeline.stamp(when.first).zip(cx.timeline.stamp(when.last))
        };
        self.short.iter().filter_map(ends).collect()
    }

    /// The one that binds first for a cgroup, or the host.
    pub(super) fn binding(
        cx: &Evidence<'_>,
        within: Option<&str>,
        quantile: Ratio,
    ) -> Option<Self> {
        let host = Self::host(cx).ok();
        let Some(path) = within else { return host };
        let (limits, shortages) = (chain::limits(cx, path), chain::shortages(cx, path));
        let places = Self::around(cx, &limits, &shortages, host, quantile);
        places.into_iter().next().map(|(place, _)| place)
    }
}
