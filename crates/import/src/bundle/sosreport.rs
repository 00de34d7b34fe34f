//! Which bundles are those of `sos report`, and what its plugins leave.

use super::role::{BundleRole, is_log};

/// The directory of the plugins' commands.
pub(super) const COMMANDS: &str = "sos_commands";

/// Whether the path shows that the bundle is a `sosreport`, with known places for everything.
pub(super) fn is_of_sosreport(path: &str) -> bool {
    path.starts_with("sosreport-") || path.split('/').any(|d| d == COMMANDS)
}

/// The role of a file below `sos_commands/PLUGIN`.
pub(super) fn command_role(directories: &[&str], name: &str) -> Option<BundleRole> {
    let plugin = directories.last()?;
    match *plugin {
        "memory" | "numa" | "cgroups" => Some(BundleRole::Output),
        "process" if ["ps_", "top", "smem"].iter().any(|t| name.starts_with(t)) => {
            Some(BundleRole::Output)
        }
        "kernel" if ["sysctl", "uname"].iter().any(|t| name.starts_with(t)) => {
            Some(BundleRole::Output)
        }
        "host" if name == "hostname" => Some(BundleRole::Output),
        "kernel" | "logs" if is_log(name) => Some(BundleRole::Log),
        "sar" => Some(BundleRole::Series),
        _ => None,
    }
}
