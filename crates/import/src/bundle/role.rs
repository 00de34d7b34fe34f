//! What a file of a bundle is read as, by its path: most need not be opened.

use probe::{inventory, saved};

use super::sosreport;

/// What a file is read as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum BundleRole {
    /// A kernel file.
    Kernel {
        /// The directory above `proc` or `sys`; empty for that of the bundle.
        below: String,
        /// The path on the host.
        path: String,
    },
    /// Output of a tool at the time of the bundle, or any file of a plain directory.
    Output,
    /// Output of a tool over time.
    Series,
    /// A log, which is searched for kernel reports.
    Log,
}

impl BundleRole {
    /// The role of the file at a path in the bundle; `None` if it is not read.
    pub(super) fn from_path(path: &str, is_sosreport: bool) -> Option<Self> {
        if let Some(found) = kernel(path) {
            return Some(found);
        }
        let directories: Vec<&str> = path.split('/').collect();
        let (name, directories) = directories.split_last()?;
        let has = |wanted: &str| directories.contains(&wanted);
        if has(sosreport::COMMANDS) {
            return sosreport::command_role(directories, name);
        }
        if has("proc") || has("sys") {
            return None;
        }
        if is_log(name) && (has("log") || has("sos_strings") || !is_sosreport) {
            return Some(Self::Log);
        }
        if is_series(name) && (has("sa") || !is_sosreport) {
            return Some(Self::Series);
        }
        let is_about_host = ["uname", "hostname", "free"].contains(name) && directories.len() < 2;
        let is_system = directories.iter().take(2).any(|d| SYSTEM.contains(d));
        (is_about_host || !(is_sosreport || is_system)).then_some(Self::Output)
    }
}

/// Directories of a system that are not read.
const SYSTEM: [&str; 17] = [
    "etc",
    "usr",
    "run",
    "boot",
    "opt",
    "lib",
    "lib64",
    "bin",
    "sbin",
    "dev",
    "var",
    "root",
    "home",
    "srv",
    "sos_logs",
    "sos_reports",
    "sos_strings",
];

pub(super) fn is_log(name: &str) -> bool {
    ["messages", "syslog", "kern", "dmesg", "journal", "console"]
        .iter()
        .any(|log| name.starts_with(log) || name.contains(&format!(".{log}")))
}

fn is_series(name: &str) -> bool {
    ["sar", "vmstat_", "vmstat.", "vmstat-", "mpstat", "iostat", "pidstat"]
        .iter()
        .any(|tool| name.starts_with(tool))
}

/// Whether the path on the host is that of a file of a process.
pub(super) fn is_of_process(path: &str) -> bool {
    let rest = path.strip_prefix("/proc/").unwrap_or_default();
    rest.starts_with(|c: char| c.is_ascii_digit())
}

/// The path on the host at the end of a path.
fn kernel(path: &str) -> Option<BundleRole> {
    let mut at = 0;
    for directory in path.split('/') {
        if directory == "proc" || directory == "sys" {
            let (below, kernel) = path.split_at_checked(at)?;
            let kernel = format!("/{kernel}");
            if saved::is_known(&kernel) || inventory::is_known(&kernel) {
                return Some(BundleRole::Kernel {
                    below: below.trim_end_matches('/').to_owned(),
                    path: kernel,
                });
            }
        }
        at += directory.len() + 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bundle::sosreport::is_of_sosreport;

    #[test]
    fn a_path_shows_what_a_file_is() {
        let role = |path: &str| match BundleRole::from_path(path, is_of_sosreport(path)) {
            Some(BundleRole::Kernel { below, path }) => format!("{below}|{path}"),
            Some(role) => format!("{role:?}"),
            None => String::new(),
        };
        for (path, expected) in [
            ("proc/meminfo", "|/proc/meminfo"),
            ("sosreport-web/proc/vmstat", "sosreport-web|/proc/vmstat"),
            ("a/b/sys/fs/cgroup/app/memory.max", "a/b|/sys/fs/cgroup/app/memory.max"),
            ("proc/sys/vm/swappiness", "|/proc/sys/vm/swappiness"),
            (
                "sys/kernel/mm/transparent_hugepage/enabled",
                "|/sys/kernel/mm/transparent_hugepage/enabled",
            ),
            ("proc/4242/status", "|/proc/4242/status"),
            ("proc/kmsg", ""),
            ("proc/kcore", ""),
            ("sys/kernel/debug/x", ""),
            ("sosreport-web/sos_commands/memory/free_-m", "Output"),
            ("sosreport-web/sos_commands/process/ps_auxwwwm", "Output"),
            ("sosreport-web/sos_commands/process/lsof_-b", ""),
            ("sosreport-web/sos_commands/kernel/dmesg_-T", "Log"),
            ("sosreport-web/sos_commands/kernel/lsmod", ""),
            ("sosreport-web/sos_commands/logs/journalctl_--no-pager", "Log"),
            ("sosreport-web/var/log/messages-20240101.gz", "Log"),
            ("sosreport-web/sos_strings/logs/var.log.messages.tailed", "Log"),
            ("sosreport-web/var/log/sa/sar17", "Series"),
            ("sosreport-web/etc/passwd", ""),
            ("sosreport-web/installed-rpms", ""),
            ("sosreport-web/uname", "Output"),
            ("meminfo", "Output"),
            ("night/vmstat.log", "Series"),
            ("dmesg.txt", "Log"),
            ("etc/passwd", ""),
        ] {
            assert_eq!(role(path), expected, "{path}");
        }
    }
}
