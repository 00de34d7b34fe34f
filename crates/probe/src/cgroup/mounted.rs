//! The mount of the hierarchy that manages memory, searched until it is found.

use std::path::PathBuf;

use rustix::io::Errno;
use timeline::facts::CgroupMode;

use crate::cgroup::dying::DyingCgroups;
use crate::cgroup::hierarchy::Hierarchy;
use crate::directory::Directory;
use crate::kernel_file::Root;

/// Where the hierarchy is mounted; searched again now and then until found, as cgroups may be mounted late.
#[derive(Debug)]
pub(super) struct MountedHierarchy {
    root: Root,
    found: Option<(CgroupMode, PathBuf)>,
    /// Passes until the next search, as a search allocates.
    search_in: u32,
    /// On v1, where they can be counted.
    pub(super) dying: Option<DyingCgroups>,
}

impl MountedHierarchy {
    /// Passes between two searches.
    const SEARCH_EVERY: u32 = 60;

    pub(super) fn new(root: &Root) -> Self {
        Self { root: root.clone(), found: None, search_in: 0, dying: None }
    }

    /// Opens the mount.
    pub(super) fn open(&mut self) -> Result<(CgroupMode, Directory), Errno> {
        if self.found.is_none() {
            self.search();
        }
        let (mode, point) = self.found.as_ref().ok_or(Errno::NOENT)?;
        Ok((*mode, Directory::open(point)?))
    }

    fn search(&mut self) {
        if self.search_in > 0 {
            self.search_in -= 1;
            return;
        }
        self.search_in = Self::SEARCH_EVERY;
        let Some(found) = Hierarchy::find(&self.root) else {
            return;
        };
        let point = self.root.path(&found.point);
        if found.mode == CgroupMode::V1 {
            self.dying = DyingCgroups::open(&self.root, &point);
        }
        self.found = Some((found.mode, point));
    }
}
