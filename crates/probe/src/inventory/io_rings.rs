//! Rings of io_uring by the process that has them open, from `/proc/PID/fdinfo/FD` (`SqMask`, `CqMask`; `io_uring/fdinfo.c`, since 5.10).
//! An instance has pages of its own for submission entries, and for the ring of completions and of submitted indexes; no
//! counter of the host has them. Buffers that a program registered are its own memory.

use units::Bytes;

use super::first_owners::FirstOwners;
use super::open_files::OpenFile;
use crate::fdinfo::field;
use crate::kernel_file::Root;

/// The target of their descriptors.
const TARGET: &[u8] = b"anon_inode:[io_uring]";

/// What was found so far.
#[derive(Debug, Default)]
pub(super) struct IoRings {
    found: FirstOwners<InstanceId>,
}

/// An instance has an inode of its own since 5.12, and `fdinfo` prints it since 5.14. Before, one that a child inherited counts
/// for each.
#[derive(Debug, PartialEq, Eq, Hash)]
enum InstanceId {
    Inode(u64),
    /// PID and descriptor.
    Descriptor(u32, u32),
}

impl IoRings {
    /// Takes an open file of a process if it is an instance of io_uring.
    pub(super) fn take(&mut self, root: &Root, pid: u32, file: &OpenFile<'_>) {
        if file.target != TARGET || !self.found.has_room() {
            return;
        }
        let Some(descriptor) = file.number() else {
            return;
        };
        let Some(text) = file.info(root, pid) else {
            return;
        };
        let inode = field(&text, "ino").and_then(|inode| inode.parse().ok());
        let id = inode.map_or(InstanceId::Descriptor(pid, descriptor), InstanceId::Inode);
        if let Some(size) = size(&text) {
            self.found.add(pid, id, size);
        }
    }

    /// What a process has open.
    pub(super) fn of(&self, pid: u32) -> Bytes {
        self.found.of(pid)
    }
}

/// The pages of an instance. The kernel allocates powers of two.
fn size(fdinfo: &[u8]) -> Option<Bytes> {
    /// `struct io_uring_sqe`.
    const SUBMISSION: u64 = 64;
    /// `struct io_uring_cqe`.
    const COMPLETION: u64 = 16;
    const INDEX: u64 = 4;
    let entries = |name: &str| {
        let mask = field(fdinfo, name)?;
        let mask = u64::from_str_radix(mask.strip_prefix("0x")?, 16).ok()?;
        // IORING_MAX_ENTRIES is 32,768, and twice as many completions.
        (mask < 1 << 17).then(|| mask + 1)
    };
    let (submissions, completions) = (entries("SqMask")?, entries("CqMask")?);
    let entries = submissions * SUBMISSION;
    let rings = completions * COMPLETION + submissions * INDEX;
    let allocated = [entries, rings].map(u64::next_power_of_two);
    Some(Bytes::new(allocated.iter().sum()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_masks_give_the_pages_of_an_instance() {
        // `io_uring_setup(32768)` on 6.18: MemFree fell by 4 MiB.
        let text =
            b"pos:\t0\nino:\t49393\nSqMask:\t0x7fff\nSqHead:\t0\nCqMask:\t0xffff\nCqHead:\t0\n";
        assert_eq!(size(text), Some(Bytes::from_mib(4)));
        for text in [
            &b""[..],
            b"SqMask:\t0x7fff\n",
            b"SqMask:\t7fff\nCqMask:\t0xffff\n",
            b"SqMask:\t0xffffffffffffffff\nCqMask:\t0xffff\n",
            b"\xff",
        ] {
            assert_eq!(size(text), None);
        }
    }
}
