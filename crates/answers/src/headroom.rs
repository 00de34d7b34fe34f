//! How much more fits, and does a demand?

use diagnose::Evidence;
use diagnose::headroom::Question;
use report::model::headroom::HeadroomReport;
use timeline::Source;

/// The answer of `headroom`; `group` is the path of the cgroup in which something is added.
pub fn headroom(source: &Source, question: &Question, group: Option<&str>) -> HeadroomReport {
    let evidence = Evidence::new(&source.timeline, &source.facts);
    let answer = diagnose::headroom::headroom(&evidence, question, group);
    HeadroomReport::new(source, question, &answer)
}
