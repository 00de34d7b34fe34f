//! The host's kernel files as they are, for a capture: the same files in the same order as [`HostProbe`] reads.
//!
//! Cost: as for a sample of it, and a look at directories for nodes and zram devices when they are opened.
//!
//! [`HostProbe`]: crate::HostProbe

use crate::directory::Sink;
use crate::host::file::HostFile;
use crate::kernel_file::{KernelFile, Root};

/// The open files of a host.
#[derive(Debug)]
pub struct HostTexts {
    files: Vec<(HostFile, String, KernelFile)>,
    buffer: Vec<u8>,
}

impl HostTexts {
    /// Opens the files of the host below `root`; what cannot be opened is left out.
    pub fn open(root: &Root) -> Self {
        let below = |kind: HostFile| {
            let paths = kind.below(root).into_iter();
            paths.filter_map(move |(path, _)| {
                let file = KernelFile::open(root, &path).ok()?;
                Some((kind, path, file.shaped(kind.shape())))
            })
        };
        Self {
            files: HostFile::ALL.into_iter().flat_map(below).collect(),
            buffer: Vec::new(),
        }
    }

    /// Reads the files and shows their texts; `/proc/slabinfo`, which costs more than all others, where asked for.
    pub fn read(&mut self, with_slabinfo: bool, sink: Sink<'_>) {
        for (kind, path, file) in &self.files {
            let is_due = with_slabinfo || *kind != HostFile::Slabinfo;
            if is_due && file.read_quietly(&mut self.buffer).is_ok() {
                sink(path, &self.buffer);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn files_are_shown_in_the_order_of_the_table_and_slabinfo_when_due() {
        let directory = tempfile::tempdir().unwrap();
        for (path, text) in [
            ("proc/meminfo", "MemFree: 1 kB\n"),
            ("proc/slabinfo", "slabinfo - version: 2.1\n"),
            (
                "sys/devices/system/node/node0/meminfo",
                "Node 0 MemFree: 1 kB\n",
            ),
        ] {
            let path = directory.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let mut texts = HostTexts::open(&Root::at(directory.path()));
        let mut shown = |with_slabinfo| {
            let mut paths = Vec::new();
            texts.read(with_slabinfo, &mut |path, _| paths.push(path.to_owned()));
            paths
        };
        let each = ["/proc/meminfo", "/sys/devices/system/node/node0/meminfo"];
        assert_eq!(shown(false), each);
        assert_eq!(shown(true), [&each[..], &["/proc/slabinfo"]].concat());
    }
}
