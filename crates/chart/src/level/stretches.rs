//! Chooses the intervals worth drawing sample by sample.

use std::ops::Range;

use timeline::Timeline;
use units::Span;

/// The margin drawn around a finding, as a share of its length …
const AROUND: f64 = 0.15;
/// … and its least length, also around a moment.
const AROUND_MIN: Span = Span::from_mins(10);
/// The most rows of one interval: an hour at one sample a second.
const ROWS_MAX: f64 = 3_600.0;
/// The most rows of all intervals. An hour of a busy host takes 0.1 to 0.2 s of CPU time to read, and about 0.4 MiB of
/// the page.
const ROWS_OF_ALL_MAX: f64 = 7_200.0;

/// Returns the intervals of a source worth drawing sample by sample: around these, the most important first; none
/// overlaps another. `interval` is the time between samples.
pub fn worth_sharpening(
    around: &[(Span, Span)],
    whole: &Timeline,
    interval: Span,
) -> Vec<(Span, Span)> {
    let end = whole.times().last().copied().unwrap_or_default();
    let begin = whole.times().first().copied().unwrap_or_default();
    let interval = interval.max(Span::from_millis(1));
    let mut left = interval.times(ROWS_OF_ALL_MAX);
    let mut chosen: Vec<(Span, Span)> = Vec::new();
    for (from, to) in around {
        // Of a longer interval the beginning is shown, so the margin before it must not use up all rows.
        let most = interval.times(ROWS_MAX * AROUND).max(AROUND_MIN);
        let margin = (*to - *from).times(AROUND).max(AROUND_MIN).min(most);
        let from = (*from - margin).max(begin);
        let to = to.plus(margin).min(end);
        let to = to.min(from.plus(interval.times(ROWS_MAX)));
        let Some((from, to)) = beside(&chosen, from, to) else {
            continue;
        };
        let to = to.min(from.plus(left));
        if from < to {
            left = left - (to - from);
            chosen.push((from, to));
        }
    }
    joined(chosen, interval.times(ROWS_MAX))
}

/// Returns the longest piece of an interval that others do not cover.
fn beside(others: &[(Span, Span)], from: Span, to: Span) -> Option<(Span, Span)> {
    let mut others = others.to_vec();
    others.sort_unstable();
    let mut pieces = Vec::new();
    let mut free = from;
    for (start, end) in others.into_iter().chain([(to, to)]) {
        if start > free {
            pieces.push((free, start.min(to)));
        }
        free = free.max(end);
    }
    let pieces = pieces.into_iter().filter(|(from, to)| from < to);
    pieces.max_by_key(|(from, to)| *to - *from)
}

/// Joins intervals that touch, unless the result is too long. The joined interval takes the place of the more important
/// one.
fn joined(stretches: Vec<(Span, Span)>, most: Span) -> Vec<(Span, Span)> {
    let mut joined: Vec<(Span, Span)> = Vec::new();
    for (from, to) in stretches {
        let touching = joined.iter_mut().find(|(start, end)| {
            (*end == from || to == *start) && (*end).max(to) - (*start).min(from) <= most
        });
        match touching {
            Some(stretch) => *stretch = (stretch.0.min(from), stretch.1.max(to)),
            None => joined.push((from, to)),
        }
    }
    joined
}

/// Returns the samples of a timeline within an interval, and one on each side so that lines reach its ends.
pub(super) fn samples(timeline: &Timeline, from: Span, to: Span) -> Range<usize> {
    let times = timeline.times();
    let first = times.partition_point(|time| *time < from).saturating_sub(1);
    let end = times.partition_point(|time| *time <= to) + 1;
    first..end.min(times.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use timeline::Sample;

    const SECOND: Span = Span::from_secs(1);

    fn minute(n: u64) -> Span {
        Span::from_mins(n)
    }

    /// Creates ten hours, one sample per minute.
    fn whole() -> Timeline {
        let mut timeline = Timeline::default();
        for at in 0..=600 {
            timeline.push(&Sample::at(minute(at))).unwrap();
        }
        timeline
    }

    #[test]
    fn a_finding_is_shown_with_what_lies_around_it() {
        let found = worth_sharpening(&[(minute(100), minute(110))], &whole(), SECOND);
        assert_eq!(found, [(minute(90), minute(120))]);
        let at_start = worth_sharpening(&[(minute(2), minute(2))], &whole(), SECOND);
        assert_eq!(at_start, [(minute(0), minute(12))]);
    }

    #[test]
    fn none_is_longer_than_an_hour_and_all_are_no_longer_than_two() {
        let around = [0, 100, 200, 300].map(|at| (minute(at), minute(at + 90)));
        let found = worth_sharpening(&around, &whole(), SECOND);
        let lasts: Span = found.iter().fold(Span::ZERO, |sum, (from, to)| sum.plus(*to - *from));
        assert!(found.iter().all(|(from, to)| *to - *from <= minute(60)));
        assert_eq!(lasts, minute(120));
        // Twelve hours at one sample in ten seconds have as many rows.
        assert!(
            worth_sharpening(&around, &whole(), Span::from_secs(10))
                .iter()
                .any(|(from, to)| *to - *from > minute(90))
        );
    }

    #[test]
    fn what_overlaps_is_drawn_once() {
        let around = [(minute(100), minute(110)), (minute(105), minute(125))];
        assert_eq!(worth_sharpening(&around, &whole(), SECOND), [(minute(90), minute(135))]);
        let within = [(minute(100), minute(110)), (minute(104), minute(104))];
        assert_eq!(worth_sharpening(&within, &whole(), SECOND), [(minute(90), minute(120))]);
    }
}
