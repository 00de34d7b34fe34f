//! One recorder for each recording: `lock` is held as long as one writes, and holds its PID.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::{StoreError, place};

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
        write_pid(&path).map_err(failed)?;
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

/// Opened for reading, made where it is not there. A file that holds anything but a PID is somebody else's, and stays.
fn open(path: &Path) -> io::Result<File> {
    let open_it = || place::open_own(OpenOptions::new().read(true), path);
    let file = match open_it() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let mut options = OpenOptions::new();
            options.write(true).create_new(true).mode(0o640);
            match place::open_own(&mut options, path) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                _ => open_it()?,
            }
        }
        opened => opened?,
    };
    let is_ours = place::read_regular(path, LONGEST).is_ok_and(|text| {
        let mut bytes = text.trim_ascii().iter();
        bytes.all(u8::is_ascii_digit)
    });
    if is_ours {
        Ok(file)
    } else {
        Err(io::Error::other("it holds something else than a PID"))
    }
}

/// A PID and a line feed, with room to spare.
const LONGEST: u64 = 32;

fn write_pid(path: &Path) -> io::Result<()> {
    let mut file = place::open_own(OpenOptions::new().write(true), path)?;
    file.set_len(0)?;
    file.write_all(format!("{}\n", std::process::id()).as_bytes())
}

fn holder(path: &Path) -> Option<u32> {
    let text = place::read_regular(path, LONGEST).ok()?;
    std::str::from_utf8(&text).ok()?.trim().parse().ok()
}

/// Who writes to a recording: `Some(None)` where the PID is not known.
pub(crate) fn writer(recording: &Path) -> Option<Option<u32>> {
    is_held(recording).then(|| holder(&path_of(recording)))
}

/// Whether somebody writes to a recording.
pub(crate) fn is_held(recording: &Path) -> bool {
    let Ok(file) = place::open_regular(&path_of(recording)) else {
        return false;
    };
    flock(&file, FlockOperation::NonBlockingLockShared) == Err(Errno::WOULDBLOCK)
}

/// Keeps sealers out until this is dropped; `None` where one is at work.
pub(crate) fn try_sealing(heads: &Path) -> Option<OwnedFd> {
    let directory = File::open(heads).ok()?;
    flock(&directory, FlockOperation::NonBlockingLockExclusive).ok()?;
    Some(directory.into())
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
