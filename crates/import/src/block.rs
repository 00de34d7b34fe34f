//! A block of text: where a form reads it, and what it reports of it.

use std::collections::BTreeSet;

use probe::saved::Parsers;
use timeline::Facts;
use units::PageSize;

use crate::builder::{Snapshot, SnapshotTime, TimelineBuilder, signals_in};
use crate::text::times::PrintedTime;

/// Where a form reads, and what it adds to.
pub(crate) struct BlockReader<'a> {
    /// The lines from here to the end of the text.
    pub(crate) lines: &'a [&'a str],
    /// The lines before them.
    pub(crate) before: &'a [&'a str],
    /// The name of the file; empty if it is unknown.
    pub(crate) file: &'a str,
    /// The command behind the last shell prompt, if the block follows it: `vmstat 5`.
    pub(crate) command: Option<&'a str>,
    /// The time printed before the block: the output of `date`, the stamp of a log.
    pub(crate) time: Option<PrintedTime>,
    /// The parsers of kernel files.
    pub(crate) parsers: &'a mut Parsers,
    /// Facts about the host.
    pub(crate) facts: &'a mut Facts,
    /// The name of the form that reads.
    pub(crate) form: &'static str,
    /// The samples of the blocks before, and of this one.
    pub(crate) builder: &'a mut TimelineBuilder,
    /// Names of the signals that the block has.
    pub(crate) signals: &'a mut BTreeSet<&'static str>,
    /// Snapshots added so far.
    pub(crate) added: usize,
}

impl BlockReader<'_> {
    /// Adds what the block reports of one time.
    pub(crate) fn add(&mut self, mut snapshot: Snapshot) {
        let wall = self.time.and_then(PrintedTime::wall);
        if let (SnapshotTime::Unknown, 0, Some(wall)) = (snapshot.when, self.added, wall) {
            snapshot.when = SnapshotTime::At(wall);
        }
        // A timeline has one page size. A kernel report may have been written with another one.
        if let (Some(report), Some(page)) = (&snapshot.report, self.facts.page_size) {
            let report_page = report.page_size.unwrap_or(PageSize::USUAL);
            snapshot.convert_pages(report_page, page);
        }
        self.signals.extend(signals_in(&snapshot.sample));
        self.builder.add(self.form, self.added == 0, snapshot);
        self.added += 1;
    }
}

/// A block that a form has read.
#[derive(Debug, Default)]
pub(crate) struct TextBlock {
    /// Human-readable: `free -m (procps 3.3.10 or later)`.
    pub(crate) what: String,
    /// How many lines it has.
    pub(crate) lines: usize,
    /// The unit of its sizes: `MiB`. Empty if it has none or prints it with each size.
    pub(crate) unit: &'static str,
    /// Problems: line within the block, from 0, and text.
    pub(crate) problems: Vec<(usize, String)>,
    /// How many of its lines were not understood.
    pub(crate) not_understood: usize,
    /// The system that it is of, if that is not Linux: `macOS`; else empty.
    pub(crate) other_system: &'static str,
}

impl TextBlock {
    /// A problem of the block as a whole.
    pub(crate) fn problem(&mut self, text: impl Into<String>) {
        self.problems.push((0, text.into()));
    }
}
