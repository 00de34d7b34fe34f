//! A recorder of the host beside a trial, so that each run can be opened with `memtide report`.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::command_error::{CommandError, ErrorContext};

/// A recorder that is ended in good order with this value.
pub(super) struct TrialRecorder(Child);

impl TrialRecorder {
    /// Starts one that writes below the directory of a trial, or goes on with the recording that is there.
    pub(super) fn start(directory: &Path) -> Result<Self, CommandError> {
        let program = std::env::current_exe().context("this program is not found")?;
        let recorder = Command::new(program)
            .args(["record", "--every", "1s", "--processes", "1s", "--to"])
            .arg(directory.join("recording"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        recorder.map(Self).context("the recorder cannot be started")
    }
}

impl Drop for TrialRecorder {
    fn drop(&mut self) {
        // It is not reaped before: the PID is its own.
        if let Some(pid) = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process(pid, Signal::TERM);
        }
        let _ = self.0.wait();
    }
}
