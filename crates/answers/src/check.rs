//! What is wrong with a host's memory?

use diagnose::Diagnosis;
use report::Report;
use timeline::Source;
use units::Span;

/// Returns the answer of `check` about a source.
pub fn check(source: &Source) -> Report {
    Report::new(source, &diagnosis(source))
}

/// Returns the answer of `check` about this host, live, with its recording if the source has one. Kills and stalls
/// count towards the verdict if they are no older than `recent`.
pub fn check_now(source: &Source, recent: Span) -> Report {
    let live_from = source.origin.live_from.unwrap_or_default();
    let diagnosis = diagnose::diagnose_now(&source.timeline, live_from, &source.facts, recent);
    Report::new(source, &diagnosis)
}

/// Returns what the rules find in a source.
pub(crate) fn diagnosis(source: &Source) -> Diagnosis {
    let diagnosis = diagnose::diagnose(&source.timeline, &source.facts);
    if source.origin.is_cut_short {
        diagnosis.first_part_only(source.timeline.duration())
    } else {
        diagnosis
    }
}
