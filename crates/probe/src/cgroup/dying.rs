//! Removed cgroups that still hold memory (dying), on cgroup v1: `/proc/cgroups`, `num_cgroups` of the memory hierarchy, counts them
//! with those that have a directory. On v2 `cgroup.stat` has their number.
//!
//! The count is of the whole hierarchy, so it says nothing where only a part of it is mounted, as in a container. Cost: 3 µs
//! in each pass over all cgroups.

use std::path::Path;

use timeline::Sample;
use timeline::signals::{CGROUPS, CGROUPS_DYING};
use units::Count;

use crate::kernel_file::{KernelFile, Root};
use crate::text;

/// The file that counts cgroups of v1.
#[derive(Debug)]
pub(super) struct DyingCgroups {
    file: KernelFile,
    text: Vec<u8>,
}

impl DyingCgroups {
    /// Opens the file; `None` if the hierarchy below `mount` is not whole, or the file is absent.
    pub(super) fn open(root: &Root, mount: &Path) -> Option<Self> {
        // Only the root of a hierarchy has this file.
        mount.join("release_agent").exists().then_some(())?;
        Some(Self {
            file: KernelFile::open(root, "/proc/cgroups").ok()?,
            text: Vec::with_capacity(4096),
        })
    }

    /// Sets the counts in a sample in which `directories` were found, the root included.
    pub(super) fn count(&mut self, directories: usize, sample: &mut Sample) {
        if self.file.read_quietly(&mut self.text).is_err() {
            return;
        }
        let Some(all) = of_memory(&self.text) else {
            return;
        };
        let directories = directories as u64;
        sample.host.set(CGROUPS, Count::new(directories.saturating_sub(1)));
        // One that came in between is not in both counts.
        sample.host.set(CGROUPS_DYING, Count::new(all.saturating_sub(directories)));
    }
}

/// `num_cgroups` of the memory hierarchy: `memory\t4\t15\t1` has the hierarchy, the number, and whether it is enabled.
fn of_memory(text: &[u8]) -> Option<u64> {
    let mut lines = text::lines(text).map(|(_, line)| text::words(line));
    lines.find_map(|mut words| {
        let is_memory = words.next()? == b"memory";
        let hierarchy = words.next().and_then(text::number)?;
        // Hierarchy 0 is that of v2.
        (is_memory && hierarchy > 0).then(|| words.next().and_then(text::number))?
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn what_has_no_directory_is_dying() {
        let directory = tempfile::tempdir().unwrap();
        let mount = directory.path().join("sys/fs/cgroup/memory");
        fs::create_dir_all(&mount).unwrap();
        fs::create_dir(directory.path().join("proc")).unwrap();
        let text =
            "#subsys_name\thierarchy\tnum_cgroups\tenabled\ncpu\t2\t7\t1\nmemory\t4\t316\t1\n";
        fs::write(directory.path().join("proc/cgroups"), text).unwrap();
        let root = Root::at(directory.path());
        assert!(DyingCgroups::open(&root, &mount).is_none(), "a container's");
        fs::write(mount.join("release_agent"), "").unwrap();
        let mut counts = DyingCgroups::open(&root, &mount).unwrap();
        let mut sample = Sample::default();
        counts.count(7, &mut sample);
        assert_eq!(sample.host.get(CGROUPS), Some(Count::new(6)));
        assert_eq!(sample.host.get(CGROUPS_DYING), Some(Count::new(309)));
    }

    #[test]
    fn only_a_hierarchy_of_v1_counts() {
        for text in
            [&b""[..], b"memory\t0\t99\t1\n", b"memory\t4\n", b"memory\n", b"memory\t4\t-1\t1\n"]
        {
            assert_eq!(of_memory(text), None);
        }
    }
}
