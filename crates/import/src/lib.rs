//! Reads every stored source of samples: this host's recording, and files brought from other hosts.
//!
//! Three nouns: a **source** is where samples come from; a **capture** ([`capture`]) is raw text of kernel files over
//! time; a [`Source`](timeline::Source) is the result: a timeline, facts, and the **problems** met on the way. Of faulty input only the
//! faulty parts are lost: the rest is read, and a problem says what is wrong, where, and what to do.
//!
//! ```
//! use timeline::signals::MEM_FREE;
//! use units::Bytes;
//!
//! let pasted = b"MemTotal: 16000000 kB\nMemFree: 1048576 kB\n";
//! let source = import::open_bytes("pasted.txt", pasted)?;
//! assert_eq!(source.timeline.len(), 1);
//! assert_eq!(source.timeline.last(MEM_FREE), Some(Bytes::from_gib(1)));
//! # Ok::<(), import::OpenError>(())
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
mod input_file;
mod open;
mod paste;
mod plausible;
mod process_table;
mod recording;
mod reports;
mod sar;
#[cfg(test)]
mod testing;
mod text;

pub use decompress::read_unpacked;
pub use history::with_history;
pub use input_file::InputFile;
pub use open::{
    MinuteScreen, OpenError, OpenOptions, is_recording, open, open_bytes, open_part, open_stdin,
    scan,
};
pub use sar::SadfError;
pub use store::Resolution;
