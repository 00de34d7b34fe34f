//! The output of an export: standard output, or a file that appears when it is complete.

use std::fmt;
use std::fs::OpenOptions;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::command_error::{CommandError, bail};
use ::export::Packed;
use timeline::plain::escape;

pub(crate) enum OutputTarget {
    Stdout,
    /// A device or a pipe, which cannot be replaced.
    Stream(PathBuf),
    File(PathBuf),
}

impl OutputTarget {
    /// The output at a path; `-` is standard output.
    ///
    /// # Errors
    /// If the file exists and must not be overwritten.
    pub(crate) fn new(path: &Path, force: bool) -> Result<Self, CommandError> {
        if path == Path::new("-") {
            return Ok(Self::Stdout);
        }
        if let Some(link) = foreign_link(path) {
            bail!("{} is a symbolic link of user {link}, which is not followed", path.display());
        }
        // A link is followed: its target is written.
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        match std::fs::metadata(&path) {
            Err(_) => Ok(Self::File(path)),
            Ok(meta) if meta.file_type().is_block_device() => {
                bail!("{} is a disk, which is not written", path.display())
            }
            Ok(meta) if meta.is_dir() => {
                bail!("{} is a directory; name a file in it", path.display())
            }
            Ok(meta) if !meta.is_file() => Ok(Self::Stream(path)),
            Ok(_) if !force => bail!("{} exists; --force overwrites it", path.display()),
            Ok(_) => Ok(Self::File(path)),
        }
    }

    /// Whether it is standard output.
    pub(crate) const fn is_stdout(&self) -> bool {
        matches!(self, Self::Stdout)
    }

    /// Writes the output, compressed as its name says; a file is renamed into place when it is complete on disk.
    pub(crate) fn write<T>(
        &self,
        write: impl FnOnce(&mut dyn Write) -> io::Result<T>,
    ) -> io::Result<T> {
        match self {
            Self::Stdout if io::stdout().is_terminal() => {
                let mut out = Harmless::new(io::stdout().lock());
                let result = write(&mut out)?;
                out.flush().map(|()| result)
            }
            Self::Stdout => buffered(io::stdout().lock(), write),
            Self::Stream(path) => buffered(OpenOptions::new().write(true).open(path)?, write),
            Self::File(path) => file(path, write),
        }
    }
}

/// Returns the user who made a symbolic link at this path, if it is neither root nor this user: it may lead anywhere.
fn foreign_link(path: &Path) -> Option<u32> {
    let found = path.symlink_metadata().ok()?;
    (found.is_symlink() && !is_own(&found)).then_some(found.uid())
}

fn is_own(found: &std::fs::Metadata) -> bool {
    [0, rustix::process::geteuid().as_raw()].contains(&found.uid())
}

/// Who may read a new file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileAccess {
    /// The owner only, whatever the umask: the content may hold secrets.
    Owner,
    /// As the umask says.
    Umask,
}

impl FileAccess {
    const fn mode(self) -> u32 {
        match self {
            Self::Owner => 0o600,
            Self::Umask => 0o666,
        }
    }
}

impl OutputTarget {
    /// Writes the output as it comes, compressed as its name says: of a capture that is killed, the samples so far
    /// stay. A file is always a new one: a link at its path is not followed.
    pub(crate) fn write_as_it_comes<T>(
        &self,
        access: FileAccess,
        write: impl FnOnce(&mut dyn Write) -> io::Result<T>,
    ) -> io::Result<T> {
        let (file, path) = match self {
            Self::Stdout => return self.write(write),
            Self::Stream(path) => (OpenOptions::new().write(true).open(path)?, path),
            Self::File(path) => {
                match std::fs::remove_file(path) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                    _ => {}
                }
                let mut options = OpenOptions::new();
                options.write(true).create_new(true).mode(access.mode());
                (options.open(path)?, path)
            }
        };
        let mut packed = Packed::over(file, path)?;
        let result = write(&mut packed)?;
        packed.finish().map(|()| result)
    }
}

/// As shown in messages.
impl fmt::Display for OutputTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdout => f.write_str("standard output"),
            Self::Stream(path) | Self::File(path) => path.display().fmt(f),
        }
    }
}

