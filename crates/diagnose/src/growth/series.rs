//! The series to judge: ordered, split at restarts, reduced to medians.

use units::{Bytes, Quantity, Span};

use super::curve::GrowthCurve;

/// More points than these are reduced to medians of equal times.
const POINTS_MAX: usize = 2000;
/// A restart leaves less than this share of the memory.
const RESTART: f64 = 0.5;
/// More falls than these are a pattern of the program, not restarts.
const RESTARTS_MAX: usize = 2;
/// A level is left from this part of the whole rise on.
const LEAVES: f64 = 0.05;
/// Readings of the heap that show its course, if it was read less often than the total: an engineering choice.
const HEAP_READINGS_MIN: usize = 10;
/// They begin and end within this share of the span from its ends.
const HEAP_ENDS: f64 = 0.1;
/// The readings that make the part since the last restart worth judging.
const PART_READINGS_MIN: usize = 60;

/// One reading of a process.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct GrowthPoint {
    /// When, since any fixed time.
    pub at: Span,
    /// The memory of the process.
    pub total: Bytes,
    /// What the program has allocated.
    pub live: Option<Bytes>,
    /// What its allocator keeps free.
    pub free: Option<Bytes>,
}

/// Readings of one process, or of one service.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct GrowthSeries {
    /// The readings.
    pub points: Vec<GrowthPoint>,
    /// How large the total can become.
    pub limit: Option<Bytes>,
    /// When the kernel killed in it, on the clock of the readings: what is read from then on is of another process.
    pub killed: Vec<Span>,
}

/// The part of a series that is judged.
#[derive(Debug, Clone, Default)]
pub(super) struct Prepared {
    pub(super) total: GrowthCurve,
    pub(super) live: Option<GrowthCurve>,
    /// Free bytes, on the times of `total`.
    pub(super) free: Option<GrowthCurve>,
    pub(super) span: Span,
    pub(super) readings: usize,
    /// Readings with the live size.
    pub(super) heap_readings: usize,
    /// Restarts within the series that nothing but its sizes shows.
    pub(super) restarts: usize,
    /// Kills within the series.
    pub(super) killed: usize,
    /// The last reading of the series, where an earlier part is judged.
    pub(super) now: Option<Bytes>,
}

impl Prepared {
    /// The mean of the last readings of all.
    pub(super) fn ends_at(&self) -> Bytes {
        self.now.unwrap_or_else(|| Bytes::from_f64(self.total.level(0.98, 1.0)))
    }
}

impl GrowthSeries {
    /// Orders the readings, takes the part since the last restart, and reduces it.
    pub(super) fn prepared(&self) -> Prepared {
        let points = self.ordered();
        let kills = kills(&points, &self.killed);
        let mut restarts = restarts(&points);
        restarts.retain(|at| kills.iter().all(|kill| kill.abs_diff(*at) > 1));
        let mut bounds = vec![0];
        bounds.extend(kills.iter().chain(&restarts));
        bounds.push(points.len());
        bounds.sort_unstable();
        let parts = bounds.windows(2).map(|two| &points[two[0]..two[1]]);
        let last = parts.clone().next_back().unwrap_or_default();
        let part = if last.len() >= PART_READINGS_MIN {
            last
        } else {
            parts.max_by_key(|part| part.len()).unwrap_or_default()
        };
        Prepared { restarts: restarts.len(), ..self.of_part(&points, part) }
    }

    /// The longest part that ended with a kill, from where it began to grow.
    pub(super) fn killed_part(&self) -> Option<Prepared> {
        let points = self.ordered();
        let mut bounds = vec![0];
        bounds.extend(kills(&points, &self.killed));
        let parts = bounds.windows(2).map(|two| grown(&points[two[0]..two[1]]));
        let longest = parts.max_by_key(|part| part.len())?;
        Some(self.of_part(&points, longest))
    }

    fn ordered(&self) -> Vec<GrowthPoint> {
        let mut points = self.points.clone();
        points.sort_by_key(|point| point.at);
        points.dedup_by_key(|point| point.at);
        points
    }

    fn of_part(&self, all: &[GrowthPoint], part: &[GrowthPoint]) -> Prepared {
        let is_last = part.last().map(|point| point.at) == all.last().map(|point| point.at);
        let mut prepared = reduced(part);
        prepared.killed = self.killed.len();
        prepared.now = all.last().filter(|_| !is_last).map(|point| point.total);
        prepared
    }
}

