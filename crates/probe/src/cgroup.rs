//! Cgroups: where their hierarchy is, its files of v1 and v2, a walk over it, and the service that a cgroup stands for.

pub(crate) mod files;
pub(crate) mod hierarchy;
pub(crate) mod service;
pub(crate) mod v1;
pub(crate) mod walk;
