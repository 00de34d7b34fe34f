//! The weight of an incident: how long it lasted and how long tasks waited.

use timeline::signals::{CGROUP_PSI_IO_SOME, CGROUP_PSI_MEMORY_SOME, PSI_IO_SOME, PSI_MEMORY_SOME};
use timeline::{EntitySeries, Stretch, Track};
use units::{Ratio, Span};

use crate::evidence::Evidence;
use crate::finding::Harm;
use crate::rule::Waits;

/// What decides whether an incident is a burst, that is, both short and cheap.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Weight {
    pub(crate) duration: Span,
    pub(crate) harm: Harm,
    /// Whether it touches an end of the recording, so that it may be longer than it seems.
    pub(crate) is_cut: bool,
}

impl Weight {
    /// An incident this long is not a burst, whatever its cost: an engineering choice.
    const DURATION_LONG: Span = Span::from_secs(10);
    /// The same if its cost was not measured.
    const LONG_UNMEASURED: Span = Span::from_secs(6);
    /// An incident in which tasks wait this long is not a burst, however short: an engineering choice, what users
    /// notice.
    const COSTLY: Span = Span::from_secs(2);

    pub(crate) fn is_burst(&self) -> bool {
        let part = if self.is_cut { 0.5 } else { 1.0 };
        let short = match self.harm.waited {
            Some(waited) => {
                self.duration < Self::DURATION_LONG.times(part) && waited < Self::COSTLY.times(part)
            }
            None => self.duration < Self::LONG_UNMEASURED.times(part),
        };
        short && self.harm.killed == 0
    }
}

/// Waiting times of the tasks of the host or of a cgroup, read once for all its incidents.
#[derive(Debug)]
pub(crate) struct WaitTracks {
    memory: Option<Track<Ratio>>,
    disk: Option<Track<Ratio>>,
}

impl WaitTracks {
    pub(crate) fn for_host(cx: &Evidence<'_>) -> Self {
        Self { memory: cx.stall(PSI_MEMORY_SOME).ok(), disk: cx.stall(PSI_IO_SOME).ok() }
    }

    pub(crate) fn for_cgroup(cx: &Evidence<'_>, cgroup: &EntitySeries) -> Self {
        let share = |signal| Some(cx.timeline.rate_of(cgroup, signal)?.to_share());
        Self { memory: share(CGROUP_PSI_MEMORY_SOME), disk: share(CGROUP_PSI_IO_SOME) }
    }

    /// Returns how long tasks waited in a stretch. Waits for memory and for disks overlap, so they are not added.
    pub(crate) fn within(&self, stretch: &Stretch, waits: Waits) -> Option<Span> {
        let seconds =
            |track: &Option<Track<Ratio>>| track.as_ref().map(|track| track.integral_in(stretch));
        let waited = match waits {
            Waits::No => None,
            Waits::Memory => seconds(&self.memory),
            Waits::MemoryOrDisk => match (seconds(&self.memory), seconds(&self.disk)) {
                (Some(memory), Some(disk)) => Some(memory.max(disk)),
                (memory, disk) => memory.or(disk),
            },
        };
        waited.map(Span::from_secs_f64)
    }
}
