//! A call: a command of memtide in a process group of its own, with a time limit, ended where the client no longer waits.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::{Child, Command};

use crate::answer::CommandOutput;

/// The longest time of a call, beyond what it was asked to watch.
const TIME_MAX: Duration = Duration::from_secs(120);
/// Of a command's output no more is kept.
const OUTPUT_BYTES_MAX: u64 = 1 << 20;

/// A command that is killed, with its children, where this value ends before it.
struct RunningTool {
    child: Child,
    group: Option<Pid>,
}

impl RunningTool {
    fn start(program: &Path, arguments: &[String]) -> std::io::Result<Self> {
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env("NO_COLOR", "1")
            // The client's own messages are on standard input.
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        let child = command.spawn()?;
        let group = child.id().and_then(|id| Pid::from_raw(id.try_into().ok()?));
        Ok(Self { child, group })
    }

    async fn output(&mut self) -> std::io::Result<CommandOutput> {
        let (stdout, stderr) = (self.child.stdout.take(), self.child.stderr.take());
        let (stdout, stderr) = tokio::join!(read(stdout), read(stderr));
        let (stdout, stderr) = (stdout?, stderr?);
        let status = self.child.wait().await?;
        self.group = None;
        Ok(CommandOutput { code: status.code(), stdout, stderr })
    }
}

impl RunningTool {
    fn kill(&mut self) {
        if let Some(group) = self.group.take() {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }

    /// Kills it and waits until it is gone: who is not waited for stays in the list of processes.
    async fn end(&mut self) {
        self.kill();
        let _ = self.child.wait().await;
    }
}

impl Drop for RunningTool {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Reads text to its end, and keeps its begin.
async fn read(pipe: Option<impl AsyncRead + Unpin>) -> std::io::Result<String> {
    let mut kept = Vec::new();
    if let Some(mut pipe) = pipe {
        (&mut pipe).take(OUTPUT_BYTES_MAX).read_to_end(&mut kept).await?;
        // Who writes on into a closed pipe would end with an error.
        tokio::io::copy(&mut pipe, &mut tokio::io::sink()).await?;
    }
    Ok(String::from_utf8_lossy(&kept).into_owned())
}

/// Runs a command that may take `watches` longer than others, unless `cancelled` comes first.
///
/// # Errors
/// A sentence, where it cannot be started, takes too long or is cancelled.
pub(crate) async fn run(
    program: &Path,
    arguments: &[String],
    watches: Duration,
    cancelled: impl Future<Output = ()>,
) -> Result<CommandOutput, String> {
    let mut running = RunningTool::start(program, arguments)
        .map_err(|error| format!("memtide cannot be started: {error}"))?;
    let limit = TIME_MAX + watches;
    let ended = tokio::select! {
        output = running.output() => {
            return output.map_err(|error| format!("memtide's answer cannot be read: {error}"));
        }
        () = tokio::time::sleep(limit) => {
            format!("memtide did not answer within {} s and was ended", limit.as_secs())
        }
        () = cancelled => "the call was cancelled".to_owned(),
    };
    running.end().await;
    Err(ended)
}
