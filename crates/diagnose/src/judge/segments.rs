//! Merges the diagnoses of segments in unknown order: two pastes of `free`, a log of OOM reports.

use std::cmp::Reverse;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use timeline::{
    Entity, EntitySeries, Timeline,
    signals::{CGROUP_CURRENT, MEM_AVAILABLE, MEM_TOTAL, PROC_RSS},
};
use units::{Bytes, PageSize, Ratio, Span, WallClock};

use crate::evidence::{Evidence, Missing};
use crate::finding::{Bursts, EvidenceLine, Finding, Severity};
use crate::judge::Diagnosis;
use crate::judge::causes;
use crate::judge::incidents::{MAX_STORIES, without_findings};
use crate::judge::verdict::{Level, two_machines};
use crate::measures::baselines::GROWTH;
use crate::oom;

/// Merges diagnoses into one. A finding of several segments is reported once, with the text of its worst segment and
/// the occasions of all.
pub(crate) fn merge<'a>(
    cx: &Evidence<'_>,
    judged: impl Iterator<Item = (&'a Timeline, Diagnosis)>,
) -> Diagnosis {
    let mut segments: Vec<JudgedSegment<'_>> = judged
        .enumerate()
        .map(|(number, (timeline, diagnosis))| JudgedSegment { number, timeline, diagnosis })
        .collect();
    let count = segments.len();
    drop_aftermath(&mut segments);
    let dropped = count - segments.len();
    newest_last(&mut segments);
    lower_outdated(&mut segments);
    let mut findings = Vec::new();
    let mut notes = Vec::new();
    let mut bursts = BTreeMap::new();
    for segment in &mut segments {
        let place = |finding| SegmentFinding::new(finding, segment.number, segment.timeline);
        let diagnosis = &mut segment.diagnosis;
        findings.extend(diagnosis.findings.drain(..).map(place));
        notes.extend(diagnosis.notes.drain(..).map(place));
        for more in diagnosis.bursts.drain(..) {
            add_bursts(&mut bursts, more, segment.timeline.origin());
        }
    }
    let part = part_of(&segments);
    let mut findings = causes::order(cx, joined(findings, count, part));
    if let Some(lead) = findings.first_mut().filter(|_| dropped > 0) {
        lead.evidence.push(aftermath(dropped));
    }
    // The headline is that of the segment with the first finding.
    findings.iter_mut().skip(1).for_each(|finding| finding.is_headline = false);
    let notes = joined(notes, count, part);
    let is_reported =
        |id: &str| findings.iter().chain(&notes).any(|f| f.id == id) || bursts.contains_key(id);
    let (clear, not_evaluated) = not_found(&mut segments, is_reported);
    let page = cx.facts.page_size.unwrap_or(PageSize::USUAL);
    let at = leading(&segments, findings.first());
    let remarks = remarks(&cx.facts.hosts, &segments, at, count, page);
    let JudgedSegment { timeline, diagnosis: mut lead, .. } = segments.swap_remove(at);
    lead.verdict.remarks.extend(remarks);
    if let Ok(accounting) = &mut lead.accounting {
        accounting.index += timeline.origin();
    }
    Diagnosis {
        findings,
        notes,
        bursts: bursts.into_values().collect(),
        clear: clear.into_iter().collect(),
        not_evaluated: not_evaluated.into_iter().collect(),
        ..lead
    }
}

