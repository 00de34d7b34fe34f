//! A curve on a time axis from 0 to 1, and what it is reduced to: blocks of equal time.

use super::numbers::{index_at, median, quantile_in};

/// Values over time; time is a share of the span that is judged.
#[derive(Debug, Clone, Default)]
pub(super) struct GrowthCurve {
    pub(super) at: Vec<f64>,
    pub(super) values: Vec<f64>,
}

impl GrowthCurve {
    /// Returns the number of points.
    pub(super) fn len(&self) -> usize {
        self.at.len()
    }

    /// Adds a point.
    fn push(&mut self, at: f64, value: f64) {
        self.at.push(at);
        self.values.push(value);
    }

    /// Returns the points.
    pub(super) fn points(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        self.at.iter().copied().zip(self.values.iter().copied())
    }

    /// Returns the points from time `from` to time `to`.
    pub(super) fn part(&self, from: f64, to: f64) -> Self {
        let mut part = Self::default();
        let inside = self.points().filter(|(at, _)| (from..=to).contains(at));
        inside.for_each(|(at, value)| part.push(at, value));
        part
    }

    /// Returns a curve with values of another.
    pub(super) fn with(&self, values: Vec<f64>) -> Self {
        Self { at: self.at.clone(), values }
    }

    /// Returns the points at these indices.
    pub(super) fn picked(&self, indices: &[usize]) -> Self {
        let mut picked = Self::default();
        for index in indices {
            picked.push(self.at[*index], self.values[*index]);
        }
        picked
    }

    /// Returns at most `count` points: of each block of equal time that has points, its mean time and the quantile
    /// `share` of its values.
    pub(super) fn blocks(&self, count: usize, share: f64) -> Self {
        let (Some(first), Some(last)) = (self.at.first(), self.at.last()) else {
            return Self::default();
        };
        let width = ((last - first) / count.max(1) as f64).max(f64::MIN_POSITIVE);
        let mut blocks = Self::default();
        let mut start = 0;
        for block in 0..count {
            let end = first + width * (block + 1) as f64;
            let is_last = block + 1 == count;
            let inside = self.at[start..].iter().take_while(|at| is_last || **at < end);
            let stop = start + inside.count();
            if stop > start {
                let at = self.at[start..stop].iter().sum::<f64>() / (stop - start) as f64;
                let mut values = self.values[start..stop].to_vec();
                blocks.push(at, quantile_in(&mut values, share));
            }
            start = stop;
        }
        blocks
    }

    /// Returns the curve if it has at most `count` points, else that many medians.
    pub(super) fn thinned(&self, count: usize) -> Self {
        if self.len() <= count { self.clone() } else { self.blocks(count, 0.5) }
    }

    /// Returns the median of the values from time `from` to time `to`; of the nearest point if there is none.
    pub(super) fn level(&self, from: f64, to: f64) -> f64 {
        let part = self.part(from, to);
        if part.len() == 0 {
            let nearest = index_at((from + to) / 2.0, self.len());
            return self.values.get(nearest).copied().unwrap_or(0.0);
        }
        median(&part.values)
    }
}
