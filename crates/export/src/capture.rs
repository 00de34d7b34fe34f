//! Turns any source into a capture: readings that tools printed become the kernel files that the tools had read.
//!
//! The text of each file is written from the signals ([`texts`]) and parsed again at once. Readings that the parser
//! does not return unchanged are counted as left out, so a capture never has more than its source, and needs no list
//! of what it cannot store. Kernel reports are stored verbatim. On a line of several numbers, those that no parser
//! reads are written as 0.

mod texts;

use std::collections::BTreeSet;
use std::collections::btree_map::{BTreeMap, Entry};
use std::io::{self, Write};

use probe::saved::Parsers;
use timeline::facts::CgroupMode;
use timeline::{
    BreakKind, Entity, Event, Facts, KernelReport, ProcessKey, Row, Sample, Stamp, Timeline,
};
use units::Span;

use crate::{Exported, Exporter, Picks};

use probe::kernel_report;
use store::KeptName;
use store::capture_format::{CaptureHeader, CaptureSample, CaptureWriter, KERNEL_LOG};
use timeline::Source;

/// A capture, which has whole kernel files: picks of signals do not apply.
#[derive(Debug, Clone, Copy)]
pub struct Capture;

impl Exporter for Capture {
    fn unit(&self) -> &'static str {
        "sample"
    }

    fn export(&self, source: &Source, _: &Picks, output: &mut dyn Write) -> io::Result<Exported> {
        let converted = convert(source, output)?;
        Ok(Exported { written: converted.samples, left_out: converted.in_words() })
    }
}

/// The result of a conversion.
#[derive(Debug, Default)]
struct Converted {
    /// Samples written.
    samples: usize,
    /// Names of signals of which the capture lacks readings.
    left_out: BTreeSet<&'static str>,
    /// Kernel reports without a stored text, in one sample with another report, or from before all samples.
    reports_left_out: usize,
    /// Unknown fields of kernel files: only their last value is known, not its sample.
    fields_left_out: usize,
    /// Events that a recorder noted, other than kernel reports: starts and ends of services and of itself.
    events_left_out: usize,
}

/// Writes a source as a capture.
fn convert(source: &Source, output: impl Write) -> io::Result<Converted> {
    let timeline = &source.timeline;
    let every = timeline.interval().unwrap_or(Span::from_secs(1));
    let mut header = CaptureHeader::new(&source.facts, every);
    header.rounded = rounded(timeline);
    let mut writer = CaptureWriter::new(output, &header)?;
    let mut converted = Converted {
        events_left_out: events_left_out(timeline),
        fields_left_out: timeline.unknown().count(),
        ..Converted::default()
    };
    let unrelated: BTreeSet<usize> = timeline
        .breaks()
        .iter()
        .filter(|b| b.kind == BreakKind::NewSegment)
        .map(|b| b.before)
        .collect();
    let Some(origin) = origin(timeline) else {
        return Ok(converted);
    };
    let reports = converted.reports(timeline);
    let mode = source.facts.cgroup_mode.unwrap_or(CgroupMode::V2);
    let (mut parsers, mut read) = (Parsers::default(), Sample::default());
    for (index, sample) in timeline.samples().enumerate() {
        let report = reports.get(&index).copied();
        let sample = match report {
            Some((report, _)) => without_report(&sample, report),
            None => sample,
        };
        let mut files = texts::from_sample(&sample, mode);
        read_back(&files, &mut parsers, &mut read);
        converted.note_lost(&sample, &read);
        files.extend(report.map(|(_, text)| (KERNEL_LOG.to_owned(), text.to_owned())));
        files.extend(facts_at(&source.facts, timeline, index));
        let mut line = CaptureSample::new(origin, sample.stamp, files);
        line.unrelated = unrelated.contains(&index);
        if converted.samples == 0 {
            line.names = KeptName::of_a_capture(&source.facts.names);
        }
        writer.sample(&line)?;
        converted.samples += 1;
    }
    Ok(converted)
}

/// Parses the texts of a sample again. The memory of the sample before is reused.
fn read_back(files: &texts::Texts, parsers: &mut Parsers, read: &mut Sample) {
    read.clear();
    let mut facts = Facts::default();
    for (path, text) in files {
        // A faulty text is a reading that is not reproduced.
        let _ = parsers.read(path, text.as_bytes(), read, &mut facts);
    }
}

/// Returns the origin of a capture's times: the least clocks of all samples, so with one boot those of the first.
fn origin(timeline: &Timeline) -> Option<Stamp> {
    let stamps = || (0..timeline.len()).filter_map(|index| timeline.stamp(index));
    Some(Stamp {
        boot: stamps().map(|stamp| stamp.boot).min()?,
        awake: stamps().filter_map(|stamp| stamp.awake).min(),
        wall: None,
        ..Stamp::default()
    })
}

