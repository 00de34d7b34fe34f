//! Integrals of smooth functions, by Gauss and Legendre's rule: with N points exact for polynomials of degree 2N−1.

/// Points and weights on [-1, 1].
#[derive(Debug)]
pub(crate) struct GaussRule<const N: usize>([(f64, f64); N]);

impl<const N: usize> GaussRule<N> {
    /// Finds the roots of Legendre's polynomial by Newton's method.
    pub(crate) fn new() -> Self {
        let points = N as f64;
        Self(std::array::from_fn(|point| {
            let turn = (point as f64 + 0.75) / (points + 0.5);
            let mut root = (std::f64::consts::PI * turn).cos();
            let mut slope = 1.0;
            for _ in 0..8 {
                let (mut value, mut before) = (1.0, 0.0);
                for degree in (1..=N).map(|degree| degree as f64) {
                    let next =
                        ((2.0 * degree - 1.0) * root * value - (degree - 1.0) * before) / degree;
                    (before, value) = (value, next);
                }
                slope = points * (root * value - before) / (root * root - 1.0);
                root -= value / slope;
            }
            (root, 2.0 / ((1.0 - root * root) * slope * slope))
        }))
    }
}

/// Returns the integral of a function from one place to another.
pub(crate) fn integral<const N: usize>(
    rule: &GaussRule<N>,
    from: f64,
    to: f64,
    f: impl Fn(f64) -> f64,
) -> f64 {
    let (middle, half) = (f64::midpoint(from, to), (to - from) / 2.0);
    rule.0.iter().map(|(root, weight)| weight * f(middle + half * root)).sum::<f64>() * half
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_area_of_a_half_circle_and_of_a_bell() {
        let rule = GaussRule::<32>::new();
        assert!((integral(&rule, 0.0, 2.0, |x| x.powi(5)) - 64.0 / 6.0).abs() < 1e-12);
        let bell = integral(&rule, -8.0, 8.0, |x| (-x * x / 2.0).exp());
        assert!((bell - (2.0 * std::f64::consts::PI).sqrt()).abs() < 1e-8, "{bell}");
    }
}
