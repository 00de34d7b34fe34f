//! Another command of this program, as a process of its own.

use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

/// A running command; it is killed when dropped.
#[derive(Debug)]
pub struct MemtideCommand(Child);

impl MemtideCommand {
    /// Starts this program with other arguments by `spawn`.
    pub(super) fn start(
        arguments: &[&str],
        spawn: impl FnOnce(&mut Command) -> std::io::Result<Child>,
    ) -> Result<Self, String> {
        let mut command = Command::new("/proc/self/exe");
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped());
        let child = spawn(&mut command)
            .map_err(|error| format!("cannot start {}: {error}", arguments.join(" ")))?;
        Ok(Self(child))
    }

    /// Ends it as Ctrl-C does; whether it ended well.
    pub fn interrupt(mut self) -> bool {
        let sent = kill_process(Pid::from_child(&self.0), Signal::INT);
        sent.is_ok() && self.0.wait().is_ok_and(|status| status.success())
    }

    /// Ends it as Ctrl-C does; gives the JSON that it prints then.
    ///
    /// # Errors
    /// Where it prints none.
    pub fn interrupted_json(self) -> Result<serde_json::Value, String> {
        let sent = kill_process(Pid::from_child(&self.0), Signal::INT);
        sent.map_err(|error| format!("it cannot be ended: {error}"))?;
        self.json()
    }

    /// Waits for its end; gives the JSON that it printed, whatever its exit code.
    ///
    /// # Errors
    /// Where it printed none.
    pub fn json(mut self) -> Result<serde_json::Value, String> {
        let output = self.0.stdout.take().ok_or("it has no output")?;
        let printed = serde_json::from_reader(output);
        printed.map_err(|error| format!("its output cannot be read: {error}"))
    }
}

impl Drop for MemtideCommand {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
