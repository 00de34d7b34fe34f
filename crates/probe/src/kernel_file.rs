//! Kernel files: opened once, read many times into the same buffer.

use std::fs::File;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use rustix::buffer::spare_capacity;
use rustix::io::{Errno, pread};

use crate::error::ReadError;

/// The root directory: of the machine itself, or of a directory with another machine's `/proc` and `/sys`.
#[derive(Debug, Clone)]
pub struct Root(PathBuf);

impl Default for Root {
    fn default() -> Self {
        Self(PathBuf::from("/"))
    }
}

impl Root {
    /// Uses a directory that contains `proc` and `sys`.
    pub fn at(directory: impl Into<PathBuf>) -> Self {
        Self(directory.into())
    }

    /// Returns the location of the kernel's absolute `path`.
    pub fn path(&self, path: &str) -> PathBuf {
        self.0.join(path.trim_start_matches('/'))
    }

    /// Returns the names in a directory, sorted; empty if it cannot be read.
    pub fn names(&self, directory: &str) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(self.path(directory)) else {
            return Vec::new();
        };
        let mut names: Vec<String> =
            entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names
    }

    /// Lists the entries of a directory that are numbers, such as the processes in `/proc`.
    ///
    /// # Errors
    /// [`ReadError`] if it cannot be listed.
    pub(crate) fn numbers(
        &self,
        directory: &str,
    ) -> Result<impl Iterator<Item = u32> + use<>, ReadError> {
        let path = self.path(directory);
        let entries = std::fs::read_dir(&path).map_err(|source| ReadError::new(&path, source))?;
        Ok(entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()))
    }

    /// Whether the file or directory exists.
    pub fn has(&self, path: &str) -> bool {
        self.path(path).exists()
    }

    /// Reads a small file once: a tunable, a mount table.
    ///
    /// # Errors
    /// [`ReadError`] if it cannot be opened or read.
    pub fn read(&self, path: &str) -> Result<Vec<u8>, ReadError> {
        let mut buffer = Vec::new();
        KernelFile::open(self, path)?.read(&mut buffer)?;
        Ok(buffer)
    }
}

/// How the kernel returns a file's text, which decides after which read the text is known to be complete.
///
/// A sequence file (`fs/seq_file.c`) returns as many whole records as fit its own buffer of one page, so a short read
/// does not mean its end: `/proc/slabinfo` takes seven reads. One more read is always correct and costs a system call,
/// 0.2 to 1 µs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Shape {
    /// Any number of records of any length: complete when a read returns nothing.
    #[default]
    Records,
    /// Any number of records of at most this many bytes: also complete when a read left room for another record.
    ShortRecords(usize),
    /// One record, for which the kernel's buffer grows (`single_open`, sysfs): complete when a read returns less than
    /// requested.
    OneRecord,
    /// One short line. Like `OneRecord`, but few bytes are requested: sysctl allocates and clears as many as are
    /// requested, which takes 5 µs for 64 KiB and 0.4 µs for these.
    OneLine,
}

impl Shape {
    /// Initial buffer of a sequence file: one page, and no page is smaller.
    const SEQUENCE_BUFFER: usize = 4096;

    /// Whether the text is known to end after a read that returned `got` bytes but requested more. Each read refills
    /// the kernel's buffer, as the previous one emptied it.
    const fn is_whole_after(self, got: usize, is_first: bool) -> bool {
        match self {
            Self::Records => false,
            Self::ShortRecords(longest) => got + longest < Self::SEQUENCE_BUFFER,
            Self::OneRecord | Self::OneLine => is_first,
        }
    }
}

/// An open kernel file.
#[derive(Debug)]
pub struct KernelFile {
    file: File,
    path: PathBuf,
    shape: Shape,
}

impl KernelFile {
    /// No kernel file that memtide reads is larger; the rest of a larger file is not read.
    const FILE_BYTES_MAX: usize = 16 << 20;
    /// The longest line of numbers, zram's `mm_stat`, has nine of at most 20 digits.
    const LINE: usize = 256;

    /// Opens the kernel's absolute `path` below `root`.
    ///
    /// # Errors
    /// [`ReadError`] if it cannot be opened.
    pub fn open(root: &Root, path: &str) -> Result<Self, ReadError> {
        Self::open_path(&root.path(path))
    }

    /// Opens a file.
    ///
    /// # Errors
    /// [`ReadError`] if it cannot be opened.
    pub fn open_path(path: &Path) -> Result<Self, ReadError> {
        Ok(Self { file: open(path)?, path: path.to_owned(), shape: Shape::default() })
    }

