//! Opens the file of a source so that nothing in its place blocks: a pipe to which no program writes, a kernel file that
//! waits for its next line.
//!
//! A pipe with a writer (`memtide check <(dmesg)`) is waited for as long as the writer takes.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, IsTerminal, Read};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use checked_open::{LastLink, look_up, open_found};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{CWD, FileType, OFlags, fcntl_getfl, fcntl_setfl, fstat, fstatfs};

/// How long a pipe with a name may lack a program that opens it for writing: a shell starts both ends within milliseconds.
const WRITER_WAIT_MAX: Duration = Duration::from_secs(3);
/// How often it is checked for one.
const WRITER_WAIT_STEP: Duration = Duration::from_millis(5);
/// The type of the file system of pipes without a name (`PIPEFS_MAGIC`): their writers opened them first.
const UNNAMED_PIPES: u64 = 0x5049_5045;

/// An open file.
#[derive(Debug)]
pub struct InputFile {
    file: File,
    /// Bytes that were read while a pipe was waited for.
    first: Option<u8>,
    /// How many bytes it may still give; `None` where its space on the disk is unknown.
    left: Option<u64>,
}

/// How far a file may exceed its space on the disk, which a file of holes does: as a packed one may unpack to more than its size.
fn readable(file: &File) -> io::Result<Option<u64>> {
    let meta = file.metadata()?;
    // Blocks of stat(2) have 512 bytes on every file system; some file systems count none.
    let stored = meta.blocks().saturating_mul(512);
    Ok((meta.is_file() && stored > 0).then(|| unpacked_bytes_max(stored)))
}

/// Whether a file may be opened: of devices only terminals and those in which the kernel has text or nothing (`/dev/null`,
/// `/dev/kmsg`).
fn is_text(kind: FileType, device: u64) -> bool {
    /// Major numbers of character devices (Documentation/admin-guide/devices.txt): memory, consoles, terminals, pseudo terminals.
    const MEMORY: u32 = 1;
    const CONSOLES: u32 = 4;
    const TERMINALS: u32 = 5;
    const PSEUDO_TERMINALS: std::ops::RangeInclusive<u32> = 136..=143;
    /// In memory: null, zero, full, random, urandom, kmsg. Not the memory of the machine itself.
    const TEXTS: [u32; 6] = [3, 5, 7, 8, 9, 11];
    match kind {
        FileType::BlockDevice => false,
        FileType::CharacterDevice => match (rustix::fs::major(device), rustix::fs::minor(device)) {
            (MEMORY, minor) => TEXTS.contains(&minor),
            // Behind the consoles are serial lines, and 5:2 makes a new terminal.
            (CONSOLES, minor) => minor < 64,
            (TERMINALS, minor) => minor < 2,
            (major, _) => PSEUDO_TERMINALS.contains(&major),
        },
        _ => true,
    }
}

impl InputFile {
    /// Opens a file.
    ///
    /// # Errors
    /// The operating system's; if it is a named pipe that no program opens for writing within three seconds; and if it is a
    /// device that is more than text: opening one may do something, and a link of somebody else may lead to it.
    pub fn open(path: &Path) -> io::Result<Self> {
        let found = look_up(CWD, path, LastLink::Followed)?;
        let stat = fstat(&found)?;
        if !is_text(FileType::from_raw_mode(stat.st_mode), stat.st_rdev) {
            return Err(io::Error::other("it is a device, which is not opened"));
        }
        let file = open_found(OpenOptions::new().read(true), &found)?;
        let kind = file.metadata()?.file_type();
        let mut first = None;
        if kind.is_fifo() && !is_unnamed(&file)? {
            first = first_byte(&file)?;
        }
        if kind.is_fifo() || file.is_terminal() {
            fcntl_setfl(&file, fcntl_getfl(&file)? - OFlags::NONBLOCK)?;
        }
        Ok(Self { left: readable(&file)?, file, first })
    }

    /// Opens a file of a directory tree, where only regular files are read.
    ///
    /// # Errors
    /// As [`open`](Self::open); and if it is none.
    pub(crate) fn open_regular(path: &Path) -> io::Result<Self> {
        // Links were left out before; this one took the place of a file.
        let file = store::open_own(OpenOptions::new().read(true), path)?;
        Ok(Self { left: readable(&file)?, file, first: None })
    }
}

impl Read for InputFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let (Some(first), Some(place)) = (self.first, buffer.first_mut()) {
            *place = first;
            self.first = None;
            return Ok(1);
        }
        let read = match self.file.read(buffer) {
            // The kernel's log has no more lines yet.
            Err(error) if error.kind() == ErrorKind::WouldBlock => 0,
            read => read?,
        };
        if let Some(left) = &mut self.left {
            *left = left.checked_sub(read as u64).ok_or_else(|| {
                io::Error::new(ErrorKind::FileTooLarge, "has far more holes than content")
            })?;
        }
        Ok(read)
    }
}

