//! The moments of a source that somebody will zoom to, whatever was found: the tightest, and where most waited or moved.

use diagnose::Evidence;
use timeline::signals::{MEM_AVAILABLE, MEM_DIRTY, PSI_IO_SOME, PSI_MEMORY_SOME, PSWPIN};
use timeline::{Counter, Signal, Track};
use units::{Quantity, Span, Unit};

/// The requested stretches, in order, and among them the peaks: those of memory behind the first, as there may be
/// no room for all.
pub(super) fn among(asked: &[(Span, Span)], cx: &Evidence<'_>) -> Vec<(Span, Span)> {
    let memory = [peak_of(cx, PSI_MEMORY_SOME), tightest(cx)];
    let moved = cx.refaults_file().ok().and_then(|track| peak(&track));
    let others = [
        peak_of(cx, PSWPIN),
        moved,
        peak_of(cx, PSI_IO_SOME),
        most_unwritten(cx),
    ];
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

/// When it was highest, where it ever was above nothing.
fn peak<Q: Quantity>(track: &Track<Q>) -> Option<Span> {
    let (most, at) = track.max()?;
    (most.as_f64() > 0.0).then(|| track.times().get(at).copied())?
}
