//! The series to judge: ordered, split at restarts, reduced to medians.

use units::{Bytes, Quantity, Span};

use super::curve::GrowthCurve;

/// More points than these are reduced to medians of equal times.
const POINTS_MAX: usize = 2000;
/// A restart leaves less than this share of the memory.
const RESTART: f64 = 0.5;
/// More falls than these are a pattern of the program, not restarts.
const RESTARTS_MAX: usize = 2;
/// The readings that make the part since the last restart worth judging.
const PART_MIN: usize = 60;

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
    /// Restarts within the series.
    pub(super) restarts: usize,
}

impl GrowthSeries {
    /// Orders the readings, takes the part since the last restart, and reduces it.
    pub(super) fn prepared(&self) -> Prepared {
        let mut points = self.points.clone();
        points.sort_by_key(|point| point.at);
        points.dedup_by_key(|point| point.at);
        let restarts = restarts(&points);
        let mut bounds = vec![0];
        bounds.extend(&restarts);
        bounds.push(points.len());
        let parts = bounds.windows(2).map(|two| &points[two[0]..two[1]]);
        let last = parts.clone().next_back().unwrap_or_default();
        let part = if last.len() >= PART_MIN {
            last
        } else {
            parts.max_by_key(|part| part.len()).unwrap_or_default()
        };
        let mut prepared = reduced(part);
        prepared.restarts = restarts.len();
        prepared
    }
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
        is_known.then_some(curve)
    };
    let thinned = |curve: &GrowthCurve| curve.thinned(POINTS_MAX);
    Prepared {
        total: curve(|point| Some(point.total)).map(|c| thinned(&c)).unwrap_or_default(),
        live: curve(|point| point.live).map(|c| thinned(&c)),
        free: curve(|point| point.live.and(point.free)).map(|c| thinned(&c)),
        span,
        readings: points.len(),
        restarts: 0,
    }
}
