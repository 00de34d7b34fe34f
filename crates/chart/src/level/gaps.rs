//! Gaps: intervals in which nothing was recorded.

use timeline::{BreakKind, Timeline};
use units::Span;

/// Returns the intervals in which a source has no samples though time went on: gaps, sleep, reboots.
pub(super) fn of(timeline: &Timeline) -> Vec<(Span, Span)> {
    at(timeline, timeline.times())
}

/// Returns the same for a part with samples at these times.
pub(super) fn at(part: &Timeline, times: &[Span]) -> Vec<(Span, Span)> {
    let breaks = part
        .breaks()
        .iter()
        .filter(|gap| gap.kind.breaks_rates() && gap.kind != BreakKind::NewSegment);
    let gaps = breaks.filter_map(|gap| {
        let before = times.get(gap.before.checked_sub(1)?)?;
        Some((*before, *times.get(gap.before)?))
    });
    // A machine takes no samples while it sleeps: two breaks, one gap.
    let mut gaps: Vec<_> = gaps.collect();
    gaps.dedup();
    gaps
}
