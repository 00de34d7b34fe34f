//! Findings that one side has only because it was watched longer, or shorter. What lasts for a minute is most of a short look
//! and nothing in a day, and a rare thing needs a long look to be met. So the longer side is judged once more in stretches as
//! long as the shorter look; what does not survive that is in doubt, and neither new nor gone. What is critical in such a
//! stretch and nowhere else found leaves the two as little alike.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use timeline::Stretch;
use timeline::signals::MEM_AVAILABLE;
use units::{Ratio, Span};

use super::Compared;
use super::findings::{Doubt, FindingChange, Found};
use super::rates;
use crate::diagnosis::{Diagnosis, diagnose};
use crate::evidence::Evidence;
use crate::finding::{Finding, Severity};
use crate::verdict::Level;

/// Looks of a length within this factor show the same; an engineering choice.
const OTHER_LENGTH: f64 = 2.0;
/// What held for less of the longer look than this, a shorter one has an even chance to miss.
const HELD_FOR_MOST: Ratio = Ratio::from_percent(50.0);
/// A stretch of fewer intervals shows no movement.
const FEWEST_INTERVALS: f64 = 6.0;

/// How the length of the look after compares to that before; `None` where both show the same.
pub(super) fn differs(before: &Evidence<'_>, after: &Evidence<'_>) -> Option<Ordering> {
    let (old, new) = (before.look().as_secs_f64(), after.look().as_secs_f64());
    let is_other = old.min(new) > 0.0 && old.max(new) >= old.min(new) * OTHER_LENGTH;
    is_other.then(|| new.total_cmp(&old))
}

/// The longer of two looks of different length.
struct Longer<'a> {
    long: Evidence<'a>,
    judged: &'a Diagnosis,
    is_after: bool,
    /// How long the other one is.
    short: Span,
}

impl<'a> Longer<'a> {
    /// `None` where both show the same.
    fn of(before: Compared<'a>, after: Compared<'a>) -> Option<Self> {
        let [old, new] = [before, after].map(|side| Evidence::new(side.timeline, side.facts));
        let is_after = differs(&old, &new)? == Ordering::Greater;
        let (long, judged, short) = match is_after {
            true => (new, after.diagnosis, old),
            false => (old, before.diagnosis, new),
        };
        Some(Self {
            long,
            judged,
            is_after,
            short: short.look(),
        })
    }
}

/// Marks the changes that only the lengths explain.
pub(super) fn doubt(before: Compared<'_>, after: Compared<'_>, changes: &mut Vec<FindingChange>) {
    let Some(longer) = Longer::of(before, after) else {
        return;
    };
    let Longer {
        ref long,
        judged,
        is_after,
        short,
    } = longer;
    let shown = shown_in_short(long, &judged.findings, short);
    for change in changes.iter_mut().filter(|change| change.is_one_sided()) {
        let severity = |is_after: bool| change.found(is_after).map(|found| found.severity);
        let found = judged.findings.iter().find(|it| it.id == change.id);
        let held = found.is_none_or(|found| held_for_most(long, found));
        let shown = shown.get(change.id).map(|found| found.severity);
        change.doubt = match severity(is_after).cmp(&severity(!is_after)) {
            Ordering::Less => (shown >= severity(!is_after)).then_some(Doubt::Hidden),
            Ordering::Greater => (shown < severity(is_after) || !held).then_some(Doubt::Rare),
            Ordering::Equal => None,
        };
    }
    if judged.verdict.level != Level::Critical {
        let brief = brief(shown, changes, is_after);
        changes.extend(brief);
    }
}

/// What is critical in a stretch of the longer look, which as a whole is not: the shorter look may be no better.
fn brief(
    shown: BTreeMap<&'static str, Found>,
    known: &[FindingChange],
    is_after: bool,
) -> Vec<FindingChange> {
    let is_known = |id: &str| known.iter().any(|change| change.id == id);
    let new = shown
        .into_iter()
        // Anything milder passes in any busy hour.
        .filter(|(id, found)| found.severity == Severity::Critical && !is_known(id));
    new.map(|(id, found)| FindingChange::brief(id, found, is_after))
        .collect()
}

/// Whether means over the longer side say little of its findings, since these held for a part of it only.
pub(super) fn is_diluted(before: Compared<'_>, after: Compared<'_>) -> bool {
    Longer::of(before, after).is_some_and(|longer| {
        let mut findings = longer.judged.findings.iter();
        let is_brief = |found: &Finding| !held_for_most(&longer.long, found);
        findings.any(|found| found.severity > Severity::Info && is_brief(found))
    })
}

