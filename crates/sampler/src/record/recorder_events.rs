//! Events about the recorder itself.

use timeline::{Absence, BreakKind, Event, EventKind, Stamp, step};
use units::Span;

use crate::{Settings, TasksRead};

/// The recorder started: how it samples and what it cannot read.
pub(crate) fn started(
    stamp: Stamp,
    settings: &Settings,
    tasks: Option<&TasksRead>,
    absent: &[(&'static str, Absence)],
) -> Event {
    let processes = match settings.processes.zip(tasks) {
        Some((every, tasks)) => format!("processes every {every} ({tasks})"),
        None => "no processes".to_owned(),
    };
    let denied = absent
        .iter()
        .filter(|(_, why)| *why != Absence::NotFound)
        .map(|(file, _)| *file)
        .collect::<Vec<_>>();
    let denied = if denied.is_empty() {
        String::new()
    } else {
        format!("; it may not read {}", denied.join(", "))
    };
    let text = format!(
        "memtide {} began to record, a sample every {}, {processes}{denied}",
        env!("CARGO_PKG_VERSION"),
        settings.every,
    );
    event(stamp, EventKind::RecorderStarted, text)
}

/// The recorder ended cleanly.
pub(crate) fn stopped(stamp: Stamp, samples: u64) -> Event {
    let text = format!("memtide stopped recording after {samples} samples");
    event(stamp, EventKind::RecorderStopped, text)
}

/// A sample this much later than it was due is an event, though rates go on over it: the recorder was stopped, or the host
/// stood still. The latest samples through global OOM kills were 4 s late.
const PAUSE_MIN: Span = Span::from_secs(10);

/// Events between two samples: gaps, suspends, restarts, pauses that are too short for a gap.
pub(crate) fn between(last: Stamp, next: Stamp, every: Span) -> impl Iterator<Item = Event> {
    let step = step(last, next, || Some(every)).ok();
    let breaks = move || step.into_iter().flat_map(timeline::Step::breaks);
    let has_duration = |kind| matches!(kind, BreakKind::Gap(_) | BreakKind::Suspend(_));
    let pause = step
        .map(|step| step.elapsed)
        .filter(|elapsed| *elapsed > every.plus(PAUSE_MIN) && next.boot > last.boot)
        .filter(|_| !breaks().any(has_duration))
        .map(BreakKind::Gap);
    breaks()
        .filter(move |kind| kind.is_worth_reporting(breaks()))
        .chain(pause)
        .filter_map(move |kind| Event::of_break(kind, last, next))
}

fn event(stamp: Stamp, kind: EventKind, text: String) -> Event {
    Event { stamp, kind, subject: String::new(), text, report: String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::WallClock;

    fn stamp(boot: u64, awake: u64, wall: i64) -> Stamp {
        Stamp {
            boot: Span::from_secs(boot),
            awake: Some(Span::from_secs(awake)),
            wall: Some(WallClock::from_unix_nanos(wall * 1_000_000_000)),
            ..Stamp::default()
        }
    }

    #[test]
    fn what_happened_between_two_samples_is_told_in_words() {
        for (next, expected) in [
            (stamp(11, 11, 101), ""),
            (stamp(15, 15, 105), ""),
            (stamp(11, 11, 3701), "the wall clock was set forward by 60 min"),
            (stamp(11, 11, 91), "the wall clock was set back by 10 s"),
            (stamp(71, 71, 161), "no samples for 61 s"),
            (stamp(30, 30, 120), "no samples for 20 s"),
            (stamp(30, 15, 120), "the machine was suspended for 15 s"),
            (stamp(80, 11, 170), "the machine was suspended for 69 s"),
        ] {
            let events = between(stamp(10, 10, 100), next, Span::from_secs(1));
            let texts = events.map(|event| event.text).collect::<Vec<_>>();
            assert_eq!(texts.join("; "), expected);
        }
    }

    #[test]
    fn the_beginning_says_how_and_what_may_not_be_read() {
        let absent = [
            ("/proc/slabinfo", Absence::PermissionDenied),
            ("/proc/pressure/memory", Absence::NotFound),
        ];
        let tasks = TasksRead { source: probe::TaskSource::Proc, why_not_bpf: None };
        let event = started(Stamp::default(), &Settings::default(), Some(&tasks), &absent);
        let text = event.text;
        assert!(text.contains("every 1 s, processes every 10 s (/proc)"), "{text}");
        assert!(text.ends_with("may not read /proc/slabinfo"), "{text}");
    }
}
