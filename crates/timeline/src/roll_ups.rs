//! Roll-ups of a part of a recording: the minimum and maximum of each level and the increase of each counter, minute
//! by minute. They suffice to rule out that a threshold was reached, without reading samples.

use std::collections::BTreeMap;

use units::{Span, WallClock};

use crate::sample::Stamp;
use crate::signals::{Entity, SignalId};

/// A minute of a recording: of the wall clock, or of the boot clock where there is no wall clock. A reboot ends it,
/// too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Minute {
    /// The stamp of its last sample.
    pub end: Stamp,
    /// The time that its increases cover: from the last sample before the minute, gaps included, to its own last one.
    /// A whole minute where nothing before it is known, which may be too long.
    pub duration: Span,
}

impl Minute {
    /// The time at which its increases begin; `None` without a wall clock.
    pub fn start(&self) -> Option<WallClock> {
        self.end.wall.map(|end| end.minus(self.duration))
    }
}

/// A signal in a minute in which it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RollUp {
    /// For a gauge: the smallest and largest of all readings, in the catalogue's unit.
    Level {
        /// The smallest reading.
        min: u64,
        /// The largest reading.
        max: u64,
    },
    /// For a counter, in the catalogue's unit. Never negative; leaves out intervals across a reset, a reboot or a
    /// start, as samples do.
    Increase {
        /// The growth since the reading before the minute's first one; `None` where unknown.
        by: Option<u64>,
        /// The highest increase per second between two readings, rounded up; `None` where unknown.
        fastest: Option<u64>,
    },
}

impl RollUp {
    /// The smallest level; `None` for a counter.
    pub fn min(self) -> Option<u64> {
        match self {
            Self::Level { min, .. } => Some(min),
            Self::Increase { .. } => None,
        }
    }

    /// The largest level; `None` for a counter.
    pub fn max(self) -> Option<u64> {
        match self {
            Self::Level { max, .. } => Some(max),
            Self::Increase { .. } => None,
        }
    }

    /// The growth of a counter; `None` for a gauge, and where unknown.
    pub fn increase(self) -> Option<u64> {
        match self {
            Self::Level { .. } => None,
            Self::Increase { by, .. } => by,
        }
    }
}

/// The minutes of a part of a recording, in order, with the roll-ups of the requested signals.
#[derive(Debug, Clone, Default)]
pub struct RollUps {
    minutes: Vec<Minute>,
    entities: BTreeMap<Entity, Vec<EntityRollUps>>,
}

/// The roll-ups of one entity, minute by minute.
#[derive(Debug, Clone)]
pub struct EntityRollUps {
    /// What identifies it; empty for the host.
    pub key: String,
    /// In the order of the signals; each has one roll-up a minute.
    signals: Vec<(SignalId, Vec<Option<RollUp>>)>,
}

impl RollUps {
    /// The minutes, without any roll-up yet.
    pub fn new(minutes: Vec<Minute>) -> Self {
        Self { minutes, entities: BTreeMap::new() }
    }

    /// The minutes, in order. Roll-ups of a signal have the same indexes.
    pub fn minutes(&self) -> &[Minute] {
        &self.minutes
    }

    /// The number of minutes.
    pub fn len(&self) -> usize {
        self.minutes.len()
    }

    /// Whether there are no minutes.
    pub fn is_empty(&self) -> bool {
        self.minutes.is_empty()
    }

    /// The entities of a kind with roll-ups, by key; the host's key is empty.
    pub fn entities(&self, entity: Entity) -> &[EntityRollUps] {
        self.entities.get(&entity).map_or(&[], Vec::as_slice)
    }

    /// Whether an entity was read in a minute; always true for the host.
    pub fn was_read(&self, entity: Entity, key: &str, minute: usize) -> bool {
        let of_minute = |(_, known): &(SignalId, Vec<Option<RollUp>>)| {
            known.get(minute).is_some_and(Option::is_some)
        };
        entity == Entity::Host
            || self.entity(entity, key).is_some_and(|entity| entity.signals.iter().any(of_minute))
    }

    /// An entity by its key.
    pub fn entity(&self, entity: Entity, key: &str) -> Option<&EntityRollUps> {
        let all = self.entities(entity);
        let at = all.binary_search_by(|entity| entity.key.as_str().cmp(key)).ok()?;
        all.get(at)
    }

    /// A signal of the host, minute by minute; `None` where it was read in none of them.
    pub fn host(&self, signal: SignalId) -> Option<&[Option<RollUp>]> {
        self.entity(Entity::Host, "")?.get(signal)
    }

