//! Files of processes below `/proc/PID`, parsed into rows or directly into cells.

pub(crate) mod auxv;
pub(crate) mod cells;
pub(crate) mod command_line;
pub(crate) mod environ;
pub(crate) mod files;
pub(crate) mod frozen;
pub(crate) mod identity;
pub(crate) mod kernel_stack;
pub(crate) mod limits;
pub(crate) mod links;
pub(crate) mod mapped_file;
pub(crate) mod maps;
pub(crate) mod memory;
pub(crate) mod pagemap;
pub(crate) mod pss;
pub(crate) mod reader_thread;
pub(crate) mod scan;
pub(crate) mod sharers;
pub(crate) mod smaps;
pub(crate) mod smaps_rollup;
pub(crate) mod stat;
pub(crate) mod status;
pub(crate) mod task;
pub(crate) mod thread_stack;
pub(crate) mod timed_read;
mod turns;

/// How long one process of many is waited for that does not let a file be read: another task has the lock of its memory map, or
/// it is in exec(2). Both may wait for ever for a file system of a user.
pub(crate) const SILENT_AFTER: units::Span = units::Span::from_millis(100);
