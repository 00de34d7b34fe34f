//! Cgroups: where the hierarchy is mounted, its v1 and v2 files, a walk over it, the service of a cgroup, and names of
//! containers.

mod busiest;
pub(crate) mod cpu_usage;
mod dying;
mod event_watch;
pub(crate) mod files;
pub(crate) mod hierarchy;
pub(crate) mod host_listing;
mod kept_files;
pub mod names;
pub(crate) mod own_cgroups;
pub(crate) mod service;
mod tree;
pub(crate) mod v1;
pub(crate) mod walk;
