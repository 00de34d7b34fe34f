//! What an incident weighs: how long it lasted, and how long tasks waited meanwhile.

use timeline::signals::{CGROUP_PSI_IO_SOME, CGROUP_PSI_MEMORY_SOME, PSI_IO_SOME, PSI_MEMORY_SOME};
use timeline::{EntitySeries, Stretch, Track};
use units::{Ratio, Span};

use crate::evidence::Evidence;
use crate::finding::Harm;
use crate::rule::Waits;

/// How an incident is weighed: what is both short and cheap is a burst.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Weight {
    pub(crate) lasts: Span,
    pub(crate) harm: Harm,
    /// Whether it reaches to an end of what was watched: there may be more of it.
    pub(crate) is_cut: bool,
}

impl Weight {
    /// What lasts this long is no burst, whatever it cost: an engineering choice.
    const LONG: Span = Span::from_secs(10);
    /// The same where nothing measures what it cost.
    const LONG_UNMEASURED: Span = Span::from_secs(6);
    /// What makes tasks wait this long is no burst, however short: an engineering choice, what users notice.
    const COSTLY: Span = Span::from_secs(2);

    pub(crate) fn is_burst(&self) -> bool {
        let part = if self.is_cut { 0.5 } else { 1.0 };
        let short = match self.harm.waited {
            Some(waited) => {
                self.lasts < Self::LONG.times(part) && waited < Self::COSTLY.times(part)
            }
            None => self.lasts < Self::LONG_UNMEASURED.times(part),
        };
        short && self.harm.killed == 0
    }
}

/// How long tasks waited, of the host or of a control group: measured once for all its incidents.
#[derive(Debug)]
pub(crate) struct WaitTracks {
    memory: Option<Track<Ratio>>,
    disk: Option<Track<Ratio>>,
}

impl WaitTracks {
    pub(crate) fn of_host(cx: &Evidence<'_>) -> Self {
        Self {
            memory: cx.stall(PSI_MEMORY_SOME).ok(),
            disk: cx.stall(PSI_IO_SOME).ok(),
        }
    }

    pub(crate) fn of_group(cx: &Evidence<'_>, group: &EntitySeries) -> Self {
        let share = |signal| Some(cx.timeline.rate_of(group, signal)?.to_share());
        Self {
            memory: share(CGROUP_PSI_MEMORY_SOME),
            disk: share(CGROUP_PSI_IO_SOME),
        }
    }

    /// What of a stretch tasks waited for such a thing. Waits for memory and for disks overlap, so they are not added.
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
