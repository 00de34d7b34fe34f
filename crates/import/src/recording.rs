//! A recording as a source: its samples and kernel reports.
//!
//! The store has kernel reports as text of events; the parser of captures and logs reads them.

use std::path::Path;

use store::{Loaded, Recording, Resolution, Selection};
use timeline::{
    Event, Inventory, Origin, OutOfRange, Problems, SignalId, Source, SourceKind, TimeRange,
    Timeline,
};
use units::{Span, WallClock};

use crate::{MinuteScreen, OpenError, OpenOptions, reports};

/// At most 1,000 kernel reports are parsed; further ones stay events.
const REPORTS_MAX: usize = 1_000;

/// Reads a range of a recording.
pub(crate) fn read(
    directory: &Path,
    OpenOptions { range, resolution, screen }: OpenOptions,
    progress: &mut dyn FnMut(f64),
) -> Result<Source, OpenError> {
    let name = directory.display().to_string();
    let recording = Recording::open(directory)?;
    // Without a clock that orders the samples (imported, or set in between) all is read, and cut afterwards.
    let span = recording.span().filter(|_| is_ordered_by_clock(&recording, range));
    let (since, until) = span.map_or((None, None), |span| range.on_clock(span));
    let selection = Selection { since, until, resolution };
    let opened = opened(load(&recording, selection, screen, progress));
    let mut opened = opened.named(&name);
    opened.origin.cut_at =
        span.filter(|_| !range.is_all()).and_then(|span| cut_at(&opened.timeline, span));
    match (opened.timeline.is_empty(), span) {
        (false, Some(_)) => Ok(opened),
        (false, None) => opened.within(range).map_err(|why| OpenError::OutOfRange { name, why }),
        (true, Some((first, last))) if !range.is_all() => {
            Err(OpenError::OutOfRange { name, why: OutOfRange::Outside(first, last) })
        }
        (true, None) if recording.info(false).segments == 0 => {
            Err(OpenError::EmptyRecording { name })
        }
        (true, _) => Err(OpenError::NoSample { name, problems: opened.problems }),
    }
}

/// Loads a part, at full resolution in the minutes that the screen selects.
pub(crate) fn load(
    recording: &Recording,
    selection: Selection,
    screen: Option<MinuteScreen>,
    progress: &mut dyn FnMut(f64),
) -> Loaded {
    let Some(MinuteScreen { signals, could_hold }) = screen else {
        return recording.load(selection, progress);
    };
    let facts = recording.facts();
    let screen =
        store::RollUpScreen { signals, could_hold: &mut |rolled| could_hold(rolled, &facts) };
    recording.load_screened(selection, screen, progress)
}

/// Visits every sample in a range of a recording.
pub(crate) fn scan(
    directory: &Path,
    range: TimeRange,
    signals: &[SignalId],
    each: &mut dyn FnMut(&Timeline),
) -> Result<Vec<String>, OpenError> {
    let recording = Recording::open(directory)?;
    let has_span = !range.is_all() && is_ordered_by_clock(&recording, range);
    // If the clock does not order the samples, all are visited.
    let span = recording.span().filter(|_| has_span);
    let (since, until) = span.map_or((None, None), |span| range.on_clock(span));
    let selection = Selection { since, until, resolution: Resolution::Full };
    Ok(recording.scan(selection, signals, each))
}

/// Whether samples are selected by the wall clock. A recording that does not fit in memory allows no other way.
fn is_ordered_by_clock(recording: &Recording, range: TimeRange) -> bool {
    range.is_all() || recording.is_long() || !recording.clock_was_set()
}

/// The time from the start of the recording to the first sample read, if any sample was left out.
fn cut_at(part: &Timeline, (start, end): (WallClock, WallClock)) -> Option<Span> {
    let first = part.stamp(0)?.wall?;
    let last = part.stamp(part.len().checked_sub(1)?)?.wall?;
    let nanos = first.unix_nanos().saturating_sub(start.unix_nanos());
    let is_cut = first > start || last < end;
    is_cut.then(|| Span::from_nanos(u64::try_from(nanos).unwrap_or_default()))
}

