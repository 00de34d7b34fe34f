//! The kernel log: its records, the reports of OOM kills and failed allocations in it, and watching for them.

pub mod kmsg;
pub mod report;
pub(crate) mod watch;
