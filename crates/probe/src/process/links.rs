//! Links of a process (`exe`, `ns/mnt`, `fd/7`): they wait while it is in execve(2), so another thread reads them.

use std::os::fd::OwnedFd;
use std::path::PathBuf;

use rustix::fs::{Mode, OFlags};

use crate::kernel_file::Root;
use crate::process::timed_read::read_within;
use crate::process::{SILENT_AFTER, status};

/// Reads the link at `/proc/PID/name`; `None` if there is none, this user may not, or the process does not answer.
pub(crate) fn read(root: &Root, pid: u32, name: &str) -> Option<PathBuf> {
    asked(root, pid, name, std::fs::read_link)?.ok()
}

/// Opens what such a link leads to; `None` as for [`read`].
pub(crate) fn open(root: &Root, pid: u32, name: &str) -> Option<OwnedFd> {
    opened(root, pid, name, OFlags::RDONLY | OFlags::CLOEXEC)
}

/// Looks up what such a link leads to without opening it; `None` as for [`read`].
pub(crate) fn look_up(root: &Root, pid: u32, name: &str) -> Option<OwnedFd> {
    opened(root, pid, name, OFlags::PATH | OFlags::CLOEXEC)
}

fn opened(root: &Root, pid: u32, name: &str, flags: OFlags) -> Option<OwnedFd> {
    let open = move |path| rustix::fs::open::<PathBuf>(path, flags, Mode::empty());
    asked(root, pid, name, open)?.ok()
}

/// Asks in a thread for what a link has, unless that waits.
fn asked<T: Send + 'static>(
    root: &Root,
    pid: u32,
    name: &str,
    ask: impl FnOnce(PathBuf) -> T + Send + 'static,
) -> Option<T> {
    if is_in_exec(root, pid) {
        return None;
    }
    let path = root.path(&format!("/proc/{pid}/{name}"));
    read_within(SILENT_AFTER, move || ask(path)).ok()
}

/// Whether the links of a process would wait now. It says so before: a thread is left behind only at a process that gets there
/// meanwhile.
pub(crate) fn is_in_exec(root: &Root, pid: u32) -> bool {
    let text = root.read(&format!("/proc/{pid}/status"));
    status::is_in_exec(&text.unwrap_or_default())
}
