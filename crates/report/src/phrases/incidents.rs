//! The list of incidents, in order of time: what a day was like, before its findings one by one.

use timeline::Entity;
use units::{Count, Span};

use crate::clock::ReportClock;
use crate::model::{Finding, Report, Severity, SourceKind};

/// What happened once or several times in one subject.
pub(crate) struct IncidentRow<'a> {
    /// Its place among all findings.
    pub(crate) place: usize,
    pub(crate) finding: &'a Finding,
    /// From when to when, and how often: `13:44:55–13:55:40 ×2`.
    pub(crate) when: String,
    /// Subject, cause and harm: `/shop: oom-cgroup, 1 killed`.
    pub(crate) what: String,
}

/// Returns the incidents of a recording, or of a capture as long as one; none where a single one would be all of the list.
pub(crate) fn rows<'a>(report: &'a Report, clock: &ReportClock<'_>) -> Vec<IncidentRow<'a>> {
    let is_long = match report.source.kind {
        SourceKind::Recording => true,
        SourceKind::Capture => clock.is_of_the_wall(),
        SourceKind::Live | SourceKind::Text | SourceKind::Bundle => false,
    };
    let roots = report.roots().filter(|(_, root)| is_long && root.severity > Severity::Info);
    let mut listed: Vec<(f64, IncidentRow<'a>)> = roots
        .filter_map(|(place, finding)| {
            let (begins_s, when) = when(finding, clock)?;
            let what = format!("{}: {}{}", subject(finding), finding.id, harm(finding));
            Some((begins_s, IncidentRow { place, finding, when, what }))
        })
        .collect();
    listed.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    match listed.len() {
        0 | 1 => Vec::new(),
        _ => listed.into_iter().map(|(_, row)| row).collect(),
    }
}

fn when(finding: &Finding, clock: &ReportClock<'_>) -> Option<(f64, String)> {
    let (first, last) = (finding.stretches.first()?, finding.stretches.last()?);
    let range = clock.stretch((first.from_s, first.from), (last.to_s, last.to))?;
    let when = match finding.stretches.len() {
        1 => range,
        often => format!("{range} ×{often}"),
    };
    Some((first.from_s, when))
}

/// The cgroup, disk or process that a finding is about, where its rule's name alone would not tell it from others; `None` where
/// it affects nothing in particular.
pub(crate) fn named_subject(finding: &Finding) -> Option<String> {
    if finding.scope.entity != Entity::Host {
        return Some(subject(finding));
    }
    let first = finding.affected.first()?;
    let is_plain = [Entity::Process, Entity::Cgroup].iter().any(|kind| kind.name() == first.kind);
    Some(if is_plain { first.name.clone() } else { format!("{} {}", first.kind, first.name) })
}

/// In what it happened, by the name that the finding has for it.
fn subject(finding: &Finding) -> String {
    let (entity, key) = (finding.scope.entity, &finding.scope.key);
    let named = finding.affected.iter().find(|one| one.kind == entity.name());
    match (entity, named) {
        (Entity::Host, _) => entity.name().to_owned(),
        (Entity::Cgroup, _) => key.clone(),
        (_, Some(one)) => one.name.clone(),
        _ => format!("{} {key}", entity.name()),
    }
}

fn harm(finding: &Finding) -> String {
    /// A shorter wait is not noticed: an engineering choice.
    const NOTICED: Span = Span::from_secs(1);
    match (finding.harm.killed, finding.harm.waited.filter(|waited| *waited >= NOTICED)) {
        (0, None) => String::new(),
        (0, Some(waited)) => format!(", tasks waited {waited}"),
        (killed, _) => format!(", {} killed", Count::new(killed)),
    }
}
