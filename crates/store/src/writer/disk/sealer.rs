//! Seals finished head files: with a command that runs at low priority, or in place without one.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Seals head files.
#[derive(Debug)]
pub(super) struct Sealer {
    command: Option<Vec<OsString>>,
    directory: PathBuf,
    child: Option<Child>,
    /// Whether another file ended while the command was running.
    is_due: bool,
}

impl Sealer {
    pub(super) fn new(command: Option<Vec<OsString>>, directory: PathBuf) -> Self {
        Self {
            command,
            directory,
            child: None,
            is_due: false,
        }
    }

    /// Has all finished head files sealed. Returns an error in words.
    pub(super) fn start(&mut self) -> Option<String> {
        let Some((program, arguments)) = self.command.as_ref().and_then(|c| c.split_first()) else {
            return match crate::seal::seal(&self.directory) {
                Ok(sealed) => sealed.problems.into_iter().next(),
                Err(error) => Some(error.to_string()),
            };
        };
        if self.child.is_some() {
            self.is_due = true;
            return None;
        }
        let mut command = Command::new(program);
        command.args(arguments).arg(&self.directory);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        match command.spawn() {
            Ok(child) => {
                self.child = Some(child);
                None
            }
            Err(error) => Some(format!(
                "cannot start `{}` to seal the head file: {error}; the head file stays",
                program.to_string_lossy()
            )),
        }
    }

    /// Seals the last file too, with the directory unlocked, so that any Parquet reader can open a finished recording.
    /// Waits for at most `within`: the command continues by itself, and if it is killed the next recorder seals the
    /// file. Without a command the file stays a head file, as the time for sealing in place has no bound.
    pub(super) fn finish(&mut self, within: Duration) -> Option<String> {
        self.command.as_ref()?;
        let until = Instant::now() + within;
        let mut failure = self.start();
        while failure.is_none() && self.child.is_some() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
            failure = self.poll();
        }
        failure
    }

    /// Checks whether the command has ended. Returns an error in words.
    pub(super) fn poll(&mut self) -> Option<String> {
        let status = self.child.as_mut()?.try_wait().transpose()?;
        self.child = None;
        let failure = match status {
            Ok(status) if status.success() => None,
            Ok(status) => Some(format!(
                "sealing the head file failed ({status}): it stays, and is sealed with the next one"
            )),
            Err(error) => Some(format!("cannot wait for the sealer: {error}")),
        };
        if std::mem::take(&mut self.is_due) {
            return failure.or(self.start());
        }
        failure
    }
}
