//! Rates that a tool prints, added up to the counters that they came from.

use std::collections::HashMap;

use timeline::SignalId;
use units::Span;

/// The counters of a block, in the unit of its rates.
#[derive(Debug, Default)]
pub(super) struct RateTotals(HashMap<SignalId, f64>);

impl RateTotals {
    /// Adds a rate over the time since the row before, which is zero for the first row. Returns the counter.
    pub(super) fn add(&mut self, counter: SignalId, per_second: f64, between: Span) -> f64 {
        let total = self.0.entry(counter).or_default();
        *total += per_second * between.as_secs_f64();
        *total
    }
}
