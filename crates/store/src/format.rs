//! The format of recordings.

use serde::Serialize;

/// The format that this version writes and reads.
pub(crate) const FORMAT: u32 = 2;

/// The key of the format's number in the metadata of a table.
pub(crate) const FORMAT_KEY: &str = "memtide.format";

/// Serialises a value to JSON that cannot fail to serialise.
pub(crate) fn json<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).unwrap_or_default()
}
