//! Least squares: a line, a curve that levels off, a logarithm, a cycle, each with what it leaves unexplained.

use super::curve::GrowthCurve;
use super::numbers::scatter;

/// The largest number of functions that one fit combines.
const TERMS: usize = 6;

/// A sum of functions that comes nearest to a curve.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fit {
    pub(super) terms: [f64; TERMS],
    /// The sum of squared differences that it leaves.
    pub(super) rest: f64,
    /// The share of the variance that it explains.
    pub(super) r_squared: f64,
    /// The time constant or the number of cycles, where the function has one.
    pub(super) parameter: f64,
}

/// Time constants of curves that level off, as shares of the span. Beyond the last one, a line is as good.
const TIME_CONSTANTS: [f64; 12] =
    [0.01, 0.02, 0.04, 0.06, 0.09, 0.13, 0.18, 0.25, 0.35, 0.5, 0.75, 1.1];

impl Fit {
    /// Fits `a + b·t`.
    pub(super) fn line(curve: &GrowthCurve) -> Self {
        Self::of(curve, 2, 0.0, |t| [1.0, t, 0.0, 0.0, 0.0, 0.0])
    }

    /// Fits `a + b·(1 − e^(−t/τ))`, with the best τ of a list.
    pub(super) fn saturating(curve: &GrowthCurve) -> Self {
        let from = curve.at.first().copied().unwrap_or(0.0);
        Self::best(TIME_CONSTANTS.iter().map(|tau| {
            Self::of(curve, 2, *tau, |t| [1.0, 1.0 - (-(t - from) / tau).exp(), 0.0, 0.0, 0.0, 0.0])
        }))
    }

    /// Fits `a + b·ln(1 + t/τ)`, with the best τ of a list.
    pub(super) fn logarithm(curve: &GrowthCurve) -> Self {
        let from = curve.at.first().copied().unwrap_or(0.0);
        let constants = &TIME_CONSTANTS[..8];
        Self::best(constants.iter().map(|tau| {
            Self::of(curve, 2, *tau, |t| [1.0, ((t - from) / tau).ln_1p(), 0.0, 0.0, 0.0, 0.0])
        }))
    }

    /// Fits a cycle that happens `cycles` times, of two harmonics, on a level or on a line.
    pub(super) fn cycle(curve: &GrowthCurve, cycles: f64, on_line: bool) -> Self {
        let turn = std::f64::consts::TAU * cycles;
        let count = if on_line { 6 } else { 5 };
        Self::of(curve, count, cycles, |t| {
            let (sin, cos) = (turn * t).sin_cos();
            let (sin2, cos2) = (2.0 * turn * t).sin_cos();
            [1.0, sin, cos, sin2, cos2, t]
        })
    }

    /// Fits one sine that happens `cycles` times, on a level.
    pub(super) fn sine(curve: &GrowthCurve, cycles: f64) -> Self {
        let turn = std::f64::consts::TAU * cycles;
        Self::of(curve, 3, cycles, |t| {
            let (sin, cos) = (turn * t).sin_cos();
            [1.0, sin, cos, 0.0, 0.0, 0.0]
        })
    }

    /// Returns the value of the cycle at `t`, without its level and its line.
    pub(super) fn cycle_at(&self, t: f64) -> f64 {
        let turn = std::f64::consts::TAU * self.parameter;
        let (sin, cos) = (turn * t).sin_cos();
        let (sin2, cos2) = (2.0 * turn * t).sin_cos();
        let [_, a, b, c, d, _] = self.terms;
        a * sin + b * cos + c * sin2 + d * cos2
    }

    /// Returns the fit that leaves least.
    pub(super) fn best(fits: impl Iterator<Item = Self>) -> Self {
        fits.min_by(|a, b| a.rest.total_cmp(&b.rest)).unwrap_or(Self {
            terms: [0.0; TERMS],
            rest: f64::INFINITY,
            r_squared: 0.0,
            parameter: 0.0,
        })
    }

    /// Fits the first `count` functions of `basis`.
    fn of(
        curve: &GrowthCurve,
        count: usize,
        parameter: f64,
        basis: impl Fn(f64) -> [f64; TERMS],
    ) -> Self {
        let mut matrix = [[0.0; TERMS]; TERMS];
        let mut right = [0.0; TERMS];
        let offset = curve.values.first().copied().unwrap_or(0.0);
        // Sines and exponentials are most of a fit: each is computed once.
        let rows: Vec<[f64; TERMS]> = curve.at.iter().map(|at| basis(*at)).collect();
        for (row, value) in rows.iter().zip(&curve.values) {
            for i in 0..count {
                right[i] += row[i] * (value - offset);
                for j in 0..count {
                    matrix[i][j] += row[i] * row[j];
                }
            }
        }
        let mut terms = solve(matrix, right, count);
        let difference = |(row, value): (&[f64; TERMS], &f64)| {
            let model: f64 = row.iter().zip(&terms).take(count).map(|(a, b)| a * b).sum();
            (value - offset - model).powi(2)
        };
        let rest = rows.iter().zip(&curve.values).map(difference).sum::<f64>();
        let all = scatter(&curve.values);
        terms[0] += offset;
        Self {
            terms,
            rest,
            r_squared: if all > 0.0 { (1.0 - rest / all).max(0.0) } else { 0.0 },
            parameter,
        }
    }
}

/// Solves a small system by elimination; an unknown that nothing determines becomes 0.
fn solve(mut matrix: [[f64; TERMS]; TERMS], mut right: [f64; TERMS], count: usize) -> [f64; TERMS] {
    let mut fixed = [false; TERMS];
    for column in 0..count {
        let open = (column..count)
            .max_by(|a, b| matrix[*a][column].abs().total_cmp(&matrix[*b][column].abs()));
        let Some(pivot) = open.filter(|row| matrix[*row][column].abs() > 1e-12) else {
            continue;
        };
        matrix.swap(column, pivot);
        right.swap(column, pivot);
        fixed[column] = true;
        for row in (0..count).filter(|row| *row != column) {
            let factor = matrix[row][column] / matrix[column][column];
            let pivot = matrix[column];
            for (cell, above) in matrix[row].iter_mut().zip(pivot).take(count) {
                *cell -= factor * above;
            }
            right[row] -= factor * right[column];
        }
    }
    let mut terms = [0.0; TERMS];
    for i in (0..count).filter(|i| fixed[*i]) {
        terms[i] = right[i] / matrix[i][i];
    }
    terms
}
