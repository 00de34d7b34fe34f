//! The one door for every source of samples: this host, live, its recording, and what was brought home from others.
//!
//! Three nouns: a **source** is where samples come from; a **capture** ([`capture`]) is raw text of kernel files over
//! time; what comes out is always the same, [`Opened`]: a timeline, facts, and the **problems** met on the way. Bad
//! input costs what is bad in it: the rest is kept and the problem says what, where and what to do.
//!
//! ```no_run
//! let opened = import::open(std::path::Path::new("sick-host.jsonl.zst"), &mut |_| ()).unwrap();
//! println!("{} samples", opened.timeline.len());
//! ```

#![cfg_attr(test, allow(clippy::string_slice))] // tests cut texts of their own

mod block;
mod builder;
mod bundle;
pub mod capture;
mod collect;
mod compress;
mod content;
mod convert;
mod decompress;
pub mod export;
mod forms;
mod history;
mod live;
mod live_log;
mod open;
mod pace;
mod paste;
mod problems;
mod range;
mod record;
mod recording;
mod reports;
mod sar;
#[cfg(test)]
mod testing;
mod text;

pub use collect::Secrets;
pub use compress::Packed;
pub use convert::{Converted, convert};
pub use history::{History, history, history_screened};
pub use live::{RECENT, Watch, watch};
pub use open::{
    OpenError, Screen, Wanted, is_recording, open, open_bytes, open_part, open_stdin, scan,
};
pub use pace::Progress;
pub use problems::Problems;
pub use range::{Moment, NotThere, Range};
pub use record::{Recording, record};
pub use store::{Resolution, Screened};

use timeline::{Facts, Timeline};
use units::Span;

/// What kind of source it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceKind {
    /// This host, while it was watched.
    Live,
    /// A capture.
    Capture,
    /// Text that somebody pasted or saved.
    Text,
    /// A directory or an archive of saved files.
    Bundle,
    /// What `memtide record` kept.
    Recording,
}

impl SourceKind {
    /// `live`, `capture`, `text`, `support bundle`, `recording`.
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

/// A source, read.
#[derive(Debug)]
pub struct Opened {
    /// What kind it was.
    pub kind: SourceKind,
    /// Its name for people: a file name; empty for this host.
    pub name: String,
    /// Its samples.
    pub timeline: Timeline,
    /// What it says of the host apart from samples.
    pub facts: Facts,
    /// What was wrong with it, in words; the rest was read.
    pub problems: Vec<String>,
    /// What was recognised in it, in order; empty for this host and for captures.
    pub inputs: Vec<Input>,
    /// Lines that belong to nothing that memtide knows: prose, prompts.
    pub lines_skipped: usize,
    /// The distance of samples where a recording's were thinned out, be it in a part of the time only: the timeline tells in
    /// which. `None` where every one is there.
    pub thinned_to: Option<Span>,
    /// What came of the look over a recording's roll-ups; `None` where there was none.
    pub screened: Option<Screened>,
    /// Where only a part of the source was wanted: how long after the source's first sample that of the part lies. `None`
    /// where nothing of it was left out.
    pub cut_at: Option<Span>,
    /// Whether it has more samples after these, which were not read as they take too much memory.
    pub is_cut_short: bool,
}

/// A block that was recognised in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Input {
    /// The form: `free`, `/proc/meminfo`.
    pub form: &'static str,
    /// More exactly, for people: `free, procps 4: used is total − available`.
    pub what: String,
    /// The file it is in, where the source has several; else empty.
    pub file: String,
    /// Its first line, from 1.
    pub first_line: usize,
    /// Its last line.
    pub last_line: usize,
    /// The unit of its sizes; empty where it has none or writes it out.
    pub unit: &'static str,
    /// Names of the signals that it gave.
    pub signals: Vec<&'static str>,
    /// How many of its lines were not understood.
    pub not_understood: usize,
}
