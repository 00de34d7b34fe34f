//! A kernel directory that is walked repeatedly: files are opened relative to it and read into reused buffers.
//!
//! A path relative to an open directory works regardless of the directory's own path, costs no allocation, and a
//! vanished file gives an error number instead of a message. Cost: open, read and close of a `/proc` file, 3 to 8 µs.

use std::mem::MaybeUninit;
use std::ops::ControlFlow;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir};
use rustix::io::Errno;

use timeline::{Absence, Entity, signals};

use crate::error::{ParseError, ReadError};
use crate::kernel_file::Shape;

/// Receives the text of each kernel file as it is read, with the path that the catalogue and captures use for the file.
pub type Sink<'a> = &'a mut dyn FnMut(&str, &[u8]);

/// What a walk over processes or cgroups read, and what it had to leave out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Walk {
    /// Processes or cgroups that became rows.
    pub read: usize,
    /// Processes or cgroups beyond the walk's bounds: found but not read.
    pub left_out: usize,
    /// Processes that did not answer, or were not asked as others of their user did not.
    pub silent: usize,
    /// Files that this user may not read.
    pub denied: usize,
    /// The catalogue names of these files, each once.
    pub denied_files: Vec<&'static str>,
    /// The first malformed text; its other readings are valid.
    pub malformed: Option<ParseError>,
    /// Why there was nothing to walk: the top directory itself is missing or closed to this user.
    pub absent: Option<Absence>,
}

impl Walk {
    /// Counts a failed read. A process or cgroup that ended meanwhile is not a failure.
    pub(crate) fn note_errno(&mut self, errno: Errno) {
        if is_denied(errno) {
            self.denied += 1;
        }
    }

    /// Counts a failed read of an entity's file `name`, to report what a user with more rights would see.
    pub(crate) fn note_errno_of(&mut self, entity: Entity, name: &str, errno: Errno) {
        self.note_errno(errno);
        if is_denied(errno)
            && let Some(def) = signals::ALL
                .iter()
                .find(|def| def.entity == entity && def.file.rsplit('/').next() == Some(name))
            && !self.denied_files.contains(&def.file)
        {
            self.denied_files.push(def.file);
        }
    }

    /// Returns the result of a walk that could not begin.
    pub(crate) fn absent(errno: Errno) -> Self {
        let error = ReadError { path: String::new(), source: errno.into() };
        Self { absent: Some(error.absence()), ..Self::default() }
    }

    /// Keeps the first malformed text.
    pub(crate) fn note_parse<T>(&mut self, result: Result<T, ParseError>) {
        if let Err(error) = result {
            self.malformed.get_or_insert(error);
        }
    }
}

fn is_denied(errno: Errno) -> bool {
    matches!(errno, Errno::ACCESS | Errno::PERM)
}

/// An open directory.
#[derive(Debug)]
pub(crate) struct Directory(OwnedFd);

impl Directory {
    /// The longest file of a process is `status` with all 65,536 supplementary groups, 0.7 MiB; those of a cgroup are a
    /// few KiB. The rest of a longer file is not read.
    const RECORD_BYTES_MAX: usize = 1 << 20;

    pub(crate) fn open(path: &Path) -> Result<Self, Errno> {
        rustix::fs::open(path, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).map(Self)
    }

    /// Opens a numbered directory below this one.
    pub(crate) fn below(&self, number: u32) -> Result<Self, Errno> {
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let path = number.to_string();
        rustix::fs::openat(&self.0, path, flags, Mode::empty()).map(Self)
    }

    /// Reads a file below the directory into `buffer`, replacing what was there.
    pub(crate) fn read(&self, path: &[u8], buffer: &mut Vec<u8>) -> Result<(), Errno> {
        self.read_shaped(path, Shape::Records, buffer)
    }

    /// Like [`read`](Self::read) for a file that the kernel returns in one record, such as those of a process or a
    /// cgroup: it saves a system call.
    pub(crate) fn read_record(&self, path: &[u8], buffer: &mut Vec<u8>) -> Result<(), Errno> {
        self.read_shaped(path, Shape::OneRecord, buffer)
    }

