//! A recorder's check of its own recording: what is wrong now, and what of that is news.
//!
//! A finding is known by its rule and by what it is about. It is *found* by the first check that shows it as a warning or
//! worse. It is *cleared* by the second check in a row that does not: a trigger that holds, pauses for one check and holds
//! again is one finding. A higher severity counts at once, a lower one with the second check in a row, for the same reason.

use std::path::Path;

use jiff::Timestamp;
use probe::Root;
use recorder_status::ActiveFinding;
use report::Report;
use report::model::{Finding, FindingNotice, FindingState, Severity};
use timeline::{Event, EventKind, Stamp, TimePoint, TimeRange};
use units::Span;

use crate::this_host::{self, Besides};

/// What of its recording a recorder judges: long enough for what is rated by minutes; a check reads all of it.
pub const OWN_CHECK_RANGE: Span = Span::from_mins(10);
/// So many checks in a row must not show a finding until it is over.
const MISSED_MIN: u32 = 2;
/// So many checks in a row must show it as less severe until it is.
const LESS_SEVERE_MIN: u32 = 2;
/// More findings are not followed; the worst come first.
const ACTIVE_MAX: usize = 64;
/// A title of more characters is cut: names of cgroups stand in it.
const TITLE_CHARS_MAX: usize = 600;

/// Returns what a recording shows of the last minutes that is wrong and not over, the worst first.
///
/// # Errors
/// If the recording cannot be read.
pub fn check_own(directory: &Path) -> Result<Vec<FindingNotice>, import::OpenError> {
    let range = TimeRange { since: Some(TimePoint::BeforeEnd(OWN_CHECK_RANGE)), until: None };
    let mut source = crate::open_screened(directory, range, &mut |_| ())?;
    // Nothing is searched for, so nothing can fail.
    let _ = this_host::complete(&Root::default(), &mut source, Besides::default());
    let host = this_host::identity(&Root::default()).name;
    let report = crate::check(&source);
    let recording = directory.display().to_string();
    let wrong = going_on(&report).filter(|finding| finding.severity >= Severity::Warning);
    Ok(wrong.map(|finding| FindingNotice::found(finding, &host, &recording)).collect())
}

/// What of a report's findings is not over.
pub fn going_on(report: &Report) -> impl Iterator<Item = &Finding> {
    report.findings.iter().filter(|finding| !finding.is_over)
}

/// What became of a finding.
#[derive(Debug, Clone, PartialEq)]
pub struct FindingNews {
    /// Whether it came, changed or went.
    pub state: FindingState,
    /// The finding as it is now; as it was, if it is over.
    pub finding: ActiveFinding,
    /// Its severity before, where that changed.
    pub severity_before: Option<String>,
}

/// Takes what a check found into what is known to be wrong, and returns what is news of it.
pub fn finding_changes(
    active: &mut Vec<ActiveFinding>,
    judged: &[ActiveFinding],
    at: Option<Timestamp>,
) -> Vec<FindingNews> {
    let mut changes = Vec::new();
    let is_same = |one: &ActiveFinding, other: &ActiveFinding| {
        (&one.id, &one.scope, &one.subject) == (&other.id, &other.scope, &other.subject)
    };
    for known in active.iter_mut() {
        // Two processes of one cgroup may have the same.
        let again = judged.iter().filter(|one| is_same(one, known));
        let Some(worst) = again.max_by_key(|one| severity(one)) else {
            known.missed += 1;
            if known.missed >= MISSED_MIN {
                let finding = known.clone();
                let state = FindingState::Cleared;
                changes.push(FindingNews { state, finding, severity_before: None });
            }
            continue;
        };
        known.missed = 0;
        known.title = cut(&worst.title);
        known.since = known.since.or(worst.since);
        known.less_severe =
            if severity(worst) < severity(known) { known.less_severe + 1 } else { 0 };
        if severity(worst) > severity(known) || known.less_severe >= LESS_SEVERE_MIN {
            known.less_severe = 0;
            let before = std::mem::replace(&mut known.severity, worst.severity.clone());
            changes.push(FindingNews {
                state: FindingState::Changed,
                finding: known.clone(),
                severity_before: Some(before),
            });
        }
    }
    active.retain(|known| known.missed < MISSED_MIN);
    for one in judged {
        if active.len() < ACTIVE_MAX && !active.iter().any(|known| is_same(known, one)) {
            let same = judged.iter().filter(|other| is_same(other, one));
            let worst = same.max_by_key(|other| severity(other)).unwrap_or(one);
            let found = ActiveFinding {
                title: cut(&worst.title),
                found: at,
                missed: 0,
                less_severe: 0,
                ..worst.clone()
            };
            active.push(found.clone());
            changes.push(FindingNews {
                state: FindingState::Found,
                finding: found,
                severity_before: None,
            });
        }
    }
    changes
}

fn severity(finding: &ActiveFinding) -> Option<Severity> {
    Severity::by_word(&finding.severity)
}

fn cut(title: &str) -> String {
    title.chars().take(TITLE_CHARS_MAX).collect()
}

