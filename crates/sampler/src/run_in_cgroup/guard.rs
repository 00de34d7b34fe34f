//! The guard of a run: a process that ends what is left when this one is gone, whatever ended it.
//!
//! It is a shell, as it must outlive this program, and waits for the end of a pipe that only this process has open. It is
//! in a process group of its own: Ctrl-C at the terminal does not reach it. Cost: 0.3 MiB (PSS)
//! and 0.4 ms of CPU with dash.

use std::io::PipeWriter;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};

use crate::run_in_cgroup::error::CgroupRunError;
use crate::run_in_cgroup::place::GroupPlace;

/// Takes the directories of the cgroup, those that can freeze it first.
const SCRIPT: &str = include_str!("guard.sh");

/// A guard that is dismissed with this value.
#[derive(Debug)]
pub(super) struct RunGuard {
    shell: Child,
    /// Its end is what the guard waits for.
    _open: PipeWriter,
}

impl RunGuard {
    pub(super) fn start(place: &GroupPlace) -> Result<Self, CgroupRunError> {
        let failed = |source| CgroupRunError::NoGuard { source };
        let (wait, open) = std::io::pipe().map_err(failed)?;
        let mut directories = place.directories();
        directories.reverse();
        let shell = Command::new("/bin/sh")
            .args(["-c", SCRIPT, "memtide-guard"])
            .args(directories)
            .stdin(Stdio::from(wait))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .current_dir("/")
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into()))
            .process_group(0)
            .spawn()
            .map_err(failed)?;
        Ok(Self { shell, _open: open })
    }
}

impl Drop for RunGuard {
    fn drop(&mut self) {
        let _ = self.shell.kill();
        let _ = self.shell.wait();
    }
}
