//! Turning any source into a capture: what tools printed becomes the kernel files that they had read.
//!
//! The text of each file is written from the signals ([`texts`]) and read again at once: what does not come back as it was
//! is counted as left out. So a capture never holds more than its source did, and nobody has to keep a list of what
//! cannot be kept. Kernel reports are kept as the kernel wrote them.

mod texts;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

use probe::saved::Parsers;
use timeline::{BreakKind, Entity, Facts, Reported, Sample, Timeline};
use units::Span;

use crate::Opened;
use crate::capture::{Header, KERNEL_LOG, SampleLine, Writer};

/// What came of it.
#[derive(Debug, Default)]
pub struct Converted {
    /// Samples written.
    pub samples: usize,
    /// Names of signals that the capture does not hold, or not all readings of.
    pub left_out: BTreeSet<&'static str>,
    /// Kernel reports whose text was not kept.
    pub reports_left_out: usize,
}

/// Writes a source as a capture.
///
/// # Errors
/// The output's.
pub fn convert(opened: &Opened, output: impl Write) -> std::io::Result<Converted> {
    let timeline = &opened.timeline;
    let every = timeline.interval().unwrap_or(Span::from_secs(1));
    let mut header = Header::new(&opened.facts, every);
    header.rounded = rounded(timeline);
    let mut writer = Writer::new(output, &header)?;
    let mut converted = Converted::default();
    let unrelated: BTreeSet<usize> = timeline
        .breaks()
        .iter()
        .filter(|b| b.kind == BreakKind::Unrelated)
        .map(|b| b.before)
        .collect();
    let reports: BTreeMap<usize, &Reported> = timeline
        .all_reports()
        .iter()
        .map(|reported| (reported.sample, reported))
        .collect();
    let mut parsers = Parsers::default();
    for index in 0..timeline.len() {
        let (Some(sample), Some(first)) = (timeline.sample(index), timeline.stamp(0)) else {
            break;
        };
        let mut files = BTreeMap::new();
        match reports.get(&index).map(|reported| &reported.text) {
            Some(None) => converted.reports_left_out += 1,
            Some(Some(text)) => {
                files.insert(KERNEL_LOG.to_owned(), text.to_string());
            }
            None => {
                files = texts::of(&sample);
                converted.note_lost(&sample, &files, &mut parsers);
            }
        }
        if index == 0 {
            files.extend(texts::of_facts(&opened.facts));
        }
        let mut line = SampleLine::new(first, sample.stamp, files);
        line.unrelated = unrelated.contains(&index);
        writer.sample(&line)?;
        converted.samples += 1;
    }
    Ok(converted)
}

fn rounded(timeline: &Timeline) -> BTreeMap<String, u64> {
    let half = |signal| timeline.error_at_most(signal);
    timeline
        .rounded()
        .filter_map(|signal| Some((signal.def().name.to_owned(), half(signal)?)))
        .collect()
}

impl Converted {
    /// What the capture could not hold, in words.
    pub fn in_words(&self) -> Vec<String> {
        let names: Vec<&str> = self.left_out.iter().copied().collect();
        let signals = (!names.is_empty()).then(|| {
            format!(
                "{} signals are not kept, as no kernel file that holds them can be made up: {}",
                names.len(),
                names.join(", ")
            )
        });
        let reports = (self.reports_left_out > 0).then(|| {
            format!(
                "{} kernel reports are not kept: their texts are too long",
                self.reports_left_out
            )
        });
        signals.into_iter().chain(reports).collect()
    }

    /// Notes which signals the texts do not give back.
    fn note_lost(
        &mut self,
        sample: &Sample,
        files: &BTreeMap<String, String>,
        parsers: &mut Parsers,
    ) {
        let (mut read, mut facts) = (Sample::default(), Facts::default());
        for (path, text) in files {
            // A text that is wrong is a reading that does not come back.
            let _ = parsers.read(path, text.as_bytes(), &mut read, &mut facts);
        }
        let back: BTreeSet<_> = read.host.iter().collect();
        let lost = sample.host.iter().filter(|reading| !back.contains(reading));
        self.left_out
            .extend(lost.map(|(signal, _)| signal.def().name));
        for entity in Entity::ALL {
            let back: BTreeMap<&str, BTreeSet<_>> = read
                .table(entity)
                .rows()
                .iter()
                .map(|row| (identity(entity, &row.key), row.row.iter().collect()))
                .collect();
            for row in sample.table(entity).rows() {
                let known = back.get(identity(entity, &row.key));
                let is_back = |reading| known.is_some_and(|known| known.contains(&reading));
                let lost = row.row.iter().filter(|reading| !is_back(*reading));
                self.left_out
                    .extend(lost.map(|(signal, _)| signal.def().name));
            }
        }
    }
}

/// A process's start is not kept, as its `stat` would need numbers that nobody gave.
fn identity(entity: Entity, key: &str) -> &str {
    match (entity, key.split_once('@')) {
        (Entity::Process, Some((pid, _))) => pid,
        _ => key,
    }
}
