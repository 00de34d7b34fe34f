//! Opens files of a recording: only regular files, and never through a symbolic link for writing. Decides who may read
//! what is created.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use checked_open::LastLink;

use crate::directory::identity;

/// Syncs a directory, so that new entries are durable.
pub(crate) fn sync(directory: &Path) -> std::io::Result<()> {
    File::open(directory)?.sync_all()
}

/// Opens a file for reading if it is a regular one: a pipe or a device in its place neither blocks nor is read.
pub(crate) fn open_regular(path: &Path) -> io::Result<File> {
    checked_open::open_regular(OpenOptions::new().read(true), path, LastLink::Followed)
}

/// Opens a file with these options if it is a regular one and not a symbolic link: write access to a recording's
/// directory must not redirect what its recorder writes.
///
/// # Errors
/// The operating system's.
pub fn open_own(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    checked_open::open_regular(options, path, LastLink::Kept)
}

/// Reads a regular file of at most `longest` bytes.
pub(crate) fn read_regular(path: &Path, longest: u64) -> io::Result<Vec<u8>> {
    let file = open_regular(path)?;
    let length = file.metadata()?.len();
    if length > longest {
        return Err(io::Error::other("it is too long"));
    }
    // One byte more, so that the end is found without growing the buffer.
    let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or(0).saturating_add(1));
    // The file may be growing.
    file.take(longest).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Returns the space on the disk that a file or a directory itself takes; zero for anything else, and where there is
/// nothing.
pub(crate) fn disk_bytes(path: &Path) -> u64 {
    match fs::symlink_metadata(path) {
        // Blocks of stat(2) have 512 bytes on every file system.
        Ok(meta) if meta.is_file() || meta.is_dir() => meta.blocks().saturating_mul(512),
        _ => 0,
    }
}

/// Access for the owner: names of processes and cgroups show what a host does.
pub(crate) const OWNER: u32 = 0o700;
/// What the group may do: nothing, unless the directory above is open to it.
const GROUP: u32 = 0o050;

/// The mode of a new directory in `directory`: that of the owner, and of the group if the administrator opened
/// `directory` to it.
fn directory_mode(directory: &Path) -> u32 {
    let found = fs::metadata(directory).map_or(0, |meta| meta.mode());
    OWNER | (if found & GROUP == GROUP { GROUP } else { 0 })
}

/// Creates a file that must not exist, open with these options and one for writing. Its mode is that of the directory
/// without the right to search, whatever the umask.
pub(crate) fn create_new(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let mode = directory_mode(path.parent().unwrap_or(path)) & 0o660;
    let file = options.create_new(true).mode(0o600).open(path)?;
    file.set_permissions(Permissions::from_mode(mode))?;
    Ok(file)
}

/// Creates a file. An existing one, left by a killed writer or another program, is removed first.
///
/// # Errors
/// The operating system's.
pub fn create_draft(path: &Path) -> io::Result<File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    create_new(OpenOptions::new().write(true), path)
}

/// Creates a directory of a recording, whatever the umask.
pub(crate) fn create_directory(path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|parent| *parent != Path::new(""));
    let mode = directory_mode(parent.unwrap_or(Path::new(".")));
    DirBuilder::new().mode(OWNER).create(path)?;
    fs::set_permissions(path, Permissions::from_mode(mode))
}

/// As [`create_directory`]; one that exists stays as it is.
pub(crate) fn ensure_directory(path: &Path) -> io::Result<()> {
    match create_directory(path) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// Returns the owner of new files in a directory, who may differ from the process's user over NFS or in a container.
pub(crate) fn owner_of_new(directory: &Path) -> io::Result<u32> {
    let draft = directory.join(identity::DRAFT);
    let ours = create_draft(&draft).and_then(|file| file.metadata());
    let _ = fs::remove_file(&draft);
    ours.map(|ours| ours.uid())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ensure_recording;

    #[test]
    fn new_files_are_the_owners_and_the_groups_where_the_directory_is() {
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
        let place = tempfile::tempdir().unwrap();
        let recording = place.path().join("a/b");
        ensure_recording(&recording).unwrap();
        assert_eq!(mode(&recording), 0o700);
        for (of_directory, inside, of_file) in
            [(0o700, 0o700, 0o600), (0o750, 0o750, 0o640), (0o777, 0o750, 0o640)]
        {
            fs::set_permissions(&recording, Permissions::from_mode(of_directory)).unwrap();
            let (directory, file) = (recording.join("d"), recording.join("f"));
            create_directory(&directory).unwrap();
            create_draft(&file).unwrap();
            assert_eq!((mode(&directory), mode(&file)), (inside, of_file));
            ensure_directory(&directory).unwrap();
            assert_eq!(ensure_recording(&recording).is_ok(), of_directory != 0o777);
            assert_eq!(mode(&recording), of_directory);
            fs::remove_dir(&directory).unwrap();
        }
    }

    #[test]
    fn only_a_regular_file_is_opened_and_nothing_else_is_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::write(at("file"), "text").unwrap();
        fs::create_dir(at("directory")).unwrap();
        std::os::unix::fs::symlink(at("file"), at("link")).unwrap();
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mknodat(rustix::fs::CWD, at("pipe"), rustix::fs::FileType::Fifo, mode, 0)
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
        assert_eq!(write("link").unwrap_err().to_string(), "it is a symbolic link");
    }

    #[test]
    fn a_draft_takes_the_place_of_a_link_and_leaves_its_target_alone() {
        let directory = tempfile::tempdir().unwrap();
        let (target, draft) = (directory.path().join("target"), directory.path().join("draft"));
        fs::write(&target, "foreign").unwrap();
        std::os::unix::fs::symlink(&target, &draft).unwrap();
        drop(create_draft(&draft).unwrap());
        assert_eq!(fs::read(&target).unwrap(), b"foreign");
        assert!(fs::symlink_metadata(&draft).unwrap().is_file());
    }
}
