//! The duration of a selection, which decides its resolution. It uses the boot clock of the samples, not the wall
//! clock: a host without an RTC battery boots in 1970, and its first half minute is not half a century.

use timeline::CLOCK_TOLERANCE;
use units::{Span, WallClock};

use super::{Recording, Resolution, Selection};
use crate::head::{self, HeadFile};
use crate::segment::Segment;

/// Longer ranges are read by the minute. Six hours of 200 busy host signals at 1 Hz are 4.3 million runs, 104 MB;
/// twelve hours would leave no memory for processes within 256 MiB (`cargo bench --bench read`).
const EVERY_SAMPLE_UP_TO: Span = Span::from_hours(6);
/// The duration of a part without a manifest: the longest that a recorder writes.
const UNSEALED_PART_DURATION: Span = Span::from_hours(1);

impl Recording {
    /// Whether the whole recording is too long to be read sample by sample.
    pub fn is_long(&self) -> bool {
        let all = Selection::default();
        self.is_by_minute(all, &self.wanted(all))
    }

    /// Returns how long it was recorded. A part that does not show it counts by the wall clock.
    pub(super) fn lasts(&self) -> Span {
        let of_segment = |segment: &Segment| {
            let by_wall = || segment.span().map(|(from, to)| between(from, to));
            segment.duration().or_else(by_wall)
        };
        let segments = self.segments.iter().filter_map(of_segment);
        let of_heads = |file: &HeadFile| head::duration(&file.path);
        let heads = self.heads.iter().filter_map(of_heads);
        segments.chain(heads).fold(Span::ZERO, Span::plus)
    }

    /// Whether the wall clock was set, as far as the parts show: then two wall-clock times do not select one range of
    /// samples.
    pub fn clock_was_set(&self) -> bool {
        let heads: Vec<_> =
            self.heads.iter().filter_map(|file| head::first_and_last(&file.path)).collect();
        let spans = self.segments.iter().filter_map(Segment::span);
        let spans: Vec<_> = spans.chain(heads.iter().copied()).collect();
        let goes_back =
            |pair: &[(WallClock, WallClock)]| pair[1].0.plus(CLOCK_TOLERANCE) < pair[0].1;
        self.segments.iter().any(is_set_within)
            || heads.iter().any(|(first, last)| last < first)
            || spans.windows(2).any(goes_back)
    }

    pub(super) fn is_by_minute(&self, selection: Selection, segments: &[&Segment]) -> bool {
        match selection.resolution {
            Resolution::Full => return false,
            Resolution::Minutes => return true,
            Resolution::Auto => {}
        }
        let Selection { since, until, .. } = selection;
        let Some(from) = segments.iter().filter_map(|segment| Some(segment.span()?.0)).min() else {
            return false;
        };
        let lasts = segments.iter().map(|segment| within(segment, since, until));
        let lasts = lasts.fold(Span::ZERO, Span::plus);
        // A file without a sample, which somebody may have put there, makes no range longer.
        let has_sample = |file: &&HeadFile| head::first_and_last(&file.path).is_some();
        let heads = self.heads.iter().filter(has_sample).count();
        let heads = u64::try_from(heads).unwrap_or(u64::MAX);
        let lasts = lasts.plus(Span::from_hours(heads.min(1_000)));
        let from = since.map_or(from, |since| since.max(from));
        let asked = until.map_or(lasts, |until| between(from, until));
        lasts.min(asked) > EVERY_SAMPLE_UP_TO
    }
}

/// Returns an upper bound of a segment's time within a selection.
fn within(segment: &Segment, since: Option<WallClock>, until: Option<WallClock>) -> Span {
    let lasts = segment.duration().unwrap_or(UNSEALED_PART_DURATION);
    let Some((first, last)) = segment.span() else {
        return lasts;
    };
    let from = since.map_or(first, |since| since.max(first));
    let to = until.map_or(last, |until| until.min(last));
    between(from, to).min(lasts)
}

/// Whether the wall clock advanced by a different time than the boot clock within a segment.
fn is_set_within(segment: &Segment) -> bool {
    let known = segment.duration().zip(segment.span());
    known.is_some_and(|(lasts, (from, to))| {
        let apart = between(from, to);
        apart.saturating_sub(lasts).max(lasts.saturating_sub(apart)) > CLOCK_TOLERANCE
    })
}

/// Returns the time between two wall-clock times; zero if they are out of order.
fn between(from: WallClock, to: WallClock) -> Span {
    let nanos = to.unix_nanos().saturating_sub(from.unix_nanos());
    Span::from_nanos(u64::try_from(nanos).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use timeline::signals::MEM_FREE;
    use timeline::{Facts, Sample, Timeline};
    use units::{Bytes, Span, WallClock};

    use crate::tests::host;
    use crate::{Recording, Selection, add_timeline};

    const YEARS: i64 = 50 * 365 * 86_400;

    /// Records samples `every` seconds apart; `steps`: before which of them the wall clock is set, and by how many
    /// seconds.
    fn recorded(samples: u64, every: u64, steps: &[(u64, i64)]) -> (tempfile::TempDir, Recording) {
        let mut timeline = Timeline::default();
        let mut wall = 39;
        for at in 0..samples {
            wall += i64::try_from(every).unwrap();
            wall += steps.iter().filter(|(step, _)| *step == at).map(|(_, by)| by).sum::<i64>();
            let mut sample = Sample::at(Span::from_secs(at * every));
            sample.stamp.wall = Some(WallClock::from_unix_nanos(wall * 1_000_000_000));
            sample.host.set(MEM_FREE, Bytes::new(at));
            timeline.push(&sample).unwrap();
        }
        let directory = tempfile::tempdir().unwrap();
        let every = Span::from_secs(every);
        add_timeline(directory.path(), &host(), &timeline, &Facts::default(), every).unwrap();
        let recording = Recording::open(directory.path()).unwrap();
        (directory, recording)
    }

    #[test]
    fn what_is_recorded_decides_how_finely_it_is_read_and_not_what_the_wall_clock_says() {
        for (samples, every, steps, is_long, is_set) in [
            (40, 1, vec![], false, false),
            (40, 1, vec![(10, YEARS)], false, true),
            (40, 1, vec![(10, -3600)], false, true),
            (40, 1, vec![(10, 3600), (20, -3600)], false, true),
            // Only the ends of the parts show the change.
            (100, 60, vec![(60, -7200)], false, true),
            (30, 1_200, vec![], true, false),
            (30, 1_200, vec![(10, YEARS)], true, true),
        ] {
            let (_directory, recording) = recorded(samples, every, &steps);
            let loaded = recording.load(Selection::default(), &mut |_| {});
            assert_eq!(loaded.thinned_to.is_some(), is_long, "{samples} {every} {steps:?}");
            assert_eq!(recording.is_long(), is_long, "{samples} {every} {steps:?}");
            assert_eq!(recording.clock_was_set(), is_set, "{samples} {every} {steps:?}");
            let first = loaded.timeline.at(MEM_FREE, 0);
            assert_eq!(first, Some(Bytes::new(0)), "{samples} {every} {steps:?}");
        }
    }
}