fn is_unnamed(file: &File) -> io::Result<bool> {
    Ok(fstatfs(file)?.f_type.cast_unsigned() == UNNAMED_PIPES)
}

/// Waits for a named pipe's writer, which may give a first byte meanwhile; `None` if it has given none yet, or has ended.
fn first_byte(mut pipe: &File) -> io::Result<Option<u8>> {
    let began = Instant::now();
    let mut byte = [0];
    loop {
        match pipe.read(&mut byte) {
            Ok(1..) => return Ok(Some(byte[0])),
            // A writer is there and has written nothing so far.
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
            Err(error) if error.kind() != ErrorKind::Interrupted => return Err(error),
            _ if had_writer(pipe)? => return Ok(None),
            _ if began.elapsed() >= WRITER_WAIT_MAX => {
                return Err(io::Error::other("it is a pipe, and no program writes to it"));
            }
            _ => sleep(WRITER_WAIT_STEP),
        }
    }
}

/// Whether a pipe without a writer has had one since it was opened.
fn had_writer(pipe: &File) -> io::Result<bool> {
    let mut polled = [PollFd::new(pipe, PollFlags::IN)];
    let at_once = rustix::event::Timespec::default();
    poll(&mut polled, Some(&at_once))?;
    Ok(polled[0].revents().contains(PollFlags::HUP))
}

/// A source may give this much, whatever it is packed in: it is searched within seconds.
const UNPACKED_BYTES_MAX: u64 = 1 << 30;
/// Beyond that it may give this many times its size: captures of a quiet host are packed to a hundredth.
pub(crate) const UNPACKED_TIMES_MAX: u64 = 150;

/// The most bytes that a source may give which takes this many on the disk.
pub(crate) fn unpacked_bytes_max(stored: u64) -> u64 {
    UNPACKED_BYTES_MAX.max(stored.saturating_mul(UNPACKED_TIMES_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn pipe(directory: &tempfile::TempDir) -> std::path::PathBuf {
        let path = directory.path().join("pipe");
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        path
    }

    fn text(path: &Path) -> io::Result<String> {
        let mut text = String::new();
        InputFile::open(path)?.read_to_string(&mut text)?;
        Ok(text)
    }

    #[test]
    fn a_pipe_without_a_writer_is_not_waited_for_without_end() {
        let directory = tempfile::tempdir().unwrap();
        let error = text(&pipe(&directory)).unwrap_err();
        assert_eq!(error.to_string(), "it is a pipe, and no program writes to it");
    }

    #[test]
    fn a_slow_writer_is_waited_for_and_one_that_writes_nothing_ends_the_text() {
        let directory = tempfile::tempdir().unwrap();
        let path = pipe(&directory);
        for written in ["slow and sure", ""] {
            let to = path.clone();
            let writer = std::thread::spawn(move || {
                sleep(Duration::from_millis(50));
                let mut out = OpenOptions::new().write(true).open(to).unwrap();
                sleep(Duration::from_millis(50));
                out.write_all(written.as_bytes()).unwrap();
            });
            assert_eq!(text(&path).unwrap(), written);
            writer.join().unwrap();
        }
    }

    #[test]
    fn a_file_of_holes_is_read_to_a_bound() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("holes");
        std::fs::write(&path, "start").unwrap();
        let file = OpenOptions::new().write(true).open(&path).unwrap();
        file.set_len(1 << 40).unwrap();
        let mut input = InputFile::open(&path).unwrap();
        let end = io::copy(&mut input, &mut io::sink()).unwrap_err();
        assert_eq!(end.kind(), ErrorKind::FileTooLarge);
    }

    #[test]
    fn of_devices_only_those_with_text_or_nothing_are_opened() {
        use rustix::fs::makedev;
        assert_eq!(text(Path::new("/dev/null")).unwrap(), "");
        let is_text = |kind, major, minor| is_text(kind, makedev(major, minor));
        for (major, minor, expected) in [
            (1, 11, true),
            (1, 1, false),
            (5, 0, true),
            (5, 2, false),
            (4, 1, true),
            (4, 64, false),
            (136, 3, true),
            (10, 130, false),
            (10, 229, false),
        ] {
            let found = is_text(FileType::CharacterDevice, major, minor);
            assert_eq!(found, expected, "{major}:{minor}");
        }
        assert!(!is_text(FileType::BlockDevice, 1, 0));
    }

    #[test]
    fn only_regular_files_of_a_tree_are_opened() {
        let directory = tempfile::tempdir().unwrap();
        let link = directory.path().join("link");
        std::os::unix::fs::symlink("/dev/zero", &link).unwrap();
        for path in [pipe(&directory), link, "/dev/zero".into()] {
            assert!(InputFile::open_regular(&path).is_err(), "{path:?}");
        }
    }
}
