//! What is wrong at this moment, and who uses how much memory how fast?

use diagnose::Evidence;
use diagnose::activity::activity;
use report::Report;
use report::model::top::{Course, TopReport};
use timeline::Source;
use units::Span;

use crate::{check, check_now, where_memory};

/// Returns a frame of `top` about the last sample of a source, which is the minutes up to it: of this host, live or earlier,
/// or of another one; of all of it or of one cgroup. What happened in the last `recent` counts as present. `judged` is what
/// was found shortly before and is still to be shown, where judging at each sample costs too much.
pub fn top(
    source: &Source,
    recent: Span,
    group: Option<&str>,
    judged: Option<Report>,
) -> TopReport {
    let cx = Evidence::new(&source.timeline, &source.facts);
    let last = source.timeline.len().saturating_sub(1);
    let check = judged.unwrap_or_else(|| check_now(source, recent, group));
    TopReport::new(source, activity(&cx, last, group), check, where_memory(source, None))
}

/// Returns how memory ran over all of a source, with what was wrong in it.
pub fn course(source: &Source) -> Course {
    Course::new(source, check(source).incidents)
}
