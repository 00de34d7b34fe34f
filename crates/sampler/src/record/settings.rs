//! The settings of a recorder: how often it samples, how much, and for what share of a CPU.

use probe::TaskSource;
use units::{Ratio, Span};

use crate::sampler::Rates;

/// The settings of a recorder.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// From one host sample to the next.
    pub every: Span,
    /// From one scan of all processes to the next; `None`: never. Rounded up to whole samples.
    pub processes: Option<Span>,
    /// How processes are read; `None`: the best way that works.
    pub source: Option<TaskSource>,
    /// The shortest interval between cgroup scans; `None`: never. Rounded up to whole samples.
    pub groups: Option<Span>,
    /// The share of one CPU that cgroups may take: two thirds for scans of all, which hosts with many cgroups have less
    /// often, and one third for the busiest in between.
    pub groups_share: Ratio,
    /// How many of the busiest cgroups are read with each sample between two scans, where that share allows; zero:
    /// none.
    pub busiest_groups: usize,
    /// From one read to the next of the slowly changing host files: nodes, swap areas, zram, sockets, directory
    /// entries, KSM.
    pub slow: Span,
    /// From one read of the slab caches to the next; they cost more than all other host files together.
    pub slabs: Span,
    /// The share of one CPU for reading proportional shares (PSS), in the long run; `None`: they are not read.
    pub shares: Option<Ratio>,
    /// How many services become rows; if there are more, those with the most memory do.
    pub most_services: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            every: Span::from_secs(1),
            processes: Some(Span::from_secs(10)),
            source: None,
            groups: Some(Span::from_secs(10)),
            // A scan of 1,000 cgroups of v1 takes 20 ms, the busiest 64 of them 1 ms.
            groups_share: Ratio::from_percent(0.3),
            busiest_groups: 64,
            // Half of the host's files. Reading them with every sample would be a fifth of its cost.
            slow: Span::from_secs(10),
            slabs: Span::from_mins(1),
            // `smaps_rollup` takes the mmap lock of its process: 4.5 s were seen for one of 200 GB. With this share,
            // each of 200 processes of 30 MiB is read every 4 minutes. A tenfold share would cost more than all samples
            // together.
            shares: Some(Ratio::from_percent(0.01)),
            most_services: 512,
        }
    }
}

impl Settings {
    /// Returns the share of one CPU that scans of all cgroups may take.
    pub fn share_of_group_scans(&self) -> Ratio {
        self.rates().share_of_scans()
    }

    /// Returns the sampler's intervals.
    pub(crate) fn rates(&self) -> Rates {
        Rates {
            every: self.every,
            slow: self.slow,
            slabs: self.slabs,
            cgroups: self.groups,
            cgroups_share: self.groups_share,
            busiest: self.busiest_groups,
        }
    }
}
