//! The lock file of a recording, which admits one recorder at a time. It is locked while a recorder writes, and
//! contains its PID.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use rustix::io::Errno;

use crate::StoreError;
use crate::files;

/// The exclusive right to write to a recording, until dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    _locked: OwnedFd,
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
        let failed = |error: io::Error| StoreError::io("lock", &path, error);
        // Opened for reading only: a file open for writing would keep its file system from being made read-only.
        let file = open(&path).map_err(failed)?;
        match exclusively(&file) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => {
                return Err(StoreError::Locked { path: recording.to_owned(), pid: holder(&path) });
            }
            Err(error) => return Err(failed(error.into())),
        }
        write_pid(&path).map_err(failed)?;
        Ok(Self { _locked: file.into() })
    }
}

/// How long a locked file is tried again. A reader that checks for a writer locks it for a moment, as does a program that a
/// thread of the previous writer's process starts; on a host that swaps, a moment is long.
const TRIES_TIME_MAX: Duration = Duration::from_secs(1);
const TRIES_STEP: Duration = Duration::from_millis(20);

/// Locks the file, with several attempts.
fn exclusively(file: &File) -> Result<(), Errno> {
    let began = Instant::now();
    loop {
        match flock(file, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) if began.elapsed() < TRIES_TIME_MAX => {
                std::thread::sleep(TRIES_STEP);
            }
            done => return done,
        }
    }
}

/// Opens the file for reading and creates it if absent. A file that contains anything but a PID is refused and not
/// changed.
fn open(path: &Path) -> io::Result<File> {
    let open_existing = || files::open_own(OpenOptions::new().read(true), path);
    let file = match open_existing() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            match files::create_new(OpenOptions::new().write(true), path) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                _ => open_existing()?,
            }
        }
        opened => opened?,
    };
    let is_ours = files::read_regular(path, LOCK_BYTES_MAX).is_ok_and(|text| {
        let mut bytes = text.trim_ascii().iter();
        bytes.all(u8::is_ascii_digit)
    });
    if is_ours { Ok(file) } else { Err(io::Error::other("it contains something other than a PID")) }
}

/// The digits of the largest PID (a number of 32 bits).
const PID_DIGITS: usize = 10;
/// Longer than a PID and a line feed.
const LOCK_BYTES_MAX: u64 = 32;

/// Writes the PID over the last one, padded to the same length: on a full disk a file that was emptied first could not be
/// filled again.
fn write_pid(path: &Path) -> io::Result<()> {
    let mut file = files::open_own(OpenOptions::new().write(true), path)?;
    let text = format!("{:<PID_DIGITS$}\n", std::process::id());
    file.write_all(text.as_bytes())?;
    // Digits that a user wrote may be more.
    file.set_len(text.len() as u64)
}

fn holder(path: &Path) -> Option<u32> {
    let text = files::read_regular(path, LOCK_BYTES_MAX).ok()?;
    std::str::from_utf8(&text).ok()?.trim().parse().ok()
}

/// Returns the PID of a recording's writer: `Some(None)` if it is unknown, `None` without a writer.
pub(crate) fn writer(recording: &Path) -> Option<Option<u32>> {
    is_locked(recording).then(|| holder(&path_of(recording)))
}

/// Whether a recording has a writer.
pub(crate) fn is_locked(recording: &Path) -> bool {
    let Ok(file) = files::open_regular(&path_of(recording)) else {
        return false;
    };
    flock(&file, FlockOperation::NonBlockingLockShared) == Err(Errno::WOULDBLOCK)
}

/// Locks out other sealers until dropped; `None` if one is running.
pub(crate) fn try_sealing(heads: &Path) -> Option<OwnedFd> {
    let directory = open_directory(heads).ok()?;
    flock(&directory, FlockOperation::NonBlockingLockExclusive).ok()?;
    Some(directory)
}

/// Nothing else in its place is opened.
fn open_directory(path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty())
}

/// Waits for other sealers and locks them out until dropped. The sealer of a killed recorder may be running when the
/// next recorder starts. `None` if there is no head to seal.
pub(crate) fn sealing(heads: &Path) -> io::Result<Option<OwnedFd>> {
    let directory = match open_directory(heads) {
        Err(Errno::NOENT) => return Ok(None),
        opened => opened?,
    };
    flock(&directory, FlockOperation::LockExclusive)?;
    Ok(Some(directory))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_that_is_slow_to_check_for_a_writer_refuses_none() {
        let directory = tempfile::tempdir().unwrap();
        drop(Lock::take(directory.path()).unwrap());
        let file = files::open_regular(&path_of(directory.path())).unwrap();
        flock(&file, FlockOperation::NonBlockingLockShared).unwrap();
        let taken = std::thread::scope(|scope| {
            scope.spawn(move || {
                std::thread::sleep(TRIES_TIME_MAX / 4);
                drop(file);
            });
            Lock::take(directory.path()).map(drop)
        });
        assert!(taken.is_ok(), "{taken:?}");
    }
}
