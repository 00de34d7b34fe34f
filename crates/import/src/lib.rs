//! The one door for every source of samples: this host, live, and captures brought home from others.
//!
//! Three nouns: a **source** is where samples come from; a **capture** ([`capture`]) is raw text of kernel files over
//! time; what comes out is always the same, [`Opened`]: a timeline, facts, and the **problems** met on the way. Bad
//! input costs what is bad in it: the rest is kept and the problem says what, where and what to do.
//!
//! ```no_run
//! let opened = import::open(std::path::Path::new("sick-host.jsonl.zst"), &mut |_| ()).unwrap();
//! println!("{} samples", opened.timeline.len());
//! ```

pub mod capture;
mod collect;
mod compress;
mod decompress;
mod lines;
mod live;
mod open;
mod pace;
mod problems;
mod record;

pub use collect::Secrets;
pub use compress::Packed;
pub use live::{Watch, watch};
pub use open::{OpenError, open, open_bytes, open_stdin};
pub use pace::Progress;
pub use problems::Problems;
pub use record::{Recording, record};

use timeline::{Facts, Timeline};

/// What kind of source it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceKind {
    /// This host, while it was watched.
    Live,
    /// A capture.
    Capture,
}

impl SourceKind {
    /// `live` or `capture`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Capture => "capture",
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
}
