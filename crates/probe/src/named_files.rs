//! How much of files that are known by name is in the page cache.
//!
//! A path is looked up name by name, follows no link, and enters no file system that may wait for a program or another machine.
//! Cost: 10 µs for each name on the way, and what [`file_cache`] says for each file.

use std::os::fd::AsFd as _;
use std::path::Path;
use std::time::Duration;

use checked_open::{LastLink, look_up, reopen};
use rustix::fs::{AtFlags, CWD, FileType};
use units::PageSize;

use crate::file_cache::{self, FileCacheUse};
use crate::file_places::MountPlaces;
use crate::file_stat;
use crate::kernel_file::Root;
use crate::mounts::DeviceNumbers;
use crate::path_walk::look_up_below;
use crate::search_time::SearchTime;

/// Counts the pages of files by their names, for at most a certain time.
#[derive(Debug)]
pub struct NamedCache {
    mounts: MountPlaces,
    page: PageSize,
    time: SearchTime,
}

/// A file that a name led to.
#[derive(Debug, Clone, Copy)]
pub struct NamedFile {
    /// Major and minor number of its device.
    pub device: DeviceNumbers,
    /// The number of its inode.
    pub inode: u64,
    /// What of it is in the page cache.
    pub cache: FileCacheUse,
}

impl NamedCache {
    /// The time begins now.
    pub fn within(root: &Root, page: PageSize, at_most: Duration) -> Self {
        Self { mounts: MountPlaces::own(root), page, time: SearchTime::starts(at_most) }
    }

    /// Whether the time is over: no file is counted any more.
    pub fn is_over(&self) -> bool {
        self.time.is_over()
    }

    /// Counts the pages of the file of this name. `None` if there is none, if it is no regular file on a disk, or if this
    /// user may not know.
    pub fn count(&self, path: &Path) -> Option<NamedFile> {
        if self.is_over() || !path.is_absolute() {
            return None;
        }
        let top = look_up(CWD, "/", LastLink::Kept).ok()?;
        let found = look_up_below(top, path, |found| self.mounts.is_local(found)).ok()?;
        let stat = file_stat::stat(&found, c"", AtFlags::EMPTY_PATH).ok()?;
        if stat.kind != FileType::RegularFile {
            return None;
        }
        let file = reopen(&found).ok()?;
        let cache = file_cache::of(file.as_fd(), self.page, self.time).ok()?;
        Some(NamedFile { device: stat.device, inode: stat.inode, cache })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Bytes;

    #[test]
    fn a_file_is_counted_by_its_name_and_a_link_is_not_followed() {
        let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let path = directory.path().join("data");
        std::fs::write(&path, vec![7; 3 << 20]).unwrap();
        std::os::unix::fs::symlink(&path, directory.path().join("link")).unwrap();
        let long = Duration::from_secs(60);
        let files = NamedCache::within(&Root::default(), PageSize::USUAL, long);
        let found = files.count(&path).map(|found| found.cache.cached);
        assert_eq!(found, Some(Bytes::from_mib(3)));
        assert!(files.count(&directory.path().join("link")).is_none());
        assert!(files.count(Path::new("/proc/self/maps")).is_none());
        let over = NamedCache::within(&Root::default(), PageSize::USUAL, Duration::ZERO);
        assert!(over.is_over() && over.count(&path).is_none());
    }
}
