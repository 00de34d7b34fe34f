//! A process as a scan shows it.

use timeline::ProcessCells;

/// The most processes that are read; the default `pid_max` of a 64-bit kernel with few CPUs is half of it.
pub(crate) const PROCESSES_MAX: usize = 65_536;

/// One process.
#[derive(Debug, Clone, Copy)]
pub struct Task<'a> {
    /// Its PID: that of the thread group.
    pub pid: u32,
    /// When it started, in clock ticks since boot, exactly as field 22 of `/proc/PID/stat`.
    pub start_ticks: u64,
    /// Its name as the kernel has it: at most 15 bytes (more for the kernel's workers), any but 0.
    pub name: &'a [u8],
    /// The inode number of its cgroup in the unified hierarchy, if the source has it.
    pub cgroup_id: Option<u64>,
    /// Its service, if a complete scan of `/proc` read it; else empty.
    pub service: &'a str,
    /// How many scans ago its expensive readings, those that are not from `stat`, were read; 0 if all are new.
    pub age: u32,
    /// Its readings in the catalogue's units.
    pub cells: &'a ProcessCells,
}
