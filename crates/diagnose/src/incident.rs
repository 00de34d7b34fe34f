//! Incidents: from when to when a rule's trigger held, in what, and what that cost.

use timeline::signals::{CGROUP_PSI_IO_SOME, CGROUP_PSI_MEMORY_SOME, PSI_IO_SOME, PSI_MEMORY_SOME};
use timeline::{Entity, EntitySeries, Stretch, Track};
use units::{Ratio, Span};

use crate::evidence::{Evidence, Missing, Need};
use crate::rule::Waits;

/// What a story is told about. Its samples are those of the window that the evidence is cut to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Incident<'a> {
    /// From when to when the trigger held.
    pub(crate) stretch: Stretch,
    /// In which entity; `None` on the host, and where only a kernel report names it.
    pub(crate) of: Option<&'a EntitySeries>,
    /// The entity's key; `None` on the host.
    pub(crate) key: Option<&'a str>,
}

impl<'a> Incident<'a> {
    /// The entity that a trigger of entities is about.
    ///
    /// # Errors
    /// [`Missing`] where the incident is of the host.
    pub(crate) fn entity(&self) -> Result<&'a EntitySeries, Missing> {
        self.of
            .ok_or_else(|| Missing::because(Vec::new(), Need::SameTime))
    }
}

/// In what an incident happened.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Scope {
    /// The kind of entity.
    pub entity: Entity,
    /// Its key, as in the timeline; empty for the host.
    pub key: String,
}

impl Scope {
    /// The host as a whole.
    pub const fn host() -> Self {
        Self {
            entity: Entity::Host,
            key: String::new(),
        }
    }
}

/// What an incident cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Harm {
    /// Processes that were killed.
    pub killed: u64,
    /// How long tasks waited; `None` where the source does not measure it, or nobody need wait.
    pub waited: Option<Span>,
}

impl Harm {
    /// Of both together.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            killed: self.killed + other.killed,
            waited: match (self.waited, other.waited) {
                (Some(a), Some(b)) => Some(a.plus(b)),
                (a, b) => a.or(b),
            },
        }
    }
}

/// One of the times that a finding is about.
#[derive(Debug, Clone, PartialEq)]
pub struct Occasion {
    /// From when to when.
    pub stretch: Stretch,
    /// How much it mattered then.
    pub severity: crate::Severity,
    /// How sure that is.
    pub confidence: f64,
    /// What it cost.
    pub harm: Harm,
    /// What happened then.
    pub title: String,
}

/// Incidents too short and too cheap to be told one by one.
#[derive(Debug, Clone, PartialEq)]
pub struct Bursts {
    /// The rule that they are of.
    pub id: &'static str,
    /// All of them, in order.
    pub stretches: Vec<Stretch>,
    /// How long tasks waited in all of them; `None` where that is not measured.
    pub waited: Option<Span>,
}

impl Bursts {
    /// How many.
    pub fn count(&self) -> usize {
        self.stretches.len()
    }

    /// The longest of them, the first of several.
    pub fn longest(&self) -> Option<&Stretch> {
        self.stretches
            .iter()
            .rev()
            .max_by_key(|stretch| stretch.duration())
    }
}

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
pub(crate) struct Waiting {
    memory: Option<Track<Ratio>>,
    disk: Option<Track<Ratio>>,
}

impl Waiting {
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
