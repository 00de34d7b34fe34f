//! Whether two kernel reports are the same: by kind, by subject (a process is killed once) and by time. Texts are not
//! compared, because each source may have cut them differently.

use units::{Span, WallClock};

use crate::event::{Event, EventKind};
use crate::kernel_report::{KernelReport, ReportKind};
use crate::sample::Stamp;

/// The kernel log's clock, which is not adjusted, and the boot clock drift apart by this much in months; a recorder
/// that has just started does not yet know the difference.
pub(crate) const MAX_CLOCK_DRIFT: Span = Span::from_mins(10);
/// The most by which times of one report differ where no process is named, or where the kernel may log the same of one
/// process again.
const SAME_TIME: Span = Span::from_secs(2);

/// Whether two reports are the same.
pub(crate) fn is_same_report(one: (&KernelReport, Stamp), other: (&KernelReport, Stamp)) -> bool {
    let (one, other) = (ReportIdentity::new(one.0, one.1), ReportIdentity::new(other.0, other.1));
    one.is(&other)
}

/// Whether a recorder's event describes this report.
pub(crate) fn is_same_as_event(report: (&KernelReport, Stamp), note: &Event) -> bool {
    ReportIdentity::new(report.0, report.1).is(&ReportIdentity::from_event(note))
}

impl Event {
    /// Whether both are the kill of one process.
    pub(crate) fn is_same_kill(&self, other: &Self) -> bool {
        let is_named = !self.subject.is_empty();
        // Compared first: there may be many kills, each with an identity to build.
        (self.kind, &self.subject) == (other.kind, &other.subject)
            && (is_named && ReportIdentity::from_event(self).is(&ReportIdentity::from_event(other))
                || self.has_same_text(other))
    }

    /// Whether the kernel logged the same text about the same subject at about the same time after boot. Lines that
    /// the kernel adds a moment later, when the OOM reaper is done, may be missing from either.
    pub(crate) fn has_same_text(&self, other: &Self) -> bool {
        let boots = [self, other].map(|event| event.stamp.boot.as_nanos());
        (self.kind, &self.subject) == (other.kind, &other.subject)
            && !other.report.is_empty()
            && (self.report.starts_with(&other.report) || other.report.starts_with(&self.report))
            && boots[0].abs_diff(boots[1]) <= MAX_CLOCK_DRIFT.as_nanos()
            && self.stamp.is_of_boot_of(&other.stamp) != Some(false)
    }
}

/// What identifies a report.
#[derive(Debug)]
struct ReportIdentity {
    kind: EventKind,
    subject: String,
    at: Stamp,
}

impl ReportIdentity {
    fn new(report: &KernelReport, at: Stamp) -> Self {
        let kind = match report.kind {
            ReportKind::OomKill => EventKind::OomKill,
            ReportKind::AllocationFailure => EventKind::AllocationFailure,
        };
        Self { kind, subject: report.subject(), at }
    }

    pub(crate) fn from_event(note: &Event) -> Self {
        Self { kind: note.kind, subject: note.subject.clone(), at: note.stamp }
    }

    /// Whether both identify the same report.
    pub(crate) fn is(&self, other: &Self) -> bool {
        let within = if self.kind == EventKind::OomKill && !self.subject.is_empty() {
            MAX_CLOCK_DRIFT
        } else {
            SAME_TIME
        };
        self.kind == other.kind
            && self.subject == other.subject
            && are_within(self.at, other.at, within)
    }
}

/// Whether two stamps are this close on each clock that both have. After months a log's time is converted with another
/// clock difference, but its boot and wall clocks shift alike. Those of two boots do not shift alike, though a process
/// may have the same PID and the same time since boot in both.
fn are_within(one: Stamp, other: Stamp, within: Span) -> bool {
    if one.is_of_boot_of(&other) == Some(false) {
        return false;
    }
    let boot = later_by(one.boot.as_nanos(), other.boot.as_nanos());
    let wall = one.wall.zip(other.wall).map(|(one, other)| later_wall(one, other));
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
            ..Stamp::default()
        }
    }

    fn kill(pid: u32, name: &str) -> KernelReport {
        KernelReport {
            killed: vec![Killed { pid, name: name.to_owned(), ..Killed::default() }],
            ..KernelReport::default()
        }
    }

    #[test]
    fn a_kill_is_known_by_its_process_and_its_time_and_not_by_words() {
        let first = (kill(7, "hog"), stamp(100, 1_000));
        for (other, at, is_same) in [
            (kill(7, "hog"), stamp(100, 1_000), true),
            // Read again by a recorder with clocks that differ by a minute.
            (kill(7, "hog"), stamp(160, 1_060), true),
            (kill(8, "hog"), stamp(100, 1_000), false),
            (kill(7, "dog"), stamp(100, 1_000), false),
            // A process of the next boot with the same PID at the same time after boot.
            (kill(7, "hog"), stamp(100, 1_300), false),
            (kill(7, "hog"), stamp(5_000, 5_900), false),
        ] {
            let is = is_same_report((&first.0, first.1), (&other, at));
            assert_eq!(is, is_same, "{other:?} {at:?}");
        }
    }

    #[test]
    fn failed_allocations_of_one_process_are_told_apart_by_time() {
        let failure =
            KernelReport { kind: ReportKind::AllocationFailure, ..KernelReport::default() };
        let at = |second| (&failure, stamp(second, 1_000 + i64::try_from(second).unwrap()));
        assert!(is_same_report(at(10), at(11)));
        assert!(!is_same_report(at(10), at(15)));
        assert!(!is_same_report(at(10), (&kill(7, ""), at(10).1)));
    }
}
