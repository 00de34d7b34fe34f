//! Captures: raw text of kernel files over time, one JSON object a line.
//!
//! The first line may be a header (`kernel`, `interval_s`, `page_size`, …); every other line is a sample: `t`, seconds
//! on the boot clock since the first sample, and `files`, kernel path → text. A path that is absent was not there; an
//! empty text was an empty file. The spacing is what it was: a recorder on a sick host is late itself. Packed as gzip,
//! zstd or not at all.

use std::collections::BTreeMap;
use std::io::{BufRead, ErrorKind, Write};

use probe::saved::Parsers;
use serde::{Deserialize, Serialize};
use timeline::facts::{self, Container};
use timeline::{
    Entity, Facts, KernelReport, Origin, Sample, Source, SourceKind, Stamp, Timeline, signals,
};
use units::{PageSize, Quantity, Span, WallClock};

use crate::paste::Paste;
use crate::problems::Problems;
use crate::text::bounded_lines::{BoundedLines, LineRead};

/// No host's sample is longer: 10 MiB are 5,000 processes.
const LONGEST_LINE: usize = 32 << 20;
/// A day at one sample a second, and then some.
const MOST_SAMPLES: usize = 100_000;
/// Ten lines of noise for each sample; a packed megabyte can hold a thousand million of them.
const MOST_LINES: usize = 10 * MOST_SAMPLES;

/// The header: all of it optional.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Header {
    /// `memtide-capture/1`; absent in captures of other makers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
    /// The text of `/proc/version`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// Nominal distance between samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval_s: Option<f64>,
    /// Size of a base page in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page_size: Option<u64>,
    /// USER_HZ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_hz: Option<u64>,
    /// CPUs online.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<u32>,
    /// Name of the host, where it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hostname: Option<String>,
    /// The control group that the capture was taken in, where that limits it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_cgroup: Option<String>,
    /// What gave a container away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<Vec<String>>,
    /// Whether `/proc/meminfo` shows that container instead of the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meminfo_is_own: Option<bool>,
    /// Signals of the host that were rounded when they were printed, and how far the true readings may lie from those
    /// given: captures that were converted from text.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub rounded: BTreeMap<String, u64>,
}

impl Header {
    /// What a capture says of the host apart from its kernel files.
    pub fn new(facts: &Facts, every: Span) -> Self {
        let container = facts.container.as_ref();
        Self {
            format: Some("memtide-capture/1".to_owned()),
            kernel: facts.text(facts::KERNEL_VERSION).map(str::to_owned),
            interval_s: Some(every.as_secs_f64()),
            page_size: facts.page_size.map(|page| page.bytes().get()),
            user_hz: facts.ticks_per_second,
            cpus: facts.cpus,
            hostname: facts.hostname.clone(),
            own_cgroup: facts.own_cgroup.clone(),
            container: container.map(|container| container.signs.clone()),
            meminfo_is_own: container.map(|container| container.meminfo_is_own),
            rounded: BTreeMap::new(),
        }
    }

    /// The same, as facts.
    fn into_facts(self, facts: &mut Facts) {
        if let Some(kernel) = &self.kernel {
            facts.record(Span::ZERO, facts::KERNEL_VERSION, kernel);
        }
        facts.page_size = self.page_size.and_then(PageSize::from_bytes);
        facts.ticks_per_second = self.user_hz.filter(|hz| (1..=10_000).contains(hz));
        facts.cpus = self.cpus;
        facts.hostname = self.hostname;
        facts.own_cgroup = self.own_cgroup;
        facts.container = self.container.map(|signs| Container {
            signs,
            // Other makers' headers do not tell; then the signs do not either.
            meminfo_is_own: self.meminfo_is_own == Some(true),
        });
    }
}

/// One sample.
#[derive(Debug, Serialize, Deserialize)]
pub struct SampleLine {
    /// Seconds on the boot clock since the first sample.
    pub t: f64,
    /// The wall clock, nanoseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall_ns: Option<i64>,
    /// Seconds on the monotonic clock, which stands still in suspend, since the first sample.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub awake: Option<f64>,
    /// What taking the sample cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_ms: Option<f64>,
    /// Whether how it lies in time to the sample before it is not known: `t` only keeps the order.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unrelated: bool,
    /// Kernel path → text. [`KERNEL_LOG`] holds a report of the kernel, which is of the sample's moment.
    pub files: BTreeMap<String, String>,
}

/// The kernel's log.
pub const KERNEL_LOG: &str = "/dev/kmsg";

impl SampleLine {
    /// A sample taken at `stamp`; `first` is when the first one was.
    pub fn new(first: Stamp, stamp: Stamp, files: BTreeMap<String, String>) -> Self {
        let awake = stamp.awake.zip(first.awake);
        Self {
            t: (stamp.boot - first.boot).as_secs_f64(),
            wall_ns: stamp.wall.map(WallClock::unix_nanos),
            awake: awake.map(|(now, then)| now.saturating_sub(then).as_secs_f64()),
            cost_ms: None,
            unrelated: false,
            files,
        }
    }
}

