//! Numbers that look random and are the same in every run.

/// A linear congruential generator (Knuth's MMIX constants); its upper bits are what is used.
#[derive(Debug, Clone)]
pub(crate) struct Noise(pub(crate) u64);

impl Noise {
    /// Up to 24 bits.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 40
    }

    /// Below `bound`.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        (self.next() * bound) >> 24
    }

    /// From 0 to 1.
    pub(crate) fn share(&mut self) -> f64 {
        self.next() as f64 / f64::from(1 << 24)
    }

    /// Around 1, at most so far away.
    pub(crate) fn about(&mut self, away: f64) -> f64 {
        1.0 + away * (2.0 * self.share() - 1.0)
    }

    /// Whether something happens that happens once in so many times.
    pub(crate) fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }
}
