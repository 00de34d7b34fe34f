//! What a recorder's own checks noted while a source was recorded, in the answer of `check`.

use report::Report;
use timeline::{Event, Source};
use units::Count;

use crate::coverage;

/// So many events of checks are named in the answer of `check`.
const NAMED_MAX: usize = 5;

/// Adds what a recorder's own checks noted meanwhile.
pub(crate) fn add_kept_findings(report: &mut Report, source: &Source) {
    let is_one = |event: &&Event| event.kind.is_of_finding();
    let mut kept: Vec<&Event> = source.timeline.recorder_events().iter().filter(is_one).collect();
    kept.sort_by_key(|event| (event.stamp.wall, event.stamp.boot));
    if kept.is_empty() {
        return;
    }
    let shown = &kept[kept.len().saturating_sub(NAMED_MAX)..];
    let shown: Vec<String> = shown
        .iter()
        .map(|event| {
            let at = event.stamp.wall.map(coverage::moment).unwrap_or_default();
            let what = event.text.split(": ").next().unwrap_or_default();
            format!("{at} {what}").trim_start().to_owned()
        })
        .collect();
    let more = Count::new((kept.len() - shown.len()) as u64);
    let more = if more.get() > 0 { format!(", after {more} more") } else { String::new() };
    report.remarks.push(format!("The recorder's own checks{more}: {}.", shown.join("; ")));
}
