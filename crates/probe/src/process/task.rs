//! A process as it is shown to who walks over all of them.

use timeline::ProcessCells;

/// One process as a walk met it.
#[derive(Debug, Clone, Copy)]
pub struct Task<'a> {
    /// Its number: that of the thread group.
    pub pid: u32,
    /// When it started, in clock ticks since boot, exactly as field 22 of `/proc/PID/stat`.
    pub start_ticks: u64,
    /// Its name as the kernel has it: at most 15 bytes (of a kernel's worker more), any but 0.
    pub name: &'a [u8],
    /// The inode number of its group in the unified hierarchy, where the way knows it.
    pub cgroup_id: Option<u64>,
    /// For how many walks its dearer readings, those that are not of `stat`, are remembered ones; 0 where all are new.
    pub age: u32,
    /// Its readings in the catalogue's units.
    pub cells: &'a ProcessCells,
}
