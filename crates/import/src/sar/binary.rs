//! Binary files of sysstat (`/var/log/sysstat/sa21`), read by the installed `sadf`: each version has its own layout.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use super::SarDocument;

/// Why a binary file of sysstat cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum SadfError {
    /// There is no `sadf`.
    #[error("it is a binary file of sysstat, and `sadf`, which reads those, is not installed")]
    NotInstalled,
    /// It could not be run.
    #[error("it is a binary file of sysstat, and `sadf` cannot be run")]
    Run(#[source] io::Error),
    /// `sadf` rejected it.
    #[error("`sadf` cannot read this binary file of sysstat: {0}")]
    Refused(String),
}

impl SadfError {
    /// What to do about it.
    pub fn help(&self) -> &'static str {
        match self {
            Self::NotInstalled | Self::Run(_) => {
                "install sysstat, or run on a host that has it: sadf -j FILE -- -A | memtide check \
                 -"
            }
            Self::Refused(_) => {
                "use the sysstat version that wrote it: sadf -j FILE -- -A | memtide check -"
            }
        }
    }
}

/// Whether this is a binary file of sysstat, in either byte order: its magic number and a format of 0x2170 or later.
pub(super) fn is_binary(first: &[u8]) -> bool {
    matches!(first, [0x96, 0xd5, 0x70..=0x8f, 0x21, ..] | [0xd5, 0x96, 0x21, 0x70..=0x8f, ..])
}

/// At most 60 s for sadf, enough for a day of samples. A file of one-second samples may need more and is read in part.
const RUN_MAX: Duration = Duration::from_secs(60);
/// At most 1 GiB of output; a day of ten-minute samples has about 6 MB.
const BYTES_MAX: u64 = 1 << 30;
/// From the error message of sadf for files of older versions.
const OLD_FORMAT: &str = "convert it to current format";

/// Reads a binary file through a copy: the input may be packed or a pipe, and sadf cannot mistake the path of the copy
/// for an option or a number.
pub(super) fn read(input: &mut dyn BufRead) -> Result<SarDocument, SadfError> {
    let scratch = tempfile::tempdir().map_err(SadfError::Run)?;
    let path = scratch.path().join("sa");
    copy(input, &path).map_err(SadfError::Run)?;
    match to_json(&path) {
        Err(SadfError::Refused(why)) if why.contains(OLD_FORMAT) => {
            let converted = scratch.path().join("converted");
            convert(&path, &converted)?;
            to_json(&converted)
        }
        read => read,
    }
}

fn copy(input: &mut dyn BufRead, to: &Path) -> io::Result<()> {
    let mut file = std::fs::File::create_new(to)?;
    io::copy(&mut input.take(BYTES_MAX), &mut file)?;
    file.flush()
}

/// `sadf -j FILE -- -A`.
fn to_json(path: &Path) -> Result<SarDocument, SadfError> {
    let mut command = Command::new("sadf");
    command.arg("-j").arg(path).args(["--", "-A"]);
    let (mut document, complaint) = run(command, |output| super::read_json(output))?;
    if let Some(why) = complaint {
        let why = why.replace(&path.display().to_string(), "it");
        if document.is_empty() {
            return Err(SadfError::Refused(why));
        }
        document.problems.push(format!("sadf: {why}"));
    }
    Ok(document)
}

/// `sadf -c FILE`, into another file.
fn convert(path: &Path, to: &Path) -> Result<(), SadfError> {
    let mut command = Command::new("sadf");
    command.arg("-c").arg(path);
    let mut file = std::fs::File::create_new(to).map_err(SadfError::Run)?;
    let (copied, complaint) = run(command, |output| io::copy(output, &mut file))?;
    copied.map_err(SadfError::Run)?;
    complaint.map_or(Ok(()), |_| {
        Err(SadfError::Refused(
            "it is of an older version, and `sadf -c` cannot convert it".to_owned(),
        ))
    })
}

/// Runs a command for a bounded time and reads its output. If it failed, the second value is its error message.
fn run<T>(
    mut command: Command,
    read: impl FnOnce(&mut dyn BufRead) -> T,
) -> Result<(T, Option<String>), SadfError> {
    command.env("LC_ALL", "C").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => SadfError::NotInstalled,
        _ => SadfError::Run(error),
    })?;
    let (output, errors) = (child.stdout.take(), child.stderr.take());
    thread::scope(|scope| {
        let (done, is_done) = mpsc::channel::<()>();
        let watch = scope.spawn(move || end_in_time(child, &is_done));
        let message = scope.spawn(move || first_words(errors));
        let result = match output {
            Some(output) => read(&mut BufReader::new(output.take(BYTES_MAX))),
            None => read(&mut io::empty()),
        };
        // Its output was read: it should exit now.
        drop(done);
        let end = watch.join().unwrap_or_default();
        let message = message.join().unwrap_or_default();
        let complaint = match end {
            Some(status) if status.success() => None,
            Some(status) if message.is_empty() || status.code().is_none() => {
                Some(format!("it failed ({status})"))
            }
            Some(_) => Some(message),
            None => Some("it took more than a minute and was stopped".to_owned()),
        };
        Ok((result, complaint))
    })
}

/// Waits until the output was read, then for the exit. Kills a process that does not exit.
fn end_in_time(mut child: Child, is_done: &mpsc::Receiver<()>) -> Option<ExitStatus> {
    const STEP: Duration = Duration::from_millis(10);
    const STEPS: usize = 500;
    if is_done.recv_timeout(RUN_MAX) != Err(RecvTimeoutError::Timeout) {
        for _ in 0..STEPS {
            match child.try_wait() {
                Ok(None) => thread::sleep(STEP),
                Ok(status) => return status,
                Err(_) => break,
            }
        }
    }
    // An error means that it exited meanwhile.
    let _ = child.kill();
    let _ = child.wait();
    None
}

/// The first words of an error message, on one line.
fn first_words(errors: Option<impl Read>) -> String {
    const MESSAGE_BYTES_MAX: u64 = 4096;
    const MESSAGE_LEN_MAX: usize = 250;
    let Some(mut errors) = errors else {
        return String::new();
    };
    let mut bytes = Vec::new();
    let _ = errors.by_ref().take(MESSAGE_BYTES_MAX).read_to_end(&mut bytes);
    // A full pipe would keep the command from exiting.
    let _ = io::copy(&mut errors, &mut io::sink());
    let text = String::from_utf8_lossy(&bytes);
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").chars().take(MESSAGE_LEN_MAX).collect()
}
