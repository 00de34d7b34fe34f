//! Captures ([`store::capture_format`]): raw text of kernel files over time, one JSON object a line, packed as gzip,
//! as zstd or not at all.

use std::io::BufRead;

use probe::saved::Parsers;
use store::capture_format::{CaptureHeader, CaptureSample, KERNEL_LOG};
use timeline::{
    Entity, Facts, Inventory, KernelReport, Origin, Problems, Sample, Source, SourceKind, Timeline,
    signals, start_of,
};
use units::{PageSize, Quantity, Span, WallClock};

use crate::builder::{Snapshot, TimelineBuilder};
use crate::decompress::{Packing, damage};
use crate::plausible::drop_impossible;
use crate::reports;
use crate::text::bounded_lines::{BoundedLines, LineRead};
use crate::text::log_search::WINDOW_MAX;

/// At most 32 MiB of a line: no host's sample is longer, as 5,000 processes take 10 MiB.
const LINE_LEN_MAX: usize = 32 << 20;
/// At most 1 MiB of a header: a list of what was rounded has as many names as there are signals.
const HEADER_LEN_MAX: usize = 1 << 20;
/// At most ten lines of noise for each sample; a packed megabyte can hold a thousand million lines.
const LINES_MAX: usize = 10 * TimelineBuilder::SNAPSHOTS_MAX;

/// Whether a text begins like a capture: with a JSON object that names a field of header or sample.
pub(crate) fn looks_like(start: &[u8]) -> bool {
    let start = start.trim_ascii_start();
    let first_line = start.split(|b| *b == b'\n').next().unwrap_or_default();
    let is_key = |name: &[u8]| {
        let mut places = memchr::memmem::find_iter(first_line, name);
        places.any(|at| first_line[at + name.len()..].trim_ascii_start().starts_with(b":"))
    };
    first_line.starts_with(b"{")
        && ["\"files\"", "\"t\"", "\"kernel\"", "\"interval_s\"", "\"format\""]
            .iter()
            .any(|name| is_key(name.as_bytes()))
}

/// Reads a capture's text. Faulty records become problems; good ones are kept.
pub(crate) fn read(text: &mut dyn BufRead, packing: Packing) -> Source {
    read_at_most(TimelineBuilder::SNAPSHOTS_MAX, text, packing)
}

fn read_at_most(most_samples: usize, text: &mut dyn BufRead, packing: Packing) -> Source {
    let mut reader = Reader::default();
    let mut lines = BoundedLines::new(text, LINE_LEN_MAX);
    loop {
        match lines.next() {
            Ok(LineRead::End) => break,
            Ok(_) if reader.timeline.len() >= most_samples || reader.timeline.is_full() => {
                reader.is_cut_short = true;
                reader.problems.note(format!(
                    "only its first {} samples were read, {} of it{}; cut it into parts to read \
                     the rest",
                    reader.timeline.len(),
                    reader.timeline.duration(),
                    reader.timeline.why_full(),
                ));
                break;
            }
            Ok(LineRead::TooLong(bytes)) => reader.problems.note(format!(
                "line {} has {} and was passed over; a sample's line has at most {}",
                lines.count,
                units::Bytes::new(bytes),
                units::Bytes::new(LINE_LEN_MAX as u64),
            )),
            Ok(LineRead::Read { whole }) => reader.line(&lines.text, lines.count, whole),
            Err(error) => {
                let what = damage(packing, &error);
                reader.problems.note(format!(
                    "{what} in line {} after {} of text; the {} samples before it are used",
                    lines.count,
                    units::Bytes::new(lines.bytes),
                    reader.timeline.len(),
                ));
                break;
            }
        }
        if lines.count >= LINES_MAX {
            reader.is_cut_short = true;
            reader.problems.note(format!(
                "only the first {LINES_MAX} lines are read, of which {} are samples",
                reader.timeline.len()
            ));
            break;
        }
    }
    reader.finish()
}

/// What was read so far.
#[derive(Debug, Default)]
struct Reader {
    parsers: Parsers,
    timeline: Timeline,
    facts: Facts,
    name_room: store::NameRoom,
    problems: Problems,
    sample: Sample,
    out_of_order: usize,
    first_disorder: usize,
    is_cut_short: bool,
}

