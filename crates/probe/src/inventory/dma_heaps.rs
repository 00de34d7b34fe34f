//! Buffers of DMA heaps (`/dev/dma_heap/system`) by the process that has them open, from `/proc/PID/fdinfo/FD` (`exp_name`,
//! `size`; 5.3). Their pages are in no counter of the host. Buffers of other exporters are those of their device, of CMA or of
//! a memfd. `/sys/kernel/debug/dma_buf/bufinfo` has them without processes, but waits for the lock of each buffer, which a
//! device that hangs keeps.

use units::Bytes;

use super::first_owners::FirstOwners;
use super::open_files::OpenFile;
use crate::fdinfo::field;
use crate::kernel_file::Root;

/// What their descriptors lead to; a name may follow.
const TARGET: &[u8] = b"/dmabuf:";

/// The names of heaps that take pages from the page allocator, and of their variants: `system-uncached`.
const HEAP: &str = "system";

/// What was found so far.
#[derive(Debug, Default)]
pub(super) struct DmaHeaps {
    found: FirstOwners<u64>,
}

impl DmaHeaps {
    /// Takes an open file of a process if it is one; what several have counts for the first.
    pub(super) fn take(&mut self, root: &Root, pid: u32, file: &OpenFile<'_>) {
        if !file.target.starts_with(TARGET) || !self.found.has_room() {
            return;
        }
        if let Some((inode, size)) = file.info(root, pid).and_then(|text| parse(&text)) {
            self.found.add(pid, inode, size);
        }
    }

    /// What a process has open.
    pub(super) fn of(&self, pid: u32) -> Bytes {
        self.found.of(pid)
    }
}

/// The inode and the size of a buffer of a heap.
fn parse(fdinfo: &[u8]) -> Option<(u64, Bytes)> {
    let number = |name| field(fdinfo, name)?.parse().ok();
    let is_of_heap = field(fdinfo, "exp_name")?.starts_with(HEAP);
    is_of_heap.then_some((number("ino")?, Bytes::new(number("size")?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_of_a_heap_have_pages_of_their_own() {
        // The form of `dma_buf_show_fdinfo`, with the buffer of an amdgpu device (a paste of 2026).
        let of = |exporter: &str| {
            format!("pos:\t0\nino:\t2\nsize:\t1048576\ncount:\t4\nexp_name:\t{exporter}\n")
        };
        let parse = |exporter| parse(of(exporter).as_bytes());
        assert_eq!(parse("system"), Some((2, Bytes::from_mib(1))));
        assert_eq!(parse("drm"), None);
        assert_eq!(super::parse(b"exp_name:\tsystem\nsize:\t-1\n"), None);
    }
}
