//! The moments of a source that readers zoom to, whatever was found: the tightest, and those with the most waiting or
//! traffic.

use diagnose::Evidence;
use timeline::signals::{MEM_AVAILABLE, MEM_DIRTY, PSI_IO_SOME, PSI_MEMORY_SOME, PSWPIN};
use timeline::{Counter, Signal, Track};
use units::{Quantity, Span, Unit};

/// Returns the requested intervals, in order, with the peaks among them: those of memory come second, as there may not
/// be room for all.
pub(super) fn among(asked: &[(Span, Span)], cx: &Evidence<'_>) -> Vec<(Span, Span)> {
    let memory = [peak_of(cx, PSI_MEMORY_SOME), tightest(cx)];
    let moved = cx.refaults_file().ok().and_then(|track| peak(&track));
    let others = [peak_of(cx, PSWPIN), moved, peak_of(cx, PSI_IO_SOME), most_unwritten(cx)];
    let (first, rest) = asked.split_at(asked.len().min(1));
    let moments = |at: [Option<Span>; 2]| at.into_iter().flatten().map(|at| (at, at));
    let mut all = first.to_vec();
    all.extend(moments(memory));
    all.extend_from_slice(rest);
    all.extend(others.into_iter().flatten().map(|at| (at, at)));
    all
}

fn tightest(cx: &Evidence<'_>) -> Option<Span> {
    let available = cx.timeline.gauge(MEM_AVAILABLE)?;
    let (_, at) = available.min()?;
    cx.timeline.times().get(at).copied()
}

fn most_unwritten(cx: &Evidence<'_>) -> Option<Span> {
    peak(&cx.timeline.gauge(MEM_DIRTY)?)
}

fn peak_of<U: Unit>(cx: &Evidence<'_>, signal: Signal<Counter<U>>) -> Option<Span> {
    peak(&cx.timeline.rate(signal)?)
}

/// Returns the moment of the highest value; `None` if it was never above 0.
fn peak<Q: Quantity>(track: &Track<Q>) -> Option<Span> {
    let (most, at) = track.max()?;
    (most.as_f64() > 0.0).then(|| track.times().get(at).copied())?
}
