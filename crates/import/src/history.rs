//! The recording of this host as history of its live samples.
//!
//! Only its last day is read, at one sample a minute except for minutes in which a rule could hold, and only if it
//! reaches the live samples: what ended days ago does not explain the present.

use std::path::Path;

use store::{Recording, Resolution, Selection};
use timeline::{Source, Stamp};
use units::{Span, WallClock};

use crate::MinuteScreen;
use crate::recording::{load, opened};

/// Length of the recording that is read: a cycle of most hosts' work.
const BACK: Span = Span::from_hours(24);
/// The longest gap between a recording and the live samples that continue it; a recorder that restarts is back within
/// seconds.
const REACHES: Span = Span::from_mins(10);

/// Returns the live source with the samples of the recording in `directory` before its own, on one clock, and with the
/// facts of all this time. Returns the live source alone if the recording cannot be read, is another host's, or does
/// not reach the live samples or this boot. `screen` selects the minutes of which every sample is read.
pub fn with_history(
    directory: &Path,
    host: &str,
    live: Source,
    screen: Option<MinuteScreen>,
) -> Source {
    match past(directory, host, &live, screen) {
        Some(past) => joined(past, live),
        None => live,
    }
}

/// Reads the part of a recording that leads up to the live samples.
fn past(
    directory: &Path,
    host: &str,
    live: &Source,
    screen: Option<MinuteScreen>,
) -> Option<Source> {
    let recording = Recording::open(directory).ok()?;
    if recording.host().id != host {
        return None;
    }
    let first = live.timeline.stamp(0)?;
    let until = first.wall?;
    let (_, end) = recording.span()?;
    if !reaches(end, first, until) {
        return None;
    }
    let selection = Selection {
        since: Some(until.minus(BACK)),
        until: Some(until),
        resolution: Resolution::Minutes,
    };
    Some(opened(load(&recording, selection, screen, &mut |_| ())))
}

/// Whether a recording that ends at `end` continues in the live samples: the gap is short, or the machine was down
/// since and has just booted.
fn reaches(end: WallClock, first: Stamp, live: WallClock) -> bool {
    let booted = live.minus(first.boot);
    end >= live.minus(REACHES) || (end <= booted && first.boot <= REACHES)
}

fn joined(past: Source, mut live: Source) -> Source {
    let live_from = past.timeline.len();
    let mut timeline = past.timeline;
    if live_from == 0 || timeline.append(&live.timeline).is_err() {
        return live;
    }
    let began = timeline.times()[live_from];
    live.facts = live.facts.after(&past.facts, began);
    live.facts.names.fill_from(past.facts.names);
    live.problems.extend(past.problems);
    live.origin.live_from = Some(live_from);
    Source { timeline, ..live }
}

#[cfg(test)]
mod tests {
    use super::*;
    use timeline::signals::MEM_FREE;
    use timeline::{Facts, Sample, SourceKind, Timeline};
    use units::Bytes;

    fn wall(second: u64) -> WallClock {
        WallClock::from_unix_nanos(i64::try_from(second).unwrap() * 1_000_000_000)
    }

    fn watched(seconds: impl Iterator<Item = u64>) -> Source {
        let mut timeline = Timeline::default();
        for second in seconds {
            let mut sample = Sample::at(Span::from_secs(second));
            sample.stamp.wall = Some(wall(1_000_000 + second));
            sample.host.set(MEM_FREE, Bytes::new(second));
            timeline.push(&sample).unwrap();
        }
        Source::new(SourceKind::Live, "", timeline, Facts::default())
    }

    #[test]
    fn live_samples_follow_those_of_the_recording() {
        let past = watched((0..10).map(|minute| minute * 60));
        let Source { timeline, origin, .. } = joined(past, watched(555..566));
        assert_eq!((timeline.len(), origin.live_from), (21, Some(10)));
        assert_eq!(timeline.breaks(), []);
        assert_eq!(timeline.duration(), Span::from_secs(565));
        assert_eq!(timeline.last(MEM_FREE), Some(Bytes::new(565)));
    }

    #[test]
    fn a_recording_that_lies_after_the_live_samples_is_not_their_history() {
        for past in [watched(600..610), Source::default()] {
            let alone = joined(past, watched(0..10));
            assert_eq!((alone.timeline.len(), alone.origin.live_from), (10, None));
        }
    }

    #[test]
    fn a_recording_is_the_history_of_live_samples_where_it_touches_them_or_their_boot() {
        let hour = 3600;
        let live = wall(100 * hour);
        let stamp = |boot| Stamp {
            boot: Span::from_secs(boot),
            awake: None,
            wall: Some(live),
            ..Stamp::default()
        };
        let up_for_days = stamp(50 * hour);
        assert!(reaches(wall(100 * hour - 599), up_for_days, live));
        assert!(!reaches(wall(99 * hour), up_for_days, live));
        assert!(reaches(wall(90 * hour), stamp(300), live), "it ended with the boot before");
    }
}
