//! How long a search may take.

use std::time::{Duration, Instant};

/// The time for a whole search.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SearchTime {
    started: Instant,
    at_most: Duration,
}

impl SearchTime {
    pub(crate) fn starts(at_most: Duration) -> Self {
        // The lint that forbids this call points the pure crates to this crate.
        #[allow(clippy::disallowed_methods)]
        let started = Instant::now();
        Self { started, at_most }
    }

    pub(crate) fn left(&self) -> Duration {
        self.at_most.saturating_sub(self.started.elapsed())
    }

    pub(crate) fn is_over(&self) -> bool {
        self.started.elapsed() >= self.at_most
    }
}
