//! Limits of cgroups, how often they were met while a profile was taken, and how much memory came meanwhile.

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use timeline::cgroup::parent;
use timeline::signals::{
    CGROUP_CURRENT, CGROUP_EVENTS_HIGH, CGROUP_EVENTS_MAX, CGROUP_HIGH, CGROUP_MAX,
};
use timeline::{Counter, Entity, EntityRow, Gauge, Sample, Signal};
use units::{Bytes, Count, Limit};

/// A cgroup between begin and end of a profile.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CgroupUse {
    /// Its path, as /proc/PID/cgroup has it.
    pub path: String,
    /// Its limit (`memory.max`); `None` where it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_bytes: Option<u64>,
    /// From where on it is slowed down (`memory.high`); `None` where it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub high_bytes: Option<u64>,
    /// How often `memory.max` was met, without those of the cgroups in it.
    pub max_hits: u64,
    /// How often `memory.high` was met, without those of the cgroups in it.
    pub high_hits: u64,
    /// How much its memory grew, with that of the cgroups in it; below zero: it shrank.
    pub grew_bytes: Option<i64>,
}

/// Compares two readings of all cgroups. `counts_below`: events of a cgroup include those of the cgroups in it.
pub(crate) fn cgroup_uses(before: &Sample, after: &Sample, counts_below: bool) -> Vec<CgroupUse> {
    let rows = |sample: &Sample| -> HashMap<String, EntityRow> {
        let rows = sample.table(Entity::Cgroup).rows().iter();
        rows.map(|row| (row.key.clone(), row.clone())).collect()
    };
    let (before, after) = (rows(before), rows(after));
    let met = |signal: Signal<Counter<Count>>| {
        let mut met: HashMap<&str, u64> = HashMap::new();
        for (key, row) in &after {
            let first = before.get(key).and_then(|row| row.row.get(signal)).unwrap_or(Count::ZERO);
            let last = row.row.get(signal).unwrap_or(Count::ZERO);
            met.insert(key, last.get().saturating_sub(first.get()));
        }
        if !counts_below {
            return met;
        }
        let all = met.clone();
        for (key, hits) in &all {
            if let Some(outer) = parent(key).and_then(|outer| met.get_mut(outer)) {
                *outer = outer.saturating_sub(*hits);
            }
        }
        met
    };
    let (max, high) = (met(CGROUP_EVENTS_MAX), met(CGROUP_EVENTS_HIGH));
    let limit = |row: &EntityRow, signal: Signal<Gauge<Limit>>| {
        row.row.get(signal).and_then(Limit::limited).map(Bytes::get)
    };
    let hits = |met: &HashMap<&str, u64>, key: &str| met.get(key).copied().unwrap_or(0);
    let mut all: Vec<CgroupUse> = after
        .iter()
        .map(|(key, row)| {
            let now = row.row.get(CGROUP_CURRENT).map(Bytes::get);
            // One that is new began with nothing.
            let then = before.get(key).map_or(Some(Bytes::ZERO), |row| row.row.get(CGROUP_CURRENT));
            let grew = now.zip(then.map(Bytes::get));
            CgroupUse {
                path: key.clone(),
                max_bytes: limit(row, CGROUP_MAX),
                high_bytes: limit(row, CGROUP_HIGH),
                max_hits: hits(&max, key),
                high_hits: hits(&high, key),
                grew_bytes: grew
                    .map(|(now, then)| now.cast_signed().saturating_sub(then.cast_signed())),
            }
        })
        .collect();
    all.sort_by(|one, other| one.path.cmp(&other.path));
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Span;

    fn sample(rows: &[(&str, u64, u64)]) -> Sample {
        let mut sample = Sample::at(Span::from_secs(1));
        for (path, current, hits) in rows {
            let row = &mut sample.table_mut(Entity::Cgroup).entry(path).row;
            row.set(CGROUP_CURRENT, Bytes::new(*current));
            row.set(CGROUP_EVENTS_MAX, Count::new(*hits));
            row.set(CGROUP_MAX, Limit::Bytes(Bytes::new(1 << 20)));
        }
        sample
    }

    #[test]
    fn hits_are_of_the_cgroup_of_which_the_limit_was_met() {
        let before = sample(&[("/a", 100, 10), ("/a/b", 50, 4), ("/gone", 1, 1)]);
        let after = sample(&[("/a", 90, 30), ("/a/b", 70, 9), ("/a/new", 30, 2)]);
        let shown = |counts_below| {
            let all = cgroup_uses(&before, &after, counts_below);
            all.into_iter().map(|one| (one.path, one.max_hits, one.grew_bytes.unwrap())).collect()
        };
        let expected = |hits: u64| {
            [("/a", hits, -10), ("/a/b", 5, 20), ("/a/new", 2, 30)]
                .map(|(path, hits, grew): (&str, u64, i64)| (path.to_owned(), hits, grew))
                .to_vec()
        };
        let all: Vec<(String, u64, i64)> = shown(false);
        assert_eq!(all, expected(20));
        assert_eq!(shown(true), expected(13));
    }
}
