//! What a throwaway virtual machine is made of: RAM, CPUs, NUMA nodes, disks.

use units::Bytes;

use crate::LabError;
use crate::reading::available_bytes;

/// What QEMU takes beside the guest's RAM.
const QEMU_OVERHEAD: Bytes = Bytes::from_mib(150);

/// What a virtual machine is made of.
#[derive(Debug, Clone)]
pub struct Machine {
    /// Its RAM.
    pub ram: Bytes,
    /// Its CPUs.
    pub cpus: u32,
    /// NUMA nodes of equal size, with a CPU each, 21 apart; one: no NUMA.
    pub nodes: u32,
    /// Its disks: `/dev/vda`, `/dev/vdb`, …
    pub disks: Vec<VirtualDisk>,
    /// Whether it can mount this host's files.
    pub has_host_files: bool,
}

impl Machine {
    /// Less than this does not hold the kernel, this program and a workload.
    const RAM_MIN: Bytes = Bytes::from_mib(256);

    /// A machine with two CPUs and this much RAM.
    pub const fn with_mib(mib: u64) -> Self {
        Self {
            ram: Bytes::from_mib(mib),
            cpus: 2,
            nodes: 1,
            disks: Vec::new(),
            has_host_files: false,
        }
    }

    /// Adds a disk.
    #[must_use]
    pub fn disk(mut self, disk: VirtualDisk) -> Self {
        self.disks.push(disk);
        self
    }

    /// Checks that it can run.
    ///
    /// # Errors
    /// [`LabError::TooSmall`].
    pub fn check(&self) -> Result<(), LabError> {
        if self.ram < Self::RAM_MIN {
            return Err(LabError::TooSmall { ram: self.ram, min: Self::RAM_MIN });
        }
        Ok(())
    }
}

/// A disk.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, Copy)]
pub struct VirtualDisk {
    pub size: Bytes,
    /// Whether it holds an empty ext4 file system; else zeros.
    pub is_formatted: bool,
    /// Bytes a second that it reads and writes; `None`: as fast as the host.
    pub speed: Option<Bytes>,
}

impl VirtualDisk {
    /// A disk with an empty ext4 file system.
    pub const fn ext4(mib: u64) -> Self {
        Self { size: Bytes::from_mib(mib), is_formatted: true, speed: None }
    }

    /// An empty disk, for swap.
    pub const fn empty(mib: u64) -> Self {
        Self { size: Bytes::from_mib(mib), is_formatted: false, speed: None }
    }

    /// The same disk, limited to this many MiB/s.
    #[must_use]
    pub const fn slow(mut self, mib_per_second: u64) -> Self {
        self.speed = Some(Bytes::from_mib(mib_per_second));
        self
    }
}

/// A machine that makes this host swap would prove nothing and harm it.
pub(crate) fn has_memory_for(ram: Bytes, machines: usize) -> Result<(), LabError> {
    let each = ram + QEMU_OVERHEAD;
    let needed = Bytes::new(each.get().saturating_mul(machines as u64));
    match available_bytes() {
        Some(available) if available < needed => Err(LabError::NoMemory { needed, available }),
        _ => Ok(()),
    }
}
