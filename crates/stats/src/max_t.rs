//! How large is the largest of several Student's t by chance? The limits of Dunnett (1955), for many comparisons with
//! one baseline, and Student's own for a single one.
//!
//! k comparisons share the baseline and the error estimate. With correlation ρ between any two, numerators are
//! √(1−ρ)·Zᵢ + √ρ·Z, so that given Z and the error they are independent: what is left is an integral over two variables, taken
//! by Gauss and Legendre's rule. The values agree with `qmvt` of R's mvtnorm 1.1 to the third decimal (a test).

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::LazyLock;

use crate::gauss_legendre::{GaussRule, integral};

/// The rules for the error and for what the baseline's mean has by chance.
static OF_ERRORS: LazyLock<GaussRule<48>> = LazyLock::new(GaussRule::new);
static OF_BASELINES: LazyLock<GaussRule<32>> = LazyLock::new(GaussRule::new);

thread_local! {
    /// Limits that were found, by comparisons and the bits of what they depend on.
    static FOUND: RefCell<HashMap<(usize, [u64; 3]), f64>> = RefCell::default();
}
/// More limits are not kept: a trial has some hundred.
const FOUND_MAX: usize = 4096;

/// Several t with the same degrees of freedom, each pair equally correlated.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MaxT {
    /// The number of comparisons; at least 1 is assumed.
    pub comparisons: usize,
    /// Between any two, from 0 to 1: one half where every mean rests on as many values, 1/3 where the baseline's rests on
    /// twice as many.
    pub correlation: f64,
    /// Degrees of freedom of the error; at least 1.
    pub freedom: f64,
}

impl MaxT {
    /// Returns the limit that none of them exceeds in absolute value with this confidence (between 0 and 1). It takes 1 ms, and
    /// nothing where it was found before in this thread: every metric of a trial asks for the same ones.
    pub fn limit(&self, confidence: f64) -> f64 {
        let key =
            (self.comparisons, [self.correlation, self.freedom, confidence].map(f64::to_bits));
        if let Some(known) = FOUND.with_borrow(|found| found.get(&key).copied()) {
            return known;
        }
        let limit = self.find_limit(confidence);
        FOUND.with_borrow_mut(|found| {
            if found.len() >= FOUND_MAX {
                found.clear();
            }
            found.insert(key, limit);
        });
        limit
    }

    fn find_limit(&self, confidence: f64) -> f64 {
        let (mut low, mut high) = (0.0, 4.0);
        while self.confidence(high) < confidence && high < 1e6 {
            (low, high) = (high, high * 2.0);
        }
        // Regula falsi with halved weights (Illinois): some eight steps, where halving the interval takes 24.
        let mut below = self.confidence(low) - confidence;
        let mut above = self.confidence(high) - confidence;
        let (mut last_was_below, mut last) = (None, high);
        const STEPS_MAX: usize = 50;
        for _ in 0..STEPS_MAX {
            let next = (low * above - high * below) / (above - below);
            // Not a number where both ends are equally far from it.
            if !next.is_finite() || (next - last).abs() < 1e-7 * next {
                break;
            }
            last = next;
            let value = self.confidence(next) - confidence;
            let is_below = value < 0.0;
            if is_below {
                (low, below) = (next, value);
            } else {
                (high, above) = (next, value);
            }
            if last_was_below == Some(is_below) {
                if is_below { above /= 2.0 } else { below /= 2.0 }
            }
            last_was_below = Some(is_below);
        }
        last
    }

    /// Returns the probability that none of them exceeds a limit in absolute value.
    pub fn confidence(&self, limit: f64) -> f64 {
        let freedom = self.freedom.max(1.0);
        // Outside of these, the error has a probability below 1e-12 (Laurent and Massart 2000).
        const TAIL: f64 = 28.0;
        let spread = 2.0 * (freedom * TAIL).sqrt();
        let least = ((freedom - spread) / freedom).max(0.0).sqrt();
        let most = ((freedom + spread + 2.0 * TAIL) / freedom).sqrt();
        integral(&OF_ERRORS, least, most, |error| {
            error_density(error, freedom) * self.confidence_given(limit * error)
        })
        .clamp(0.0, 1.0)
    }

    /// The same where the error is known to be 1.
    fn confidence_given(&self, limit: f64) -> f64 {
        let inside = |centre: f64, scale: f64| {
            normal_below((limit - centre) / scale) - normal_below((-limit - centre) / scale)
        };
        if self.comparisons <= 1 || self.correlation <= 0.0 {
            return inside(0.0, 1.0).powi(self.power());
        }
        let (own, shared) = ((1.0 - self.correlation).sqrt(), self.correlation.sqrt());
        integral(&OF_BASELINES, -7.0, 7.0, |z| {
            normal_density(z) * inside(shared * z, own).powi(self.power())
        })
    }

    fn power(&self) -> i32 {
        i32::try_from(self.comparisons.max(1)).unwrap_or(i32::MAX)
    }
}

/// The density of χ/√ν: of an error that is estimated with ν degrees of freedom, over the true one.
fn error_density(error: f64, freedom: f64) -> f64 {
    if error <= 0.0 {
        return 0.0;
    }
    let log = (freedom - 1.0) * error.ln() - freedom * error * error / 2.0
        + freedom / 2.0 * (freedom / 2.0).ln()
        - libm::lgamma(freedom / 2.0);
    2.0 * log.exp()
}

fn normal_density(z: f64) -> f64 {
    (-z * z / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt()
}

/// The standard normal distribution.
fn normal_below(z: f64) -> f64 {
    0.5 * libm::erfc(-z / std::f64::consts::SQRT_2)
}
