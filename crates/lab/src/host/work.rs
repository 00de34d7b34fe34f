//! The directory of a run's files: the initramfs, disks, and what a guest writes.

use std::fs::{File, Permissions};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use rustix::fs::{FileType, FlockOperation, Mode, OFlags, flock, fstat, open};
use tempfile::TempDir;

use crate::LabError;
use crate::error::AtPath as _;

/// How the name of a run's directory begins.
const PREFIX: &str = "memtide-lab-";
/// The file in it that its owner has locked.
const LOCK: &str = "memtide-lab.lock";

/// A temporary directory that is removed with this value. If its owner is killed, the next run removes it.
#[derive(Debug)]
pub struct WorkDirectory {
    directory: TempDir,
    /// The kernel releases the lock when the process ends, however it ends.
    _lock: File,
}

impl WorkDirectory {
    /// Makes one below `TMPDIR`, after removing those of runs that were killed.
    ///
    /// # Errors
    /// [`LabError::NoWorkDirectory`] where none can be made.
    pub fn new() -> Result<Self, LabError> {
        Self::below(&std::env::temp_dir())
    }

    /// The same below another directory.
    pub(crate) fn below(place: &Path) -> Result<Self, LabError> {
        let failed = |error| LabError::NoWorkDirectory { place: place.to_owned(), error };
        if place.to_str().is_none() {
            // Options of QEMU are text.
            return Err(failed(std::io::Error::other("its path is not UTF-8")));
        }
        remove_abandoned(place);
        // What a program in a machine writes, and the environment that it has, is for nobody else.
        let own = Permissions::from_mode(0o700);
        let directory = tempfile::Builder::new()
            .prefix(PREFIX)
            .permissions(own)
            .tempdir_in(place)
            .map_err(failed)?;
        // Under its name it is locked already: another run that looks for abandoned directories finds no moment between.
        let unlocked = directory.path().join("unlocked");
        let lock = File::create(&unlocked).map_err(failed)?;
        flock(&lock, FlockOperation::LockExclusive).map_err(|error| failed(error.into()))?;
        std::fs::rename(&unlocked, directory.path().join(LOCK)).map_err(failed)?;
        Ok(Self { directory, _lock: lock })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Makes a directory of a virtual machine in it.
    pub(crate) fn of_machine(&self) -> Result<TempDir, LabError> {
        let made = tempfile::Builder::new().prefix("machine-").tempdir_in(self.path());
        made.at(self.path())
    }
}

/// Removes directories below a place if their owners have ended. What cannot be removed stays: it may be another user's.
fn remove_abandoned(place: &Path) {
    let Ok(entries) = std::fs::read_dir(place) else {
        return;
    };
    for entry in entries.flatten() {
        let is_ours = entry.file_name().to_string_lossy().starts_with(PREFIX);
        if is_ours && is_abandoned(&entry.path().join(LOCK)) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// Whether a lock file is there, and nobody holds the lock.
fn is_abandoned(lock: &Path) -> bool {
    // Anyone may put a pipe or a link there, where temporary files are shared.
    let opened = open(
        lock,
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC,
        Mode::empty(),
    );
    let is_own_file = |file: &OwnedFd| {
        fstat(file).is_ok_and(|stat| {
            FileType::from_raw_mode(stat.st_mode).is_file()
                && stat.st_uid == rustix::process::geteuid().as_raw()
        })
    };
    opened.is_ok_and(|file| {
        is_own_file(&file) && flock(file, FlockOperation::NonBlockingLockExclusive).is_ok()
    })
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn directories(place: &Path) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(place).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect()
    }

    #[test]
    fn what_a_killed_run_left_is_removed_by_the_next() {
        let place = tempfile::tempdir().unwrap();
        let running = WorkDirectory::below(place.path()).unwrap();
        let mode = std::fs::metadata(running.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        let abandoned = place.path().join("memtide-lab-killed");
        let of_a_user = place.path().join("memtide-lab-notes");
        for directory in [&abandoned, &of_a_user] {
            std::fs::create_dir(directory).unwrap();
        }
        std::fs::write(abandoned.join(LOCK), "").unwrap();
        let next = WorkDirectory::below(place.path()).unwrap();
        assert!(!abandoned.exists());
        assert!(of_a_user.exists() && running.path().exists());
        drop((running, next));
        assert_eq!(directories(place.path()), [of_a_user]);
    }

    #[test]
    fn a_place_that_cannot_be_used_is_named() {
        let error = WorkDirectory::below(Path::new("/nonexistent")).unwrap_err();
        assert!(error.to_string().contains("/nonexistent"), "{error}");
        assert!(error.help().unwrap().contains("TMPDIR"));
    }
}
