//! A running virtual machine: QEMU with a kernel, an initramfs, slow disks, and two ports for what comes out.
//!
//! It has no network. Its disks are sparse files in a temporary directory, which is removed with it; it ends with the thread
//! that started it, however that ends.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::LabError;
use crate::error::AtPath as _;
use crate::host::accelerator::Accelerator;
use crate::host::image::GuestImage;
use crate::host::machine::Machine;
use crate::host::qemu::{CAPTURE, CONSOLE, ConsoleKind, INITRD, MESSAGES, QEMU, arguments};
use crate::host::share::HostShare;
use crate::host::terminal::TerminalSetting;
use crate::message::GuestMessage;
use crate::progress::{RunProgress, RunStep};
use crate::sys::die_with_parent;

/// Lines of a message port are short; more than this is damage.
const MESSAGES_BYTES_MAX: u64 = 16 << 20;
/// What QEMU itself prints.
const LOG: &str = "qemu";

/// A running virtual machine.
#[derive(Debug)]
pub(crate) struct Vm {
    qemu: Child,
    directory: TempDir,
    accelerator: Accelerator,
    /// How much of the messages was read.
    read_to: u64,
    /// Serves the host's files, where the machine has them.
    share: Option<HostShare>,
}

impl Vm {
    /// Boots a machine until its first message.
    ///
    /// # Errors
    /// [`LabError::NoQemu`] where QEMU is not installed, [`LabError::Boot`] where the guest does not start.
    pub(crate) fn boot(
        image: &GuestImage,
        initramfs: &[PathBuf],
        machine: &Machine,
        accelerator: Option<Accelerator>,
        progress: RunProgress<'_>,
    ) -> Result<Self, LabError> {
        let mut failed = None;
        for candidate in Accelerator::candidates(accelerator) {
            let console = (*candidate, ConsoleKind::File);
            let mut vm = Self::start(image, initramfs, machine, console)?;
            match vm.wait_for_start(progress) {
                Ok(()) => {
                    if accelerator.is_none() {
                        candidate.works();
                    }
                    return Ok(vm);
                }
                Err(error @ LabError::Ended { .. }) => failed = Some(error),
                Err(error @ LabError::Boot { .. }) if *candidate == Accelerator::Kvm => {
                    failed = Some(error);
                }
                Err(error) => return Err(error),
            }
        }
        Err(failed.unwrap_or(LabError::NoQemu))
    }

