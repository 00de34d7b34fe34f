//! How a recorder samples: how often, how much, and for what share of a CPU at most.

use probe::TaskSource;
use units::{Ratio, Span};

/// How a recorder samples.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// From host sample to host sample.
    pub every: Span,
    /// From look to look at all processes; `None`: at none. Rounded up to whole samples.
    pub processes: Option<Span>,
    /// Which way processes are read; `None`: the best that works.
    pub source: Option<TaskSource>,
    /// From look to look at the control groups at least; `None`: at none. Rounded up to whole samples.
    pub groups: Option<Span>,
    /// How much of one CPU looking at control groups may take: where there are many, looks are rarer.
    pub groups_share: Ratio,
    /// From look to look at the slab caches, which cost more than all other host files together.
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
            // 1,000 groups of v2 are some 60 ms: they get a look a minute, and 150 of them one every 10 s.
            groups_share: Ratio::from_percent(0.1),
            slabs: Span::from_mins(1),
            // `smaps_rollup` holds the mmap lock of its process: 4.5 s for one of 200 GB have been seen.
            // With ten times this, shares took more than all samples together on a host where large processes grew.
            shares: Some(Ratio::from_percent(0.03)),
            most_services: 512,
        }
    }
}
