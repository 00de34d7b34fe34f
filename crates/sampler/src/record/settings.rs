//! How a recorder samples: how often, how much, and for what share of a CPU at most.

use probe::TaskSource;
use units::{Ratio, Span};

use crate::sampler::Rates;

/// How a recorder samples.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// From host sample to host sample.
    pub every: Span,
    /// From scan to scan of all processes; `None`: at none. Rounded up to whole samples.
    pub processes: Option<Span>,
    /// Which way processes are read; `None`: the best that works.
    pub source: Option<TaskSource>,
    /// From scan to scan of the cgroups at least; `None`: at none. Rounded up to whole samples.
    pub groups: Option<Span>,
    /// How much of one CPU scans of cgroups may take: where there are many, scans are rarer.
    pub groups_share: Ratio,
    /// From scan to scan of the host's files that move slowly: nodes, swap areas, zram, sockets, directory entries, KSM.
    pub slow: Span,
    /// From scan to scan of the slab caches, which cost more than all other host files together.
    pub slabs: Span,
    /// How much of one CPU reading proportional shares (PSS) may take, in the long run; `None`: they are not read.
    pub shares: Option<Ratio>,
    /// Services that become rows; of more, those with the most memory.
    pub most_services: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            every: Span::from_secs(1),
            processes: Some(Span::from_secs(10)),
            source: None,
            groups: Some(Span::from_secs(10)),
            // 1,000 groups of v2 are some 60 ms: they get a scan a minute, and 150 of them one every 10 s.
            groups_share: Ratio::from_percent(0.1),
            // Half of a host's files. Read with every sample they are a fifth of its cost.
            slow: Span::from_secs(10),
            slabs: Span::from_mins(1),
            // `smaps_rollup` holds the mmap lock of its process: 4.5 s for one of 200 GB have been seen.
            // 200 processes of 30 MiB have their turn every 4 minutes with this. Ten times as much is more than all samples
            // together cost.
            shares: Some(Ratio::from_percent(0.01)),
            most_services: 512,
        }
    }
}

impl Settings {
    /// How often the sampler reads what.
    pub(crate) fn rates(&self) -> Rates {
        Rates {
            every: self.every,
            slow: self.slow,
            slabs: self.slabs,
            cgroups: self.groups,
            cgroups_share: self.groups_share,
        }
    }
}
