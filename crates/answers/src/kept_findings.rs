//! What a recorder's own checks noted while a source was recorded, in the answer of `check`.

use report::Report;
use timeline::{EventKind, Source};
use units::Count;

use crate::coverage;

/// Adds how often a recorder's own checks found something meanwhile, and how often that was over. Its events have the sentences.
pub(crate) fn add_kept_findings(report: &mut Report, source: &Source) {
    let events = source.timeline.recorder_events();
    let of = |kind| events.iter().filter(move |event| event.kind == kind);
    let number = |kind| Count::new(of(kind).count() as u64);
    let found = number(EventKind::FindingFound);
    let cleared = number(EventKind::FindingCleared);
    if found.get() + cleared.get() == 0 {
        return;
    }
    let last = of(EventKind::FindingFound).filter_map(|event| event.stamp.wall).max();
    let last = last.map_or_else(String::new, |at| format!(" (last {})", coverage::moment(at)));
    report.remarks.push(format!(
        "The recorder's own checks: found {found}{last}, cleared {cleared}; `memtide events` has each."
    ));
}