/// Returns a part without what lies before it leaves its lowest level for good: a service waits before it is started
/// again.
fn grown(part: &[GrowthPoint]) -> &[GrowthPoint] {
    let sizes = || part.iter().map(|point| point.total);
    let (Some(least), Some(most)) = (sizes().min(), sizes().max()) else {
        return part;
    };
    let level = least.as_f64() + most.saturating_sub(least).as_f64() * LEAVES;
    let begins = sizes().rposition(|size| size.as_f64() <= level);
    &part[begins.unwrap_or_default()..]
}

/// Returns the first readings after kills. The counter of kills may be read a moment before the size.
fn kills(points: &[GrowthPoint], killed: &[Span]) -> Vec<usize> {
    let fell = |at: usize| {
        let (before, after) = (points.get(at - 1)?, points.get(at)?);
        Some(after.total.as_f64() < before.total.as_f64() * RESTART)
    };
    let first_after = |at: &Span| {
        let first = points.partition_point(|point| point.at < *at);
        let is_late = first > 0 && fell(first) == Some(false) && fell(first + 1) == Some(true);
        if is_late { first + 1 } else { first }
    };
    let mut found: Vec<usize> = killed.iter().map(first_after).collect();
    found.retain(|at| (1..points.len()).contains(at));
    found.sort_unstable();
    found.dedup();
    found
}

/// Returns where the memory of a new process begins: all that is known fell by half between neighbours, and stayed low.
fn restarts(points: &[GrowthPoint]) -> Vec<usize> {
    let fell = |before: Bytes, after: Bytes| after.as_f64() < before.as_f64() * RESTART;
    let both_fell = |a: &GrowthPoint, b: &GrowthPoint| {
        let live = a.live.zip(b.live).is_none_or(|(a, b)| fell(a, b));
        live && fell(a.total, b.total)
    };
    let is_restart = |i: &usize| {
        let (before, after) = (&points[*i - 1], &points[*i]);
        let next = points.get(*i + 1).unwrap_or(after);
        both_fell(before, after) && both_fell(before, next)
    };
    let mut found: Vec<usize> = (1..points.len()).filter(is_restart).collect();
    let live_known = points.iter().any(|point| point.live.is_some());
    let max = if live_known { RESTARTS_MAX } else { 1 };
    if found.len() > max {
        found.clear();
    }
    found
}

/// Reduces readings to curves on one time axis.
fn reduced(points: &[GrowthPoint]) -> Prepared {
    let (Some(first), Some(last)) = (points.first(), points.last()) else {
        return Prepared::default();
    };
    let span = last.at - first.at;
    let length = span.as_secs_f64().max(f64::MIN_POSITIVE);
    let curve = |value: fn(&GrowthPoint) -> Option<Bytes>| {
        let mut curve = GrowthCurve::default();
        for point in points {
            if let Some(value) = value(point) {
                curve.at.push((point.at - first.at).as_secs_f64() / length);
                curve.values.push(value.as_f64());
            }
        }
        let is_known = curve.len() * 10 >= points.len() * 9;
        if is_known { Some(curve) } else { between_readings(&curve, points, length) }
    };
    let thinned = |curve: &GrowthCurve| curve.thinned(POINTS_MAX);
    Prepared {
        total: curve(|point| Some(point.total)).map(|c| thinned(&c)).unwrap_or_default(),
        live: curve(|point| point.live).map(|c| thinned(&c)),
        free: curve(|point| point.live.and(point.free)).map(|c| thinned(&c)),
        span,
        readings: points.len(),
        heap_readings: points.iter().filter(|point| point.live.is_some()).count(),
        ..Prepared::default()
    }
}

/// Returns a curve on the times of all points: a large heap is read less often than its process's size, and is taken to
/// change evenly from one reading to the next.
fn between_readings(
    known: &GrowthCurve,
    points: &[GrowthPoint],
    length: f64,
) -> Option<GrowthCurve> {
    let (first, last) = (known.at.first()?, known.at.last()?);
    let is_known =
        known.len() >= HEAP_READINGS_MIN && *first <= HEAP_ENDS && *last >= 1.0 - HEAP_ENDS;
    let start = points.first()?.at;
    let mut curve = GrowthCurve::default();
    let mut behind = 0;
    for point in points {
        let at = (point.at - start).as_secs_f64() / length;
        while behind < known.len() && known.at[behind] <= at {
            behind += 1;
        }
        let before = behind.saturating_sub(1);
        let after = behind.min(known.len() - 1);
        let (from, to) = (known.values[before], known.values[after]);
        let width = known.at[after] - known.at[before];
        let share = if width > 0.0 { (at - known.at[before]) / width } else { 0.0 };
        curve.at.push(at);
        curve.values.push(from + (to - from) * share);
    }
    is_known.then_some(curve)
}
