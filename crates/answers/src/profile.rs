//! A profile of the kernel as one more evidence of `check`: it confirms a finding, proves what no counter showed, or refutes.

use jiff::{SignedDuration, Timestamp};
use probe::Root;
use profile::{Profile, ProfileOrigin, ProfileReport};
use report::model::{Evidence, Finding, HotReason, KernelProfile, Level, Stretch};
use report::{Report, Screen};
use timeline::cgroup::{GroupName, GroupNames, ROOT};
use timeline::signals::CGROUP_CURRENT;
use timeline::{DatedEvent, Entity, Event, EventKind, Sample, Source, Stamp, TimePoint, TimeRange};
use units::{Bytes, Span};

use crate::coverage;
use crate::this_host::names;

/// Adds what a profile of the same time shows to the answer of `check`.
pub fn add_profile(report: &mut Report, profile: &ProfileReport) {
    for row in &profile.hot {
        let explained = report.findings.iter_mut().find(|one| Some(&one.id) == row.rule.as_ref());
        if let Some(finding) = explained {
            finding.evidence.push(evidence(&row.label, row.share, row.stalled_tasks));
        }
    }
    let sentence = format!("Profile: {}", profile.headline);
    let calm = matches!(report.verdict, Level::Ok | Level::Unknown);
    if calm && !profile.hot.is_empty() {
        // What costs the kernel so much is trouble, whatever the counters could not say.
        report.verdict = Level::Warning;
        let before = std::mem::replace(&mut report.headline, profile.headline.clone());
        report.remarks.insert(0, format!("The counters by themselves: {before}"));
    } else {
        report.remarks.push(sentence);
    }
    let hot = profile
        .hot
        .iter()
        .map(|row| HotReason { reason: row.reason.name().to_owned(), rule: row.rule.clone() });
    report.profile = Some(KernelProfile { headline: profile.headline.clone(), hot: hot.collect() });
}

/// A profile that a recorder kept.
#[derive(Debug)]
pub struct KeptProfile {
    /// When it began.
    pub at: Stamp,
    /// What was kept of it.
    pub profile: Profile,
}

impl KeptProfile {
    /// The profile of an event; `None` where the event is none, or none was taken.
    fn of(event: &Event) -> Option<Self> {
        let is_one = event.kind == EventKind::KernelProfile && !event.report.is_empty();
        let profile =
            is_one.then(|| profile::read_profile("kept", event.report.as_bytes()))?.ok()?;
        let at = event.stamp.wall.map(coverage::moment).unwrap_or_default();
        let form = format!("recorded {at}").trim_end().to_owned();
        let origin = ProfileOrigin { files: Vec::new(), form, ..profile.origin };
        Some(Self { at: event.stamp, profile: Profile { origin, ..profile } })
    }
}

/// No profile was kept at a time.
#[derive(Debug, thiserror::Error)]
pub enum NoKeptProfile {
    /// The source has none at all.
    #[error("{0} has no profile of the kernel")]
    None(String),
    /// It has some, of other times.
    #[error("{0} has no profile of that time; it has {1}")]
    OtherTimes(String, String),
}

impl NoKeptProfile {
    /// What to do about it.
    pub fn help(&self) -> String {
        match self {
            Self::None(_) => {
                "`memtide record --profile-when psi.memory>10%` keeps one each time that tasks \
                              wait for memory; --from reads a profile of another tool"
                    .to_owned()
            }
            Self::OtherTimes(..) => {
                "`memtide events --kind kernel-profile` lists all of them".to_owned()
            }
        }
    }
}

