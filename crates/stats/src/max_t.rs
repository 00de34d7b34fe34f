//! How large is the largest of several Student's t by chance? The limits of Dunnett (1955), for many comparisons with
//! one baseline, and Student's own for a single one.
//!
//! k comparisons share the baseline and the error estimate. With correlation ρ between any two, numerators are
//! √(1−ρ)·Zᵢ + √ρ·Z, so that given Z and the error they are independent: what is left is an integral over two variables, taken
//! by Gauss and Legendre's rule. The values agree with `qmvt` of R's mvtnorm 1.1 to the third decimal (a test).

use crate::gauss_legendre::{Rule, integral};

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
    /// Returns the limit that none of them exceeds in absolute value with this confidence (between 0 and 1).
    pub fn limit(&self, confidence: f64) -> f64 {
        let (mut low, mut high) = (0.0, 4.0);
        while self.confidence(high) < confidence && high < 1e6 {
            (low, high) = (high, high * 2.0);
        }
        while high - low > 1e-6 * high {
            let middle = f64::midpoint(low, high);
            if self.confidence(middle) < confidence {
                low = middle;
            } else {
                high = middle;
            }
        }
        high
    }

    /// Returns the probability that none of them exceeds a limit in absolute value.
    pub fn confidence(&self, limit: f64) -> f64 {
        let freedom = self.freedom.max(1.0);
        // Outside of these, the error has a probability below 1e-12 (Laurent and Massart 2000).
        const TAIL: f64 = 28.0;
        let spread = 2.0 * (freedom * TAIL).sqrt();
        let least = ((freedom - spread) / freedom).max(0.0).sqrt();
        let most = ((freedom + spread + 2.0 * TAIL) / freedom).sqrt();
        let rule = Rule::of_64();
        integral(&rule, least, most, |error| {
            error_density(error, freedom) * self.confidence_given(limit * error, &rule)
        })
        .clamp(0.0, 1.0)
    }

    /// The same where the error is known to be 1.
    fn confidence_given(&self, limit: f64, rule: &Rule) -> f64 {
        let inside = |centre: f64, scale: f64| {
            normal_below((limit - centre) / scale) - normal_below((-limit - centre) / scale)
        };
        if self.comparisons <= 1 || self.correlation <= 0.0 {
            return inside(0.0, 1.0).powi(self.power());
        }
        let (own, shared) = ((1.0 - self.correlation).sqrt(), self.correlation.sqrt());
        integral(rule, -8.0, 8.0, |z| {
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
