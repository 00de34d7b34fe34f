//! Finished head files become segments. Run in a process of its own, so that its memory is given back.
//!
//! May be killed at any point: a segment is in its place whole or not at all, and a head file goes only after that.

use std::fs;
use std::path::Path;

use timeline::Timeline;

use crate::head::{self, HeadFile};
use crate::{StoreError, identity, lock, segment};

/// What was sealed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sealed {
    /// Sequence numbers of the head files that became segments.
    pub segments: Vec<u64>,
    /// Sequence numbers of head files that held no sample and were removed.
    pub empty: Vec<u64>,
    /// What was wrong with them, in words; the rest is kept.
    pub problems: Vec<String>,
}

/// Seals the finished head files of a recording: all but the last while a recorder writes to it.
///
/// # Errors
/// [`StoreError`]; what was sealed until then is kept, and the next call goes on.
pub fn seal(directory: &Path) -> Result<Sealed, StoreError> {
    let (host, _) = identity::read(directory)?;
    let fail = |doing, path: &Path, reason: std::io::Error| StoreError::Io {
        doing,
        path: path.to_owned(),
        reason: reason.to_string(),
    };
    let mut files = head::files(directory).map_err(|e| fail("read", directory, e))?;
    if lock::writer(directory).is_some() {
        files.pop();
    }
    let mut sealed = Sealed::default();
    for HeadFile { sequence, path } in files {
        let (known, _) = segment::list(directory).map_err(|e| fail("read", directory, e))?;
        if known.iter().all(|segment| segment.sequence != sequence) {
            let mut timeline = Timeline::default();
            let read = head::load(&path, &mut timeline, None);
            sealed.problems.extend(read.problems);
            if timeline.is_empty() && timeline.noted().is_empty() {
                sealed.empty.push(sequence);
            } else {
                let (facts, wrong) = crate::facts::read(directory, &timeline);
                sealed.problems.extend(wrong);
                segment::write(directory, sequence, &host, &timeline, &facts)?;
                sealed.segments.push(sequence);
            }
        }
        fs::remove_file(&path).map_err(|e| fail("remove", &path, e))?;
    }
    Ok(sealed)
}