    fn read_shaped(&self, path: &[u8], shape: Shape, buffer: &mut Vec<u8>) -> Result<(), Errno> {
        buffer.clear();
        let file = self.open_file(path)?;
        loop {
            if buffer.len() == buffer.capacity() {
                buffer.reserve(buffer.len().max(4096));
            }
            match rustix::io::read(&file, rustix::buffer::spare_capacity(buffer)) {
                Ok(0) => return Ok(()),
                Ok(_) if shape == Shape::OneRecord && buffer.len() < buffer.capacity() => {
                    return Ok(());
                }
                Ok(_) if buffer.len() >= Self::RECORD_BYTES_MAX => return Ok(()),
                Ok(_) | Err(Errno::INTR) => {}
                Err(errno) => {
                    buffer.clear();
                    return Err(errno);
                }
            }
        }
    }

    /// Opens a file below the directory for reading.
    pub(crate) fn open_file(&self, path: &[u8]) -> Result<OwnedFd, Errno> {
        // Below a foreign root a name may be a pipe; waiting for its writer could take for ever.
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        rustix::fs::openat(&self.0, path, flags, Mode::empty())
    }

    /// Returns the number of links of the directory at `path`. In `/sys` and `/proc` it is two more than the directories
    /// in it; some file systems give less than two for all.
    #[allow(clippy::useless_conversion)] // 32 bits on some architectures
    pub(crate) fn links(&self, path: &[u8]) -> Result<u64, Errno> {
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        rustix::fs::statat(&self.0, path, flags).map(|stat| u64::from(stat.st_nlink))
    }

    /// Passes on the name of each directory below `path` (`.` for this one) until stopped. Links are not followed.
    pub(crate) fn each_directory(
        &self,
        path: &[u8],
        mut see: impl FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Result<(), Errno> {
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let directory = rustix::fs::openat(&self.0, path, flags, Mode::empty())?;
        let mut buffer = [MaybeUninit::uninit(); 16 * 1024];
        let mut entries = RawDir::new(directory, &mut buffer);
        while let Some(entry) = entries.next() {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            // Some file systems do not report the type; opening a file as a directory fails later.
            let may_be = matches!(entry.file_type(), FileType::Directory | FileType::Unknown);
            if !may_be || name == b"." || name == b".." {
                continue;
            }
            if see(name).is_break() {
                break;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_whole_and_the_buffer_keeps_its_size() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("42")).unwrap();
        std::fs::write(root.path().join("42/stat"), "x".repeat(10_000)).unwrap();
        let directory = Directory::open(root.path()).unwrap();
        let mut buffer = Vec::new();
        directory.read(b"42/stat", &mut buffer).unwrap();
        assert_eq!(buffer.len(), 10_000);
        let capacity = buffer.capacity();
        directory.read(b"42/stat", &mut buffer).unwrap();
        assert_eq!((buffer.len(), buffer.capacity()), (10_000, capacity));
        assert_eq!(directory.read(b"43/stat", &mut buffer), Err(Errno::NOENT));
        assert!(buffer.is_empty(), "nothing of the last file remains");
    }

    #[test]
    fn only_directories_are_shown_and_links_are_none() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("a")).unwrap();
        std::fs::write(root.path().join("file"), "").unwrap();
        std::os::unix::fs::symlink(".", root.path().join("loop")).unwrap();
        let mut seen = Vec::new();
        let directory = Directory::open(root.path()).unwrap();
        directory
            .each_directory(b".", |name| {
                seen.push(name.to_vec());
                ControlFlow::Continue(())
            })
            .unwrap();
        assert_eq!(seen, [b"a"]);
    }

    #[test]
    fn a_refusal_is_counted_and_an_ended_process_is_not() {
        let mut walk = Walk::default();
        for errno in [Errno::ACCESS, Errno::PERM, Errno::NOENT, Errno::SRCH] {
            walk.note_errno(errno);
        }
        assert_eq!(walk.denied, 2);
    }

    #[test]
    fn a_pipe_without_a_writer_does_not_hang() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("stat");
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, Mode::RUSR | Mode::WUSR).unwrap();
        let mut buffer = Vec::new();
        Directory::open(root.path()).unwrap().read(b"stat", &mut buffer).unwrap();
        assert!(buffer.is_empty());
    }
}
