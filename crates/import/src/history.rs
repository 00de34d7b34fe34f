//! What this host's own recording shows of the time before it was watched.
//!
//! Only a day of it is read, at one sample a minute except for minutes in which a rule could hold, and only where it
//! reaches the live samples: what ended days ago does not explain the present.

use std::path::Path;

use store::{Recording, Resolution, Selection};
use timeline::{Source, Stamp};
use units::{Span, WallClock};

use crate::MinuteScreen;
use crate::recording::{load, opened};

/// How much of a recording is read: a cycle of most hosts' work.
const BACK: Span = Span::from_hours(24);
/// A recording that ended longer ago than this does not continue in the live samples; a recorder that is being restarted is
/// back within seconds.
const REACHES: Span = Span::from_mins(10);

/// The live source with the samples of the recording in a directory before its own, on one clock, and the facts as they
/// changed in all this time. The live source alone where the recording cannot be read, is another host's, or does not reach
/// the live samples or this boot. `screen` selects the minutes of which every sample is read.
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

/// The part of a recording that leads up to the live samples.
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

/// Whether a recording that ends there continues in live samples that begin here: it all but touches them, or the machine
/// was down in between and booted only now.
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
        let Source {
            timeline, origin, ..
        } = joined(past, watched(555..566));
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
        };
        let up_for_days = stamp(50 * hour);
        assert!(reaches(wall(100 * hour - 599), up_for_days, live));
        assert!(!reaches(wall(99 * hour), up_for_days, live));
        assert!(
            reaches(wall(90 * hour), stamp(300), live),
            "it ended with the boot before"
        );
    }
}
