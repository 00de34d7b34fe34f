//! What all reports of a source say together: how often, since when, always the same victim?

use std::collections::BTreeMap;

use timeline::kernel_report::ReportKind;
use timeline::{KernelReport, Reported};
use units::{Count, Span};

use crate::evidence::Evidence;

/// A log may hold any number of reports: the last thousand are looked at, and where there are more only the last hundred
/// are told of them.
const MOST: usize = 1000;
const TOLD: usize = 100;

/// One line about all reports of this one's kind; `None` where it is the only one.
pub(super) fn line(cx: &Evidence<'_>, one: &KernelReport) -> Option<String> {
    let all = cx.timeline.all_reports();
    let told = all.iter().rev().take(TOLD);
    if all.len() > MOST && !told.into_iter().any(|r| std::ptr::eq(&r.report, one)) {
        return None;
    }
    let alike: Vec<&Reported> = all
        .iter()
        .rev()
        .take(MOST)
        .filter(|other| is_alike(one, &other.report))
        .collect();
    if alike.len() < 2 {
        return None;
    }
    let count = Count::new(u64::try_from(alike.len()).unwrap_or(u64::MAX));
    let more = if alike.len() == MOST { "at least " } else { "" };
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
        text.push_str(&format!("; control groups: {names}"));
    }
    Some(text)
}

/// Whether two reports are of one kind, as far as their own words go.
fn is_alike(one: &KernelReport, other: &KernelReport) -> bool {
    let kind = |r: &KernelReport| {
        (
            r.kind == ReportKind::OomKill,
            r.is_by_hand(),
            r.group.is_some(),
        )
    };
    kind(one) == kind(other)
}

/// From the first to the last, where the log tells times.
fn lasted(reports: &[&Reported]) -> Option<Span> {
    let walls = reports.iter().map(|r| Some(r.wall?.unix_nanos()));
    let walls: Vec<i64> = walls.collect::<Option<_>>()?;
    let (first, last) = (walls.iter().min()?, walls.iter().max()?);
    let nanos = u64::try_from(last.checked_sub(*first)?).ok()?;
    (nanos > 0).then(|| Span::from_nanos(nanos))
}

/// `mysqld ×5, java ×2`: the most frequent first, four at most; `None` without a name.
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
        assert_eq!(
            counted(names.into_iter()).as_deref(),
            Some("b ×2, a, c, d, 2 more")
        );
        assert_eq!(counted([""].into_iter()), None);
    }
}
