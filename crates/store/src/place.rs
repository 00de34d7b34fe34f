//! The directory that is written to: made ready when a writer begins, and again where it comes back after it was gone.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use units::Span;

use crate::identity::{self, Identity};
use crate::lock::Lock;
use crate::{StoreError, head, lock, segment};

/// Where a writer writes, and whose recording it is.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) directory: PathBuf,
    pub(crate) identity: Identity,
    pub(crate) every: Span,
}

/// No recording comes to so many parts: one that has such a number was named by hand.
const LARGEST: u64 = 999_999_999_999;

/// A recording is for its owner and its group: names of processes and control groups tell what a host does, but are not
/// for everybody's eyes.
const MODE: u32 = 0o750;

impl Place {
    /// Makes the directory if it is not there, and it a recording; refuses what is somebody else's.
    pub(crate) fn make(&self) -> Result<Lock, StoreError> {
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(MODE);
        // Looked at before anything is touched.
        identity::is_new(&self.directory, &self.identity)?;
        builder
            .create(&self.directory)
            .map_err(|error| StoreError::io("create", &self.directory, &error))?;
        self.take()
    }

    /// Takes a directory that is there, and makes it a recording where it is none.
    pub(crate) fn take(&self) -> Result<Lock, StoreError> {
        let is_new = identity::is_new(&self.directory, &self.identity)?;
        let lock = Lock::take(&self.directory)?;
        if is_new {
            identity::write(&self.directory, &self.identity, self.every)?;
        }
        let heads = head::directory_of(&self.directory);
        match DirBuilder::new().mode(MODE).create(&heads) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                return Err(StoreError::io("create", &heads, &error));
            }
            _ => {}
        }
        // So that head files of today are not in a directory that the power failure takes away.
        sync(&self.directory).map_err(|error| StoreError::io("sync", &self.directory, &error))?;
        Ok(lock)
    }

    /// The number after all that are there, sealed or not.
    pub(crate) fn next_sequence(&self) -> std::io::Result<u64> {
        let heads = head::files(&self.directory)?;
        let (segments, _) = segment::list(&self.directory)?;
        let sealed = segments.iter().map(|segment| segment.sequence);
        let all = sealed.chain(heads.iter().map(|head| head.sequence));
        match all.max() {
            None => Ok(1),
            Some(last) if last < LARGEST => Ok(last + 1),
            Some(last) => Err(io::Error::other(format!(
                "a part of it has the number {last}, which leaves none for the next; move that part away"
            ))),
        }
    }

    /// Makes the number of a head file free that nothing was written to: a recorder was killed as soon as it had begun. Else
    /// its number would be missing in the recording for ever. Not while somebody seals, who may be about to remove it.
    pub(crate) fn clear_empty_head(&self) -> io::Result<()> {
        let heads = head::files(&self.directory)?;
        let Some(last) = heads.last().filter(|last| head::is_empty(&last.path)) else {
            return Ok(());
        };
        match lock::try_sealing(&head::directory_of(&self.directory)) {
            Some(_alone) => fs::remove_file(&last.path),
            None => Ok(()),
        }
    }
}

/// Syncs a directory: what was made in it stays.
pub(crate) fn sync(directory: &Path) -> std::io::Result<()> {
    File::open(directory)?.sync_all()
}

/// Opens a file for reading, if it is a regular one: a pipe or a device in its place neither blocks nor is read.
pub(crate) fn open_regular(path: &Path) -> io::Result<File> {
    regular(OpenOptions::new().read(true), path, OFlags::empty())
}

/// Opens a file as the options say, if it is a regular one and no symbolic link: whoever may write to a recording's
/// directory must not choose what else its recorder writes to. Never with `truncate`: what it is, is known afterwards.
pub(crate) fn open_own(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    regular(options, path, OFlags::NOFOLLOW)
}

fn regular(options: &mut OpenOptions, path: &Path, more: OFlags) -> io::Result<File> {
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY | more).bits();
    let file = options.custom_flags(flags.cast_signed()).open(path);
    let file = file.map_err(|error| match rustix::io::Errno::from_io_error(&error) {
        Some(rustix::io::Errno::LOOP) => io::Error::other("it is a symbolic link"),
        // A pipe that nobody reads, opened for writing.
        Some(rustix::io::Errno::NXIO) => io::Error::other("it is not a regular file"),
        _ => error,
    })?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::other("it is not a regular file"))
    }
}

/// Reads a regular file of at most so many bytes.
pub(crate) fn read_regular(path: &Path, longest: u64) -> io::Result<Vec<u8>> {
    let file = open_regular(path)?;
    let length = file.metadata()?.len();
    if length > longest {
        return Err(io::Error::other("it is far too long"));
    }
    // One byte more, so that the end is found without making room for more.
    let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or(0).saturating_add(1));
    // It may be growing.
    file.take(longest).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Begins a file that is not there. What a killed writer, or anybody else, left in its place is removed, not written to.
pub(crate) fn create_draft(path: &Path) -> io::Result<File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    open_own(
        OpenOptions::new().write(true).create_new(true).mode(0o640),
        path,
    )
}

/// Whether there is a directory.
pub(crate) fn is_there(directory: &Path) -> bool {
    fs::metadata(directory).is_ok_and(|meta| meta.is_dir())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_regular_file_is_opened_and_nothing_else_is_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::write(at("file"), "text").unwrap();
        fs::create_dir(at("directory")).unwrap();
        std::os::unix::fs::symlink(at("file"), at("link")).unwrap();
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mknodat(
            rustix::fs::CWD,
            at("pipe"),
            rustix::fs::FileType::Fifo,
            mode,
            0,
        )
        .unwrap();
        let write = |name: &str| open_own(OpenOptions::new().write(true), &at(name)).map(drop);
        assert_eq!(read_regular(&at("file"), 4).unwrap(), b"text");
        assert!(read_regular(&at("file"), 3).is_err());
        assert!(open_regular(&at("link")).is_ok());
        assert!(write("file").is_ok());
        for name in ["directory", "pipe", "/dev/zero"] {
            let error = open_regular(&at(name)).unwrap_err();
            assert_eq!(error.to_string(), "it is not a regular file", "{name}");
            assert!(write(name).is_err(), "{name}");
        }
        assert_eq!(
            write("link").unwrap_err().to_string(),
            "it is a symbolic link"
        );
    }

    #[test]
    fn a_draft_takes_the_place_of_a_link_and_leaves_its_target_alone() {
        let directory = tempfile::tempdir().unwrap();
        let (target, draft) = (
            directory.path().join("target"),
            directory.path().join("draft"),
        );
        fs::write(&target, "somebody's").unwrap();
        std::os::unix::fs::symlink(&target, &draft).unwrap();
        drop(create_draft(&draft).unwrap());
        assert_eq!(fs::read(&target).unwrap(), b"somebody's");
        assert!(fs::symlink_metadata(&draft).unwrap().is_file());
    }
}
