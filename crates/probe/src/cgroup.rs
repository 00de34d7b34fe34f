//! Cgroups: where the hierarchy is mounted, its v1 and v2 files, a walk over it, the service of a cgroup, and names of
//! containers.

pub(crate) mod files;
pub(crate) mod hierarchy;
pub mod names;
pub(crate) mod service;
pub(crate) mod v1;
pub(crate) mod walk;
