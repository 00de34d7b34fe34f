//! Pastes for tests.

use crate::Opened;
use crate::paste::Paste;
use crate::text::Text;

/// Reads a text as if it had been pasted.
pub(crate) fn paste(text: &str) -> Opened {
    let mut paste = Paste::default();
    paste.read(&Text::of(text.as_bytes()), "", 1);
    paste.finish(crate::SourceKind::Text)
}
