//! How much more fits, and does a demand?

use diagnose::Evidence;
use diagnose::headroom::Question;
use report::model::headroom::HeadroomReport;
use timeline::Source;

/// The answer of `headroom`.
pub fn headroom(source: &Source, question: &Question) -> HeadroomReport {
    let evidence = Evidence::new(&source.timeline, &source.facts);
    let answer = diagnose::headroom::headroom(&evidence, question);
    HeadroomReport::new(source, question, &answer)
}
