//! How much is read of the busiest cgroups between two passes over all: as much as a share of a CPU allows.

use units::{Ratio, Span};

use crate::pace::{LastDone, interval_within};

/// The pace of the busiest cgroups.
#[derive(Debug)]
pub(crate) struct BusiestPace {
    /// At most this many are read.
    busiest_max: usize,
    /// So many are read, and so many others are asked whether they met a limit.
    pub(crate) busiest: usize,
    pub(crate) probes: usize,
    /// The interval between two readings that their cost allows.
    pub(crate) every: Span,
    pub(crate) done: LastDone,
}

impl BusiestPace {
    /// One that meets its limit, every few seconds, shows more of it than eight do in a minute.
    const BUSIEST_MIN: usize = 1;
    const PROBES_MIN: usize = 4;
    const PROBES_FIRST: usize = 128;

    pub(crate) fn new(busiest_max: usize) -> Self {
        Self {
            busiest_max,
            busiest: busiest_max,
            probes: Self::PROBES_FIRST,
            every: Span::ZERO,
            done: LastDone::default(),
        }
    }

    /// Adapts to what the last reading cost. `known`: cgroups of the last pass.
    pub(crate) fn note(&mut self, cost: Span, share: Ratio, sample_every: Span, known: usize) {
        self.every = interval_within(cost, share);
        if self.every <= sample_every {
            self.busiest = (self.busiest + 4).min(self.busiest_max);
            self.probes = (self.probes + self.probes / 4 + 1).min(known);
            return;
        }
        // Asking is given up first.
        if self.probes > Self::PROBES_MIN {
            self.probes = (self.probes / 2).max(Self::PROBES_MIN);
            return;
        }
        let least = Self::BUSIEST_MIN.min(self.busiest_max);
        self.busiest = (self.busiest * 3 / 4).max(least);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pace after a minute of readings that cost 16 µs each and 2 µs for each question.
    fn settled(share_percent: f64, known: usize) -> BusiestPace {
        let mut pace = BusiestPace::new(64);
        for _ in 0..60 {
            let micros = 16 * pace.busiest.min(known) + 2 * pace.probes;
            let cost = Span::from_nanos(micros as u64 * 1_000);
            pace.note(cost, Ratio::from_percent(share_percent), Span::from_secs(1), known);
        }
        pace
    }

    #[test]
    fn a_host_with_few_cgroups_asks_all_and_one_with_many_as_many_as_are_affordable() {
        let few = settled(0.1, 40);
        assert_eq!((few.busiest, few.probes), (64, 40));
        let many = settled(0.2, 5_000);
        assert_eq!(many.busiest, 64);
        // 488 are affordable; the number rises by a quarter above that and is then halved.
        assert!((244..=610).contains(&many.probes), "{}", many.probes);
    }

    #[test]
    fn a_small_share_reads_fewer_and_then_more_rarely() {
        let small = settled(0.05, 1_000);
        assert!((16..=30).contains(&small.busiest), "{}", small.busiest);
        let tiny = settled(0.001, 1_000);
        assert_eq!((tiny.busiest, tiny.probes), (1, 4));
        assert_eq!(tiny.every, Span::from_millis(2_400));
    }
}
