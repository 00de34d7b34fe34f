//! Quantities of a host that rules need and that no kernel file reports. Each is computed here, once.

pub(crate) mod arc;
pub(crate) mod available;
pub mod baselines;
pub(crate) mod cgroups;
pub(crate) mod disk_wait;
pub(crate) mod disks;
pub(crate) mod evicted;
pub(crate) mod floor;
pub(crate) mod grew_until;
pub(crate) mod heap_growth;
pub(crate) mod kernel_threads;
pub(crate) mod own_limit;
pub(crate) mod pressure;
pub(crate) mod processes;
pub(crate) mod psi_average;
pub(crate) mod quiet;
pub(crate) mod readings;
pub(crate) mod refaults;
pub(crate) mod rise;
pub mod slab;
pub(crate) mod sockets;
pub(crate) mod steady_growth;
pub(crate) mod writeback;
