//! Integrals of smooth functions, by Gauss and Legendre's rule of 64 points: exact for polynomials of degree 127.

/// Points and weights on [-1, 1].
#[derive(Debug)]
pub(crate) struct Rule([(f64, f64); 64]);

impl Rule {
    /// Finds the roots of Legendre's polynomial by Newton's method.
    pub(crate) fn of_64() -> Self {
        const POINTS: u32 = 64;
        Self(std::array::from_fn(|point| {
            let turn = (point as f64 + 0.75) / (f64::from(POINTS) + 0.5);
            let mut root = (std::f64::consts::PI * turn).cos();
            let mut slope = 1.0;
            for _ in 0..8 {
                let (mut value, mut before) = (1.0, 0.0);
                for degree in (1..=POINTS).map(f64::from) {
                    let next =
                        ((2.0 * degree - 1.0) * root * value - (degree - 1.0) * before) / degree;
                    (before, value) = (value, next);
                }
                slope = f64::from(POINTS) * (root * value - before) / (root * root - 1.0);
                root -= value / slope;
            }
            (root, 2.0 / ((1.0 - root * root) * slope * slope))
        }))
    }
}

/// Returns the integral of a function from one place to another.
pub(crate) fn integral(rule: &Rule, from: f64, to: f64, f: impl Fn(f64) -> f64) -> f64 {
    let (middle, half) = (f64::midpoint(from, to), (to - from) / 2.0);
    rule.0.iter().map(|(root, weight)| weight * f(middle + half * root)).sum::<f64>() * half
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_area_of_a_half_circle_and_of_a_bell() {
        let rule = Rule::of_64();
        assert!((integral(&rule, 0.0, 2.0, |x| x.powi(5)) - 64.0 / 6.0).abs() < 1e-12);
        let bell = integral(&rule, -8.0, 8.0, |x| (-x * x / 2.0).exp());
        assert!((bell - (2.0 * std::f64::consts::PI).sqrt()).abs() < 1e-10, "{bell}");
    }
}