impl Reader {
    fn line(&mut self, text: &[u8], count: usize, whole: bool) {
        let text = text.trim_ascii();
        if text.is_empty() {
            return;
        }
        match serde_json::from_slice::<CaptureSample>(text) {
            Ok(sample) => self.sample(sample, count),
            Err(_) if count == 1 && text.len() <= HEADER_LEN_MAX && self.header(text) => {}
            Err(_) if !whole => self.problems.note(format!(
                "line {count} is cut in the middle; the {} samples before it are used",
                self.timeline.len()
            )),
            Err(error) => self
                .problems
                .note(format!("line {count} is no sample and was passed over: {error}")),
        }
    }

    fn header(&mut self, text: &[u8]) -> bool {
        let Ok(header) = serde_json::from_slice::<CaptureHeader>(text) else {
            return false;
        };
        for (name, error_at_most) in &header.rounded {
            if let Some((signal, _)) = signals::by_name(name) {
                self.timeline.note_rounding(signal, *error_at_most);
            }
        }
        header.into_facts(&mut self.facts);
        true
    }

    fn sample(&mut self, line: CaptureSample, count: usize) {
        if !(line.t.is_finite() && line.t >= 0.0 && line.t < 1e10) {
            self.problems.note(format!(
                "line {count} was passed over: `t` is {}, not seconds since the first sample",
                line.t
            ));
            return;
        }
        for name in line.names {
            name.add_to(&mut self.facts.names, &mut self.name_room);
        }
        self.sample.clear();
        self.sample.stamp.boot = Span::from_secs_f64(line.t);
        self.sample.stamp.awake = line.awake.map(Span::from_secs_f64);
        self.sample.stamp.wall = line.wall_ns.map(WallClock::from_unix_nanos);
        for (path, text) in &line.files {
            let read = self.parsers.read(path, text.as_bytes(), &mut self.sample, &mut self.facts);
            if let Err(error) = read {
                self.problems.note(format!("sample at {} s: {error}", line.t));
            }
        }
        if self.facts.page_size.is_none() {
            self.facts.page_size = page_size(&self.sample);
        }
        let mut snapshot = Snapshot::from(std::mem::take(&mut self.sample));
        self.drop_impossible(&mut snapshot, line.t);
        self.sample = snapshot.sample;
        let text = line.files.get(KERNEL_LOG);
        let report = text.and_then(|text| self.report(text, line.t));
        if line.unrelated {
            self.timeline.push_new_segment(&self.sample);
        } else if self.timeline.push(&self.sample).is_err() {
            self.out_of_order += 1;
            if self.first_disorder == 0 {
                self.first_disorder = count;
            }
            return;
        }
        if let Some(report) = report {
            let text = text.map(|text| text.as_str().into());
            self.timeline.report(report, text);
        }
    }

    /// Drops the figures of the snapshot at `t` seconds that no host has.
    fn drop_impossible(&mut self, snapshot: &mut Snapshot, t: f64) {
        for impossible in drop_impossible(snapshot) {
            self.problems.note(format!("sample at {t} s: {}", impossible.problem()));
        }
    }

    /// Adds the readings of a kernel report to the sample, and returns the report.
    fn report(&mut self, text: &str, t: f64) -> Option<KernelReport> {
        // As of a log: a longer report is cut.
        let text = start_of(text, WINDOW_MAX);
        let mut snapshot = reports::read(text)?;
        self.drop_impossible(&mut snapshot, t);
        for (signal, raw) in snapshot.sample.host.iter() {
            self.sample.host.set_raw(signal, raw);
        }
        for entity in Entity::ALL {
            for row in snapshot.sample.table(entity).rows() {
                self.sample.table_mut(entity).add().clone_from(row);
            }
        }
        snapshot.report
    }

    fn finish(mut self) -> Source {
        if self.out_of_order > 0 {
            self.problems.note(format!(
                "{} samples lie before the one ahead of them in time and were passed over (the \
                 first in line {}); samples must be in order",
                self.out_of_order, self.first_disorder
            ));
        }
        self.problems.note_left_out(&self.timeline, &self.facts);
        Source {
            timeline: self.timeline,
            facts: self.facts,
            origin: Origin {
                kind: SourceKind::Capture,
                is_cut_short: self.is_cut_short,
                ..Origin::default()
            },
            inventory: Inventory::default(),
            problems: self.problems.into_texts(),
        }
    }
}

