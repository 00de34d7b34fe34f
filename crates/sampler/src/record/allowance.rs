//! A rate limit for bursts: a number at once, a number per hour in the long run, and a count of what was refused.

use units::Span;

/// A rate limit that counts what it refuses.
#[derive(Debug)]
pub(crate) struct Allowance {
    most: f64,
    per_second: f64,
    left: f64,
    at: Span,
    refused: u64,
}

impl Allowance {
    pub(crate) fn new(at_once: u32, per_hour: u32) -> Self {
        Self {
            most: f64::from(at_once),
            per_second: f64::from(per_hour) / 3600.0,
            left: f64::from(at_once),
            at: Span::ZERO,
            refused: 0,
        }
    }

    fn refill(&mut self, now: Span) {
        let earned = now.saturating_sub(self.at).as_secs_f64() * self.per_second;
        self.left = (self.left + earned).min(self.most);
        self.at = self.at.max(now);
    }

    /// Whether one more is allowed; counts it if it is refused.
    pub(crate) fn take(&mut self, now: Span) -> bool {
        self.refill(now);
        let may = self.left >= 1.0 && self.refused == 0;
        if may {
            self.left -= 1.0;
        } else {
            self.refused += 1;
        }
        may
    }

    /// Returns how many were refused, once the allowance permits one message about them.
    pub(crate) fn caught_up(&mut self, now: Span) -> Option<u64> {
        self.refill(now);
        if self.refused == 0 || self.left < 1.0 {
            return None;
        }
        self.left -= 1.0;
        Some(std::mem::take(&mut self.refused))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_cut_counted_and_told_once() {
        let mut allowance = Allowance::new(3, 60);
        let taken = |allowance: &mut Allowance, at: u64| {
            let times = (0..5).filter(|_| allowance.take(Span::from_secs(at)));
            times.count()
        };
        assert_eq!(taken(&mut allowance, 1_000), 3);
        assert_eq!(allowance.caught_up(Span::from_secs(1_010)), None);
        assert_eq!(allowance.caught_up(Span::from_secs(1_061)), Some(2));
        assert_eq!(allowance.caught_up(Span::from_secs(1_200)), None);
        assert_eq!(taken(&mut allowance, 9_000), 3);
    }
}