impl FindingNews {
    /// The event that is kept of it.
    pub fn event(&self, stamp: Stamp) -> Event {
        let ActiveFinding { id, severity, title, subject, .. } = &self.finding;
        let (kind, what) = match self.state {
            FindingState::Found => (EventKind::FindingFound, format!("found ({severity})")),
            FindingState::Changed => {
                let before = self.severity_before.as_deref().unwrap_or("not known");
                (EventKind::FindingChanged, format!("is {severity} now, was {before}"))
            }
            FindingState::Cleared => {
                (EventKind::FindingCleared, format!("cleared{}", self.lasted(stamp)))
            }
        };
        // The title of what is over speaks of what was.
        let title = if self.state == FindingState::Cleared { "" } else { title };
        let sign = if title.is_empty() { "" } else { ": " };
        let about = match subject.as_str() {
            subject if title.is_empty() && !subject.is_empty() => format!(" in {subject}"),
            _ => String::new(),
        };
        let text = format!("{id}{about} {what}{sign}{}", title.trim_end_matches('.'));
        Event { stamp, kind, subject: subject.clone(), text, report: String::new() }
    }

    /// How long it was wrong, as far as is known.
    fn lasted(&self, stamp: Stamp) -> String {
        let began = self.finding.since.or(self.finding.found);
        let now = stamp.wall.and_then(crate::status::timestamp);
        let lasted = began.zip(now).and_then(|(began, now)| {
            u64::try_from(now.duration_since(began).as_secs()).ok().map(Span::from_secs)
        });
        lasted.map_or_else(String::new, |lasted| format!(", {lasted} after it began"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(id: &str, severity: &str, subject: &str) -> ActiveFinding {
        ActiveFinding {
            id: id.to_owned(),
            severity: severity.to_owned(),
            scope: if subject.is_empty() { "host" } else { "cgroup" }.to_owned(),
            subject: subject.to_owned(),
            title: format!("{id} is wrong."),
            ..ActiveFinding::default()
        }
    }

    /// What each check after another has as news: states and severities.
    fn news(checks: &[&[ActiveFinding]]) -> Vec<String> {
        let mut active = Vec::new();
        let each = checks.iter().map(|judged| {
            let changes = finding_changes(&mut active, judged, None);
            let words = changes.iter().map(|change| {
                let FindingNews { state, finding, .. } = change;
                format!("{} {} {}", finding.id, state.word(), finding.severity)
            });
            words.collect::<Vec<_>>().join(", ")
        });
        each.collect()
    }

    #[test]
    fn what_pauses_for_one_check_is_one_finding() {
        let thrash = [judged("swap-thrash", "warning", "")];
        let (there, gone): (&[_], &[_]) = (&thrash, &[]);
        assert_eq!(
            news(&[gone, there, there, gone, there, gone, gone, gone, there]),
            [
                "",
                "swap-thrash found warning",
                "",
                "",
                "",
                "",
                "swap-thrash cleared warning",
                "",
                "swap-thrash found warning"
            ]
        );
    }

    #[test]
    fn a_severity_rises_at_once_and_falls_when_that_lasts() {
        let mild = [judged("swap-thrash", "warning", "")];
        let bad = [judged("swap-thrash", "critical", "")];
        assert_eq!(
            news(&[&mild, &bad, &mild, &bad, &mild, &mild]),
            [
                "swap-thrash found warning",
                "swap-thrash changed critical",
                "",
                "",
                "",
                "swap-thrash changed warning"
            ]
        );
    }

    #[test]
    fn the_same_rule_in_two_cgroups_is_two_findings_and_in_two_processes_of_one_the_worse() {
        let both = [
            judged("cgroup-oom", "warning", "/a"),
            judged("cgroup-oom", "warning", "/b"),
            judged("cgroup-oom", "critical", "/b"),
        ];
        assert_eq!(news(&[&both]), ["cgroup-oom found warning, cgroup-oom found critical"]);
    }

    #[test]
    fn a_thousand_findings_are_followed_as_far_as_there_is_room() {
        let many: Vec<_> =
            (0..1_000).map(|n| judged("cgroup-oom", "warning", &format!("/{n}"))).collect();
        let mut active = Vec::new();
        assert_eq!(finding_changes(&mut active, &many, None).len(), ACTIVE_MAX);
        assert_eq!(finding_changes(&mut active, &many, None), []);
    }

    #[test]
    fn an_event_says_what_became_of_which_finding() {
        let mut active = Vec::new();
        let text = |changes: &[FindingNews]| changes[0].event(Stamp::default()).text;
        let found = finding_changes(&mut active, &[judged("cgroup-oom", "warning", "/a")], None);
        assert_eq!(text(&found), "cgroup-oom found (warning): cgroup-oom is wrong");
        let worse = finding_changes(&mut active, &[judged("cgroup-oom", "critical", "/a")], None);
        assert_eq!(text(&worse), "cgroup-oom is critical now, was warning: cgroup-oom is wrong");
        assert_eq!(finding_changes(&mut active, &[], None), []);
        let cleared = finding_changes(&mut active, &[], None);
        assert_eq!(text(&cleared), "cgroup-oom in /a cleared");
        assert!(active.is_empty());
    }
}
