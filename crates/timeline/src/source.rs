//! A source: every reader returns one, and every answer is computed from one.

mod range;

pub use range::{OutOfRange, TimePoint, TimeRange};

use units::Span;

use crate::{Facts, Inventory, Timeline};

/// Samples of one host, its facts, and the origin of both.
#[derive(Debug, Clone, Default)]
pub struct Source {
    /// Its samples.
    pub timeline: Timeline,
    /// The host's facts.
    pub facts: Facts,
    /// Owners of memory at the last sample; empty if they were not searched for.
    pub inventory: Inventory,
    /// Where it was read, and how much of it.
    pub origin: Origin,
    /// What was wrong with it, in words; everything else was read.
    pub problems: Vec<String>,
}

/// Where a source was read, and how much of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Origin {
    /// What kind of source it is.
    pub kind: SourceKind,
    /// Its human-readable name: a file name, or [`Self::STANDARD_INPUT`]; empty for this host.
    pub name: String,
    /// The blocks that were recognised in a text, in order; empty for this host and for captures.
    pub inputs: Vec<Input>,
    /// The number of lines of a text that belong to no known form: prose, prompts.
    pub lines_skipped: usize,
    /// Whether some readings of a text stand behind the quotation marks of mail and others do not: of two persons, and
    /// often of two hosts.
    pub is_partly_quoted: bool,
    /// The interval to which the samples of a recording were thinned out, in all of it or in parts: the timeline
    /// records which parts. `None` where every sample was read.
    pub thinned_to: Option<Span>,
    /// For a part of a source: how long after the source's first sample the part's first one was taken. `None` where
    /// nothing was left out.
    pub cut_at: Option<Span>,
    /// Whether the source continues after the last sample: the rest needs too much memory and was not read.
    pub is_cut_short: bool,
    /// Index of the first live sample, where the samples before it come from this host's recording.
    pub live_from: Option<usize>,
}

/// What kind of source was read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SourceKind {
    /// This host, while it was watched.
    #[default]
    Live,
    /// A capture: kernel files saved over time.
    Capture,
    /// Text that was pasted or saved: output of tools, kernel logs.
    Text,
    /// A directory or an archive of saved files.
    Bundle,
    /// A directory that `memtide record` writes.
    Recording,
}

/// A block of a text in a form that memtide knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Input {
    /// The form: `free`, `/proc/meminfo`.
    pub form: &'static str,
    /// The form in full: `free, procps 4: used is total − available`.
    pub what: String,
    /// The file it is in, where the source has several; else empty.
    pub file: String,
    /// Its first line, from 1.
    pub first_line: usize,
    /// Its last line.
    pub last_line: usize,
    /// The unit of its sizes; empty where it has none or writes it out.
    pub unit: &'static str,
    /// Names of the signals read from it.
    pub signals: Vec<&'static str>,
    /// How many of its lines were not understood.
    pub not_understood: usize,
    /// The system that it is of, if that is not Linux: `macOS`; else empty.
    pub other_system: &'static str,
}

impl Origin {
    /// The name of what was read from a pipe: no file has it.
    pub const STANDARD_INPUT: &str = "standard input";
}

impl Source {
    /// A source of one kind and name, from its samples and facts.
    pub fn new(
        kind: SourceKind,
        name: impl Into<String>,
        timeline: Timeline,
        facts: Facts,
    ) -> Self {
        Self {
            timeline,
            facts,
            origin: Origin { kind, name: name.into(), ..Origin::default() },
            ..Self::default()
        }
    }

    /// Returns the same source with another name.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.origin.name = name.into();
        self
    }
}

impl SourceKind {
    /// The name of the kind: `live`, `capture`, `text`, `support bundle`, `recording`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Capture => "capture",
            Self::Text => "text",
            Self::Bundle => "support bundle",
            Self::Recording => "recording",
        }
    }
}
