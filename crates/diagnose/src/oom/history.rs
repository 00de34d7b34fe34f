//! Compares all kernel reports of a source: how often, since when, always the same victim?

use std::collections::{BTreeMap, BTreeSet};

use timeline::kernel_report::ReportKind;
use timeline::{KernelReport, Reported};
use units::{Count, Span};

use crate::evidence::Evidence;

/// A log may contain any number of reports: the last thousand are compared, and if there are more, only the last
/// hundred mention the others.
const REPORTS_MAX: usize = 1000;
const MENTIONING_MAX: usize = 100;

/// A line about all reports of the same kind as this one; `None` where it is the only one.
pub(super) fn line(cx: &Evidence<'_>, one: &KernelReport) -> Option<String> {
    let alike = alike(cx, one);
    if alike.len() < 2 {
        return None;
    }
    let count = Count::new(u64::try_from(alike.len()).unwrap_or(u64::MAX));
    let more = if alike.len() == REPORTS_MAX { "at least " } else { "" };
    let mut text = format!("{more}{count} such reports in this source");
    if let Some(span) = lasted(&alike) {
        text.push_str(&format!(" within {span}"));
    }
    let victims = alike.iter().flat_map(|r| &r.report.killed);
    if let Some(names) = counted(victims.map(|killed| killed.name.as_str())) {
        text.push_str(&format!("; killed: {names}"));
    }
    let groups = alike.iter().filter_map(|r| r.report.group.as_ref());
    if let Some(names) = counted(groups.map(|group| group.path.as_str())) {
        text.push_str(&format!("; cgroups: {names}"));
    }
    Some(text)
}

/// Part of a title that mentions other kills, in the same cgroup or of the host: `, one of 3 kills in this source,`; empty
/// where this is the only one.
pub(crate) fn among(cx: &Evidence<'_>, one: &KernelReport) -> String {
    let path = |report: &KernelReport| report.group.as_ref().map(|group| group.path.clone());
    let own = path(one);
    let alike = alike(cx, one);
    // Some reports say that no process could be killed.
    let kills = alike.iter().filter(|r| !r.report.killed.is_empty() && path(&r.report) == own);
    // Reports that do not name their cgroup may be of several.
    let is_named = own.as_ref().is_some_and(|path| !path.is_empty());
    let place = if is_named { "it" } else { "this source" };
    match kills.count() {
        0 | 1 => String::new(),
        REPORTS_MAX.. => format!(", one of very many kills in {place},"),
        count => format!(", one of {count} kills in {place},"),
    }
}

/// Reports of the same kind, this one included, the newest first.
fn alike<'a>(cx: &Evidence<'a>, one: &KernelReport) -> Vec<&'a Reported> {
    let all = cx.timeline.all_reports();
    let mut newest = all.iter().rev().take(MENTIONING_MAX);
    if all.len() > REPORTS_MAX && !newest.any(|r| std::ptr::eq(&r.report, one)) {
        return Vec::new();
    }
    let last = all.iter().rev().take(REPORTS_MAX);
    last.filter(|other| is_alike(one, &other.report)).collect()
}

/// When a report was written: whether its clock has a year, and nanoseconds for order and distance on that clock.
pub(crate) fn when(reported: &Reported) -> Option<(bool, i64)> {
    let of_year = || {
        let nanos = reported.report.stamp.as_ref()?.of_year.as_nanos();
        i64::try_from(nanos).ok()
    };
    let wall = reported.wall.map(|wall| (true, wall.unix_nanos()));
    wall.or_else(|| Some((false, of_year()?)))
}

/// The kills of a source, to find the failed allocations that belong to them.
#[derive(Debug)]
pub(crate) struct KillHistory<'a> {
    killed: BTreeSet<(u32, &'a str)>,
    times: BTreeSet<(bool, i64)>,
}

impl<'a> KillHistory<'a> {
    /// A request that cannot sleep may fail during the shortage that causes a kill; longer after the kill it fails for
    /// another reason.
    const WITHIN: i64 = 1_000_000_000;

    /// Collects the kills from all reports of a source.
    pub(crate) fn new(reports: &'a [Reported]) -> Self {
        let kills = || reports.iter().filter(|r| !r.report.killed.is_empty());
        let killed = kills().flat_map(|r| &r.report.killed);
        Self {
            killed: killed.map(|k| (k.pid, k.name.as_str())).collect(),
            times: kills().filter_map(when).collect(),
        }
    }

    /// Whether a report is about an allocation that failed because of a kill: of a process that was just killed (it
    /// may not wait any more), or within a second of a kill.
    pub(crate) fn explain(&self, reported: &Reported) -> bool {
        let report = &reported.report;
        let by = report.invoker.as_ref();
        let is_of_a_killed = by.is_some_and(|by| {
            by.pid.is_some_and(|pid| self.killed.contains(&(pid, by.name.as_str())))
        });
        let is_near = || {
            when(reported).is_some_and(|(clock, at)| {
                let from = (clock, at.saturating_sub(Self::WITHIN));
                let to = (clock, at.saturating_add(Self::WITHIN));
                self.times.range(from..=to).next().is_some()
            })
        };
        // One that names a victim is a kill itself, whatever its first line says.
        let is_failure = report.kind == ReportKind::AllocationFailure && report.killed.is_empty();
        is_failure && (is_of_a_killed || is_near())
    }
}

/// Whether two reports are of one kind, by their own lines.
fn is_alike(one: &KernelReport, other: &KernelReport) -> bool {
    let kind =
        |r: &KernelReport| (r.kind == ReportKind::OomKill, r.is_by_hand(), r.group.is_some());
    kind(one) == kind(other)
}

/// The time from the first report to the last, if the log has times.
fn lasted(reports: &[&Reported]) -> Option<Span> {
    let times: Vec<_> = reports.iter().map(|r| when(r)).collect::<Option<_>>()?;
    let ((clock, first), (same, last)) = (times.iter().min()?, times.iter().max()?);
    (clock == same).then_some(())?;
    let nanos = u64::try_from(last.checked_sub(*first)?).ok()?;
    (nanos > 0).then(|| Span::from_nanos(nanos))
}

/// The most frequent names with their numbers, four at most: `mysqld ×5, java ×2`; `None` without a name.
fn counted<'a>(names: impl Iterator<Item = &'a str>) -> Option<String> {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for name in names.filter(|name| !name.is_empty()) {
        *counts.entry(name).or_default() += 1;
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let others = counts.len().saturating_sub(4);
    let mut parts: Vec<String> = counts
        .iter()
        .take(4)
        .map(|(name, count)| match count {
            1 => (*name).to_owned(),
            _ => format!("{name} ×{}", Count::new(*count)),
        })
        .collect();
    if others > 0 {
        parts.push(format!("{others} more"));
    }
    (!parts.is_empty()).then(|| parts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_counted_the_most_frequent_first() {
        let names = ["a", "b", "b", "", "c", "d", "e", "f"];
        assert_eq!(counted(names.into_iter()).as_deref(), Some("b ×2, a, c, d, 2 more"));
        assert_eq!(counted([""].into_iter()), None);
    }
}
