//! A user's home, in which root reads files that the user can replace by anything at any time.
//!
//! Nothing is followed out of it: no link, no mount. A file is looked up first, which opens nothing, and
//! is opened only if it is a regular file of that user. A home on a file system that may wait for a program or another
//! machine is left alone, whatever is mounted there meanwhile: the mount is asked for by its id, which no file system is asked for.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Component, Path, PathBuf};

use checked_open::{LastLink, look_up, reopen};
use rustix::fs::{CWD, FileType, fstat};

use crate::file_places::MountPlaces;
use crate::file_stat::mount_of;
use crate::kernel_file::Root;
use crate::path_walk::look_up_below;

/// A home that was looked up.
#[derive(Debug)]
pub(super) struct HomeDirectory {
    found: OwnedFd,
    owner: u32,
}

impl HomeDirectory {
    /// Looks up the home of a user; `None` if it is not that user's, or may not answer.
    pub(super) fn look_up(
        root: &Root,
        mounts: &MountPlaces,
        path: &str,
        owner: u32,
    ) -> Option<Self> {
        let found = look_up_home(root, mounts, Path::new(path))?;
        let is_owners = fstat(&found).ok()?.st_uid == owner;
        is_owners.then_some(Self { found, owner })
    }

    /// Reads a file below it of at most `bytes_max`.
    pub(super) fn read(&self, path: &str, bytes_max: u64) -> Option<Vec<u8>> {
        let mount = mount_of(&self.found)?;
        let top = self.found.try_clone().ok()?;
        let is_here = |found: &OwnedFd| mount_of(found) == Some(mount);
        let found = look_up_below(top, Path::new(path), is_here).ok()?;
        let stat = fstat(&found).ok()?;
        let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        let is_short = u64::try_from(stat.st_size).is_ok_and(|size| size <= bytes_max);
        if !is_file || !is_short || stat.st_uid != self.owner {
            return None;
        }
        let mut text = Vec::new();
        let file = File::from(reopen(&found).ok()?);
        // It may be growing.
        file.take(bytes_max).read_to_end(&mut text).ok()?;
        Some(text)
    }
}

/// Looks a home up name by name, on file systems that answer; one link on the way is followed, if root made it: `/home` leads to
/// `/var/home` on some distributions.
fn look_up_home(root: &Root, mounts: &MountPlaces, path: &Path) -> Option<OwnedFd> {
    let top = || look_up(CWD, root.path("/"), LastLink::Followed).ok();
    let names = |path: &Path| -> Vec<OsString> {
        let names = path.components().rev().filter_map(|part| match part {
            Component::Normal(name) => Some(name.to_owned()),
            Component::ParentDir => Some("..".into()),
            _ => None,
        });
        names.collect()
    };
    let (mut at, mut rest, mut has_followed) = (top()?, names(path), false);
    while let Some(name) = rest.pop() {
        let found = look_up(&at, &name, LastLink::Kept).ok()?;
        if !mounts.is_local(&found) {
            return None;
        }
        let stat = fstat(&found).ok()?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::Symlink {
            at = found;
            continue;
        }
        if stat.st_uid != 0 || std::mem::replace(&mut has_followed, true) {
            return None;
        }
        let target = rustix::fs::readlinkat(&found, c"", Vec::new()).ok()?;
        let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
        rest.extend(names(&target));
        if target.is_absolute() {
            at = top()?;
        }
    }
    Some(at)
}