/// Whether a text begins like a capture: with a JSON object that names a field of header or sample.
pub(crate) fn looks_like(start: &[u8]) -> bool {
    let start = start.trim_ascii_start();
    let first_line = start.split(|b| *b == b'\n').next().unwrap_or_default();
    first_line.starts_with(b"{")
        && [
            "\"files\"",
            "\"t\"",
            "\"kernel\"",
            "\"interval_s\"",
            "\"format\"",
        ]
        .iter()
        .any(|name| memchr::memmem::find(first_line, name.as_bytes()).is_some())
}

/// Reads a capture's text. Whatever is wrong with it is among the problems; whatever is good is kept.
pub(crate) fn read(text: &mut dyn BufRead, packing: &str) -> Source {
    read_at_most(MOST_SAMPLES, text, packing)
}

fn read_at_most(most_samples: usize, text: &mut dyn BufRead, packing: &str) -> Source {
    let mut reader = Reader::default();
    let mut lines = BoundedLines::new(text, LONGEST_LINE);
    loop {
        match lines.next() {
            Ok(LineRead::End) => break,
            Ok(_) if reader.timeline.len() >= most_samples => {
                reader.is_cut_short = true;
                reader.problems.note(format!(
                    "only its first {most_samples} samples were read, {} of it; cut it into parts to read the rest",
                    reader.timeline.duration(),
                ));
                break;
            }
            Ok(LineRead::TooLong(bytes)) => reader.problems.note(format!(
                "line {} has {} and was passed over; a sample's line has at most {}",
                lines.count,
                units::Bytes::new(bytes),
                units::Bytes::new(LONGEST_LINE as u64),
            )),
            Ok(LineRead::Read { whole }) => reader.line(&lines.text, lines.count, whole),
            Err(error) => {
                let what = match error.kind() {
                    ErrorKind::UnexpectedEof => format!("the {packing} data ends early"),
                    _ => format!("the {packing} data is damaged ({error})"),
                };
                reader.problems.note(format!(
                    "{what} in line {} after {} of text; the {} samples before it are used",
                    lines.count,
                    units::Bytes::new(lines.bytes),
                    reader.timeline.len(),
                ));
                break;
            }
        }
        if lines.count >= MOST_LINES {
            reader.is_cut_short = true;
            reader.problems.note(format!(
                "only the first {MOST_LINES} lines are read, of which {} are samples",
                reader.timeline.len()
            ));
            break;
        }
    }
    reader.finish()
}

/// What is known while a capture is read.
#[derive(Debug, Default)]
struct Reader {
    parsers: Parsers,
    timeline: Timeline,
    facts: Facts,
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
        match serde_json::from_slice::<SampleLine>(text) {
            Ok(sample) => self.sample(&sample, count),
            Err(_) if count == 1 && self.header(text) => {}
            Err(_) if !whole => self.problems.note(format!(
                "line {count} is cut in the middle; the {} samples before it are used",
                self.timeline.len()
            )),
            Err(error) => self.problems.note(format!(
                "line {count} is no sample and was passed over: {error}"
            )),
        }
    }

    fn header(&mut self, text: &[u8]) -> bool {
        let Ok(header) = serde_json::from_slice::<Header>(text) else {
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

    fn sample(&mut self, line: &SampleLine, count: usize) {
        if !(line.t.is_finite() && line.t >= 0.0 && line.t < 1e10) {
            self.problems.note(format!(
                "line {count} was passed over: `t` is {}, not seconds since the first sample",
                line.t
            ));
            return;
        }
        self.sample.clear();
        self.sample.stamp.boot = Span::from_secs_f64(line.t);
        self.sample.stamp.awake = line.awake.map(Span::from_secs_f64);
        self.sample.stamp.wall = line.wall_ns.map(WallClock::from_unix_nanos);
        for (path, text) in &line.files {
            let read = self
                .parsers
                .read(path, text.as_bytes(), &mut self.sample, &mut self.facts);
            if let Err(error) = read {
                self.problems
                    .note(format!("sample at {} s: {error}", line.t));
            }
        }
        if self.facts.page_size.is_none() {
            self.facts.page_size = page_size(&self.sample);
        }
        let text = line.files.get(KERNEL_LOG);
        let report = text.and_then(|text| self.report(text));
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

    /// Takes what the kernel said: readings into the sample, and the report itself.
    fn report(&mut self, text: &str) -> Option<KernelReport> {
        let snapshot = Paste::report(text)?;
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
                "{} samples lie before the one ahead of them in time and were passed over (the first in line {}); \
                 samples must be in order",
                self.out_of_order, self.first_disorder
            ));
        }
        self.problems.note_evicted(&self.timeline);
        Source {
            timeline: self.timeline,
            facts: self.facts,
            origin: Origin {
                kind: SourceKind::Capture,
                is_cut_short: self.is_cut_short,
                ..Origin::default()
            },
            problems: self.problems.into_texts(),
        }
    }
}

