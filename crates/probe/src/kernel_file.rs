//! Kernel files: opened once, read many times into the same buffer.

use std::fs::File;
use std::path::{Path, PathBuf};

use crate::error::ReadError;

/// Where `/` is: the machine itself, or a directory that holds another machine's `/proc` and `/sys`.
#[derive(Debug, Clone)]
pub struct Root(PathBuf);

impl Default for Root {
    fn default() -> Self {
        Self(PathBuf::from("/"))
    }
}

impl Root {
    /// A directory that holds `proc` and `sys`.
    pub fn at(directory: impl Into<PathBuf>) -> Self {
        Self(directory.into())
    }

    /// Where the kernel's absolute `path` is.
    pub fn path(&self, path: &str) -> PathBuf {
        self.0.join(path.trim_start_matches('/'))
    }

    /// The names in a directory, sorted; empty where it cannot be read.
    pub fn names(&self, directory: &str) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(self.path(directory)) else {
            return Vec::new();
        };
        let mut names: Vec<String> = entries
            .flatten()
            .filter_map(|entry| entry.file_name().into_string().ok())
            .collect();
        names.sort();
        names
    }

    /// Whether the file or directory is there.
    pub fn has(&self, path: &str) -> bool {
        self.path(path).exists()
    }

    /// Reads a small file once: a tunable, a mount table.
    ///
    /// # Errors
    /// [`ReadError`] where it cannot be opened or read.
    pub fn read(&self, path: &str) -> Result<Vec<u8>, ReadError> {
        let mut buffer = Vec::new();
        KernelFile::open(self, path)?.read(&mut buffer)?;
        Ok(buffer)
    }
}

/// An open kernel file.
#[derive(Debug)]
pub struct KernelFile {
    file: File,
    path: PathBuf,
}

impl KernelFile {
    /// No kernel file that memtide reads is larger; what lies beyond is not read.
    const MOST: usize = 16 << 20;

    /// Opens the kernel's absolute `path` below `root`.
    ///
    /// # Errors
    /// [`ReadError`] where it cannot be opened.
    pub fn open(root: &Root, path: &str) -> Result<Self, ReadError> {
        Self::open_path(&root.path(path))
    }

    /// Opens a file.
    ///
    /// # Errors
    /// [`ReadError`] where it cannot be opened.
    pub fn open_path(path: &Path) -> Result<Self, ReadError> {
        match File::open(path) {
            Ok(file) => Ok(Self {
                file,
                path: path.to_owned(),
            }),
            Err(source) => Err(ReadError {
                path: path.display().to_string(),
                source,
            }),
        }
    }

    /// Reads the whole file from its start into `buffer`, which keeps its size: no allocation once it is large enough.
    /// One `pread` for most files, so their numbers are of one moment.
    ///
    /// # Errors
    /// [`ReadError`] where it cannot be read, for example because a process has ended.
    pub fn read(&self, buffer: &mut Vec<u8>) -> Result<(), ReadError> {
        buffer.resize(buffer.capacity().max(4096), 0);
        let mut filled = 0;
        loop {
            let offset = filled as u64;
            match rustix::io::pread(&self.file, &mut buffer[filled..], offset) {
                Ok(0) => break,
                Ok(n) => filled += n,
                Err(rustix::io::Errno::INTR) => continue,
                Err(errno) => {
                    buffer.clear();
                    return Err(ReadError {
                        path: self.path.display().to_string(),
                        source: errno.into(),
                    });
                }
            }
            if filled == buffer.len() {
                if filled >= Self::MOST {
                    break;
                }
                buffer.resize(filled * 2, 0);
            }
        }
        buffer.truncate(filled);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_whole_and_again_without_growing_the_buffer() {
        let directory = tempfile::tempdir().unwrap();
        let text = "x".repeat(10_000);
        std::fs::create_dir(directory.path().join("proc")).unwrap();
        std::fs::write(directory.path().join("proc/vmstat"), &text).unwrap();
        let root = Root::at(directory.path());
        let file = KernelFile::open(&root, "/proc/vmstat").unwrap();
        let mut buffer = Vec::new();
        file.read(&mut buffer).unwrap();
        let capacity = buffer.capacity();
        file.read(&mut buffer).unwrap();
        assert_eq!(buffer.len(), 10_000);
        assert_eq!(buffer.capacity(), capacity);
    }

    #[test]
    fn a_missing_file_says_which() {
        let error = Root::default().read("/proc/no-such-file").unwrap_err();
        assert_eq!(error.absence(), timeline::Absence::NotFound);
        assert!(error.to_string().contains("/proc/no-such-file"));
    }
}
