//! Scans every sample of a few host signals, part after part: that shows what the minutes of a longer range do not.
//!
//! A week at 1 Hz is never in memory as a whole. Each part is a timeline that begins with the last samples of the
//! previous part, so that rates and gaps across the border are known.

use timeline::{SignalId, Timeline};

use super::placement::{append, is_within};
use super::{Recording, Selection, part};
use crate::head::{self, HeadFile};
use crate::segment::host::StoredSample;
use crate::segment::picks::SamplePicks;
use crate::segment::{self, Segment, names};

/// Samples carried over from the previous part: their median interval distinguishes a gap from a late sample.
const CARRIED: usize = 9;

impl Recording {
    /// Scans every sample of some host signals, whatever the selection's resolution. `each` receives one timeline for
    /// each part of the recording, in order, which begins with up to nine of the last samples of the previous part.
    /// Returns problems in words; the rest was scanned.
    pub fn scan(
        &self,
        selection: Selection,
        signals: &[SignalId],
        each: &mut dyn FnMut(&Timeline),
    ) -> Vec<String> {
        let mut signals = signals.to_vec();
        signals.sort_unstable();
        let mut scan = Scan {
            window: (selection.since, selection.until),
            signals,
            carried: Timeline::default(),
            problems: Vec::new(),
            each,
        };
        for part in self.in_order(self.wanted(selection)) {
            match part {
                Ok(segment) if !super::is_there(&segment.path) => {}
                Ok(segment) => scan.segment(segment),
                Err(file) => self.scan_head(file, &mut scan),
            }
        }
        scan.problems
    }

    /// Scans a head file, or the segment that was made from it since the recording was opened.
    fn scan_head(&self, file: &HeadFile, scan: &mut Scan<'_>) {
        let mut timeline = Timeline::of_a_part();
        let read = head::load(&file.path, &mut timeline, Some(scan.window));
        if timeline.is_empty() && !super::is_there(&file.path) {
            let (segments, _) = segment::list(&self.directory).unwrap_or_default();
            let sealed = segments.iter().find(|segment| segment.sequence == file.sequence);
            return sealed.map_or((), |segment| scan.segment(segment));
        }
        scan.problems.extend(read.problems);
        scan.head(&timeline);
    }
}

/// The state of a scan.
struct Scan<'a> {
    window: head::Window,
    /// The signals, in the order of the catalogue.
    signals: Vec<SignalId>,
    /// The last samples of the previous part.
    carried: Timeline,
    problems: Vec<String>,
    each: &'a mut dyn FnMut(&Timeline),
}

