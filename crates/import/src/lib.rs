//! The one door for every source of samples: this host, live, its recording, and what was brought home from others.
//!
//! Three nouns: a **source** is where samples come from; a **capture** ([`capture`]) is raw text of kernel files over
//! time; what comes out is always the same, [`Source`]: a timeline, facts, and the **problems** met on the way. Bad
//! input costs only what is bad in it: the rest is read, and the problem says what, where and what to do.
//!
//! ```no_run
//! let opened = import::open(std::path::Path::new("sick-host.jsonl.zst"), &mut |_| ()).unwrap();
//! println!("{} samples", opened.timeline.len());
//! ```

#![cfg_attr(test, allow(clippy::string_slice))] // tests cut texts of their own

mod block;
mod builder;
mod bundle;
mod capture;
mod content;
mod decompress;
mod forms;
mod history;
mod open;
mod paste;
mod recording;
mod reports;
mod sar;
#[cfg(test)]
mod testing;
mod text;

pub use history::with_history;
pub use open::{
    MinuteScreen, OpenError, OpenOptions, is_recording, open, open_bytes, open_part, open_stdin,
    scan,
};
pub use store::Resolution;
