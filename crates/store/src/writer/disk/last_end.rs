//! How the previous recorder ended: cleanly, or killed.

use std::path::Path;

use timeline::Timeline;
use units::WallClock;

use crate::{head, segment};

/// An end without a final frame: the recorder was killed, or the machine went down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// When the last sample was taken that it left; `None` where it had no wall clock.
    pub last: Option<WallClock>,
}

/// Whether the last head file has no end. `None` where it has one, or was sealed: then it is not known.
pub(super) fn cut(recording: &Path) -> Option<Cut> {
    let last = head::files(recording).ok()?.pop()?;
    let (segments, _) = segment::list(recording).ok()?;
    if segments.iter().any(|known| known.sequence >= last.sequence) {
        return None;
    }
    // An empty window skips the readings.
    let nothing = (Some(WallClock::from_unix_nanos(i64::MAX)), None);
    let read = head::load(&last.path, &mut Timeline::default(), Some(nothing));
    (!read.ended && read.last.is_some()).then_some(Cut { last: read.last })
}
