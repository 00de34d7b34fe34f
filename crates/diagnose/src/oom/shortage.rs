//! Kernel reports of a shortage: levels of samples near them were taken while memory was short.

use timeline::Stretch;
use units::{Count, Span};

use super::{Explained, reports};
use crate::evidence::Evidence;
use crate::trigger::LEVEL;

/// Why levels are not called harmless: the last kernel report of a shortage among the samples. `None` where there is
/// none.
pub(crate) fn shortage(cx: &Evidence<'_>) -> Option<&'static str> {
    let last = shortages(cx).last();
    last.map(|one| {
        if one.is_kill() {
            "the kernel had to kill for lack of memory"
        } else {
            "a request for memory failed"
        }
    })
}

fn shortages<'a>(cx: &Evidence<'a>) -> impl DoubleEndedIterator<Item = Explained<'a>> {
    let all = reports(cx).into_iter();
    all.filter(|one| {
        one.report.group.is_none() && !one.report.is_by_hand() && !one.report.is_memory_dump()
    })
}

/// The longest part of a stretch that is not near a kernel report of a shortage.
///
/// # Errors
/// What the kernel reported, where the remaining time is too short.
pub(crate) fn apart_from_shortage(
    cx: &Evidence<'_>,
    stretch: &Stretch,
) -> Result<Stretch, &'static str> {
    /// Levels within this time before and after a report belong to its shortage.
    const NEAR_KILL: Span = LEVEL;
    let Some(why) = shortage(cx) else {
        return Ok(*stretch);
    };
    let mut at: Vec<Span> = shortages(cx).map(|one| one.at).collect();
    at.sort_unstable();
    let times = cx.timeline.times();
    let apart = (0..times.len()).map(|index| {
        let is_inside = stretch.first <= index && index <= stretch.last;
        let is_near = || {
            let next = at.partition_point(|at| at.plus(NEAR_KILL) < times[index]);
            at.get(next).is_some_and(|at| *at <= times[index].plus(NEAR_KILL))
        };
        let is_apart = is_inside && !is_near();
        Some(if is_apart { 1.0 } else { 0.0 })
    });
    let apart = cx.timeline.track(apart.collect()).at_least(Count::new(1));
    let longest = apart.runs().into_iter().max_by_key(Stretch::duration);
    longest.filter(|longest| longest.duration() >= LEVEL).ok_or(why)
}
