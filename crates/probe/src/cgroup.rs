//! Cgroups: where the hierarchy is mounted, its v1 and v2 files, a walk over it, and the service of a cgroup.

pub(crate) mod files;
pub(crate) mod hierarchy;
pub(crate) mod service;
pub(crate) mod v1;
pub(crate) mod walk;