/// A finding without a time of its own is of the whole look.
fn held_for_most(cx: &Evidence<'_>, finding: &Finding) -> bool {
    let look = cx.look().as_secs_f64();
    let held = finding.lasts();
    held.is_none_or(|held| held.as_secs_f64() >= look * HELD_FOR_MOST.get())
}

/// What rules find in stretches of such a length: where most of each cost came together, where the least was available, and
/// around each finding of the whole. By rule, the gravest.
fn shown_in_short(
    cx: &Evidence<'_>,
    findings: &[Finding],
    length: Span,
) -> BTreeMap<&'static str, Found> {
    let interval = cx.timeline.interval().unwrap_or_default();
    let length = length.max(interval.times(FEWEST_INTERVALS));
    let mut shown = BTreeMap::new();
    for (first, last) in stretches(cx, findings, length) {
        let part = cx.timeline.part(first, last + 1);
        let judged = diagnose(&part, cx.facts);
        for finding in judged.findings {
            let found = Found::of(&finding);
            let gravest = shown.entry(finding.id).or_insert_with(|| found.clone());
            if found.severity > gravest.severity {
                *gravest = found;
            }
        }
    }
    shown
}

/// First and last sample of each, none twice.
fn stretches(cx: &Evidence<'_>, findings: &[Finding], length: Span) -> Vec<(usize, usize)> {
    let times = cx.timeline.times();
    let costs = rates::costs(cx);
    let mut all: Vec<(usize, usize)> = costs
        .iter()
        .filter_map(|course| most_in(times, course, length))
        .collect();
    let available = cx.timeline.gauge(MEM_AVAILABLE);
    let tightest = available.and_then(|available| available.min());
    all.extend(tightest.and_then(|(_, index)| around(times, times.get(index).copied()?, length)));
    let middle = |when: &Stretch| when.from.plus(when.lasts().times(0.5));
    let held = findings.iter().filter_map(|finding| finding.when);
    all.extend(held.filter_map(|when| around(times, middle(&when), length)));
    all.sort_unstable();
    all.dedup();
    all
}

/// The stretch of such a length in which most of a rate came together.
fn most_in(times: &[Span], course: &[Option<f64>], length: Span) -> Option<(usize, usize)> {
    let amount = |index: usize| {
        let since = index.checked_sub(1).and_then(|before| times.get(before));
        let seconds = since.map_or(0.0, |since| (times[index] - *since).as_secs_f64());
        course.get(index).copied().flatten().unwrap_or(0.0) * seconds
    };
    let (mut first, mut sum) = (0, 0.0);
    let mut best: Option<(f64, usize, usize)> = None;
    for last in 0..times.len() {
        sum += amount(last);
        while times[last] - times[first] > length {
            first += 1;
            sum -= amount(first);
        }
        if sum > best.map_or(0.0, |(most, ..)| most) {
            best = Some((sum, first, last));
        }
    }
    best.map(|(_, first, last)| (first, last))
}

/// The samples of such a length around a moment.
fn around(times: &[Span], at: Span, length: Span) -> Option<(usize, usize)> {
    let half = length.times(0.5);
    let from = at.saturating_sub(half);
    let first = times.partition_point(|time| *time < from);
    let last = times.partition_point(|time| *time <= from.plus(length));
    Some((first, last.checked_sub(1)?)).filter(|(first, last)| first <= last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stretch_in_which_most_came_together_is_found() {
        let times: Vec<Span> = (0..20).map(Span::from_secs).collect();
        let mut course = vec![Some(1.0); 20];
        course[3] = Some(30.0);
        course[12..16].fill(Some(15.0));
        course[14] = None;
        let most = |seconds| most_in(&times, &course, Span::from_secs(seconds));
        assert_eq!(most(1), Some((2, 3)));
        // Together, not the highest: 45 in these four seconds.
        assert_eq!(most(4), Some((11, 15)));
        assert_eq!(most_in(&times, &[None; 20], Span::from_secs(4)), None);
    }

    #[test]
    fn a_stretch_lies_around_its_moment_and_within_the_source() {
        let times: Vec<Span> = (0..20).map(Span::from_secs).collect();
        let at = |second| around(&times, Span::from_secs(second), Span::from_secs(4));
        assert_eq!(at(10), Some((8, 12)));
        assert_eq!(at(1), Some((0, 4)));
        assert_eq!(at(19), Some((17, 19)));
    }
}
