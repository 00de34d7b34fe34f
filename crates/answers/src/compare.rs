//! What changed from one source to another?

use diagnose::Diagnosis;
use diagnose::compare::Compared;
use diagnose::headroom::Question;
use report::html::Page;
use report::model::{CompareReport, Side};
use timeline::Source;

use crate::check::diagnosis;
use crate::page::{PageSource, diagnosed_page};

/// Returns the answer of `compare`.
pub fn compare(before: &Source, after: &Source) -> CompareReport {
    compare_diagnosed([before, after], &[diagnosis(before), diagnosis(after)])
}

/// Returns the answer of `compare`, and each side's page with the problems met while it was read again for its charts.
pub fn compare_pages(sides: [PageSource<'_>; 2]) -> (CompareReport, [(Page, Vec<String>); 2]) {
    let diagnoses = sides.map(|side| diagnosis(side.source));
    let report = compare_diagnosed(sides.map(|side| side.source), &diagnoses);
    let pages = [0, 1].map(|side| {
        let question = Question::default();
        diagnosed_page(sides[side], &diagnoses[side], &question)
    });
    (report, pages)
}

fn compare_diagnosed(
    [before, after]: [&Source; 2],
    [found_before, found_after]: &[Diagnosis; 2],
) -> CompareReport {
    let comparison =
        diagnose::compare::compare(compared(before, found_before), compared(after, found_after));
    let memory = &comparison.memory;
    CompareReport::new(
        &comparison,
        Side::new(before, found_before, memory.typical_before),
        Side::new(after, found_after, memory.typical_after),
    )
}

fn compared<'a>(source: &'a Source, diagnosis: &'a Diagnosis) -> Compared<'a> {
    Compared { timeline: &source.timeline, facts: &source.facts, diagnosis }
}
