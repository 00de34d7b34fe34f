//! Kills of the minutes before a host was watched, of which the kernel's log still tells: each is judged as the moment that
//! its report describes.

use timeline::kernel_report::ReportKind;
use timeline::{EarlierReport, Facts, Sample, Timeline};
use units::Span;

use crate::diagnosis::Answers;
use crate::evidence::Evidence;
use crate::finding::{Finding, Severity};

/// What the reports of kills say that are not older than this at the timeline's end: of each control group, and of the host,
/// the newest.
pub(crate) fn findings(timeline: &Timeline, facts: &Facts, recent: Span) -> Vec<Finding> {
    let Some(end) = timeline
        .len()
        .checked_sub(1)
        .and_then(|last| timeline.stamp(last))
    else {
        return Vec::new();
    };
    let mut newest: Vec<(&str, &EarlierReport, u64)> = Vec::new();
    for known in timeline.earlier_reports() {
        let age = end.boot.saturating_sub(known.stamp.boot);
        let report = &known.report;
        if report.kind != ReportKind::OomKill || report.is_memory_dump() || age > recent {
            continue;
        }
        let group = report
            .group
            .as_ref()
            .map_or("", |group| group.path.as_str());
        match newest.iter_mut().find(|(path, ..)| *path == group) {
            Some((_, newest, count)) => {
                *newest = known;
                *count += 1;
            }
            None => newest.push((group, known, 1)),
        }
    }
    // The last one is what somebody asks about.
    newest.sort_by_key(|(_, known, _)| std::cmp::Reverse(known.stamp.boot));
    let all = newest.into_iter();
    all.flat_map(|(_, known, count)| of(known, count, facts, end.boot))
        .collect()
}

/// What the rules make of a report, on its own.
fn of(known: &EarlierReport, count: u64, facts: &Facts, end: Span) -> Vec<Finding> {
    let mut sample = Sample::default();
    sample.stamp = known.stamp;
    sample.host = known.report.host.clone();
    let mut timeline = Timeline::default();
    timeline.push_unrelated(&sample);
    timeline.report(known.report.clone(), known.text.clone());
    let ago = end.saturating_sub(known.stamp.boot);
    let incidents = Answers::of(&Evidence::new(&timeline, facts)).incidents;
    let of_weight = incidents
        .into_iter()
        .filter(|finding| finding.severity > Severity::Info && finding.event.is_some());
    let dated = of_weight.map(|mut finding| {
        finding.title = format!("{ago} ago: {}", finding.title);
        // Its time lies before the first sample.
        finding.when = None;
        finding.occasions.clear();
        finding.harm.killed = count;
        if count > 1 {
            finding = finding.tells(format!(
                "{count} such kills in the kernel's log; this is the last"
            ));
        }
        finding
    });
    dated.collect()
}
