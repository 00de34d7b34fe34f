//! The kernel log: its records, the reports of OOM kills and failed allocations in it, and a watch for new reports.

pub mod kmsg;
pub mod report;
pub mod stored;
pub(crate) mod watch;
