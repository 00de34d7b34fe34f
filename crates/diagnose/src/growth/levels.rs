//! Is a curve a few levels with jumps between them? Binary segmentation into at most four levels.

use super::curve::GrowthCurve;
use super::numbers::{mean, scatter};

/// More changes than these are no longer few.
const CHANGES_MAX: usize = 3;
/// A further change must explain at least this share of what is left.
const GAIN: f64 = 0.5;

/// An interval of another level, which needs two changes, must explain this share.
const INTERVAL: f64 = 0.6;

/// A curve as levels.
#[derive(Debug, Clone, Default)]
pub(super) struct CurveLevels {
    /// Where each level begins, and its mean.
    pub(super) levels: Vec<(f64, f64)>,
    /// The sum of squared differences that it leaves.
    pub(super) rest: f64,
}

impl CurveLevels {
    /// Finds the levels of `curve`, a few hundred points.
    pub(super) fn of(curve: &GrowthCurve) -> Self {
        let mut bounds = vec![0, curve.len()];
        let mut rest = scatter(&curve.values);
        if let Some((from, to, gain)) = best_interval(&curve.values)
            && gain > rest * INTERVAL
        {
            rest -= gain;
            bounds = vec![0, from, to, curve.len()];
        }
        for _ in bounds.len() - 2..CHANGES_MAX {
            let cuts = bounds.windows(2).filter_map(|two| best_cut(&curve.values, two[0], two[1]));
            let Some((cut, gain)) = cuts.max_by(|a, b| a.1.total_cmp(&b.1)) else {
                break;
            };
            if gain < rest * GAIN {
                break;
            }
            rest -= gain;
            bounds.push(cut);
            bounds.sort_unstable();
        }
        let levels = bounds.windows(2).filter(|two| two[1] > two[0]);
        Self {
            levels: levels
                .map(|two| (curve.at[two[0]], mean(&curve.values[two[0]..two[1]])))
                .collect(),
            rest,
        }
    }

    /// Returns the changes from level to level.
    pub(super) fn changes(&self) -> Vec<f64> {
        self.levels.windows(2).map(|two| two[1].1 - two[0].1).collect()
    }
}

/// Returns the interval that stands out most, and how much a level of its own explains.
fn best_interval(values: &[f64]) -> Option<(usize, usize, f64)> {
    let count = values.len() as f64;
    let total: f64 = values.iter().sum();
    let mut best: Option<(usize, usize, f64)> = None;
    for from in 1..values.len() {
        let mut inside = 0.0;
        for (i, value) in values.iter().enumerate().skip(from) {
            inside += value;
            let (n, rest) = ((i + 1 - from) as f64, count - (i + 1 - from) as f64);
            if i + 1 == values.len() || n < 2.0 {
                continue;
            }
            let gain = (inside / n - (total - inside) / rest).powi(2) * n * rest / count;
            if best.is_none_or(|(_, _, most)| gain > most) {
                best = Some((from, i + 1, gain));
            }
        }
    }
    best
}

/// Returns where to cut `values[from..to]` in two levels, and how much that explains.
fn best_cut(values: &[f64], from: usize, to: usize) -> Option<(usize, f64)> {
    let part = &values[from..to];
    let total: f64 = part.iter().sum();
    let count = part.len() as f64;
    let mut before = 0.0;
    let mut best: Option<(usize, f64)> = None;
    for (i, value) in part.iter().enumerate().take(part.len().saturating_sub(1)) {
        before += value;
        let (n, rest) = ((i + 1) as f64, count - (i + 1) as f64);
        let gain = (before / n - (total - before) / rest).powi(2) * n * rest / count;
        // A level of a single point is a spike.
        if n >= 2.0 && rest >= 2.0 && best.is_none_or(|(_, most)| gain > most) {
            best = Some((from + i + 1, gain));
        }
    }
    best
}