/// A loaded recording as a source.
pub(crate) fn opened(loaded: Loaded) -> Source {
    let mut problems = Problems::default();
    let mut timeline = loaded.timeline;
    for problem in loaded.problems {
        problems.note(problem);
    }
    place_reports(&mut timeline, &loaded.reported, &mut problems);
    problems.note_left_out(&timeline, &loaded.facts);
    Source {
        timeline,
        facts: loaded.facts,
        origin: Origin {
            kind: SourceKind::Recording,
            thinned_to: loaded.thinned_to,
            ..Origin::default()
        },
        inventory: Inventory::default(),
        problems: problems.into_texts(),
    }
}

/// Reads the kernel reports of events; `known` has the samples of some of them.
fn place_reports(timeline: &mut Timeline, known: &[(usize, usize)], problems: &mut Problems) {
    let events: Vec<(usize, Event)> = timeline
        .recorder_events()
        .iter()
        .cloned()
        .enumerate()
        .filter(|(_, event)| !event.report.is_empty())
        .collect();
    let skipped = events.len().saturating_sub(REPORTS_MAX);
    if skipped > 0 {
        problems.note(format!(
            "only the last {REPORTS_MAX} kernel reports are read; {skipped} earlier ones are shown \
             as events"
        ));
    }
    for (number, event) in &events[skipped..] {
        let sample = known.iter().find(|(event, _)| event == number).map(|(_, sample)| *sample);
        reports::place(timeline, event.stamp, &event.report, sample);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use timeline::signals::MEM_FREE;
    use timeline::{EventKind, Facts, Sample, Stamp};
    use units::Bytes;

    fn stamp(second: u64) -> Stamp {
        let wall = i64::try_from(second).unwrap() * 1_000_000_000;
        Stamp {
            boot: Span::from_secs(second),
            awake: None,
            wall: Some(WallClock::from_unix_nanos(wall)),
            ..Stamp::default()
        }
    }

    fn recorded(events: &[(u64, &str)]) -> Source {
        let mut timeline = Timeline::default();
        for i in 0..10 {
            let mut sample = Sample::at(Span::ZERO);
            sample.stamp = stamp(1000 + i * 10);
            sample.host.set(MEM_FREE, Bytes::from_mib(500));
            timeline.push(&sample).unwrap();
        }
        for (second, report) in events {
            timeline.add_recorder_event(Event {
                stamp: stamp(*second),
                kind: EventKind::OomKill,
                subject: String::new(),
                text: String::new(),
                report: (*report).to_owned(),
            });
        }
        opened(Loaded {
            timeline,
            facts: Facts::default(),
            problems: vec!["a segment is damaged".to_owned()],
            thinned_to: None,
            screened: None,
            reported: Vec::new(),
        })
    }

    const REPORT: &str = include_str!("../../probe/tests/kernel_reports/vm-6.12-swapfull.log");

    #[test]
    fn the_text_of_an_event_is_a_report_on_the_next_sample() {
        let source = recorded(&[(1035, REPORT), (1036, "")]);
        let reports = source.timeline.all_reports();
        assert_eq!(reports.len(), 1);
        assert_eq!(reports[0].sample, 4);
        assert_eq!(reports[0].wall, stamp(1035).wall);
        assert_eq!(reports[0].at, Span::from_secs(35));
        assert_eq!(reports[0].report.killed[0].name, "java");
        let free = |index| source.timeline.at(MEM_FREE, index);
        assert_eq!(free(3), Some(Bytes::from_mib(500)));
        assert!(free(4) < Some(Bytes::from_mib(50)), "{:?}", free(4));
        assert_eq!(source.problems, ["a segment is damaged"]);
    }

    #[test]
    fn a_report_from_before_the_recording_keeps_its_time_and_has_no_sample() {
        let source = recorded(&[(7, REPORT)]);
        assert_eq!(source.timeline.all_reports().len(), 0);
        let earlier = source.timeline.earlier_reports();
        assert_eq!(earlier.len(), 1);
        assert_eq!(earlier[0].stamp, stamp(7));
        assert_eq!(earlier[0].report.killed[0].name, "java");
        assert_eq!(source.timeline.recorder_events().len(), 1);
        assert_eq!(source.problems, ["a segment is damaged"]);
    }

    #[test]
    fn a_report_after_the_last_sample_belongs_to_it() {
        let source = recorded(&[(5000, REPORT)]);
        assert_eq!(source.timeline.all_reports()[0].sample, 9);
    }
}
