//! What every picture of an answer says alike: its rows and sentences, before anybody lays them out.
//!
//! Text and HTML take their words from here, so they cannot differ.

pub(crate) mod compare;
pub(crate) mod headroom;
pub(crate) mod occurrences;
pub(crate) mod source;
pub(crate) mod verdict;

/// What stands where nothing is known.
pub(crate) const ABSENT: &str = "–";
