//! A part of a head file in memory. Files are read by frames, so that memory does not follow their size.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;

use memchr::memmem;
use rustix::fs::SeekFrom;

/// Bytes that are read at once. Most frames are far smaller; larger ones are read whole when their checksum is right.
pub(super) const WINDOW: usize = 256 << 10;

/// Bytes of a file up to an end, of which some are in memory.
#[derive(Debug)]
pub(super) struct FileWindow<'f> {
    file: &'f File,
    end: u64,
    /// The offset of the bytes in memory.
    at: u64,
    bytes: Vec<u8>,
    /// Bytes that were read so far, some of them repeatedly.
    pub(super) read: u64,
}

impl<'f> FileWindow<'f> {
    /// Reads nothing yet.
    pub(super) fn new(file: &'f File, end: u64) -> Self {
        Self { file, end, at: 0, bytes: Vec::new(), read: 0 }
    }

    /// Returns the offset at which it ends.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// Returns some bytes; `None` if it ends before.
    pub(super) fn bytes(&mut self, at: u64, len: usize) -> io::Result<Option<&[u8]>> {
        if at.saturating_add(len as u64) > self.end {
            return Ok(None);
        }
        if self.held(at).is_none_or(|held| held.len() < len) {
            self.fill(at, len)?;
        }
        Ok(self.held(at).and_then(|held| held.get(..len)))
    }

    /// Returns where these bytes first stand at or after an offset. Holes of a sparse file are skipped: they have only
    /// zeros.
    pub(super) fn find(&mut self, wanted: &[u8], mut from: u64) -> io::Result<Option<u64>> {
        loop {
            if self.held(from).is_none_or(|held| held.len() < wanted.len()) {
                let Some(data) = self.data_from(from) else {
                    return Ok(None);
                };
                from = data;
                self.fill(from, wanted.len())?;
            }
            let Some(held) = self.held(from).filter(|held| held.len() >= wanted.len()) else {
                return Ok(None);
            };
            if let Some(found) = memmem::find(held, wanted) {
                return Ok(Some(from + found as u64));
            }
            from += (held.len() - (wanted.len() - 1)) as u64;
        }
    }

    /// Returns the bytes in memory from an offset on.
    fn held(&self, from: u64) -> Option<&[u8]> {
        let skipped = usize::try_from(from.checked_sub(self.at)?).ok()?;
        self.bytes.get(skipped..)
    }

    /// Returns where data begin at or after an offset; the offset itself if the file system does not know.
    fn data_from(&self, from: u64) -> Option<u64> {
        let data = match rustix::fs::seek(self.file, SeekFrom::Data(from)) {
            Ok(data) => data,
            Err(rustix::io::Errno::NXIO) => return None,
            Err(_) => from,
        };
        (data < self.end).then_some(data)
    }

    /// Reads at least these bytes into memory, fewer only where the file was cut meanwhile.
    fn fill(&mut self, at: u64, len: usize) -> io::Result<()> {
        let rest = usize::try_from(self.end.saturating_sub(at)).unwrap_or(usize::MAX);
        self.bytes.clear();
        self.bytes.shrink_to(WINDOW);
        self.bytes.resize(len.max(WINDOW).min(rest), 0);
        self.at = at;
        let mut read = 0;
        while read < self.bytes.len() {
            match self.file.read_at(&mut self.bytes[read..], at + read as u64) {
                Ok(0) => break,
                Ok(more) => read += more,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    self.bytes.clear();
                    return Err(error);
                }
            }
        }
        self.bytes.truncate(read);
        self.read = self.read.saturating_add(read as u64);
        Ok(())
    }
}
