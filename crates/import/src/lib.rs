//! The one door for every source of samples: this host, live, its recording, and what was brought home from others.
//!
//! Three nouns: a **source** is where samples come from; a **capture** ([`capture`]) is raw text of kernel files over
//! time; what comes out is always the same, [`Source`]: a timeline, facts, and the **problems** met on the way. Bad
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
pub use history::with_history;
pub use live::{RECENT, Watch, watch};
pub use open::{
    OpenError, OpenOptions, Screen, is_recording, open, open_bytes, open_part, open_stdin, scan,
};
pub use pace::Progress;
pub use problems::Problems;
pub use record::{Recording, record};
pub use store::Resolution;