impl Scan<'_> {
    fn segment(&mut self, segment: &Segment) {
        let file = names::file_of(timeline::Entity::Host);
        let host = match segment.host() {
            Ok(host) => host,
            Err(error) => {
                return self.lost(segment, file, &error, "it is shown by the minute");
            }
        };
        let signals = std::mem::take(&mut self.signals);
        let mut read = Ok(());
        self.part(&host.taken, |picks, timeline| {
            read = host.read_only(&signals, picks, timeline);
        });
        self.signals = signals;
        if let Err(error) = read {
            self.lost(segment, file, &error, "some peaks within its minutes are missing");
        }
    }

    fn head(&mut self, from: &Timeline) {
        let signals = std::mem::take(&mut self.signals);
        self.part(&StoredSample::all(from), |picks, timeline| {
            part::append_host(from, |id| signals.binary_search(&id).is_ok(), picks, timeline);
        });
        self.signals = signals;
    }

    fn lost(&mut self, segment: &Segment, file: &str, error: &str, rest: &str) {
        let name = segment.name();
        self.problems.push(format!("{name}/{file}: {error}; {rest}"));
    }

    /// Builds a part's timeline and passes it on.
    fn part(&mut self, taken: &[StoredSample], fill: impl FnOnce(&SamplePicks, &mut Timeline)) {
        let mut timeline = std::mem::take(&mut self.carried);
        let mut places = Vec::with_capacity(taken.len());
        for sample in taken {
            let wanted = is_within(self.window, sample.stamp.wall);
            places.push(wanted.then(|| {
                append(&mut timeline, sample);
                timeline.len() - 1
            }));
        }
        let picks = SamplePicks::new(places);
        if picks.places().is_empty() {
            self.carried = timeline;
            return;
        }
        fill(&picks, &mut timeline);
        (self.each)(&timeline);
        timeline.keep_last(CARRIED);
        self.carried = timeline;
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use timeline::signals::{MEM_FREE, PSWPIN, PSWPOUT};
    use timeline::{BreakKind, Facts, Sample, Timeline};
    use units::{Bytes, Pages, Span, WallClock};

    use crate::tests::host;
    use crate::{Recording, Resolution, Selection, add_timeline};

    const DAY: u64 = 1_700_000_000;

    fn at(second: u64) -> WallClock {
        WallClock::from_unix_nanos(((DAY + second) * 1_000_000_000).cast_signed())
    }

    /// Ten pages are swapped in a second.
    fn watched(from: u64, to: u64) -> Timeline {
        let mut timeline = Timeline::default();
        for second in from..to {
            let mut sample = Sample::at(Span::from_secs(1000 + second));
            sample.stamp.wall = Some(at(second));
            sample.host.set(MEM_FREE, Bytes::new(second));
            sample.host.set(PSWPIN, Pages::new(10 * second));
            sample.host.set(PSWPOUT, Pages::new(second));
            timeline.push(&sample).unwrap();
        }
        timeline
    }

    /// Three segments: two follow each other, the third comes after nine minutes.
    fn recorded(directory: &Path) -> Recording {
        for (from, to) in [(0, 100), (100, 160), (700, 720)] {
            let every = Span::from_secs(1);
            add_timeline(directory, &host(), &watched(from, to), &Facts::default(), every).unwrap();
        }
        Recording::open(directory).unwrap()
    }

    fn scanned(recording: &Recording, selection: Selection) -> (Vec<Timeline>, Vec<String>) {
        let mut parts = Vec::new();
        let signals = [PSWPIN.id(), MEM_FREE.id()];
        let problems = recording.scan(selection, &signals, &mut |part| parts.push(part.clone()));
        (parts, problems)
    }

    #[test]
    fn rates_reach_across_the_borders_of_parts_but_not_across_a_gap() {
        let directory = tempfile::tempdir().unwrap();
        let (parts, problems) = scanned(&recorded(directory.path()), Selection::default());
        assert_eq!(problems, Vec::<String>::new());
        assert_eq!(parts.iter().map(Timeline::len).collect::<Vec<_>>(), [100, 69, 29]);
        let rates: Vec<_> = parts.iter().map(|part| part.rate(PSWPIN).unwrap()).collect();
        assert_eq!(rates[0].values()[0], None);
        assert_eq!(rates[1].values()[1..], vec![Some(10.0); 68]);
        assert_eq!(rates[2].values()[9], None, "after the gap");
        assert!(matches!(parts[2].breaks()[0].kind, BreakKind::Gap(_)));
        assert!(parts.iter().all(|part| part.rate(PSWPOUT).is_none()), "not asked for");
        assert_eq!(parts[1].at(MEM_FREE, 9), Some(Bytes::new(100)));
    }

    #[test]
    fn a_selection_has_every_sample_of_its_time() {
        let directory = tempfile::tempdir().unwrap();
        let selection = Selection {
            since: Some(at(90)),
            until: Some(at(130)),
            resolution: Resolution::Minutes,
        };
        let (parts, _) = scanned(&recorded(directory.path()), selection);
        let walls = parts.iter().flat_map(|part| {
            let new = if part.len() == 10 { 0 } else { 9 };
            (new..part.len()).map(|index| part.stamp(index).unwrap().wall.unwrap())
        });
        assert_eq!(walls.collect::<Vec<_>>(), (90..=130).map(at).collect::<Vec<_>>());
    }

    #[test]
    fn a_damaged_part_is_named_and_the_others_pass() {
        let directory = tempfile::tempdir().unwrap();
        let recording = recorded(directory.path());
        let file = recording.segments[1].path.join("host.parquet");
        let mut bytes = std::fs::read(&file).unwrap();
        bytes[40] ^= 0xff;
        std::fs::write(&file, bytes).unwrap();
        let (parts, problems) = scanned(&recording, Selection::default());
        assert_eq!(parts.len(), 2);
        assert_eq!(problems.len(), 1);
        assert!(problems[0].contains("shown by the minute"), "{problems:?}");
        std::fs::write(&file, b"PAR1").unwrap();
        assert_eq!(scanned(&recording, Selection::default()).0.len(), 2);
    }
}
