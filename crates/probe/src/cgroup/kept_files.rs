//! The files of a cgroup that are read often, kept open: `pread` through an open file takes 2 µs, opening, reading and
//! closing it 9.
//!
//! An open file of cgroupfs takes 5 to 6 KiB in the kernel, most of it a buffer of one page (`fs/seq_file.c`), which is charged
//! to the cgroup of this process. So there is a bound: 6,144 files of cgroups, 35 MiB, or less where RLIMIT_NOFILE is lower
//! or little memory is left. Files beyond it are opened for each reading. A removed cgroup's open files answer ENODEV.

use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use timeline::facts::CgroupMode;

use crate::cgroup::files::CgroupFiles;
use crate::directory::Directory;
use crate::kernel_file::{Root, Shape, append_whole};
use crate::memory_left;

/// Files of one cgroup that are kept open.
pub(super) const KEPT_EACH: usize = 6;

/// Which files of a cgroup are read how: usage comes first.
#[derive(Debug, Clone, Copy)]
pub(super) struct FileTiers {
    /// Read with each reading of the cgroup.
    pub(super) often: &'static [&'static str],
    /// Limits and other levels, which change rarely or are of little use alone.
    pub(super) rarely: &'static [&'static str],
    /// The index in `often` of the file that counts hits of the limit.
    pub(super) hits: usize,
}

impl FileTiers {
    const V1: Self = Self {
        often: &["memory.usage_in_bytes", "memory.stat", "memory.failcnt", "memory.oom_control"],
        rarely: &[
            "memory.limit_in_bytes",
            "memory.max_usage_in_bytes",
            "memory.kmem.usage_in_bytes",
        ],
        hits: 2,
    };
    const V2: Self = Self {
        often: &[
            "memory.current",
            "memory.stat",
            "memory.events",
            "memory.pressure",
            "memory.swap.current",
            "io.pressure",
        ],
        rarely: &[
            "memory.max",
            "memory.high",
            "memory.low",
            "memory.min",
            "memory.peak",
            "memory.swap.max",
        ],
        hits: 2,
    };

    pub(super) const fn of(mode: CgroupMode) -> &'static Self {
        match mode {
            CgroupMode::V1 => &Self::V1,
            CgroupMode::V2 => &Self::V2,
        }
    }
}

const _: () = {
    let (v1, v2) = (FileTiers::V1, FileTiers::V2);
    assert!(v1.often.len() + v1.rarely.len() == CgroupFiles::names(CgroupMode::V1).len());
    assert!(v2.often.len() + v2.rarely.len() == CgroupFiles::names(CgroupMode::V2).len());
    assert!(v1.often.len() <= KEPT_EACH && v2.often.len() <= KEPT_EACH);
};

/// The bound of files that are kept open, and how they are read.
#[derive(Debug)]
pub(super) struct KeptFiles {
    left: usize,
    path: Vec<u8>,
}

impl KeptFiles {
    const FILES_MAX: usize = 6_144;
    /// Files that the rest of the process may need.
    const RESERVE: u64 = 256;
    /// What an open file takes.
    const FILE_BYTES: u64 = 6 << 10;
    /// Kept files take at most this part of the memory that is left: an eighth.
    const OF_MEMORY_LEFT: u64 = 8;
    const TEXT_BYTES_MAX: usize = 1 << 20;

    pub(super) fn new(root: &Root) -> Self {
        let limit = getrlimit(Resource::Nofile).current;
        let allowed = limit.map_or(u64::MAX, |limit| limit.saturating_sub(Self::RESERVE));
        let memory = memory_left::least(root);
        let fit = memory
            .map_or(u64::MAX, |memory| memory.left.get() / Self::OF_MEMORY_LEFT / Self::FILE_BYTES);
        Self {
            left: usize::try_from(allowed.min(fit)).unwrap_or(usize::MAX).min(Self::FILES_MAX),
            path: Vec::new(),
        }
    }

    /// Whether another file may stay open.
    pub(super) fn has_room(&self) -> bool {
        self.left > 0
    }

    /// Reads a file of the cgroup at `group` into `text`, through `kept` if it is open. Otherwise it is opened, and
    /// kept if `keeps` and there is room.
    ///
    /// # Errors
    /// ENODEV or ENOENT if the cgroup was removed.
    pub(super) fn read(
        &mut self,
        kept: &mut Option<OwnedFd>,
        keeps: bool,
        at: (&Directory, &[u8], &str),
        text: &mut Vec<u8>,
    ) -> Result<(), Errno> {
        if let Some(file) = kept {
            return Self::pread(file, text);
        }
        let (mount, group, name) = at;
        self.path.clear();
        self.path.extend_from_slice(group);
        if !group.is_empty() {
            self.path.push(b'/');
        }
        self.path.extend_from_slice(name.as_bytes());
        if !keeps || self.left == 0 {
            return mount.read_record(&self.path, text);
        }
        text.clear();
        let file = mount.open_file(&self.path)?;
        let result = Self::pread(&file, text);
        if result.is_ok() {
            self.left -= 1;
            *kept = Some(file);
        }
        result
    }

    fn pread(file: &OwnedFd, text: &mut Vec<u8>) -> Result<(), Errno> {
        text.clear();
        append_whole(file, Shape::OneRecord, Self::TEXT_BYTES_MAX, 0, text)
    }

    /// Closes a cgroup's files.
    pub(super) fn close(&mut self, files: &mut [Option<OwnedFd>; KEPT_EACH]) {
        for file in files {
            self.left += usize::from(file.take().is_some());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn where_little_memory_is_left_few_files_stay_open() {
        let directory = tempfile::tempdir().unwrap();
        let root = Root::at(directory.path());
        let most = KeptFiles::new(&root).left;
        assert!(most <= KeptFiles::FILES_MAX);
        fs::create_dir(directory.path().join("proc")).unwrap();
        let meminfo = directory.path().join("proc/meminfo");
        fs::write(&meminfo, "MemAvailable: 14336 kB\n").unwrap();
        assert_eq!(KeptFiles::new(&root).left, most.min(298));
        fs::write(&meminfo, "MemAvailable: 32000000 kB\n").unwrap();
        assert_eq!(KeptFiles::new(&root).left, most);
    }
}
