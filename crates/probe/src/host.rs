//! The host's own files: `/proc/meminfo`, `/proc/vmstat` and others about the whole machine, a node or a device. One
//! module per kernel interface; [`mod@file`] is the table of all files, [`live`] reads them.

pub(crate) mod arcstats;
pub(crate) mod buddyinfo;
pub(crate) mod cgroup_stat;
pub(crate) mod container;
pub(crate) mod diskstats;
pub mod facts;
pub(crate) mod file;
pub(crate) mod fs_state;
pub(crate) mod ksm;
pub(crate) mod live;
pub(crate) mod meminfo;
pub(crate) mod netstat;
pub(crate) mod numa;
pub(crate) mod pressure;
pub(crate) mod slabinfo;
pub(crate) mod sockstat;
pub(crate) mod stat;
pub(crate) mod swaps;
pub(crate) mod vmstat;
pub(crate) mod zoneinfo;
pub(crate) mod zram;
