//! Headroom over time: the same terms, sample by sample, for a whole source or any part of it.

use timeline::Stamp;
use units::Bytes;

use super::place::FitPlace;
use super::terms::{Levels, RoomSeries};
use super::{ChainLimit, Question, ReadCache};
use crate::evidence::Evidence;

/// Headroom sample by sample, in bytes: below zero where memory was short, `None` where nothing was measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Course {
    /// Memory that can be had without swapping, as the kernel reports it or as computed from counters.
    pub available: Vec<Option<f64>>,
    /// Headroom with the likely read cache; `None` where only its bounds are known.
    pub likely: Option<Vec<Option<f64>>>,
    /// Headroom with the largest possible read cache; `None` where that has no bound, and where it equals `likely`.
    pub lower: Option<Vec<Option<f64>>>,
    /// Headroom with the smallest possible read cache; `None` where it equals `likely`.
    pub upper: Option<Vec<Option<f64>>>,
}

/// The cache that must stay in memory, measured on a whole source, so that any part of it can be judged by it.
#[derive(Debug, Clone)]
pub struct Needs {
    /// The limit that takes the place of RAM.
    limit: Option<ChainLimit>,
    read_cache: ReadCache,
    writers_run_free: Bytes,
    /// When memory was short: from, to.
    short: Vec<(Stamp, Stamp)>,
}

impl Needs {
    /// Measures a whole source for the host, or for a cgroup below the limit that binds first; `None` if available memory
    /// is unknown.
    pub fn measure(cx: &Evidence<'_>, within: Option<&str>) -> Option<Self> {
        let place = FitPlace::binding(cx, within, Question::QUANTILE)?;
        Some(Self {
            writers_run_free: place.levels.writers_run_free,
            short: place.short_ends(cx),
            limit: place.limit,
            read_cache: place.cache,
        })
    }

    /// The limit of a cgroup that is drawn; `None`: the host's RAM.
    pub fn limit(&self) -> Option<&ChainLimit> {
        self.limit.as_ref()
    }

    /// Headroom at the samples of the source or of a part of it; `None` if that part does not show available memory.
    pub fn course(&self, part: &Evidence<'_>) -> Option<Course> {
        let mut levels = match &self.limit {
            Some(limit) => limit.levels_then(part)?,
            None => Levels::measured(part, &mut Vec::new()).ok()?,
        };
        levels.writers_run_free = self.writers_run_free;
        let is_short = |index: usize| {
            let stamp = part.timeline.stamp(index);
            stamp.is_some_and(|stamp| self.short.iter().any(|ends| lies_between(stamp, *ends)))
        };
        let series = RoomSeries::new(part, &levels, &self.read_cache, is_short);
        let (lower, likely, upper) = (series.lower, series.likely, series.upper);
        Some(Course {
            lower: lower.filter(|lower| likely.as_ref() != Some(lower)),
            upper: Some(upper).filter(|upper| likely.as_ref() != Some(upper)),
            likely,
            available: levels.available.values().to_vec(),
        })
    }
}

/// Compares by the wall clock where there is one, as the boot clock starts anew with each boot.
fn lies_between(stamp: Stamp, (from, to): (Stamp, Stamp)) -> bool {
    match (from.wall, stamp.wall, to.wall) {
        (Some(from), Some(at), Some(to)) => from <= at && at <= to,
        _ => from.boot <= stamp.boot && stamp.boot <= to.boot,
    }
}
