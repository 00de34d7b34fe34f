//! The directory that is written to: made ready when a writer begins, and again where it comes back after it was gone.

use std::fs::{self, DirBuilder, File};
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use units::Span;

use crate::identity::{self, Identity};
use crate::lock::Lock;
use crate::{StoreError, head, segment};

/// Where a writer writes, and whose recording it is.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) directory: PathBuf,
    pub(crate) identity: Identity,
    pub(crate) every: Span,
}

/// A recording is for its owner and its group: names of processes and control groups tell what a host does, but are not
/// for everybody's eyes.
const MODE: u32 = 0o750;

impl Place {
    /// Makes the directory if it is not there, and it a recording; refuses what is somebody else's.
    pub(crate) fn make(&self) -> Result<Lock, StoreError> {
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(MODE);
        // Looked at before anything is touched.
        identity::is_new(&self.directory, &self.identity)?;
        builder
            .create(&self.directory)
            .map_err(|error| StoreError::io("create", &self.directory, &error))?;
        self.take()
    }

    /// Takes a directory that is there, and makes it a recording where it is none.
    pub(crate) fn take(&self) -> Result<Lock, StoreError> {
        let is_new = identity::is_new(&self.directory, &self.identity)?;
        let lock = Lock::take(&self.directory)?;
        if is_new {
            identity::write(&self.directory, &self.identity, self.every)?;
        }
        let heads = head::directory_of(&self.directory);
        match DirBuilder::new().mode(MODE).create(&heads) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                return Err(StoreError::io("create", &heads, &error));
            }
            _ => {}
        }
        // So that head files of today are not in a directory that the power failure takes away.
        sync(&self.directory).map_err(|error| StoreError::io("sync", &self.directory, &error))?;
        Ok(lock)
    }

    /// The number after all that are there, sealed or not.
    pub(crate) fn next_sequence(&self) -> std::io::Result<u64> {
        let heads = head::files(&self.directory)?;
        let (segments, _) = segment::list(&self.directory)?;
        let sealed = segments.iter().map(|segment| segment.sequence);
        let all = sealed.chain(heads.iter().map(|head| head.sequence));
        Ok(all.max().map_or(1, |last| last.saturating_add(1)))
    }
}

/// Syncs a directory: what was made in it stays.
pub(crate) fn sync(directory: &Path) -> std::io::Result<()> {
    File::open(directory)?.sync_all()
}

/// Whether there is a directory.
pub(crate) fn is_there(directory: &Path) -> bool {
    fs::metadata(directory).is_ok_and(|meta| meta.is_dir())
}
