//! Kernel files of the machine, as a fix changes them, by itself or by commands.

use std::process::{Command, Stdio};

use diagnose::FixTarget;
use units::PageSize;

/// Where the machine has tools.
pub(crate) const TOOL_PLACES: &str = "/bin:/usr/bin:/sbin:/usr/sbin";
/// Where systemd mounts the memory controller of v1; the lab mounts it where systemd has the directory of all controllers.
const V1_PLACE: &str = "/sys/fs/cgroup/memory/";
const V1_PLACE_HERE: &str = "/sys/fs/cgroup/";

/// Kernel files of the machine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GuestFiles {
    /// Whether it has the memory controller of cgroup v1.
    pub(crate) is_cgroup_v1: bool,
}

impl GuestFiles {
    /// A path, or commands with paths, as they are in this machine.
    fn here(self, text: &str) -> String {
        if self.is_cgroup_v1 { text.replace(V1_PLACE, V1_PLACE_HERE) } else { text.to_owned() }
    }

    /// Runs commands as they stand, line by line, in a shell that ends with the first that fails.
    pub(super) fn run(self, commands: &str) -> Result<(), String> {
        if commands.is_empty() {
            return Ok(());
        }
        let commands = self.here(commands);
        let mut shell = Command::new("/bin/sh");
        shell.args(["-e", "-c", &commands]).env("PATH", TOOL_PLACES).stdin(Stdio::null());
        let output = shell.output().map_err(|error| format!("cannot start /bin/sh: {error}"))?;
        if output.status.success() {
            return Ok(());
        }
        let words = String::from_utf8_lossy(&output.stderr);
        Err(format!("`{commands}` failed: {}", words.trim()))
    }
}

impl FixTarget for GuestFiles {
    fn read(&mut self, path: &str) -> std::io::Result<String> {
        std::fs::read_to_string(self.here(path))
    }

    fn write(&mut self, path: &str, text: &str) -> std::io::Result<()> {
        std::fs::write(self.here(path), text)
    }

    fn page_size(&self) -> PageSize {
        PageSize::USUAL
    }
}
