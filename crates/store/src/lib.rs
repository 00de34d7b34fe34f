//! Recordings: the samples of a host over weeks, on disk.
//!
//! Three nouns: a **recording** is a directory; its **head** is an append-only log of checksummed frames that survives
//! a kill at any byte; its **segments** are Parquet files, into which finished head files are sealed. [`Writer`] is the
//! only writer of heads, [`Recording`] the only reader.
//!
//! ```no_run
//! let recording = store::Recording::open("/var/log/memtide".as_ref())?;
//! let info = recording.info(false);
//! println!("{} sealed segments, {}", info.segments, info.bytes);
//! # Ok::<(), store::StoreError>(())
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