/// Returns rules that are clear in a segment, and rules that no segment could evaluate, except those with a reported
/// finding.
fn not_found(
    segments: &mut [JudgedSegment<'_>],
    is_reported: impl Fn(&str) -> bool,
) -> (BTreeMap<&'static str, String>, BTreeMap<&'static str, Missing>) {
    let mut clear = BTreeMap::new();
    let mut not_evaluated = BTreeMap::new();
    for JudgedSegment { diagnosis, .. } in segments {
        clear.extend(diagnosis.clear.drain(..));
        not_evaluated.extend(diagnosis.not_evaluated.drain(..));
    }
    clear.retain(|id, _| !is_reported(id));
    not_evaluated.retain(|id, _| !is_reported(id) && !clear.contains_key(id));
    (clear, not_evaluated)
}

/// Returns remarks on the merged answer, which is that of segment `at`: segments of two machines, growth that was not
/// judged.
fn remarks(
    hosts: &[(usize, String)],
    segments: &[JudgedSegment<'_>],
    at: usize,
    count: usize,
    page: PageSize,
) -> Vec<String> {
    if let Some(remark) = several_hosts(hosts, segments.get(at)) {
        return vec![remark];
    }
    let sizes = segments.iter().filter_map(|segment| segment.timeline.last(MEM_TOTAL));
    let machines = two_machines(sizes).map(|machines| {
        let ram = segments.get(at).and_then(|lead| lead.timeline.last(MEM_TOTAL));
        match ram {
            Some(ram) => format!("{machines} This verdict is about the one with {ram}."),
            None => machines,
        }
    });
    // Kernel reports are events; nothing grows between them.
    let are_reports = segments.iter().all(|segment| segment.timeline.reports().next().is_some());
    let change = if machines.is_none() { change(segments, page) } else { None };
    let unordered = (!are_reports).then(|| {
        let change = change
            .map_or_else(String::new, |change| format!("; in the order of the text {change}"));
        format!(
            "{count} {}s in unknown order: each was judged by itself, growth between them was \
             not{change}.",
            part_of(segments)
        )
    });
    let age = segments.get(at).and_then(|lead| lead.outdated_by(newest(segments)?));
    let outdated = age.map(|age| {
        format!(
            "That was {age} before the newest {}: whether it still happens, this text does not \
             show.",
            part_of(segments)
        )
    });
    machines.into_iter().chain(outdated).chain(unordered).collect()
}

/// Which hosts the samples are of, and of which the verdict is; `None` if of one.
fn several_hosts(hosts: &[(usize, String)], lead: Option<&JudgedSegment<'_>>) -> Option<String> {
    const NAMED_MAX: usize = 5;
    let names: BTreeSet<&str> = hosts.iter().map(|(_, name)| name.as_str()).collect();
    let first = lead?.timeline.origin();
    let (_, host) = hosts.iter().rfind(|(from, _)| *from <= first)?;
    let named: Vec<&str> = names.iter().take(NAMED_MAX).copied().collect();
    let more = match names.len().saturating_sub(NAMED_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Some(format!(
        "Figures of {} hosts, each judged by itself: {}{more}. This verdict is about {host}.",
        names.len(),
        named.join(", ")
    ))
}

/// A change of available memory smaller than this share of RAM is not reported.
const CHANGE_MIN: Ratio = Ratio::from_percent(5.0);
/// The same for a process or a cgroup: a share of what it had.
const OWNER_CHANGE_MIN: Ratio = Ratio::from_percent(10.0);

/// `available fell from 3.0 GiB to 1.0 GiB between snapshots 1 and 3`, else the same of the largest process or cgroup.
/// Without times there is no rate.
fn change(segments: &[JudgedSegment<'_>], page: PageSize) -> Option<String> {
    let ram = segments.iter().find_map(|segment| segment.timeline.last(MEM_TOTAL));
    let of_host = |ram: Bytes| {
        let available = |timeline: &Timeline| timeline.last(MEM_AVAILABLE);
        changed(segments, "available", available, |_| ram.share(CHANGE_MIN))
    };
    ram.and_then(of_host).or_else(|| {
        let last = segments.iter().max_by_key(|segment| segment.number)?;
        let (owner, _) = largest_owner(last.timeline, page)?;
        let size = |timeline: &Timeline| {
            let (one, size) = largest_owner(timeline, page)?;
            // A program that was started again has another PID: its memory did not grow from the earlier one's.
            let is_same = owner.entity != Entity::Process || one.pid() == owner.pid();
            (one.label == owner.label && is_same).then_some(size)
        };
        let least = |from: Bytes| from.share(OWNER_CHANGE_MIN).max(GROWTH);
        changed(segments, &owner.label, size, least)
    })
}

/// The change of a reading between the first and the last segment that has it, if it is more than `least` of the first.
fn changed(
    segments: &[JudgedSegment<'_>],
    name: &str,
    reading: impl Fn(&Timeline) -> Option<Bytes>,
    least: impl Fn(Bytes) -> Bytes,
) -> Option<String> {
    let readings =
        || segments.iter().filter_map(|segment| Some((segment.number, reading(segment.timeline)?)));
    let (first, from) = readings().min_by_key(|(number, _)| *number)?;
    let (last, to) = readings().max_by_key(|(number, _)| *number)?;
    let difference = Bytes::new(from.get().abs_diff(to.get()));
    let verb = if to < from { "fell" } else { "rose" };
    (difference > least(from) && first < last).then(|| {
        format!(
            "{name} {verb} from {from} to {to} between {}s {} and {}",
            part_of(segments),
            first + 1,
            last + 1
        )
    })
}

/// The largest process, or else the largest cgroup, and its memory.
fn largest_owner(timeline: &Timeline, page: PageSize) -> Option<(&EntitySeries, Bytes)> {
    let processes = timeline
        .entities(Entity::Process)
        .filter_map(|one| Some((one, timeline.last_of(one, PROC_RSS)?.to_bytes(page))));
    let groups = timeline
        .entities(Entity::Cgroup)
        .filter_map(|one| Some((one, timeline.last_of(one, CGROUP_CURRENT)?)));
    processes.max_by_key(|(_, size)| *size).or_else(|| groups.max_by_key(|(_, size)| *size))
}

/// A segment and its diagnosis.
struct JudgedSegment<'a> {
    /// Its position in the source, from 0.
    number: usize,
    timeline: &'a Timeline,
    diagnosis: Diagnosis,
}

impl JudgedSegment<'_> {
    /// When it ended, if that is known with its year.
    fn end(&self) -> Option<WallClock> {
        let last = self.timeline.len().checked_sub(1)?;
        self.timeline.stamp(last)?.wall
    }

    /// How long before the newest segment it ended, if that is so long that it says nothing about now.
    fn outdated_by(&self, newest: WallClock) -> Option<Span> {
        let by = newest.saturating_since(self.end()?);
        (by >= OUTDATED).then_some(by)
    }
}

/// What was a week before the newest snapshot may be mended by now: an engineering choice.
const OUTDATED: Span = Span::from_hours(7 * 24);

fn newest(segments: &[JudgedSegment<'_>]) -> Option<WallClock> {
    segments.iter().filter_map(JudgedSegment::end).max()
}

/// Lowers what is critical in outdated segments: it is not critical now.
fn lower_outdated(segments: &mut [JudgedSegment<'_>]) {
    let newest = newest(segments);
    let is_outdated =
        |one: &&mut JudgedSegment<'_>| newest.and_then(|newest| one.outdated_by(newest)).is_some();
    for JudgedSegment { diagnosis, .. } in segments.iter_mut().filter(is_outdated) {
        for finding in &mut diagnosis.findings {
            finding.severity = finding.severity.min(Severity::Warning);
        }
        if diagnosis.verdict.level == Level::Critical {
            diagnosis.verdict.level = Level::Warning;
        }
    }
}

/// What a segment is called: a snapshot, unless one has several samples, each of which is a snapshot.
fn part_of(segments: &[JudgedSegment<'_>]) -> &'static str {
    let has_series = segments.iter().any(|segment| segment.timeline.len() > 1);
    if has_series { "part" } else { "snapshot" }
}

/// Drops segments that have only failed allocations and that a kill in another segment explains.
fn drop_aftermath(segments: &mut Vec<JudgedSegment<'_>>) {
    let Some(first) = segments.first() else {
        return;
    };
    let kills = oom::KillHistory::new(first.timeline.all_reports());
    segments.retain(|segment| {
        let mut reports = segment.timeline.reports().peekable();
        reports.peek().is_none() || reports.any(|reported| !kills.explain(reported))
    });
}

fn aftermath(count: usize) -> EvidenceLine {
    let what = if count == 1 {
        "one failed allocation belongs to it: of a process being killed, or within a second of a \
         kill"
            .to_owned()
    } else {
        format!(
            "{count} failed allocations belong to it: of processes being killed, or within a \
             second of a kill"
        )
    };
    EvidenceLine { measured: None, at: None, text: what }
}

/// Sorts reports by their time in the log, if all have one.
fn newest_last(segments: &mut [JudgedSegment<'_>]) {
    let when = |one: &JudgedSegment<'_>| one.timeline.reports().last().and_then(oom::when);
    let clock = |one: &JudgedSegment<'_>| when(one).map(|(clock, _)| clock);
    let first = segments.first().and_then(clock);
    if first.is_some() && segments.iter().all(|one| clock(one) == first) {
        segments.sort_by_key(when);
    }
}

/// A finding with sample numbers of the whole source, and the segments that show it.
struct SegmentFinding {
    finding: Finding,
    /// Segment numbers, from 1.
    segments: Vec<usize>,
}

impl SegmentFinding {
    fn new(mut finding: Finding, number: usize, timeline: &Timeline) -> Self {
        finding.caused_by = None;
        finding.when = finding.when.or_else(|| timeline.whole());
        finding.move_by(timeline.origin());
        Self { finding, segments: vec![number + 1] }
    }

    /// Joins another segment's finding. The text is that of the more severe, then of the more confident, then of the
    /// later one.
    fn join(&mut self, other: Self) {
        self.segments.extend(other.segments);
        self.segments.dedup();
        let (one, other) = (&mut self.finding, other.finding);
        let confidence = other.confidence.value.total_cmp(&one.confidence.value);
        let takes_other = other.severity.cmp(&one.severity).then(confidence).is_ge();
        one.join_later(other, takes_other);
    }

    fn with_segments(self, count: usize, part: &str) -> Finding {
        let seen_in = match self.segments.as_slice() {
            [one] => format!("{part} {one} of {count}"),
            [one, other] => format!("{part}s {one} and {other} of {count}"),
            several => format!("{} of {count} {part}s", several.len()),
        };
        self.finding.with_line(format!("seen in {seen_in}"))
    }
}

/// Returns one finding per rule and entity.
fn joined(findings: Vec<SegmentFinding>, count: usize, part: &str) -> Vec<Finding> {
    let mut joined: Vec<SegmentFinding> = Vec::new();
    for one in findings {
        let is_same = |known: &&mut SegmentFinding| {
            known.finding.id == one.finding.id && known.finding.scope == one.finding.scope
        };
        match joined.iter_mut().find(is_same) {
            Some(known) => known.join(one),
            None => joined.push(one),
        }
    }
    let mut findings: Vec<Finding> =
        joined.into_iter().map(|one| one.with_segments(count, part)).collect();
    leave_out(&mut findings);
    findings
}

/// Leaves out findings of a rule beyond [`MAX_STORIES`]: a log may have kills in any number of cgroups. The worst remain,
/// and the first of them gets the number of the others.
fn leave_out(findings: &mut Vec<Finding>) {
    let mut of_rules: BTreeMap<&'static str, Vec<usize>> = BTreeMap::new();
    for (at, finding) in findings.iter().enumerate() {
        of_rules.entry(finding.id).or_default().push(at);
    }
    let mut left_out = BTreeSet::new();
    for all in of_rules.values_mut().filter(|all| all.len() > MAX_STORIES) {
        all.sort_by_key(|at| Reverse((findings[*at].severity, findings[*at].harm.killed)));
        let others = all.split_off(MAX_STORIES);
        let harm =
            others.iter().map(|at| &findings[*at]).map(|one| (one.scope.key.as_str(), one.harm));
        let worst = all[0];
        if let Some(line) = without_findings(harm, findings[worst].scope.entity) {
            findings[worst].add_line(line);
        }
        left_out.extend(others);
    }
    let mut at = 0..;
    findings.retain(|_| at.next().is_none_or(|at| !left_out.contains(&at)));
}

/// Adds the bursts of a segment that begins at sample `origin` of the whole.
fn add_bursts(all: &mut BTreeMap<&'static str, Bursts>, mut more: Bursts, origin: usize) {
    for stretch in &mut more.stretches {
        stretch.first += origin;
        stretch.last += origin;
    }
    match all.entry(more.id) {
        Entry::Vacant(free) => {
            free.insert(more);
        }
        Entry::Occupied(mut known) => {
            let known = known.get_mut();
            known.stretches.extend(more.stretches);
            known.waited = match (known.waited, more.waited) {
                (Some(a), Some(b)) => Some(a.plus(b)),
                (a, b) => a.or(b),
            };
        }
    }
}

/// Returns the segment that gives the whole its verdict: the one with the worst finding, else the last of those with
/// the worst level, if possible with a measurement of available memory.
fn leading(segments: &[JudgedSegment<'_>], worst: Option<&Finding>) -> usize {
    let rank = |level: Level| match level {
        Level::Ok => 0,
        Level::Unknown => 1,
        Level::Warning => 2,
        Level::Critical => 3,
    };
    let shows = |timeline: &Timeline| {
        worst.and_then(|f| f.when).is_some_and(|when| {
            (timeline.origin()..timeline.origin() + timeline.len()).contains(&when.first)
        })
    };
    let is_severe = worst.is_some_and(|worst| worst.severity > Severity::Info);
    (0..segments.len())
        .max_by_key(|i| {
            let one = &segments[*i];
            let level = rank(one.diagnosis.verdict.level);
            let has_available = one.timeline.last(MEM_AVAILABLE).is_some();
            let shows = shows(one.timeline);
            // What is only worth knowing gives no verdict, unless a kernel report is about it.
            let leads = shows && (is_severe || one.timeline.reports().next().is_some());
            (level, leads, has_available, shows, *i)
        })
        .unwrap_or(0)
}

#[cfg(test)]
mod tests;
