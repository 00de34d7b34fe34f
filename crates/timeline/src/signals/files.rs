//! The kernel files that signals are read from.

/// `/proc/meminfo`; "kB" there are KiB.
pub const MEMINFO: &str = "/proc/meminfo";
/// `/proc/vmstat`; page gauges and event counters.
pub const VMSTAT: &str = "/proc/vmstat";
/// `/proc/zoneinfo`.
pub const ZONEINFO: &str = "/proc/zoneinfo";
/// `/proc/buddyinfo`.
pub const BUDDYINFO: &str = "/proc/buddyinfo";
/// `/proc/stat`.
pub const STAT: &str = "/proc/stat";
/// `/proc/diskstats`; a sector there is always 512 bytes.
pub const DISKSTATS: &str = "/proc/diskstats";
/// `/proc/swaps`.
pub const SWAPS: &str = "/proc/swaps";
/// `/proc/slabinfo`; root only.
pub const SLABINFO: &str = "/proc/slabinfo";
/// `/proc/sys/fs/dentry-state`.
pub const DENTRY_STATE: &str = "/proc/sys/fs/dentry-state";
/// `/proc/sys/fs/inode-nr`.
pub const INODE_NR: &str = "/proc/sys/fs/inode-nr";
/// `/proc/sys/fs/file-nr`.
pub const FILE_NR: &str = "/proc/sys/fs/file-nr";
/// `/proc/net/sockstat`.
pub const SOCKSTAT: &str = "/proc/net/sockstat";
/// `/proc/net/netstat`; events of the reader's own network namespace.
pub const NETSTAT: &str = "/proc/net/netstat";
/// `cgroup.stat` of the root cgroup (v2).
pub const ROOT_CGROUP_STAT: &str = "/sys/fs/cgroup/cgroup.stat";
/// `meminfo` of a NUMA node; "kB" there are KiB.
pub const NODE_MEMINFO: &str = "/sys/devices/system/node/node*/meminfo";
/// `numastat` of a NUMA node.
pub const NODE_NUMASTAT: &str = "/sys/devices/system/node/node*/numastat";
/// `mm_stat` of a zram device: what it stores and the memory it takes.
pub const ZRAM_MM_STAT: &str = "/sys/block/zram*/mm_stat";
/// The ARC of ZFS, in bytes; where its module is loaded.
pub const ARCSTATS: &str = "/proc/spl/kstat/zfs/arcstats";
/// `memory.stat` of a cgroup; v1 has a file of that name with other fields.
pub const CGROUP_STAT: &str = "/sys/fs/cgroup/**/memory.stat";
/// `memory.events` of a cgroup.
pub const CGROUP_EVENTS: &str = "/sys/fs/cgroup/**/memory.events";
/// `memory.oom_control` of a cgroup; v1 only.
pub const CGROUP_OOM_CONTROL: &str = "/sys/fs/cgroup/memory/**/memory.oom_control";
/// `memory.pressure` of a cgroup.
pub const CGROUP_MEMORY_PRESSURE: &str = "/sys/fs/cgroup/**/memory.pressure";
/// `io.pressure` of a cgroup.
pub const CGROUP_IO_PRESSURE: &str = "/sys/fs/cgroup/**/io.pressure";
/// `/proc/pressure/memory`.
pub const MEMORY_PRESSURE: &str = "/proc/pressure/memory";
/// `/proc/pressure/io`.
pub const IO_PRESSURE: &str = "/proc/pressure/io";
/// `/proc/pressure/cpu`.
pub const CPU_PRESSURE: &str = "/proc/pressure/cpu";
/// `stat` of a process.
pub const PROCESS_STAT: &str = "/proc/PID/stat";
/// `status` of a process; "kB" there are KiB.
pub const PROCESS_STATUS: &str = "/proc/PID/status";
/// `smaps_rollup` of a process; "kB" there are KiB.
pub const SMAPS_ROLLUP: &str = "/proc/PID/smaps_rollup";
/// `io` of a process.
pub const PROCESS_IO: &str = "/proc/PID/io";
/// The malloc heap of a process, walked in its memory from outside; nothing runs inside the process.
pub const HEAP: &str = "malloc heap, read from outside";
/// Not read but computed from other signals; the field is the formula.
pub const DERIVED: &str = "computed";
