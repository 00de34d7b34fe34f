//! Whether two tell of one kernel report: it is known by its kind, by whom it is about (a process is killed once), and by when
//! it was written. Its words do not tell: whoever kept them has cut them in his own way.

use units::{Span, WallClock};

use crate::event::{Event, EventKind};
use crate::kernel_report::{KernelReport, ReportKind};
use crate::sample::Stamp;

/// The clock of the kernel's log, which nobody adjusts, and the boot clock part by this in months; a recorder that begins
/// does not know yet by how much.
pub(crate) const CLOCKS_PART: Span = Span::from_mins(10);
/// Where nobody is named, or the kernel may say the same of one process again, times of one report differ by less.
const SAME_TIME: Span = Span::from_secs(2);

/// Whether two reports are one.
pub(crate) fn is_one(one: (&KernelReport, Stamp), other: (&KernelReport, Stamp)) -> bool {
    let (one, other) = (Identity::of(one.0, one.1), Identity::of(other.0, other.1));
    one.is(&other)
}

/// Whether a recorder's note tells of a report.
pub(crate) fn is_noted(report: (&KernelReport, Stamp), note: &Event) -> bool {
    Identity::of(report.0, report.1).is(&Identity::of_note(note))
}

/// What a report is known by.
#[derive(Debug)]
pub(crate) struct Identity {
    kind: EventKind,
    subject: String,
    at: Stamp,
}

impl Identity {
    fn of(report: &KernelReport, at: Stamp) -> Self {
        let kind = match report.kind {
            ReportKind::OomKill => EventKind::OomKill,
            ReportKind::AllocationFailure => EventKind::AllocationFailure,
        };
        Self {
            kind,
            subject: report.subject(),
            at,
        }
    }

    pub(crate) fn of_note(note: &Event) -> Self {
        Self {
            kind: note.kind,
            subject: note.subject.clone(),
            at: note.stamp,
        }
    }

    /// Whether both are one thing.
    pub(crate) fn is(&self, other: &Self) -> bool {
        let within = match self.kind == EventKind::OomKill && !self.subject.is_empty() {
            true => CLOCKS_PART,
            false => SAME_TIME,
        };
        self.kind == other.kind
            && self.subject == other.subject
            && are_within(self.at, other.at, within)
    }
}

/// Whether two stamps are so close, on each clock that both have. After months a log's time is read anew with another
/// difference of clocks, but both clocks of it move alike; of two boots they do not, though a process may have the same PID
/// and the same time since boot in each.
fn are_within(one: Stamp, other: Stamp, within: Span) -> bool {
    let boot = later_by(one.boot.as_nanos(), other.boot.as_nanos());
    let wall = one
        .wall
        .zip(other.wall)
        .map(|(one, other)| later_wall(one, other));
    let is_near = |by: i128, within: Span| by.unsigned_abs() <= u128::from(within.as_nanos());
    is_near(boot, within)
        && wall.is_none_or(|wall| is_near(wall, within) && is_near(wall - boot, SAME_TIME))
}

fn later_by(one: u64, other: u64) -> i128 {
    i128::from(other) - i128::from(one)
}

fn later_wall(one: WallClock, other: WallClock) -> i128 {
    i128::from(other.unix_nanos()) - i128::from(one.unix_nanos())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel_report::Killed;

    fn stamp(boot: u64, wall: i64) -> Stamp {
        Stamp {
            boot: Span::from_secs(boot),
            awake: None,
            wall: Some(WallClock::from_unix_nanos(wall * 1_000_000_000)),
        }
    }

    fn kill(pid: u32, name: &str) -> KernelReport {
        KernelReport {
            killed: vec![Killed {
                pid,
                name: name.to_owned(),
                ..Killed::default()
            }],
            ..KernelReport::default()
        }
    }

    #[test]
    fn a_kill_is_known_by_its_process_and_its_time_and_not_by_words() {
        let first = (kill(7, "hog"), stamp(100, 1_000));
        for (other, at, is_same) in [
            (kill(7, "hog"), stamp(100, 1_000), true),
            // Read again by a recorder that took the clocks to be a minute apart.
            (kill(7, "hog"), stamp(160, 1_060), true),
            (kill(8, "hog"), stamp(100, 1_000), false),
            (kill(7, "dog"), stamp(100, 1_000), false),
            // The same process of the next boot, which has the same PID as long after it.
            (kill(7, "hog"), stamp(100, 1_300), false),
            (kill(7, "hog"), stamp(5_000, 5_900), false),
        ] {
            let is = is_one((&first.0, first.1), (&other, at));
            assert_eq!(is, is_same, "{other:?} {at:?}");
        }
    }

    #[test]
    fn failed_allocations_of_one_process_are_told_apart_by_time() {
        let failure = KernelReport {
            kind: ReportKind::AllocationFailure,
            ..KernelReport::default()
        };
        let at = |second| {
            (
                &failure,
                stamp(second, 1_000 + i64::try_from(second).unwrap()),
            )
        };
        assert!(is_one(at(10), at(11)));
        assert!(!is_one(at(10), at(15)));
        assert!(!is_one(at(10), (&kill(7, ""), at(10).1)));
    }
}
