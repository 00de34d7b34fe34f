//! The processes that are searched.

use timeline::UserProcess;
use units::{Bytes, Span};

/// A process as the last sample has it.
#[derive(Debug, Clone, Default)]
pub struct SearchedProcess {
    /// Its PID.
    pub pid: u32,
    /// When it was started, in clock ticks since boot; `None` if unknown.
    pub start_ticks: Option<u64>,
    /// Its name.
    pub name: String,
    /// Its service; empty if unknown.
    pub service: String,
    /// Shared memory that it has mapped; `None` if unknown.
    pub shared: Option<Bytes>,
    /// Huge pages of hugetlbfs that it has mapped.
    pub huge: Bytes,
}

impl SearchedProcess {
    pub(super) fn user(&self) -> UserProcess {
        UserProcess { pid: self.pid, name: self.name.clone(), service: self.service.clone() }
    }

    /// Returns when it was started, on the boot clock.
    pub(super) fn started(&self) -> Option<Span> {
        let per_second = rustix::param::clock_ticks_per_second().max(1);
        let ticks = self.start_ticks?;
        Some(Span::from_millis(ticks.saturating_mul(1000) / per_second))
    }

    /// Whether its mappings may be of shared memory.
    pub(super) fn may_map_shared(&self) -> bool {
        self.shared != Some(Bytes::ZERO) || self.huge > Bytes::ZERO
    }
}
