//! Buffers of GPUs in RAM by process, from `/proc/PID/fdinfo/FD` of `/dev/dri` and `/dev/accel` (5.19;
//! Documentation/gpu/drm-usage-stats.rst).
//!
//! A client has an id of its device, and several descriptors of it count once. A field for each kind of memory: `resident`
//! since 6.5, `memory` of amdgpu before; what other clients share is left out, as nothing says with whom. Memory of the
//! device, and what the firmware set aside for it, is not in MemTotal.

use units::Bytes;

use super::first_owners::FirstOwners;
use super::open_files::OpenFile;
use crate::fdinfo::field;
use crate::kernel_file::Root;

/// What their descriptors lead to.
const DEVICES: [&[u8]; 2] = [b"/dev/dri/", b"/dev/accel/"];

/// Kinds of memory that are pages of the host: `system0`, `gtt`.
const IN_RAM: [&str; 4] = ["system", "gtt", "cpu", "memory"];

/// Drivers with a page allocator of their own (TTM), of which no counter has the pages. Buffers of the others are shared memory.
const OWN_PAGES: [&str; 6] = ["amdgpu", "radeon", "nouveau", "xe", "vmwgfx", "qxl"];

/// What was found so far.
#[derive(Debug, Default)]
pub(super) struct GpuBuffers {
    shared_memory: FirstOwners<ClientId>,
    own_pages: FirstOwners<ClientId>,
}

/// The device and the id of a client on it.
type ClientId = (String, String);

impl GpuBuffers {
    /// Takes an open file of a process if it is a client of a GPU.
    pub(super) fn take(&mut self, root: &Root, pid: u32, file: &OpenFile<'_>) {
        let is_device = DEVICES.iter().any(|device| file.target.starts_with(device));
        if !is_device || !self.own_pages.has_room() || !self.shared_memory.has_room() {
            return;
        }
        if let Some(client) = file.info(root, pid).and_then(|text| parse(&text)) {
            let found =
                if client.has_own_pages { &mut self.own_pages } else { &mut self.shared_memory };
            found.add(pid, client.id, client.buffers);
        }
    }

    /// Buffers of a process that are shared memory.
    pub(super) fn in_shared_memory(&self, pid: u32) -> Bytes {
        self.shared_memory.of(pid)
    }

    /// Buffers of a process that no counter has.
    pub(super) fn of_own_pages(&self, pid: u32) -> Bytes {
        self.own_pages.of(pid)
    }
}

/// What `fdinfo` says of a client.
#[derive(Debug, PartialEq, Eq)]
struct GpuClient {
    id: ClientId,
    has_own_pages: bool,
    buffers: Bytes,
}

fn parse(fdinfo: &[u8]) -> Option<GpuClient> {
    let driver = field(fdinfo, "drm-driver")?;
    let device = field(fdinfo, "drm-pdev").unwrap_or(driver);
    let client = field(fdinfo, "drm-client-id")?;
    let text = std::str::from_utf8(fdinfo).ok()?;
    let sum = |prefix: &str| {
        let sizes = text.lines().filter_map(|line| {
            let (kind, size) = line.strip_prefix(prefix)?.split_once(':')?;
            let is_in_ram = IN_RAM.iter().any(|known| kind.starts_with(known));
            is_in_ram.then(|| size_of(size)).flatten()
        });
        sizes.reduce(u64::saturating_add)
    };
    let resident = sum("drm-resident-").or_else(|| sum("drm-memory-"))?;
    let shared = sum("drm-shared-").unwrap_or_default();
    Some(GpuClient {
        id: (device.to_owned(), client.to_owned()),
        has_own_pages: OWN_PAGES.contains(&driver),
        buffers: Bytes::new(resident.saturating_sub(shared)),
    })
}

/// `6044 KiB`, `2 MiB`; without a unit, bytes.
fn size_of(text: &str) -> Option<u64> {
    let mut words = text.split_whitespace();
    let number: u64 = words.next()?.parse().ok()?;
    match words.next() {
        None => Some(number),
        Some("KiB") => number.checked_mul(1 << 10),
        Some("MiB") => number.checked_mul(1 << 20),
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hostile;

    /// i915, from the manual page proc_pid_fdinfo(5).
    const I915: &[u8] = b"pos:    0\nflags:  02100002\nmnt_id: 26\nino:    284\ndrm-driver:     i915\n\
drm-client-id:  39\ndrm-pdev:       0000:00:02.0\ndrm-total-system0:      6044 KiB\ndrm-shared-system0:     0\n\
drm-active-system0:     0\ndrm-resident-system0:   6044 KiB\ndrm-purgeable-system0:  1688 KiB\n\
drm-total-stolen-system0:       0\ndrm-resident-stolen-system0:    0\ndrm-engine-render:      346249 ns\n";

    /// amdgpu of Linux 6.13 (dri-devel, 2024).
    const AMDGPU: &[u8] = b"pos:\t0\nflags:\t02100002\nmnt_id:\t24\nino:\t1204\ndrm-driver:\tamdgpu\n\
drm-client-id:\t30\ndrm-pdev:\t0000:04:00.0\npasid:\t32785\ndrm-total-cpu:\t0\ndrm-shared-cpu:\t0\n\
drm-resident-cpu:\t0\ndrm-total-gtt:\t22 MiB\ndrm-shared-gtt:\t0\ndrm-active-gtt:\t10 MiB\ndrm-resident-gtt:\t22 MiB\n\
drm-total-vram:\t544428 KiB\ndrm-shared-vram:\t13584 KiB\ndrm-resident-vram:\t544428 KiB\n\
drm-memory-vram:\t544428 KiB\ndrm-memory-gtt: \t22528 KiB\ndrm-memory-cpu: \t0 KiB\namd-requested-gtt:\t22528 KiB\n";

    fn client(device: &str, id: &str, has_own_pages: bool, buffers: Bytes) -> Option<GpuClient> {
        Some(GpuClient { id: (device.to_owned(), id.to_owned()), has_own_pages, buffers })
    }

    #[test]
    fn memory_of_the_device_is_left_out() {
        let i915 = client("0000:00:02.0", "39", false, Bytes::from_kib(6044));
        assert_eq!(parse(I915), i915);
        let amdgpu = client("0000:04:00.0", "30", true, Bytes::from_mib(22));
        assert_eq!(parse(AMDGPU), amdgpu);
    }

    #[test]
    fn older_kernels_have_other_fields_and_shared_buffers_are_left_out() {
        // Linux 6.4 of amdgpu: `amdgpu_show_fdinfo`.
        let old = b"drm-driver:\tamdgpu\ndrm-client-id:\t14\ndrm-memory-vram:\t65536 KiB\ndrm-memory-gtt: \t2048 KiB\ndrm-memory-cpu: \t0 KiB\n";
        assert_eq!(parse(old), client("amdgpu", "14", true, Bytes::from_mib(2)));
        let shared = b"drm-driver: i915\ndrm-client-id: 1\ndrm-resident-system0: 5 MiB\ndrm-shared-system0: 1024 KiB\n";
        assert_eq!(parse(shared), client("i915", "1", false, Bytes::from_mib(4)));
        for text in [
            &b"pos:\t0\n"[..],
            b"drm-driver: i915\n",
            b"drm-driver: i915\ndrm-client-id: 1\ndrm-resident-system0: 1 EiB\n",
            b"\xff",
        ] {
            assert_eq!(parse(text), None);
        }
    }

    #[test]
    fn any_bytes_are_survived() {
        hostile::feed(AMDGPU, |text| drop(parse(text)));
    }
}
