//! Opens files in places where somebody else may put another: a device, a pipe, a link.
//!
//! Two nouns: a **place** is a path at which somebody else may put another file; a **found** file is what was looked up there
//! ([`look_up`], `O_PATH`), which opens nothing: opening a device may do something (a watchdog counts), and opening a pipe waits
//! for its other end. Its type is checked, and then the very file that was checked is opened ([`open_found`], [`reopen`]), by its
//! link in `/proc/self/fd`. A name that leads to another file meanwhile changes nothing.
//!
//! ```
//! use checked_open::{LastLink, open_regular};
//! use std::{fs::OpenOptions, path::Path};
//!
//! let opened = open_regular(OpenOptions::new().read(true), Path::new("/dev/zero"), LastLink::Kept);
//! assert_eq!(opened.unwrap_err().to_string(), "it is not a regular file");
//! ```
//!
//! A lookup in a file system of a program or of another machine may wait for ever, and so may asking for the attributes of a
//! file there: `probe` decides by the mount tables which places are left alone.

mod rooted;

pub use rooted::{RootedFile, look_up_rooted};

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, OFlags};
use rustix::io::Errno;

/// Whether a symbolic link at the end of a path is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LastLink {
    /// It leads to the file.
    Followed,
    /// It is the file.
    Kept,
}

/// Looks a file up without opening it. A relative path begins at `directory`.
///
/// # Errors
/// The kernel's.
pub fn look_up(
    directory: impl AsFd,
    path: impl rustix::path::Arg,
    last: LastLink,
) -> Result<OwnedFd, Errno> {
    let mut flags = OFlags::PATH | OFlags::CLOEXEC;
    flags.set(OFlags::NOFOLLOW, last == LastLink::Kept);
    rustix::fs::openat(directory, path, flags, Mode::empty())
}

/// Opens a file that was looked up for reading, without waiting: not for a lease on it either.
///
/// # Errors
/// The kernel's; without `/proc` nothing is found.
pub fn reopen(found: &OwnedFd) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    rustix::fs::open(link_of(found), flags, Mode::empty())
}

/// Opens a file with these options if it is a regular one. They may have neither `create` nor `truncate`.
///
/// # Errors
/// The kernel's; and that it is no regular file.
pub fn open_regular(options: &mut OpenOptions, path: &Path, last: LastLink) -> io::Result<File> {
    let found = look_up(CWD, path, last)?;
    match FileType::from_raw_mode(rustix::fs::fstat(&found)?.st_mode) {
        FileType::RegularFile => open_found(options, &found),
        FileType::Symlink => Err(io::Error::other("it is a symbolic link")),
        _ => Err(io::Error::other("it is not a regular file")),
    }
}

/// Opens a file that was looked up and checked with these options, without waiting.
///
/// # Errors
/// The kernel's; without `/proc` nothing is found.
pub fn open_found(options: &mut OpenOptions, found: &OwnedFd) -> io::Result<File> {
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits();
    options.custom_flags(flags.cast_signed()).open(link_of(found))
}

fn link_of(found: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", found.as_raw_fd())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;

    fn read(path: &Path, last: LastLink) -> io::Result<String> {
        let mut text = String::new();
        open_regular(OpenOptions::new().read(true), path, last)?.read_to_string(&mut text)?;
        Ok(text)
    }

    #[test]
    fn only_a_regular_file_is_opened() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        std::fs::write(at("file"), "text").unwrap();
        std::os::unix::fs::symlink(at("file"), at("link")).unwrap();
        let (pipe, user) = (FileType::Fifo, Mode::RUSR | Mode::WUSR);
        rustix::fs::mknodat(CWD, at("pipe"), pipe, user, 0).unwrap();
        for last in [LastLink::Followed, LastLink::Kept] {
            assert_eq!(read(&at("file"), last).unwrap(), "text");
            for place in [at("pipe"), "/dev/zero".into(), at("")] {
                let why = read(&place, last).unwrap_err().to_string();
                assert_eq!(why, "it is not a regular file", "{}", place.display());
            }
        }
        assert_eq!(read(&at("link"), LastLink::Followed).unwrap(), "text");
        let why = read(&at("link"), LastLink::Kept).unwrap_err().to_string();
        assert_eq!(why, "it is a symbolic link");
    }

    #[test]
    fn a_file_that_takes_the_place_of_the_checked_one_is_not_opened() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join("file");
        std::fs::write(&place, "checked").unwrap();
        let found = look_up(CWD, &place, LastLink::Kept).unwrap();
        std::fs::remove_file(&place).unwrap();
        std::fs::write(&place, "another").unwrap();
        let mut text = String::new();
        let mut file = open_found(OpenOptions::new().read(true), &found).unwrap();
        file.read_to_string(&mut text).unwrap();
        assert_eq!(text, "checked");
    }
}