/// Returns the profile that was kept nearest to a time, within five minutes; without a time the last one. Also how many there are.
///
/// # Errors
/// If there is none.
pub fn kept_profile(
    source: &Source,
    at: Option<TimePoint>,
) -> Result<(KeptProfile, usize), NoKeptProfile> {
    let name = || source.origin.name.clone();
    let all = kept_events(source);
    let count = all.len();
    let wall = |index: usize| source.timeline.stamp(index).and_then(|stamp| stamp.wall);
    let last = source.timeline.len().saturating_sub(1);
    let wanted = match at {
        Some(TimePoint::At(wall)) => Some(wall),
        at => wall(0)
            .zip(wall(last))
            .and_then(|ends| TimeRange { since: at, until: None }.on_clock(ends).0),
    };
    let Some(wanted) = wanted else {
        let last = all.last().and_then(|event| KeptProfile::of(event));
        return last.map(|last| (last, count)).ok_or_else(|| NoKeptProfile::None(name()));
    };
    let apart = |event: &Event| {
        event.stamp.wall.map(|wall| wall.unix_nanos().abs_diff(wanted.unix_nanos()))
    };
    let nearest = all.iter().min_by_key(|event| apart(event).unwrap_or(u64::MAX));
    let is_near = |event: &&&Event| apart(event).is_some_and(|apart| apart <= NEAR.as_nanos());
    if let Some(kept) = nearest.filter(is_near).and_then(|event| KeptProfile::of(event)) {
        return Ok((kept, count));
    }
    let times: Vec<String> = all
        .iter()
        .rev()
        .take(SHOWN_MAX)
        .filter_map(|event| event.stamp.wall)
        .map(coverage::moment)
        .collect();
    Err(if times.is_empty() {
        NoKeptProfile::None(name())
    } else {
        NoKeptProfile::OtherTimes(name(), times.join(", "))
    })
}

/// The events with a profile, in the order of time.
fn kept_events(source: &Source) -> Vec<&Event> {
    let is_kept =
        |event: &&Event| event.kind == EventKind::KernelProfile && !event.report.is_empty();
    let mut all: Vec<&Event> = source.timeline.recorder_events().iter().filter(is_kept).collect();
    all.sort_by_key(|event| (event.stamp.wall, event.stamp.boot));
    all
}

/// A profile belongs to a time that is not further away.
const NEAR: Span = Span::from_mins(5);
/// Of more times a sentence does not speak.
const SHOWN_MAX: usize = 5;

/// So many profiles of a list of events are shown; each takes some milliseconds. `memtide profile` shows the others.
const DRAWN_MAX: usize = 100;

/// Shows the profiles of events instead of their stacks, classified as this version does: the last ones of the list.
pub(crate) fn draw_profiles(events: &mut [DatedEvent]) {
    let mut left = DRAWN_MAX;
    let all = events.iter_mut().rev().map(|entry| &mut entry.event);
    for event in all.filter(|event| event.kind == EventKind::KernelProfile) {
        let kept = (left > 0).then(|| KeptProfile::of(event)).flatten();
        left = left.saturating_sub(1);
        event.report = kept.map_or_else(String::new, |kept| {
            let report = ProfileReport::of(&kept.profile);
            profile::profile_screen(&report, &Screen::default(), profile::MIN_SHARE)
        });
    }
}

/// Adds the profiles that a recorder kept meanwhile: evidence of the finding of the same cause, and where to see them.
pub(crate) fn add_kept_profiles(report: &mut Report, source: &Source) {
    let all = kept_events(source);
    let mut briefs = Vec::new();
    for event in all.iter().rev().take(SHOWN_MAX) {
        let Some(kept) = KeptProfile::of(event) else {
            continue;
        };
        let profile = ProfileReport::of(&kept.profile);
        for row in &profile.hot {
            let explained = report.findings.iter_mut();
            let at = event.stamp.wall.and_then(crate::status::timestamp);
            let is_it = |one: &&mut Finding| Some(&one.id) == row.rule.as_ref() && held(one, at);
            for finding in explained.filter(is_it) {
                let evidence = evidence(&row.label, row.share, row.stalled_tasks);
                finding.evidence.push(Evidence { at, ..evidence });
            }
        }
        let time = event.stamp.wall.map(coverage::moment).unwrap_or_default();
        briefs.push((time, profile.in_brief()));
    }
    let Some((last, _)) = briefs.first() else {
        return;
    };
    let command = format!(
        "memtide profile {}{}",
        report::quoted(&source.origin.name),
        if last.is_empty() { String::new() } else { format!(" --at '{last}'") }
    );
    let shown: Vec<String> = briefs.iter().map(|(time, brief)| format!("{time} {brief}")).collect();
    let more = all.len().saturating_sub(shown.len());
    let more = if more > 0 { format!(", and {more} before") } else { String::new() };
    report.remarks.push(format!(
        "Profiles of the kernel were kept: {}{more}. `{command}` shows the last one.",
        shown.join("; ")
    ));
}