    fn start(
        image: &GuestImage,
        initramfs: &[PathBuf],
        machine: &Machine,
        (accelerator, console): (Accelerator, ConsoleKind),
    ) -> Result<Self, LabError> {
        let directory = image.work.of_machine()?;
        let log = directory.path().join(LOG);
        let initrd = directory.path().join(INITRD);
        // The kernel unpacks archives that follow each other.
        let mut all = File::create(&initrd).at(&initrd)?;
        for part in initramfs {
            std::io::copy(&mut File::open(part).at(part)?, &mut all).at(&initrd)?;
        }
        let share =
            machine.has_host_files.then(|| HostShare::start(directory.path())).transpose()?;
        let files = share.as_ref().map(HostShare::socket);
        let kernel = &image.kernel.image;
        let mut command = Command::new(QEMU);
        command
            .args(arguments(kernel, machine, accelerator, console, directory.path(), files)?)
            .stderr(File::create(&log).at(&log)?);
        if console == ConsoleKind::File {
            // A group of its own: Ctrl-C ends it by way of this process, which says so.
            command.stdin(Stdio::null()).stdout(Stdio::null()).process_group(0);
        }
        die_with_parent(&mut command, console.end_signal());
        let qemu = match command.spawn() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(LabError::NoQemu);
            }
            started => started.at(Path::new(QEMU))?,
        };
        Ok(Self { qemu, directory, accelerator, read_to: 0, share })
    }

    fn wait_for_start(&mut self, progress: RunProgress<'_>) -> Result<(), LabError> {
        let limit = self.accelerator.start_max();
        let begun = Instant::now();
        loop {
            let has_started =
                std::fs::metadata(self.messages_path()).is_ok_and(|file| file.len() > 0);
            if has_started {
                return Ok(());
            }
            let has_ended = self.has_ended();
            if has_ended {
                return Err(LabError::Ended { last_words: self.last_words() });
            }
            if begun.elapsed() > limit {
                return Err(LabError::Boot {
                    accelerator: self.accelerator.name(),
                    after: begun.elapsed(),
                    last_words: self.last_words(),
                });
            }
            progress(RunStep::Waiting)?;
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Runs a machine on this terminal until it ends. The terminal is set back however that comes.
    ///
    /// # Errors
    /// As [`Self::boot`], and those of `progress`.
    pub(crate) fn run_on_terminal(
        image: &GuestImage,
        initramfs: &[PathBuf],
        machine: &Machine,
        accelerator: Option<Accelerator>,
        progress: RunProgress<'_>,
    ) -> Result<(), LabError> {
        // Which accelerator works is found with a machine that has a file for its console.
        let probe = Self::boot(image, initramfs, machine, accelerator, progress)?;
        let accelerator = probe.accelerator;
        drop(probe);
        // Set back when the machine has ended: values are dropped in the reverse order.
        let _terminal = TerminalSetting::kept();
        let terminal = (accelerator, ConsoleKind::Terminal);
        let mut vm = Self::start(image, initramfs, machine, terminal)?;
        while !vm.has_ended() {
            progress(RunStep::Waiting)?;
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// Messages that arrived since this was last asked.
    ///
    /// # Errors
    /// The operating system's.
    pub(crate) fn messages(&mut self) -> Result<Vec<GuestMessage>, LabError> {
        let path = self.messages_path();
        let mut file = File::open(&path).at(&path)?;
        file.seek(SeekFrom::Start(self.read_to)).at(&path)?;
        let mut new = Vec::new();
        file.take(MESSAGES_BYTES_MAX).read_to_end(&mut new).at(&path)?;
        let damaged = |why| LabError::Guest { why, last_words: self.last_words() };
        let (len, messages) = parse_messages(&new).map_err(damaged)?;
        if len == 0 && new.len() as u64 == MESSAGES_BYTES_MAX {
            return Err(damaged("a message does not end".to_owned()));
        }
        self.read_to += len as u64;
        Ok(messages)
    }

    /// Waits until QEMU has ended, and with it all that the guest wrote is here. One that does not end is killed later.
    pub(crate) fn wait_for_end(&mut self) {
        /// A guest that is done reboots at once.
        const LIMIT: Duration = Duration::from_secs(5);
        let begun = Instant::now();
        while !self.has_ended() && begun.elapsed() < LIMIT {
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Whether QEMU has ended.
    pub(crate) fn has_ended(&mut self) -> bool {
        !matches!(self.qemu.try_wait(), Ok(None))
    }

    /// Whether the host's files are served no more.
    pub(crate) fn has_lost_files(&mut self) -> bool {
        self.share.as_mut().is_some_and(HostShare::has_ended)
    }

    /// Where the guest's samples arrive, a line each.
    pub(crate) fn capture_path(&self) -> PathBuf {
        self.directory.path().join(CAPTURE)
    }

    fn messages_path(&self) -> PathBuf {
        self.directory.path().join(MESSAGES)
    }

    /// How the guest's instructions run.
    pub(crate) fn accelerator(&self) -> Accelerator {
        self.accelerator
    }

    /// The end of what QEMU and the guest's console printed: why it did not start.
    pub(crate) fn last_words(&self) -> String {
        [HostShare::LOG, LOG, CONSOLE]
            .iter()
            .filter_map(|name| read_end(&self.directory.path().join(name)).ok())
            .flat_map(|text| {
                let text = String::from_utf8_lossy(&text).into_owned();
                let lines: Vec<String> = text.lines().rev().take(12).map(str::to_owned).collect();
                lines.into_iter().rev()
            })
            .collect::<Vec<_>>()
            .join("\n")
    }
}

/// Returns the messages of all complete lines, and how many bytes those have. A line that is still being written is
/// read with the next.
fn parse_messages(bytes: &[u8]) -> Result<(usize, Vec<GuestMessage>), String> {
    let end = bytes.iter().rposition(|byte| *byte == b'\n');
    let len = end.map_or(0, |at| at + 1);
    let lines = bytes
        .get(..len)
        .unwrap_or_default()
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty());
    let parsed = lines.map(|line| {
        serde_json::from_slice(line).map_err(|error| format!("a message cannot be read: {error}"))
    });
    Ok((len, parsed.collect::<Result<_, _>>()?))
}

/// Reads the end of a file, which a guest may fill without limit.
fn read_end(path: &Path) -> std::io::Result<Vec<u8>> {
    const BYTES_MAX: u64 = 16 << 10;
    let mut file = File::open(path)?;
    let len = file.metadata()?.len();
    file.seek(SeekFrom::Start(len.saturating_sub(BYTES_MAX)))?;
    let mut end = Vec::new();
    file.take(BYTES_MAX).read_to_end(&mut end)?;
    Ok(end)
}

impl Drop for Vm {
    fn drop(&mut self) {
        let _ = self.qemu.kill();
        let _ = self.qemu.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_still_being_written_is_read_with_the_next() {
        let done = serde_json::to_string(&GuestMessage::Done).unwrap();
        let whole = format!("{done}\n");
        let cut = format!("{whole}{}", &whole.split_at(2).0);
        let (len, messages) = parse_messages(cut.as_bytes()).unwrap();
        assert_eq!((len, messages.len()), (whole.len(), 1));
        assert_eq!(parse_messages(b"").unwrap().0, 0);
        let error = parse_messages(b"{\n").unwrap_err();
        assert!(error.contains("a message cannot be read"), "{error}");
    }
}
