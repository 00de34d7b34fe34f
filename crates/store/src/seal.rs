//! Finished head files become segments. Run in a process of its own, so that its memory is given back.
//!
//! May be killed at any point: a segment is in its place whole or not at all, and a head file goes only after that. What
//! was damaged in the head file is told by the segment from then on; a file that nothing can be read of is kept aside.

use std::fs;
use std::path::Path;

use timeline::Timeline;

use crate::head::{self, HeadFile};
use crate::identity::{self, Identity};
use crate::recording::damaged;
use crate::{StoreError, lock, segment};

/// What was sealed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sealed {
    /// Sequence numbers of the head files that became segments.
    pub segments: Vec<u64>,
    /// Sequence numbers of head files that held no sample and were removed.
    pub empty: Vec<u64>,
    /// Sequence numbers of head files of which nothing can be read; they are kept aside.
    pub unreadable: Vec<u64>,
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
    // One at a time: what another leaves half done is not to be taken for rubbish while it is at work.
    let heads = head::directory_of(directory);
    let _alone = lock::sealing(&heads).map_err(|e| fail("lock", &heads, e))?;
    let mut files = head::files(directory).map_err(|e| fail("read", directory, e))?;
    if lock::writer(directory).is_some() {
        files.pop();
    }
    let mut sealed = Sealed::default();
    for file in files {
        let (known, _) = segment::list(directory).map_err(|e| fail("read", directory, e))?;
        let is_sealed = known.iter().any(|it| it.sequence == file.sequence);
        if is_sealed || seal_one(directory, &host, &file, &mut sealed)? {
            fs::remove_file(&file.path).map_err(|e| fail("remove", &file.path, e))?;
        } else {
            let aside = damaged::aside(&file.path);
            fs::rename(&file.path, &aside).map_err(|e| fail("rename", &file.path, e))?;
            sealed.unreadable.push(file.sequence);
        }
    }
    Ok(sealed)
}

/// Makes a segment of a head file, if it has anything in it. Says whether the file is of no more use.
fn seal_one(
    directory: &Path,
    host: &Identity,
    HeadFile { sequence, path }: &HeadFile,
    sealed: &mut Sealed,
) -> Result<bool, StoreError> {
    let mut timeline = Timeline::default();
    let read = head::load(path, &mut timeline, None);
    sealed.problems.extend_from_slice(&read.problems);
    if timeline.is_empty() && timeline.noted().is_empty() {
        if !read.problems.is_empty() {
            return Ok(false);
        }
        sealed.empty.push(*sequence);
        return Ok(true);
    }
    let (facts, wrong) = crate::facts::read(directory, &timeline);
    sealed.problems.extend(wrong);
    // Where the recording lies may change, and what is lost stays lost.
    let place = format!("{}: ", path.display());
    let lost = read.problems.iter().take(MOST_LOST);
    let lost: Vec<String> = lost.map(|what| what.replace(&place, "")).collect();
    segment::write(directory, *sequence, host, &timeline, &facts, &lost)?;
    sealed.segments.push(*sequence);
    Ok(true)
}

/// A segment tells so many damaged places of the head file that it was made of; one more says nothing new.
const MOST_LOST: usize = 16;
