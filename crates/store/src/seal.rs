//! Seals finished head files: each becomes a segment. Runs in a separate process, so that its memory is released.
//!
//! It may be killed at any point: a segment appears as a whole, and its head file is removed only after that. The
//! segment lists the damage in its head file. A head file without any valid frame is renamed and kept; one that cannot
//! be read stays where it is. Neither stops later files from being sealed.

use std::fs;
use std::path::Path;

use timeline::Timeline;

use crate::StoreError;
use crate::directory::identity::{self, HostIdentity};
use crate::directory::lock;
use crate::head::{self, HeadFile};
use crate::recording::damaged;
use crate::segment::{self, SegmentOrigin};

/// The result of sealing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sealed {
    /// Sequence numbers of the head files that became segments.
    pub segments: Vec<u64>,
    /// Sequence numbers of head files without a sample, which were removed; the next segment lists them.
    pub empty: Vec<u64>,
    /// Sequence numbers of head files without any valid frame, which were renamed.
    pub unreadable: Vec<u64>,
    /// Sequence numbers of head files that could not be read or sealed; they stay, and the next call tries again.
    pub left: Vec<u64>,
    /// What was wrong with them; everything else is stored.
    pub problems: Vec<String>,
}

/// What happened to a head file.
enum Fate {
    /// A segment has all of its content.
    Sealed,
    /// It has no sample.
    Empty,
    /// It has no valid frame.
    Unreadable,
    /// It could not be read or sealed now.
    Left,
}

/// Seals the finished head files of a recording: all except the last while a recorder writes to it.
///
/// # Errors
/// [`StoreError`] if the recording cannot be read; a head file that cannot be sealed is in [`Sealed::left`].
pub fn seal(directory: &Path) -> Result<Sealed, StoreError> {
    let host = identity::read(directory)?;
    // One sealer at a time: unfinished work of a running sealer must not be removed.
    let heads = head::directory_of(directory);
    let _alone = lock::sealing(&heads).map_err(|e| StoreError::io("lock", &heads, e))?;
    segment::sweep(directory);
    let files = head::files(directory);
    let mut files = files.map_err(|e| StoreError::io("read", directory, e))?;
    if lock::is_locked(directory) {
        files.pop();
    }
    let mut sealing = Sealing { directory, host, sealed: Sealed::default(), empty: Vec::new() };
    for file in files {
        sealing.file(&file);
    }
    Ok(sealing.sealed)
}

/// The state of sealing head files, in order.
struct Sealing<'a> {
    directory: &'a Path,
    host: HostIdentity,
    sealed: Sealed,
    /// Files without a sample since the last segment. They stay until the next segment lists them: a missing number
    /// without a record would count as lost data.
    empty: Vec<HeadFile>,
}

impl Sealing<'_> {
    fn file(&mut self, file: &HeadFile) {
        let fate = self.fate(file);
        let done = match fate {
            Err(error) => Err(error),
            Ok(Fate::Left) => {
                self.sealed.left.push(file.sequence);
                Ok(())
            }
            Ok(Fate::Empty) => {
                self.empty.push(file.clone());
                Ok(())
            }
            Ok(Fate::Sealed) => self.remove(file),
            Ok(Fate::Unreadable) => {
                self.sealed.unreadable.push(file.sequence);
                let aside = fs::rename(&file.path, damaged::aside(&file.path));
                aside.map_err(|e| StoreError::io("rename", &file.path, e))
            }
        };
        if let Err(error) = done {
            self.sealed.left.push(file.sequence);
            self.sealed.problems.push(timeline::with_causes(&error));
        }
    }

    fn remove(&mut self, file: &HeadFile) -> Result<(), StoreError> {
        for empty in std::mem::take(&mut self.empty) {
            fs::remove_file(&empty.path).map_err(|e| StoreError::io("remove", &empty.path, e))?;
            self.sealed.empty.push(empty.sequence);
        }
        fs::remove_file(&file.path).map_err(|e| StoreError::io("remove", &file.path, e))
    }

    /// Makes a segment from a head file if that has any content.
    fn fate(&mut self, file: &HeadFile) -> Result<Fate, StoreError> {
        if segment::has(self.directory, file.sequence) {
            return Ok(Fate::Sealed);
        }
        let mut timeline = Timeline::of_own_samples();
        let read = head::load(&file.path, &mut timeline, None);
        self.sealed.problems.extend_from_slice(&read.problems);
        // An I/O error or a missing permission is not damage.
        if read.is_partial {
            return Ok(Fate::Left);
        }
        if timeline.is_empty() && timeline.recorder_events().is_empty() {
            return Ok(if read.problems.is_empty() { Fate::Empty } else { Fate::Unreadable });
        }
        let (facts, wrong) = crate::facts::read(self.directory, &timeline);
        self.sealed.problems.extend(wrong);
        // The recording may be moved later, so the stored text must not contain its path.
        let place = format!("{}: ", file.path.display());
        let lost = read.problems.iter().take(LOST_MAX);
        let origin = SegmentOrigin {
            lost: lost.map(|what| what.replace(&place, "")).collect(),
            empty: self.empty.iter().map(|empty| empty.sequence).collect(),
        };
        let (directory, sequence) = (self.directory, file.sequence);
        segment::write(directory, sequence, &self.host, &timeline, &facts, &origin)?;
        self.sealed.segments.push(sequence);
        Ok(Fate::Sealed)
    }
}

/// The most damaged places of its head file that a segment lists.
const LOST_MAX: usize = 16;
