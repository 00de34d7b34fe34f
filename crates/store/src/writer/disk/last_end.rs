//! How the previous recorder ended: cleanly or killed.

use std::path::Path;

use timeline::Stamp;

use crate::segment::Segment;
use crate::{head, segment};

/// An end without a final frame: the recorder was killed, or the machine went down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// The clocks of its last stored sample.
    pub last: Stamp,
}

/// Checks for a last head file without an end; `None` if it has one, or if it was sealed, as that is then unknown.
pub(super) fn cut(recording: &Path) -> Option<Cut> {
    let mut heads = head::files(recording).ok()?;
    let last = heads.pop()?;
    let (segments, _) = segment::list(recording).ok()?;
    if segments.iter().any(|known| known.sequence >= last.sequence) {
        return None;
    }
    let read = head::ends(&last.path).ok().filter(|read| !read.ended)?;
    // Of a recorder that was killed before its first sample was on disk, the end of the file before is known.
    let before = || heads.iter().rev().find_map(|file| head::ends(&file.path).ok()?.end);
    let last = read.end.or_else(before).or_else(|| segments.last().and_then(last_sample))?;
    Some(Cut { last })
}

/// Returns the clocks of a segment's last sample, as far as its manifest has them.
fn last_sample(segment: &Segment) -> Option<Stamp> {
    let (_, until) = segment.span()?;
    let (boot_id, boot) = segment.end().unzip();
    // Without its boot the boot clock is not compared.
    let boot = boot.unwrap_or_default();
    Some(Stamp { boot, wall: Some(until), boot_id, ..Stamp::default() })
}