fn buffered<T>(
    out: impl Write,
    write: impl FnOnce(&mut dyn Write) -> io::Result<T>,
) -> io::Result<T> {
    let mut out = BufWriter::new(out);
    let result = write(&mut out)?;
    out.flush().map(|()| result)
}

fn file<T>(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<T>) -> io::Result<T> {
    let directory = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let file = tempfile::Builder::new()
        .prefix(".memtide-export-")
        .permissions(std::fs::Permissions::from_mode(FileAccess::Umask.mode()))
        .tempfile_in(directory)
        // The library's message names the temporary file; the caller adds the file's name.
        .map_err(|error| {
            let why = format!("{}: {}", directory.display(), error.kind());
            io::Error::new(error.kind(), why)
        })?;
    let mut packed = Packed::over(file.as_file().try_clone()?, path)?;
    let result = write(&mut packed)?;
    packed.finish()?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(result)
}

/// A terminal: lines are escaped, so that names of processes cannot control it.
struct Harmless<W: Write> {
    out: W,
    line: Vec<u8>,
}

impl<W: Write> Harmless<W> {
    const fn new(out: W) -> Self {
        Self { out, line: Vec::new() }
    }

    fn end_line(&mut self) -> io::Result<()> {
        let line = String::from_utf8_lossy(&self.line);
        writeln!(self.out, "{}", escape(&line))?;
        self.line.clear();
        Ok(())
    }
}

impl<W: Write> Write for Harmless<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for byte in bytes {
            match byte {
                b'\n' => self.end_line()?,
                byte => self.line.push(*byte),
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if !self.line.is_empty() {
            self.end_line()?;
        }
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_fails_half_way_is_not_there_at_all() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("out.csv");
        let target = OutputTarget::new(&path, false).unwrap();
        let fails = target.write(|out| {
            out.write_all(b"half")?;
            Err::<(), _>(io::Error::from(io::ErrorKind::StorageFull))
        });
        assert!(fails.is_err());
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
        target.write(|out| out.write_all(b"whole\n")).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"whole\n");
        assert!(OutputTarget::new(&path, false).is_err());
        assert!(OutputTarget::new(&path, true).is_ok());
    }

    #[test]
    fn a_device_is_written_and_not_replaced() {
        let target = OutputTarget::new(Path::new("/dev/null"), false).unwrap();
        assert!(matches!(target, OutputTarget::Stream(_)));
        target.write(|out| out.write_all(b"gone")).unwrap();
        assert!(!std::fs::metadata("/dev/null").unwrap().is_file());
    }

    #[test]
    fn a_link_of_somebody_else_is_not_followed() {
        let directory = tempfile::tempdir().unwrap();
        let link = directory.path().join("link");
        std::os::unix::fs::symlink("/dev/null", &link).unwrap();
        assert!(OutputTarget::new(&link, true).is_ok());
        if std::os::unix::fs::lchown(&link, Some(4711), None).is_ok() {
            let why = OutputTarget::new(&link, true).err().unwrap().to_string();
            assert!(why.ends_with("is a symbolic link of user 4711, which is not followed"));
        }
    }

    #[test]
    fn what_is_written_as_it_comes_is_a_new_file_and_a_link_is_not_followed() {
        let directory = tempfile::tempdir().unwrap();
        let (path, other) = (directory.path().join("out"), directory.path().join("other"));
        std::fs::write(&other, "foreign").unwrap();
        std::os::unix::fs::symlink(&other, &path).unwrap();
        assert!(OutputTarget::new(&path, false).is_err());
        // A link that was made after the path was checked.
        let target = OutputTarget::File(path.clone());
        let written = target.write_as_it_comes(FileAccess::Owner, |out| out.write_all(b"own"));
        written.unwrap();
        assert_eq!(std::fs::read(&other).unwrap(), b"foreign");
        assert_eq!(std::fs::read(&path).unwrap(), b"own");
        let meta = std::fs::symlink_metadata(&path).unwrap();
        assert!(meta.is_file());
        assert_eq!(meta.permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_terminal_is_not_steered() {
        let mut out = Harmless::new(Vec::new());
        out.write_all(b"a\x1b[2Jb\nrest").unwrap();
        out.flush().unwrap();
        assert_eq!(out.out, b"a\\x1b[2Jb\nrest\n");
    }
}
