//! One recorder for each recording: `lock` is held as long as one writes, and holds its PID.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::StoreError;

/// A recording that nobody else writes to, until this is dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    _held: OwnedFd,
}

/// The file in a recording.
pub(crate) const FILE: &str = "lock";

fn path_of(recording: &Path) -> PathBuf {
    recording.join(FILE)
}

impl Lock {
    /// Takes the lock of a recording.
    pub(crate) fn take(recording: &Path) -> Result<Self, StoreError> {
        let path = path_of(recording);
        let failed = |error: io::Error| StoreError::io("lock", &path, &error);
        // Held for reading only: a file open for writing would keep its file system from being made read-only.
        let file = open(&path).map_err(failed)?;
        match exclusively(&file) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => {
                return Err(StoreError::Locked {
                    path: recording.to_owned(),
                    pid: holder(&path),
                });
            }
            Err(error) => return Err(failed(error.into())),
        }
        fs::write(&path, format!("{}\n", std::process::id())).map_err(failed)?;
        Ok(Self { _held: file.into() })
    }
}

/// A reader that asks whether somebody writes holds the lock for a moment.
fn exclusively(file: &File) -> Result<(), Errno> {
    const TRIES: u32 = 5;
    for _ in 1..TRIES {
        match flock(file, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => std::thread::sleep(Duration::from_millis(20)),
            done => return done,
        }
    }
    flock(file, FlockOperation::NonBlockingLockExclusive)
}

fn open(path: &Path) -> io::Result<File> {
    match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let mut options = OpenOptions::new();
            options.write(true).create(true).truncate(false).mode(0o640);
            options.open(path)?;
            File::open(path)
        }
        opened => opened,
    }
}

fn holder(path: &Path) -> Option<u32> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// Who writes to a recording: `Some(None)` where the PID is not known.
pub(crate) fn writer(recording: &Path) -> Option<Option<u32>> {
    is_held(recording).then(|| holder(&path_of(recording)))
}

/// Whether somebody writes to a recording.
pub(crate) fn is_held(recording: &Path) -> bool {
    let Ok(file) = File::open(path_of(recording)) else {
        return false;
    };
    flock(&file, FlockOperation::NonBlockingLockShared) == Err(Errno::WOULDBLOCK)
}

/// Waits until nobody else seals a recording, and keeps others out until this is dropped. The sealer of a recorder that was
/// killed may be at work when the next begins. `None` where there is no head to seal.
pub(crate) fn sealing(heads: &Path) -> io::Result<Option<OwnedFd>> {
    let directory = match File::open(heads) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    flock(&directory, FlockOperation::LockExclusive)?;
    Ok(Some(directory.into()))
}
