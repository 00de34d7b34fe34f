//! Recordings: what a host's memory looked like over weeks, on disk.
//!
//! Three nouns: a **recording** is a directory; its **head** is an append-only log of checksummed frames that survives a
//! kill at any byte; its **segments** are sealed Parquet files that anything can read. [`Writer`] is the only writer,
//! [`Recording`] the only reader.

#![cfg_attr(test, allow(clippy::string_slice))] // tests cut texts of their own

pub mod capture;
mod disk;
mod error;
mod facts;
mod head;
mod identity;
mod import;
mod lock;
mod minutes;
mod place;
mod recording;
mod retention;
mod seal;
mod segment;
mod state;
#[cfg(test)]
mod tests;
mod writer;

pub use disk::Cut;
pub use error::StoreError;
pub use identity::Identity;
pub use import::{Kept, keep, keep_telling};
pub use recording::{Info, Loaded, Recording, Resolution, Screen, Screened, Selection};
pub use retention::{Dropped, drop_oldest, enforce};
pub use seal::{Sealed, seal};
pub use state::{DiskState, State};
pub use writer::{Monitor, Options, Slot, Writer};
