//! Recordings: the samples of a host over weeks, on disk.
//!
//! Three nouns: a **recording** is a directory; its **head** is an append-only log of checksummed frames that survives
//! a kill at any byte; its **segments** are Parquet files, into which finished head files are sealed. [`Writer`] is the
//! only writer of heads, [`Recording`] the only reader.
//!
//! ```
//! use store::{HostIdentity, Recording, Selection, Writer, WriterOptions};
//! use timeline::{Facts, Sample, signals::MEM_FREE};
//! use units::{Bytes, Span};
//!
//! let directory = tempfile::tempdir()?;
//! let host = HostIdentity { id: "0123".to_owned(), name: "web3".to_owned() };
//! let options = WriterOptions { patient: true, ..WriterOptions::default() };
//! let mut writer = Writer::open(directory.path(), &host, &Facts::default(), options)?;
//! let mut sample = Sample::at(Span::from_secs(1));
//! sample.host.set(MEM_FREE, Bytes::from_mib(12));
//! writer.begin(sample.stamp);
//! writer.rows(&sample);
//! writer.end();
//! writer.close()?;
//!
//! let loaded = Recording::open(directory.path())?.load(Selection::default(), &mut |_| ());
//! assert_eq!(loaded.timeline.len(), 1);
//! assert_eq!(loaded.timeline.last(MEM_FREE), Some(Bytes::from_mib(12)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![cfg_attr(test, allow(clippy::string_slice))] // tests cut texts of their own

mod add_timeline;
pub mod capture_format;
mod directory;
mod error;
mod facts;
mod files;
mod format;
mod head;
mod json_lines;
mod kept_names;
mod recording;
mod seal;
mod segment;
#[cfg(test)]
mod tests;
mod writer;

pub use add_timeline::{AddedTimeline, add_timeline, add_timeline_with_progress};
pub use directory::identity::HostIdentity;
pub use directory::pinned::{PinnedDirectory, ensure_recording};
pub use directory::retention::{Dropped, drop_oldest, enforce};
pub use error::StoreError;
pub use files::{create_draft, open_own};
pub use format::{checked_json, is_unchanged};
pub use kept_names::{KeptName, NAMES_MAX, NameBook, NameRoom};
pub use recording::{Info, Loaded, Recording, Resolution, RollUpScreen, Screened, Selection};
pub use seal::{Sealed, seal};
pub use writer::disk::Cut;
pub use writer::state::{DiskState, WriterState};
pub use writer::{Monitor, Slot, Writer, WriterOptions};
