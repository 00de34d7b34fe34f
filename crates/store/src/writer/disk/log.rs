//! The head file that is being written. It is opened for each write: so a directory that is gone or read-only is
//! noticed when that can be reported, and no open file prevents remounting its disk read-only.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::{files, head};

/// A head file and its length of complete frames.
#[derive(Debug)]
pub(super) struct Log {
    pub(super) path: PathBuf,
    /// Bytes of complete and synced frames.
    len: u64,
    /// Whether it has a complete sample.
    pub(super) has_key: bool,
}

impl Log {
    /// Creates a file that begins with the dictionary.
    pub(super) fn create(recording: &Path, sequence: u64) -> io::Result<Self> {
        let path = head::path_of(recording, sequence);
        let bytes = head::beginning();
        // An existing file is not replaced.
        let mut file = files::create_new(OpenOptions::new().write(true), &path)?;
        let mut write = || {
            file.write_all(&bytes)?;
            file.sync_all()
        };
        match write().and_then(|()| files::sync(&head::directory_of(recording))) {
            Ok(()) => Ok(Self { path, len: bytes.len() as u64, has_key: false }),
            Err(error) => {
                // A partial beginning is useless, and its number must be free for the next attempt.
                let _ = fs::remove_file(&path);
                Err(error)
            }
        }
    }

    /// Appends complete frames and syncs them. After a failure nothing counts as written, and the next attempt writes
    /// at the same offset: only the end of the file can be incomplete.
    pub(super) fn append(&mut self, frames: &[u8]) -> io::Result<()> {
        let file = files::open_own(OpenOptions::new().write(true), &self.path)?;
        let found = file.metadata()?.len();
        if found < self.len {
            // Another program truncated it, or it is another file.
            return Err(io::ErrorKind::NotFound.into());
        }
        if let Err(error) = self.write(&file, frames) {
            let _ = file.set_len(self.len);
            return Err(error);
        }
        self.len += frames.len() as u64;
        Ok(())
    }

    fn write(&self, file: &File, frames: &[u8]) -> io::Result<()> {
        file.write_all_at(frames, self.len)?;
        file.sync_data()
    }
}