/// Returns the page size from two readings of free memory a moment apart: MemFree in KiB and nr_free_pages.
pub(crate) fn page_size(sample: &Sample) -> Option<PageSize> {
    let bytes = sample.host.get(signals::MEM_FREE)?.as_f64();
    let pages = sample.host.get(signals::NR_FREE_PAGES)?.as_f64();
    let power = (bytes / pages).log2();
    // Free memory may change between the two readings, which must not turn 4 KiB into 8.
    if !power.is_finite() || (power - power.round()).abs() > 0.2 {
        return None;
    }
    (10..=20)
        .find(|p| f64::from(*p) == power.round())
        .and_then(|p: u32| PageSize::from_bytes(1 << p))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use store::capture_format::CaptureWriter;
    use timeline::Stamp;
    use timeline::facts::Container;
    use timeline::signals::MEM_FREE;
    use timeline::{TimePoint, TimeRange};
    use units::Bytes;

    fn capture(text: &str) -> Source {
        read(&mut text.as_bytes(), Packing::None)
    }

    fn sample(t: f64, free_kib: u64) -> String {
        format!("{{\"t\": {t}, \"files\": {{\"/proc/meminfo\": \"MemFree: {free_kib} kB\\n\"}}}}\n")
    }

    #[test]
    fn only_the_keys_of_a_capture_make_one() {
        for capture in ["{\"kernel\" : \"6.1\"}\n", " {\"t\":0,\"files\":{}}", "{\"files\": {}}"] {
            assert!(looks_like(capture.as_bytes()), "{capture}");
        }
        for other in [
            "{\"_TRANSPORT\":\"kernel\",\"MESSAGE\":\"x\"}\n",
            "{\"fields\": [\"t\", \"format\"]}",
            "[{\"kernel\": 1}]",
        ] {
            assert!(!looks_like(other.as_bytes()), "{other}");
        }
    }

    #[test]
    fn samples_become_a_timeline() {
        let opened =
            capture(&format!("{{\"interval_s\": 1}}\n{}{}", sample(0.0, 4), sample(1.5, 8)));
        assert_eq!(opened.problems, Vec::<String>::new());
        assert_eq!(opened.timeline.duration(), Span::from_secs_f64(1.5));
        assert_eq!(opened.timeline.last(MEM_FREE), Some(Bytes::from_kib(8)));
    }

    #[test]
    fn more_samples_than_memory_has_room_for_are_said() {
        let text: String = (0..3).map(|t| sample(f64::from(t), 4)).collect();
        let read = |most| read_at_most(most, &mut text.as_bytes(), Packing::None);
        let whole = read(3);
        assert_eq!((whole.problems.len(), whole.origin.is_cut_short), (0, false));
        let cut = read(2);
        assert_eq!((cut.timeline.len(), cut.origin.is_cut_short), (2, true));
        assert!(
            cut.problems[0].starts_with("only its first 2 samples were read, 1 s of it"),
            "{:?}",
            cut.problems
        );
        let part = |until| TimeRange {
            until: Some(TimePoint::AfterStart(Span::from_secs(until))),
            ..TimeRange::default()
        };
        assert!(!read(2).within(part(0)).unwrap().origin.is_cut_short);
        assert!(read(2).within(part(1)).unwrap().origin.is_cut_short);
    }

    #[test]
    fn a_header_is_not_needed() {
        assert_eq!(capture(&sample(0.0, 4)).timeline.len(), 1);
    }

    #[test]
    fn a_cut_line_and_a_broken_line_cost_themselves_only() {
        let cut = capture(&format!("{}{}", sample(0.0, 4), &sample(1.0, 5)[..20]));
        assert_eq!(cut.timeline.len(), 1);
        assert!(cut.problems[0].contains("line 2 is cut"), "{:?}", cut.problems);
        let broken = capture(&format!("{}{{\"t\": }}\n{}", sample(0.0, 4), sample(1.0, 5)));
        assert_eq!(broken.timeline.len(), 2);
        assert!(broken.problems[0].contains("line 2 is no sample"));
    }

    #[test]
    fn samples_that_go_back_in_time_are_passed_over_and_counted() {
        let opened = capture(&format!("{}{}{}", sample(2.0, 1), sample(1.0, 2), sample(0.0, 3)));
        assert_eq!(opened.timeline.len(), 1);
        assert!(opened.problems[0].starts_with("2 samples lie before"));
    }

    #[test]
    fn a_boot_that_begins_in_1970_is_kept_whole() {
        let dated = |t: u32, wall_s: u64| {
            let line = sample(f64::from(t), u64::from(t));
            line.replacen(',', &format!(", \"wall_ns\": {wall_s}000000000,"), 1)
        };
        let opened = capture(&format!(
            "{}{}{}{}",
            dated(100, 1_795_000_000),
            dated(101, 1_795_000_001),
            dated(5, 44),
            dated(6, 45)
        ));
        assert_eq!(opened.problems, Vec::<String>::new());
        assert_eq!(opened.timeline.len(), 4);
        let breaks: Vec<_> = opened.timeline.breaks().iter().map(|it| it.kind).collect();
        assert_eq!(breaks, [timeline::BreakKind::Reboot]);
    }

    #[test]
    fn times_that_are_no_times_are_refused() {
        let opened = capture(&format!("{}{}", sample(0.0, 1), sample(-1.0, 2)));
        assert!(opened.problems[0].contains("`t` is -1"));
    }

    #[test]
    fn the_page_size_follows_from_two_counts_of_free_memory() {
        let mut sample = Sample::default();
        sample.host.set(MEM_FREE, Bytes::from_kib(64_100));
        sample.host.set(signals::NR_FREE_PAGES, units::Pages::new(1000));
        assert_eq!(page_size(&sample), PageSize::from_bytes(65_536));
        let mut torn = Sample::default();
        torn.host.set(MEM_FREE, Bytes::from_kib(6_000));
        torn.host.set(signals::NR_FREE_PAGES, units::Pages::new(1000));
        assert_eq!(page_size(&torn), None);
    }

    #[test]
    fn names_hold_for_all_samples_and_what_is_unknown_is_passed_over() {
        let named = |t: u32, names: &str| {
            sample(f64::from(t), 4).replace("}}", &format!("}}, \"names\": [{names}]}}"))
        };
        let web = r#"{"kind":"container","id":"a","name":"web"}"#;
        let pod = r#"{"kind":"pod","id":"b","namespace":"shop","name":"cart-0","later":1}"#;
        let other = r#"{"kind":"image","id":"c","name":"x"}"#;
        let text = [named(0, web), named(1, &format!("{other},{pod}")), sample(2.0, 4)];
        let opened = capture(&text.concat());
        assert_eq!(opened.problems, Vec::<String>::new());
        assert_eq!(opened.timeline.len(), 3);
        let part = TimeRange {
            until: Some(TimePoint::AfterStart(Span::from_secs(1))),
            ..TimeRange::default()
        };
        for source in [capture(&text.concat()), opened.within(part).unwrap()] {
            let names = &source.facts.names;
            assert_eq!(names.containers["a"].name, "web");
            assert_eq!(names.pods["b"].to_string(), "shop/cart-0");
            assert_eq!(names.count(), 2);
        }
        let many: Vec<String> = (0..store::NAMES_MAX + 9)
            .map(|id| format!(r#"{{"kind":"user","id":"{id}","name":"x"}}"#))
            .collect();
        let opened = capture(&named(0, &many.join(",")));
        assert_eq!(opened.facts.names.count(), store::NAMES_MAX);
    }

    #[test]
    fn what_is_written_is_read_back() {
        let mut writer = CaptureWriter::new(
            Vec::new(),
            &CaptureHeader { page_size: Some(4096), ..CaptureHeader::default() },
        )
        .unwrap();
        let files = BTreeMap::from([("/proc/meminfo".to_owned(), "MemFree: 7 kB\n".to_owned())]);
        let stamp = |boot, awake| Stamp {
            boot: Span::from_secs(boot),
            awake: Some(Span::from_secs(awake)),
            wall: None,
            ..Stamp::default()
        };
        let first = stamp(1_000, 700);
        for (boot, awake) in [(1_000, 700), (1_010, 702)] {
            let line = CaptureSample::new(first, stamp(boot, awake), files.clone());
            writer.sample(&line).unwrap();
        }
        let opened = read(&mut writer.into_inner().as_slice(), Packing::None);
        assert_eq!(opened.timeline.last(MEM_FREE), Some(Bytes::from_kib(7)));
        assert_eq!(opened.facts.page_size, PageSize::from_bytes(4096));
        let slept = timeline::BreakKind::Suspend(Span::from_secs(8));
        assert_eq!(opened.timeline.breaks()[0].kind, slept);
    }

    #[test]
    fn a_box_of_its_own_memory_stays_one() {
        for meminfo_is_own in [false, true] {
            let mut facts = Facts::default();
            facts.container = Some(Container {
                signs: vec!["lxcfs on /proc/meminfo".to_owned()],
                meminfo_is_own,
            });
            facts.hostname = Some("db1".to_owned());
            let header =
                serde_json::to_string(&CaptureHeader::new(&facts, Span::from_secs(1))).unwrap();
            let read = capture(&format!("{header}\n{}", sample(0.0, 4))).facts;
            assert_eq!(read.container, facts.container);
            assert_eq!(read.hostname, facts.hostname);
        }
    }
}
