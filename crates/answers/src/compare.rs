//! What changed from one source to another?

use diagnose::Diagnosis;
use diagnose::compare::Compared;
use report::model::{CompareReport, Side};
use timeline::Source;

use crate::check::diagnosis;

/// The answer of `compare`.
pub fn compare(before: &Source, after: &Source) -> CompareReport {
    let (found_before, found_after) = (diagnosis(before), diagnosis(after));
    let comparison = diagnose::compare::compare(
        compared(before, &found_before),
        compared(after, &found_after),
    );
    let memory = &comparison.memory;
    CompareReport::new(
        &comparison,
        Side::new(before, &found_before, memory.typical_before),
        Side::new(after, &found_after, memory.typical_after),
    )
}

fn compared<'a>(source: &'a Source, diagnosis: &'a Diagnosis) -> Compared<'a> {
    Compared {
        timeline: &source.timeline,
        facts: &source.facts,
        diagnosis,
    }
}
