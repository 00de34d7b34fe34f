//! What every picture of an answer says alike: its rows and sentences, before anybody lays them out.
//!
//! Text and HTML take their words from here, so they cannot differ.

pub(crate) mod compare;
pub(crate) mod headroom;
pub(crate) mod held;
pub(crate) mod source;

use units::Bytes;

/// A size that may be below zero, with this sign if it is.
fn signed(bytes: i64, minus: char) -> String {
    let size = Bytes::new(bytes.unsigned_abs());
    match bytes < 0 {
        true => format!("{minus}{size}"),
        false => size.to_string(),
    }
}