/// Whether a finding held at a time, or just before or after it: a profile takes ten seconds, and a rule some readings.
fn held(finding: &Finding, at: Option<Timestamp>) -> bool {
    let near = SignedDuration::from_mins(1);
    let is_in = |stretch: &Stretch| {
        let (Some(from), Some(to), Some(at)) = (stretch.from, stretch.to, at) else {
            return false;
        };
        at.duration_since(from) >= -near && to.duration_since(at) >= -near
    };
    // A state without a beginning always holds.
    finding.stretches.is_empty() || finding.stretches.iter().any(is_in)
}

/// Adds what people call the cgroups of a profile of this host: units, containers, pods.
pub fn name_cgroups(root: &Root, profile: &mut ProfileReport) {
    let mut sample = Sample::at(probe::now().boot);
    for row in &profile.cgroups {
        sample.table_mut(Entity::Cgroup).entry(&row.cgroup).row.set(CGROUP_CURRENT, Bytes::ZERO);
    }
    let mut source = Source::default();
    // One sample is in order.
    let _ = source.timeline.push(&sample);
    names::add(root, &mut source);
    for row in &mut profile.cgroups {
        row.name = people_call_it(&source.facts.names, &row.cgroup);
    }
}

/// What people call a cgroup; `None` where its path is the best name.
fn people_call_it(names: &GroupNames, path: &str) -> Option<String> {
    let place = names.place(path);
    if path == ROOT {
        return None;
    }
    if place != path {
        return Some(place.into_owned());
    }
    let unit = GroupName::of(path).unit_name()?;
    path.ends_with(&format!("/{unit}")).then(|| unit.into_owned())
}

fn evidence(label: &str, share: Option<f64>, stalled_tasks: Option<f64>) -> Evidence {
    let takes = share.map(|share| format!("takes {:.0} % of the busy CPU", share * 100.0));
    let stalled = stalled_tasks
        .filter(|tasks| *tasks >= 0.05)
        .map(|tasks| format!("keeps {tasks:.1} tasks waiting"));
    let all: Vec<String> = takes.into_iter().chain(stalled).collect();
    Evidence {
        signal: None,
        value: None,
        unit: None,
        value_text: None,
        threshold: None,
        threshold_side: None,
        threshold_text: None,
        at: None,
        at_s: None,
        text: format!("Profile: {label} {}.", all.join(" and ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profiled(folded: &str) -> ProfileReport {
        let profile = profile::read_profile("pasted", folded.as_bytes()).expect("folded stacks");
        ProfileReport::of(&profile)
    }

    fn calm() -> Report {
        let pasted = b"MemTotal: 16000000 kB\nMemFree: 9000000 kB\nMemAvailable: 12000000 kB\n";
        let source = import::open_bytes("pasted.txt", pasted).expect("a meminfo");
        let mut report = crate::check(&source);
        report.verdict = Level::Ok;
        report
    }

    #[test]
    fn what_burns_the_kernel_is_a_warning_though_no_counter_shows_it() {
        let mut report = calm();
        let hot = "db;entry_SYSCALL_64_after_hwframe;ksys_read;filemap_read;node_reclaim;shrink_lruvec 400\ndb;[user] 600\n";
        add_profile(&mut report, &profiled(hot));
        assert_eq!(report.verdict, Level::Warning);
        assert!(
            report.headline.starts_with("Node reclaim in db takes 40 %"),
            "{}",
            report.headline
        );
        let profile = report.profile.expect("it was added");
        assert_eq!(profile.hot[0].reason, "node-reclaim");
        assert_eq!(profile.hot[0].rule.as_deref(), Some("node-reclaim-on"));
    }

    #[test]
    fn a_calm_kernel_changes_no_verdict_and_says_that_memory_is_not_why() {
        let mut report = calm();
        let headline = report.headline.clone();
        add_profile(&mut report, &profiled("db;[user] 1000\n"));
        assert_eq!((report.verdict, &report.headline), (Level::Ok, &headline));
        let last = report.remarks.last().expect("a remark");
        assert!(last.starts_with("Profile: "), "{last}");
    }
}