    /// A signal of an entity, minute by minute; `None` where it was read in none of them.
    pub fn get(&self, entity: Entity, key: &str, signal: SignalId) -> Option<&[Option<RollUp>]> {
        self.entity(entity, key)?.get(signal)
    }

    /// The roll-ups of an entity's signal, mutable: one for each minute, absent at first.
    pub fn entry(&mut self, entity: Entity, key: &str, signal: SignalId) -> &mut [Option<RollUp>] {
        let minutes = self.minutes.len();
        let all = self.entities.entry(entity).or_default();
        let found = all.binary_search_by(|entity| entity.key.as_str().cmp(key));
        let at = found.unwrap_or_else(|at| {
            let key = key.to_owned();
            let signals = Vec::new();
            all.insert(at, EntityRollUps { key, signals });
            at
        });
        let signals = &mut all[at].signals;
        let found = signals.binary_search_by_key(&signal, |(id, _)| *id);
        let at = found.unwrap_or_else(|at| {
            signals.insert(at, (signal, vec![None; minutes]));
            at
        });
        &mut signals[at].1
    }
}

impl EntityRollUps {
    /// A signal, minute by minute: an inner `None` is a minute in which it was not read; `None` if it was never read.
    pub fn get(&self, signal: SignalId) -> Option<&[Option<RollUp>]> {
        let at = self.signals.binary_search_by_key(&signal, |(id, _)| *id);
        Some(&self.signals[at.ok()?].1)
    }

    /// Its signals with roll-ups.
    pub fn signals(&self) -> impl Iterator<Item = (SignalId, &[Option<RollUp>])> {
        self.signals.iter().map(|(signal, all)| (*signal, all.as_slice()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signals::{CGROUP_CURRENT, CGROUP_EVENTS_MAX, MEM_FREE, PSWPIN};

    fn two_minutes() -> RollUps {
        let minute = |number: u64| Minute {
            end: Stamp {
                boot: Span::from_secs(60 * number),
                awake: None,
                wall: Some(WallClock::from_unix_nanos((60 * number).cast_signed() * 1_000_000_000)),
                ..Stamp::default()
            },
            duration: Span::from_mins(1),
        };
        RollUps::new(vec![minute(1), minute(2)])
    }

    #[test]
    fn what_is_filled_in_is_found_by_entity_key_and_signal() {
        let mut rolled = two_minutes();
        let seven = RollUp::Increase { by: Some(7), fastest: Some(2) };
        rolled.entry(Entity::Host, "", PSWPIN.id())[1] = Some(seven);
        rolled.entry(Entity::Host, "", MEM_FREE.id())[0] = Some(RollUp::Level { min: 1, max: 3 });
        for key in ["/web", "/db"] {
            let level = RollUp::Level { min: 2, max: 2 };
            rolled.entry(Entity::Cgroup, key, CGROUP_CURRENT.id()).fill(Some(level));
        }
        rolled.entry(Entity::Cgroup, "/db", CGROUP_EVENTS_MAX.id())[0] =
            Some(RollUp::Increase { by: None, fastest: None });
        let swapped = rolled.host(PSWPIN.id()).unwrap();
        assert_eq!(swapped, [None, Some(seven)]);
        assert_eq!(swapped[1].and_then(RollUp::increase), Some(7));
        let free = rolled.host(MEM_FREE.id()).unwrap()[0].unwrap();
        assert_eq!((free.min(), free.max(), free.increase()), (Some(1), Some(3), None));
        let keys = rolled.entities(Entity::Cgroup).iter().map(|entity| entity.key.as_str());
        assert_eq!(keys.collect::<Vec<_>>(), ["/db", "/web"]);
        let db = rolled.entity(Entity::Cgroup, "/db").unwrap();
        assert_eq!(db.signals().count(), 2);
        assert!(rolled.get(Entity::Cgroup, "/web", CGROUP_EVENTS_MAX.id()).is_none());
        assert!(rolled.entities(Entity::Process).is_empty());
        assert!(rolled.entity(Entity::Cgroup, "/other").is_none());
    }

    #[test]
    fn a_minute_knows_when_its_counting_began() {
        let rolled = two_minutes();
        assert_eq!(rolled.len(), 2);
        let start = rolled.minutes()[1].start();
        assert_eq!(start, rolled.minutes()[0].end.wall);
    }
}
