//! The directory of a recording that is written: prepared when a writer starts, and again when the directory reappears
//! after it was removed.

pub(crate) mod identity;
pub(crate) mod lock;
pub(crate) mod pinned;
pub(crate) mod retention;

use std::fs;
use std::io;
use std::path::Path;

use units::Span;

use crate::files::{self, sync};
use crate::{StoreError, head, segment};
use identity::HostIdentity;
use lock::Lock;
use pinned::PinnedDirectory;

/// The directory that a writer writes to, and the host that it records.
#[derive(Debug, Clone)]
pub(crate) struct RecordingDirectory {
    pub(crate) pinned: PinnedDirectory,
    pub(crate) identity: HostIdentity,
    pub(crate) every: Span,
}

/// The largest part number: a part with a larger number was named by hand.
const SEGMENT_NUMBER_MAX: u64 = 999_999_999_999;

impl RecordingDirectory {
    /// Opens the directory, and creates it if absent; refuses one that belongs to another host or user.
    pub(crate) fn make(
        directory: &Path,
        identity: &HostIdentity,
        every: Span,
    ) -> Result<Self, StoreError> {
        // Checked before anything is changed.
        identity::is_new(directory, identity)?;
        Ok(Self { pinned: PinnedDirectory::make(directory)?, identity: identity.clone(), every })
    }

    /// Returns the way to its files.
    pub(crate) fn path(&self) -> &Path {
        self.pinned.path()
    }

    /// Locks the directory, and makes it a recording if it is none.
    pub(crate) fn take(&self) -> Result<Lock, StoreError> {
        self.take_inside().map_err(|error| self.pinned.named(error))
    }

    fn take_inside(&self) -> Result<Lock, StoreError> {
        let directory = self.path();
        let is_new = identity::is_new(directory, &self.identity)?;
        let lock = Lock::take(directory)?;
        if is_new {
            identity::write(directory, &self.identity, self.every)?;
        }
        let heads = head::directory_of(directory);
        files::ensure_directory(&heads).map_err(|error| StoreError::io("create", &heads, error))?;
        // So that a power failure does not lose the directory of new head files.
        sync(directory).map_err(|error| StoreError::io("sync", directory, error))?;
        Ok(lock)
    }

    /// Returns the number after all existing parts, sealed or not.
    pub(crate) fn next_sequence(&self) -> std::io::Result<u64> {
        let heads = head::files(self.path())?;
        let (segments, _) = segment::list(self.path())?;
        let sealed = segments.iter().map(|segment| segment.sequence);
        let all = sealed.chain(heads.iter().map(|head| head.sequence));
        match all.max() {
            None => Ok(1),
            Some(last) if last < SEGMENT_NUMBER_MAX => Ok(last + 1),
            Some(last) => Err(io::Error::other(format!(
                "its last part has the number {last}, so there is no number for the next one; move \
                 that part elsewhere"
            ))),
        }
    }

    /// Removes an empty last head file, left by a recorder that was killed at its start, to reuse its number; otherwise
    /// the number would be missing for good. Must not run during sealing, which may be about to remove the file.
    pub(crate) fn clear_empty_head(&self) -> io::Result<()> {
        let heads = head::files(self.path())?;
        let Some(last) = heads.last().filter(|last| head::is_empty(&last.path)) else {
            return Ok(());
        };
        match lock::try_sealing(&head::directory_of(self.path())) {
            Some(_alone) => fs::remove_file(&last.path),
            None => Ok(()),
        }
    }
}
