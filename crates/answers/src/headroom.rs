//! How much more fits, and does a demand?

use diagnose::Evidence;
use diagnose::headroom::Question;
use report::model::headroom::HeadroomReport;
use timeline::Source;

/// The answer of `headroom`; `group` is the path of the cgroup in which something is added, else that of memtide.
pub fn headroom(source: &Source, question: &Question, group: Option<&str>) -> HeadroomReport {
    let mut facts = source.facts.clone();
    if let Some(group) = group {
        facts.own_cgroup = Some(group.to_owned());
    }
    let evidence = Evidence::new(&source.timeline, &facts);
    let answer = diagnose::headroom::headroom(&evidence, question);
    HeadroomReport::new(source, question, &answer)
}
