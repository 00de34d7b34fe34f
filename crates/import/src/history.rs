//! What this host's own recording says of the time before it was watched.
//!
//! Only a day of it is read, at one sample a minute but for minutes in which something could hold, and only where it reaches to the look: what ended days ago says
//! nothing of how the present came about.

use std::path::Path;

use store::{Recording, Resolution, Selection};
use timeline::{Facts, Stamp, Timeline};
use units::{Span, WallClock};

use crate::Screen;
use crate::recording::{load, opened};

/// A recording and the look that follows it, on one clock.
#[derive(Debug)]
pub struct History {
    /// Samples of the recording, then those of the look.
    pub timeline: Timeline,
    /// Index of the first sample of the look.
    pub live_from: usize,
    /// What is known of the host now, and how that changed in all this time.
    pub facts: Facts,
    /// What was wrong with the recording, in words; the rest was read.
    pub problems: Vec<String>,
}

/// So much of a recording is read: a cycle of most hosts' work.
const BACK: Span = Span::from_hours(24);
/// A recording that ended longer ago than this does not belong to the look; a recorder that is being restarted comes back
/// within seconds.
const REACHES: Span = Span::from_mins(10);

/// The recording in a directory, by the minute, and a look at the host behind it. `None` where the recording cannot be read,
/// is another host's, or does not reach to the look or to this boot.
pub fn history(directory: &Path, host: &str, look: &Timeline, facts: &Facts) -> Option<History> {
    history_screened(directory, host, look, facts, None)
}

/// The same with every sample of those minutes in which something could hold; the screen tells.
pub fn history_screened(
    directory: &Path,
    host: &str,
    look: &Timeline,
    facts: &Facts,
    screen: Option<Screen>,
) -> Option<History> {
    let recording = Recording::open(directory).ok()?;
    if recording.host().id != host {
        return None;
    }
    let first = look.stamp(0)?;
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
    let past = opened(load(&recording, selection, screen, &mut |_| ()));
    let mut history = joined(past.timeline, look, past.problems)?;
    let began = history.timeline.times()[history.live_from];
    history.facts = facts.clone().after(&past.facts, began);
    Some(history)
}

/// Whether a recording that ends there belongs to a look that begins here: it all but touches it, or the machine was down
/// in between and came back only now.
fn reaches(end: WallClock, first: Stamp, look: WallClock) -> bool {
    let booted = look.minus(first.boot);
    end >= look.minus(REACHES) || (end <= booted && first.boot <= REACHES)
}

fn joined(past: Timeline, look: &Timeline, problems: Vec<String>) -> Option<History> {
    let live_from = past.len();
    let mut timeline = past;
    let follows = timeline.append(look).is_ok();
    (live_from > 0 && follows).then_some(History {
        timeline,
        live_from,
        facts: Facts::default(),
        problems,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use timeline::Sample;
    use timeline::signals::MEM_FREE;
    use units::Bytes;

    fn wall(second: u64) -> WallClock {
        WallClock::from_unix_nanos(i64::try_from(second).unwrap() * 1_000_000_000)
    }

    fn watched(seconds: impl Iterator<Item = u64>) -> Timeline {
        let mut timeline = Timeline::default();
        for second in seconds {
            let mut sample = Sample::at(Span::from_secs(second));
            sample.stamp.wall = Some(wall(1_000_000 + second));
            sample.host.set(MEM_FREE, Bytes::new(second));
            timeline.push(&sample).unwrap();
        }
        timeline
    }

    #[test]
    fn a_look_goes_on_from_its_recording() {
        let past = watched((0..10).map(|minute| minute * 60));
        let look = watched(555..566);
        let History {
            timeline,
            live_from,
            ..
        } = joined(past, &look, Vec::new()).unwrap();
        assert_eq!((timeline.len(), live_from), (21, 10));
        assert_eq!(timeline.breaks(), []);
        assert_eq!(timeline.duration(), Span::from_secs(565));
        assert_eq!(timeline.last(MEM_FREE), Some(Bytes::new(565)));
    }

    #[test]
    fn a_recording_that_lies_after_the_look_is_not_its_history() {
        let past = watched(600..610);
        assert!(joined(past, &watched(0..10), Vec::new()).is_none());
        assert!(joined(Timeline::default(), &watched(0..10), Vec::new()).is_none());
    }

    #[test]
    fn a_recording_belongs_to_the_look_where_it_touches_it_or_its_boot() {
        let hour = 3600;
        let look = wall(100 * hour);
        let stamp = |boot| Stamp {
            boot: Span::from_secs(boot),
            awake: None,
            wall: Some(look),
        };
        let up_for_days = stamp(50 * hour);
        assert!(reaches(wall(100 * hour - 599), up_for_days, look));
        assert!(!reaches(wall(99 * hour), up_for_days, look));
        assert!(
            reaches(wall(90 * hour), stamp(300), look),
            "it ended with the boot before"
        );
    }
}
