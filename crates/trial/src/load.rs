//! The load of a server: a command that runs beside it, and is ended with its value.

use std::io::Read as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::child::Tail;
use crate::command::TrialCommand;

/// A load generator that is ended with this value.
#[derive(Debug)]
pub(crate) struct Load {
    child: Child,
    output: Receiver<String>,
    errors: Tail,
}

impl Load {
    /// What is kept of its output.
    const OUTPUT_MAX: u64 = 4 << 20;

    pub(crate) fn start(line: &str) -> std::io::Result<Self> {
        let words = TrialCommand::Line(line.to_owned()).words();
        let mut child = Command::new(words.first().map_or("", String::as_str))
            .args(words.get(1..).unwrap_or_default())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()?;
        let (send, output) = channel();
        if let Some(mut stdout) = child.stdout.take() {
            std::thread::spawn(move || {
                let mut text = Vec::new();
                let _ = (&mut stdout).take(Self::OUTPUT_MAX).read_to_end(&mut text);
                let _ = send.send(String::from_utf8_lossy(&text).into_owned());
                let _ = std::io::copy(&mut stdout, &mut std::io::sink());
            });
        }
        let errors = child.stderr.take().map(Tail::of).unwrap_or_default();
        Ok(Self { child, output, errors })
    }

    /// Runs a command to its end, or until `timeout` has passed or `is_interrupted`.
    ///
    /// # Errors
    /// Why it failed.
    pub(crate) fn run(
        line: &str,
        timeout: Duration,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<(), String> {
        let mut load = Self::start(line).map_err(|error| error.to_string())?;
        let begun = Instant::now();
        loop {
            match load.ended() {
                Some(ended) => return ended.map(|_| ()),
                None if begun.elapsed() > timeout => return Err("it took too long".to_owned()),
                None if is_interrupted() => return Err("it was interrupted".to_owned()),
                None => std::thread::sleep(Duration::from_millis(5)),
            }
        }
    }

    fn kill_group(&self) {
        if let Some(group) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }

    /// `None` while it runs; then its output, or why it failed.
    pub(crate) fn ended(&mut self) -> Option<Result<String, String>> {
        let status = match self.child.try_wait() {
            Ok(status) => status?,
            Err(error) => return Some(Err(error.to_string())),
        };
        // What it left behind would hold its output open, and go on beside the next run.
        self.kill_group();
        if status.success() {
            let text = self.output.recv_timeout(Duration::from_secs(2));
            return Some(Ok(text.unwrap_or_default()));
        }
        let why = self.errors.text();
        Some(Err(match why.lines().last() {
            Some(last) => format!("{status}: {last}"),
            None => status.to_string(),
        }))
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            self.kill_group();
            let _ = self.child.wait();
        }
    }
}