/// Returns all facts at the first sample. At each later one, returns those that changed since the sample before, and
/// those with an old value that was last read at this sample.
fn facts_at(facts: &Facts, timeline: &Timeline, index: usize) -> texts::Texts {
    let Some(before) = index.checked_sub(1) else {
        return texts::known(facts);
    };
    let times = timeline.times();
    let is_new = |at: Span| times.get(before) < Some(&at) && Some(&at) <= times.get(index);
    let (now, next) = (times.get(index), times.get(index + 1));
    let is_last = |since: &Span| now <= Some(since) && next.is_none_or(|next| since < next);
    let changes = || facts.changes().iter();
    let mut texts = texts::unchanged(changes().filter(|it| it.since.as_ref().is_some_and(is_last)));
    texts.extend(texts::changed(changes().filter(|it| is_new(it.at))));
    texts
}

/// Returns a sample without the readings that its kernel report also has.
fn without_report(sample: &Sample, report: &KernelReport) -> Sample {
    let mut reported = Sample::default();
    kernel_report::fill(report, &mut reported);
    let mut other = Sample::default();
    other.stamp = sample.stamp;
    for (signal, raw) in sample.host.iter() {
        if !reported.host.iter().any(|reading| reading == (signal, raw)) {
            other.host.set_raw(signal, raw);
        }
    }
    for entity in Entity::ALL.into_iter().filter(|entity| *entity != Entity::Host) {
        if reported.table(entity).rows().is_empty() {
            other.table_mut(entity).clone_from(sample.table(entity));
        }
    }
    other
}

/// Counts events that are not kernel reports: those have the kernel's text.
fn events_left_out(timeline: &Timeline) -> usize {
    let noted = timeline.recorder_events().iter();
    noted.filter(|event| event.report.is_empty()).count()
}

/// Counts kernel reports that a recorder noted and no sample has: mostly those before the first sample.
fn reports_noted_only(timeline: &Timeline) -> usize {
    let is_shown = |event: &Event| {
        let mut reports = timeline.all_reports().iter();
        reports.any(|reported| event.is_of(&reported.report, reported.stamp))
    };
    let noted = timeline.recorder_events().iter();
    let of_kernel = noted.filter(|event| !event.report.is_empty());
    of_kernel.filter(|event| !is_shown(event)).count()
}

fn rounded(timeline: &Timeline) -> BTreeMap<String, u64> {
    let half = |signal| timeline.rounding_error(signal);
    timeline
        .rounded_signals()
        .filter_map(|signal| Some((signal.def().name.to_owned(), half(signal)?)))
        .collect()
}

impl Converted {
    /// Returns in words what the capture could not store.
    fn in_words(&self) -> Vec<String> {
        let names: Vec<&str> = self.left_out.iter().copied().collect();
        let signals = left_out_text(names.len(), "signal", |those| {
            format!("no kernel file holds {those}: {}", names.join(", "))
        });
        let reports = left_out_text(self.reports_left_out, "kernel report", |_| {
            "from before the first sample, too long, or of the same sample as another".to_owned()
        });
        let fields = left_out_text(self.fields_left_out, "kernel field", |those| {
            format!("memtide does not know {those}; `memtide check SOURCE --all` names {those}")
        });
        let events = left_out_text(self.events_left_out, "event", |those| {
            format!("the recorder noted {those}: services, its own beginning and end")
        });
        [signals, reports, fields, events].into_iter().flatten().collect()
    }

    /// Returns the report of each sample that has one, with its text.
    fn reports<'a>(
        &mut self,
        timeline: &'a Timeline,
    ) -> BTreeMap<usize, (&'a KernelReport, &'a str)> {
        let mut texts = BTreeMap::new();
        self.reports_left_out = reports_noted_only(timeline);
        for reported in timeline.all_reports() {
            match (&reported.text, texts.entry(reported.sample)) {
                (Some(text), Entry::Vacant(free)) => {
                    free.insert((&reported.report, &**text));
                }
                _ => self.reports_left_out += 1,
            }
        }
        texts
    }

    /// Notes the signals that the texts do not reproduce.
    fn note_lost(&mut self, sample: &Sample, read: &Sample) {
        self.note_lost_readings(&sample.host, Some(&read.host));
        for entity in Entity::ALL {
            let back: BTreeMap<&str, &Row> = read
                .table(entity)
                .rows()
                .iter()
                .map(|row| (identity(entity, &row.key), &row.row))
                .collect();
            for row in sample.table(entity).rows() {
                let back = back.get(identity(entity, &row.key)).copied();
                self.note_lost_readings(&row.row, back);
            }
        }
    }

    /// Notes the signals of readings that are not back.
    fn note_lost_readings(&mut self, row: &Row, back: Option<&Row>) {
        let mut back: Vec<_> = back.into_iter().flat_map(Row::iter).collect();
        back.sort_unstable();
        let lost = row.iter().filter(|reading| back.binary_search(reading).is_err());
        self.left_out.extend(lost.map(|(signal, _)| signal.def().name));
    }
}

/// `2 events: WHY`; `None` without any. `why` gets the pronoun for them.
fn left_out_text(count: usize, one: &str, why: impl Fn(&str) -> String) -> Option<String> {
    match count {
        0 => None,
        1 => Some(format!("1 {one}: {}", why("it"))),
        n => Some(format!("{n} {one}s: {}", why("them"))),
    }
}

/// Returns a process's key without its start: a `stat` with the start needs numbers that the source may lack.
fn identity(entity: Entity, key: &str) -> &str {
    if entity == Entity::Process { ProcessKey::parse(key).pid } else { key }
}

#[cfg(test)]
mod tests;
