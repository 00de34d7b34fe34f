//! How the previous recorder ended: cleanly or killed.

use std::path::Path;

use timeline::Stamp;

use crate::{head, segment};

/// An end without a final frame: the recorder was killed, or the machine went down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// The clocks of its last stored sample.
    pub last: Stamp,
}

/// Checks for a last head file without an end; `None` if it has one, or if it was sealed, as that is then unknown.
pub(super) fn cut(recording: &Path) -> Option<Cut> {
    let last = head::files(recording).ok()?.pop()?;
    let (segments, _) = segment::list(recording).ok()?;
    if segments.iter().any(|known| known.sequence >= last.sequence) {
        return None;
    }
    let read = head::ends(&last.path).ok()?;
    read.end.filter(|_| !read.ended).map(|last| Cut { last })
}
