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

/// Serialises a value to a JSON object with a last field `crc32`: the CRC-32 (IEEE) of the text before its comma.
pub fn checked_json<T: Serialize>(value: &T) -> String {
    let mut text = json(value);
    text.pop();
    let field = checksum_field(crc32fast::hash(text.as_bytes()));
    text + &field
}

/// Whether a text of [`checked_json`] is unchanged; `crc32` is the field that was read from it.
pub fn is_unchanged(text: &[u8], crc32: u32) -> bool {
    let before = text.strip_suffix(checksum_field(crc32).as_bytes());
    before.is_some_and(|before| crc32fast::hash(before) == crc32)
}

/// The end of the text.
fn checksum_field(crc32: u32) -> String {
    format!(",\"crc32\":{crc32}}}")
}
