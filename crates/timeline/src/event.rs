//! Events: what happened at one time, beyond what samples show.

use crate::sample::Stamp;

/// The kind of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EventKind {
    /// An OOM kill, of the host or of a cgroup.
    OomKill,
    /// The kernel logged a failed page allocation.
    AllocationFailure,
    /// A cgroup hit one of its limits.
    CgroupLimit,
    /// A tunable or setting took another value.
    FactChanged,
    /// A limit of a cgroup took another value.
    LimitChanged,
    /// The machine rebooted.
    Boot,
    /// The machine was suspended.
    Suspend,
    /// The wall clock was set.
    ClockStep,
    /// No samples were taken for a time.
    Gap,
    /// The recorder started.
    RecorderStarted,
    /// The recorder stopped cleanly.
    RecorderStopped,
    /// Samples were lost: the disk was full or did not respond.
    SamplesLost,
    /// Reading a file of a process took too long: another task had its mmap lock.
    Blocked,
    /// The first process of a service appeared.
    ServiceStarted,
    /// The last process of a service is gone.
    ServiceEnded,
    /// The kernel's work was profiled, as a condition was met.
    KernelProfile,
    /// A recorder's check of its own recording found something wrong.
    FindingFound,
    /// What it found is of another severity.
    FindingChanged,
    /// What it found is over.
    FindingCleared,
}

impl EventKind {
    /// Whether it may explain what charts show, so that charts label it.
    pub const fn explains(self) -> bool {
        match self {
            Self::OomKill
            | Self::AllocationFailure
            | Self::CgroupLimit
            | Self::FactChanged
            | Self::LimitChanged
            | Self::Boot
            | Self::Suspend
            | Self::SamplesLost
            | Self::KernelProfile => true,
            Self::ClockStep
            | Self::Gap
            | Self::RecorderStarted
            | Self::RecorderStopped
            | Self::Blocked
            | Self::ServiceStarted
            | Self::ServiceEnded
            // The findings themselves are drawn.
            | Self::FindingFound
            | Self::FindingChanged
            | Self::FindingCleared => false,
        }
    }

    /// All kinds, in the order of their declaration.
    pub const ALL: [Self; 19] = [
        Self::OomKill,
        Self::AllocationFailure,
        Self::CgroupLimit,
        Self::FactChanged,
        Self::LimitChanged,
        Self::Boot,
        Self::Suspend,
        Self::ClockStep,
        Self::Gap,
        Self::RecorderStarted,
        Self::RecorderStopped,
        Self::SamplesLost,
        Self::Blocked,
        Self::ServiceStarted,
        Self::ServiceEnded,
        Self::KernelProfile,
        Self::FindingFound,
        Self::FindingChanged,
        Self::FindingCleared,
    ];

    /// Whether it is of a recorder's check of its own recording.
    pub const fn is_of_finding(self) -> bool {
        matches!(self, Self::FindingFound | Self::FindingChanged | Self::FindingCleared)
    }

    /// Its name in files and lists.
    pub const fn name(self) -> &'static str {
        match self {
            Self::OomKill => "oom-kill",
            Self::AllocationFailure => "allocation-failure",
            Self::CgroupLimit => "cgroup-limit",
            Self::FactChanged => "fact-changed",
            Self::LimitChanged => "limit-changed",
            Self::Boot => "boot",
            Self::Suspend => "suspend",
            Self::ClockStep => "clock-step",
            Self::Gap => "gap",
            Self::RecorderStarted => "recorder-started",
            Self::RecorderStopped => "recorder-stopped",
            Self::SamplesLost => "samples-lost",
            Self::Blocked => "blocked",
            Self::ServiceStarted => "service-started",
            Self::ServiceEnded => "service-ended",
            Self::KernelProfile => "kernel-profile",
            Self::FindingFound => "finding-found",
            Self::FindingChanged => "finding-changed",
            Self::FindingCleared => "finding-cleared",
        }
    }

    /// The kind of this name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// When it happened.
    pub stamp: Stamp,
    /// Its kind.
    pub kind: EventKind,
    /// What it happened to: a process, a cgroup, a tunable; empty for the host.
    pub subject: String,
    /// One human-readable sentence.
    pub text: String,
    /// The kernel's log lines; of a profile its stacks, folded; empty where there are none.
    pub report: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repeats::RepeatIndex;
    use units::Span;

    fn is_repeated(event: &Event, earlier: &[Event]) -> bool {
        RepeatIndex::default().has(event, earlier)
    }

    #[test]
    fn what_a_recorder_reads_again_after_it_was_killed_is_told_once() {
        let event = |kind, boot, report: &str| Event {
            stamp: Stamp { boot: Span::from_secs(boot), ..Stamp::default() },
            kind,
            subject: String::new(),
            text: String::new(),
            report: report.to_owned(),
        };
        let (kill, failure) = (EventKind::OomKill, EventKind::AllocationFailure);
        let began = event(EventKind::RecorderStarted, 40, "");
        let all = [event(kill, 10, "a"), event(failure, 11, "b"), began];
        for (again, earlier, is_same) in [
            (event(kill, 12, "a"), &all[..], true),
            (event(kill, 12, "a"), &all[..2], true),
            (event(kill, 5_000, "a"), &all[..], false),
            (event(kill, 12, "c"), &all[..], false),
            (event(failure, 12, "b"), &all[..], true),
            // The kernel may log the same lines more than once.
            (event(failure, 12, "b"), &all[..2], false),
            (event(EventKind::OomKill, 10, "a\noom_reaper: reaped"), &all[..2], true),
            (event(EventKind::RecorderStarted, 40, ""), &all[..], false),
        ] {
            assert_eq!(is_repeated(&again, earlier), is_same, "{again:?}");
        }
    }

    #[test]
    fn every_kind_is_found_by_its_name() {
        for kind in EventKind::ALL {
            assert_eq!(EventKind::by_name(kind.name()), Some(kind));
        }
        assert_eq!(EventKind::by_name("?"), None);
    }

    #[test]
    fn a_kill_that_is_read_again_is_told_once_however_its_lines_were_cut() {
        let kill = |subject: &str, boot, report: &str| Event {
            stamp: Stamp { boot: Span::from_secs(boot), ..Stamp::default() },
            kind: EventKind::OomKill,
            subject: subject.to_owned(),
            text: String::new(),
            report: report.to_owned(),
        };
        let all = [kill("hog (7)", 10, "CPU: 1 PID: 7 \nKilled process 7")];
        let again = kill("hog (7)", 12, "CPU: 1 PID: 7\nKilled process 7");
        assert!(is_repeated(&again, &all));
        assert!(!is_repeated(&kill("hog (8)", 12, "x"), &all));
    }
}
