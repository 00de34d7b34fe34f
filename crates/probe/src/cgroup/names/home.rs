//! A user's home, in which root reads files that the user can replace by anything at any time.
//!
//! Nothing is followed out of it: no link, no mount. A file is looked up first, which opens nothing, and
//! is opened only if it is a regular file of that user. A home on a file system that may wait for a program or another
//! machine is left alone, whatever is mounted there meanwhile: the mount is asked for by its id, which no file system is asked for.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use checked_open::{LastLink, look_up, reopen};
use rustix::fs::{CWD, FileType, fstat};

use crate::inventory::MountPlaces;
use crate::inventory::file_stat::mount_of;
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
        let path = without_links_of_root(root, mounts, Path::new(path))?;
        let top = look_up(CWD, root.path("/"), LastLink::Followed).ok()?;
        let found = look_up_below(top, &path, |found| mounts.is_local(found)).ok()?;
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

/// Returns the path without the first link in it, if root made that: `/home` leads to `/var/home` on some distributions.
fn without_links_of_root(root: &Root, mounts: &MountPlaces, path: &Path) -> Option<PathBuf> {
    let mut above: Vec<&Path> = path.ancestors().collect();
    above.reverse();
    for part in above {
        if !mounts.answers(part) {
            return None;
        }
        let at = root.path(std::str::from_utf8(part.as_os_str().as_bytes()).ok()?);
        let found = at.symlink_metadata().ok()?;
        if !found.is_symlink() {
            continue;
        }
        if found.uid() != 0 {
            return None;
        }
        let target = std::fs::read_link(at).ok()?;
        let rest = path.strip_prefix(part).unwrap_or(Path::new(OsStr::new("")));
        let whole = part.parent()?.join(target).join(rest);
        return mounts.answers(&whole).then_some(whole);
    }
    Some(path.to_owned())
}
