//! The directory of a run's pages. One run at a time has it: of two, each would leave some of its pages and some of the other's.

use std::fs::File;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::command_error::{CommandError, ErrorContext};
use lab::LabError;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

/// A directory that this run alone may write pages to, until this is dropped.
#[derive(Debug)]
pub(super) struct PagesDirectory {
    path: PathBuf,
    /// Whether it was made for this run.
    is_new: bool,
    _locked: File,
}

impl PagesDirectory {
    /// Takes one, and makes it where there is none.
    pub(super) fn take(path: PathBuf) -> Result<Self, CommandError> {
        loop {
            let is_new = !path.exists();
            std::fs::create_dir_all(&path)
                .with_context(|| format!("cannot make {}", path.display()))?;
            // The directory itself is locked: a file for it would stay among the pages.
            let locked = match File::open(&path) {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                opened => opened.with_context(|| format!("cannot open {}", path.display()))?,
            };
            // Some network file systems lock no directory; there a run is not guarded.
            if flock(&locked, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK) {
                return Err(LabError::PagesInUse { directory: path }.into());
            }
            // A run that failed removes what it made, and may have done so in this moment.
            if is_still_at(&locked, &path) {
                return Ok(Self { path, is_new, _locked: locked });
            }
        }
    }

    /// Its path.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes it after a run that failed, if it was made for that and nothing is in it.
    pub(super) fn remove_if_new(&self) {
        if self.is_new {
            let _ = std::fs::remove_dir(&self.path);
        }
    }
}

fn is_still_at(directory: &File, path: &Path) -> bool {
    let (Ok(opened), Ok(named)) = (directory.metadata(), std::fs::metadata(path)) else {
        return false;
    };
    (opened.dev(), opened.ino()) == (named.dev(), named.ino())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_taken_by_one_run_at_a_time() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("pages");
        let taken = PagesDirectory::take(path.clone()).unwrap();
        // Under another name it is the same.
        let link = place.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        for name in [&path, &link] {
            let error = PagesDirectory::take(name.clone()).unwrap_err();
            assert!(error.to_string().contains("is in use"), "{error}");
        }
        taken.remove_if_new();
        assert!(!path.exists());
        // It was removed while its lock was held: the next one is another directory.
        let next = PagesDirectory::take(path.clone()).unwrap();
        drop(taken);
        assert!(path.exists() && PagesDirectory::take(path).is_err());
        drop(next);
    }

    #[test]
    fn what_was_there_before_a_run_stays() {
        let place = tempfile::tempdir().unwrap();
        let taken = PagesDirectory::take(place.path().to_owned()).unwrap();
        taken.remove_if_new();
        assert!(place.path().exists());
    }
}