/// The page size from two counts of the same free memory, read a moment apart: MemFree in KiB and nr_free_pages.
pub(crate) fn page_size(sample: &Sample) -> Option<PageSize> {
    let bytes = sample.host.get(signals::MEM_FREE)?.as_f64();
    let pages = sample.host.get(signals::NR_FREE_PAGES)?.as_f64();
    let power = (bytes / pages).log2();
    // A moment's change of free memory must not turn 4 KiB into 8.
    if !power.is_finite() || (power - power.round()).abs() > 0.2 {
        return None;
    }
    (10..=20)
        .find(|p| f64::from(*p) == power.round())
        .and_then(|p: u32| PageSize::from_bytes(1 << p))
}

/// Writes a capture.
#[derive(Debug)]
pub struct Writer<W> {
    output: W,
}

impl<W: Write> Writer<W> {
    /// Starts a capture with its header.
    ///
    /// # Errors
    /// The output's.
    pub fn new(mut output: W, header: &Header) -> std::io::Result<Self> {
        line(&mut output, header)?;
        Ok(Self { output })
    }

    /// Appends a sample and hands it on, so that a full disk or a crash costs no earlier one.
    ///
    /// # Errors
    /// The output's.
    pub fn sample(&mut self, sample: &SampleLine) -> std::io::Result<()> {
        line(&mut self.output, sample)?;
        self.output.flush()
    }

    /// The output, to be finished.
    pub fn into_inner(self) -> W {
        self.output
    }
}

fn line(output: &mut impl Write, value: &impl Serialize) -> std::io::Result<()> {
    serde_json::to_writer(&mut *output, value)?;
    output.write_all(b"\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use timeline::signals::MEM_FREE;
    use timeline::{TimePoint, TimeRange};
    use units::Bytes;

    fn capture(text: &str) -> Source {
        read(&mut text.as_bytes(), "file")
    }

    fn sample(t: f64, free_kib: u64) -> String {
        format!("{{\"t\": {t}, \"files\": {{\"/proc/meminfo\": \"MemFree: {free_kib} kB\\n\"}}}}\n")
    }

    #[test]
    fn samples_become_a_timeline() {
        let opened = capture(&format!(
            "{{\"interval_s\": 1}}\n{}{}",
            sample(0.0, 4),
            sample(1.5, 8)
        ));
        assert_eq!(opened.problems, Vec::<String>::new());
        assert_eq!(opened.timeline.duration(), Span::from_secs_f64(1.5));
        assert_eq!(opened.timeline.last(MEM_FREE), Some(Bytes::from_kib(8)));
    }

    #[test]
    fn more_samples_than_memory_has_room_for_are_said() {
        let text: String = (0..3).map(|t| sample(f64::from(t), 4)).collect();
        let read = |most| read_at_most(most, &mut text.as_bytes(), "file");
        let whole = read(3);
        assert_eq!(
            (whole.problems.len(), whole.origin.is_cut_short),
            (0, false)
        );
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
        assert!(
            cut.problems[0].contains("line 2 is cut"),
            "{:?}",
            cut.problems
        );
        let broken = capture(&format!(
            "{}{{\"t\": }}\n{}",
            sample(0.0, 4),
            sample(1.0, 5)
        ));
        assert_eq!(broken.timeline.len(), 2);
        assert!(broken.problems[0].contains("line 2 is no sample"));
    }

    #[test]
    fn samples_that_go_back_in_time_are_passed_over_and_counted() {
        let opened = capture(&format!(
            "{}{}{}",
            sample(2.0, 1),
            sample(1.0, 2),
            sample(0.0, 3)
        ));
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
        sample
            .host
            .set(signals::NR_FREE_PAGES, units::Pages::new(1000));
        assert_eq!(page_size(&sample), PageSize::from_bytes(65_536));
        let mut torn = Sample::default();
        torn.host.set(MEM_FREE, Bytes::from_kib(6_000));
        torn.host
            .set(signals::NR_FREE_PAGES, units::Pages::new(1000));
        assert_eq!(page_size(&torn), None);
    }

    #[test]
    fn what_is_written_is_read_back() {
        let mut writer = Writer::new(
            Vec::new(),
            &Header {
                page_size: Some(4096),
                ..Header::default()
            },
        )
        .unwrap();
        let files = BTreeMap::from([("/proc/meminfo".to_owned(), "MemFree: 7 kB\n".to_owned())]);
        let stamp = |boot, awake| Stamp {
            boot: Span::from_secs(boot),
            awake: Some(Span::from_secs(awake)),
            wall: None,
        };
        let first = stamp(1_000, 700);
        for (boot, awake) in [(1_000, 700), (1_010, 702)] {
            let line = SampleLine::new(first, stamp(boot, awake), files.clone());
            writer.sample(&line).unwrap();
        }
        let opened = read(&mut writer.into_inner().as_slice(), "file");
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
            let header = serde_json::to_string(&Header::new(&facts, Span::from_secs(1))).unwrap();
            let read = capture(&format!("{header}\n{}", sample(0.0, 4))).facts;
            assert_eq!(read.container, facts.container);
            assert_eq!(read.hostname, facts.hostname);
        }
    }
}
