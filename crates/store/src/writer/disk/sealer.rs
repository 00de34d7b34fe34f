//! Seals finished head files: with a command that runs at low priority, or in place without one.

use std::ffi::OsString;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::directory::pinned::PinnedDirectory;

/// Seals head files.
#[derive(Debug)]
pub(super) struct Sealer {
    command: Option<Vec<OsString>>,
    child: Option<Child>,
    /// Whether another file ended while the command was running.
    is_due: bool,
}

impl Sealer {
    pub(super) fn new(command: Option<Vec<OsString>>) -> Self {
        Self { command, child: None, is_due: false }
    }

    /// Has all finished head files sealed. Returns an error in words.
    pub(super) fn start(&mut self, directory: &PinnedDirectory) -> Option<String> {
        let Some((program, arguments)) = self.command.as_ref().and_then(|c| c.split_first()) else {
            let failure = match crate::seal::seal(directory.path()) {
                Ok(sealed) => sealed.problems.into_iter().next(),
                Err(error) => Some(timeline::with_causes(&error)),
            };
            return failure.map(|failure| directory.in_words(&failure));
        };
        if self.child.is_some() {
            self.is_due = true;
            return None;
        }
        let mut command = Command::new(program);
        // The current directory is the open one, whatever its name leads to by now.
        command.args(arguments).arg(".").current_dir(directory.path());
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
    pub(super) fn finish(
        &mut self,
        directory: &PinnedDirectory,
        within: Duration,
    ) -> Option<String> {
        self.command.as_ref()?;
        let until = Instant::now() + within;
        let mut failure = self.start(directory);
        while failure.is_none() && self.child.is_some() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
            failure = self.poll(directory);
        }
        failure
    }

    /// Checks whether the command has ended. Returns an error in words.
    pub(super) fn poll(&mut self, directory: &PinnedDirectory) -> Option<String> {
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
            return failure.or(self.start(directory));
        }
        failure
    }
}