    /// Sets the shape in which the kernel returns the file. Ordinary files may have any.
    #[must_use]
    pub fn shaped(mut self, shape: Shape) -> Self {
        self.shape = shape;
        self
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the whole file from its start into `buffer`, which keeps its capacity: no allocation once it is large
    /// enough. One `pread` for most files, so their numbers are of one moment.
    ///
    /// # Errors
    /// [`ReadError`] if it cannot be read, for example because a process has ended.
    pub fn read(&self, buffer: &mut Vec<u8>) -> Result<(), ReadError> {
        self.read_quietly(buffer).map_err(|errno| ReadError::new(&self.path, errno))
    }

    /// Like [`read`](Self::read), without an error message, which would have to be allocated.
    pub(crate) fn read_quietly(&self, buffer: &mut Vec<u8>) -> Result<(), Errno> {
        buffer.clear();
        self.append(buffer)
    }

    /// Like `read_quietly`, but appends to the buffer.
    pub(crate) fn append(&self, buffer: &mut Vec<u8>) -> Result<(), Errno> {
        let start = buffer.len();
        if self.shape == Shape::OneLine {
            let mut line = [0; Self::LINE];
            let got = retrying(|| pread(&self.file, &mut line, 0))?;
            buffer.extend_from_slice(&line[..got]);
            if got < Self::LINE {
                return Ok(());
            }
        }
        append_whole(&self.file, self.shape, Self::FILE_BYTES_MAX, start, buffer)
    }
}

/// Reads a whole file from its start, by `pread`, and appends it to the buffer at `start`; of a file that is longer than
/// `bytes_max` the rest is not read. After an error the buffer ends at `start`.
pub(crate) fn append_whole(
    file: impl AsFd,
    shape: Shape,
    bytes_max: usize,
    start: usize,
    buffer: &mut Vec<u8>,
) -> Result<(), Errno> {
    /// The minimum requested at once: most files take one read.
    const BUFFER_BYTES_MIN: usize = 8 << 10;
    loop {
        let filled = buffer.len() - start;
        if filled >= bytes_max {
            return Ok(());
        }
        if buffer.capacity() - buffer.len() < BUFFER_BYTES_MIN {
            buffer.reserve(filled.max(BUFFER_BYTES_MIN));
        }
        let asked = buffer.capacity() - buffer.len();
        let got = retrying(|| pread(&file, spare_capacity(buffer), filled as u64))
            .inspect_err(|_| buffer.truncate(start))?;
        let is_short = got < asked;
        if got == 0 || is_short && shape.is_whole_after(got, filled == 0) {
            return Ok(());
        }
    }
}

/// Opens a file for reading.
pub(crate) fn open(path: &Path) -> Result<File, ReadError> {
    // The lint that forbids this call points the pure crates to this function.
    #[allow(clippy::disallowed_methods)]
    File::open(path).map_err(|source| ReadError::new(path, source))
}

/// Repeats a read while signals interrupt it.
pub(crate) fn retrying(mut read: impl FnMut() -> Result<usize, Errno>) -> Result<usize, Errno> {
    loop {
        match read() {
            Err(Errno::INTR) => {}
            result => return result,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file_of(text: &str, shape: Shape) -> (tempfile::TempDir, KernelFile) {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("proc")).unwrap();
        std::fs::write(directory.path().join("proc/vmstat"), text).unwrap();
        let file = KernelFile::open(&Root::at(directory.path()), "/proc/vmstat").unwrap();
        (directory, file.shaped(shape))
    }

    #[test]
    fn a_file_is_read_whole_and_again_without_growing_the_buffer() {
        let sizes = [0, 1, 255, 256, 257, 4_000, 16_383, 16_384, 16_385, 100_000];
        let shapes = [Shape::Records, Shape::ShortRecords(96), Shape::OneRecord, Shape::OneLine];
        for size in sizes {
            for shape in shapes {
                let text = "0123456789\n".repeat(size / 11 + 1)[..size].to_owned();
                let (_directory, file) = file_of(&text, shape);
                let mut buffer = Vec::new();
                file.read(&mut buffer).unwrap();
                assert_eq!(buffer, text.as_bytes(), "{size} bytes, {shape:?}");
                let capacity = buffer.capacity();
                file.read(&mut buffer).unwrap();
                assert_eq!(buffer, text.as_bytes(), "{size} bytes again, {shape:?}");
                assert_eq!(buffer.capacity(), capacity, "{size} bytes, {shape:?}");
            }
        }
    }

    #[test]
    fn a_short_read_is_the_end_only_where_no_further_record_can_follow() {
        assert!(!Shape::Records.is_whole_after(10, true));
        assert!(Shape::OneRecord.is_whole_after(10_000, true));
        assert!(!Shape::OneRecord.is_whole_after(10_000, false));
        let vmstat = Shape::ShortRecords(96);
        assert!(vmstat.is_whole_after(3_903, true));
        assert!(!vmstat.is_whole_after(4_050, true), "a line more may not have fitted");
        assert!(vmstat.is_whole_after(44, false), "the second page's worth");
    }

    #[test]
    fn the_kernels_own_files_are_the_same_in_every_shape_they_are_read_in() {
        // These files do not change while they are read. Reading to the end is the reference.
        for (path, shape) in [
            ("/proc/version", Shape::OneRecord),
            ("/proc/sys/vm/overcommit_ratio", Shape::OneLine),
            ("/proc/filesystems", Shape::OneRecord),
        ] {
            let (mut whole, mut quick) = (Vec::new(), Vec::new());
            let open = || KernelFile::open(&Root::default(), path).unwrap();
            open().read(&mut whole).unwrap();
            open().shaped(shape).read(&mut quick).unwrap();
            assert!(!whole.is_empty());
            assert_eq!(whole, quick, "{path}");
        }
    }

    #[test]
    fn a_missing_file_says_which() {
        let error = Root::default().read("/proc/no-such-file").unwrap_err();
        assert_eq!(error.absence(), timeline::Absence::NotFound);
        assert!(error.to_string().contains("/proc/no-such-file"));
    }
}
