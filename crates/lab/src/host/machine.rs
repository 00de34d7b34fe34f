//! A throwaway virtual machine: QEMU with a kernel, an initramfs, slow disks, and two ports for what comes out.
//!
//! It has no network. Its disks are sparse files in a temporary directory, which is removed with it; it ends with this
//! process, however that ends.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use rustix::process::{Signal, getpid, getppid, set_parent_process_death_signal};
use tempfile::TempDir;
use units::Bytes;

use crate::LabError;
use crate::error::AtPath as _;
use crate::host::image::GuestImage;
use crate::message::GuestMessage;
use crate::run::{RunProgress, RunStep};

const QEMU: &str = "qemu-system-x86_64";
const MKE2FS: &str = "mke2fs";
/// How long a guest may take to its first message. With KVM it is there in two; a nested KVM may never print a line.
const KVM_START: Duration = Duration::from_secs(10);
/// The same under emulation, on a loaded host.
const TCG_START: Duration = Duration::from_secs(60);
/// Lines of a message port are short; more than this is damage.
const MESSAGES_BYTES_MAX: u64 = 16 << 20;

/// What a virtual machine is made of.
#[derive(Debug, Clone)]
pub struct Machine {
    /// Its RAM.
    pub ram: Bytes,
    /// Its CPUs.
    pub cpus: u32,
    /// NUMA nodes of equal size, with a CPU each, 21 apart; one: no NUMA.
    pub nodes: u32,
    /// Its disks: `/dev/vda`, `/dev/vdb`, …
    pub disks: Vec<VirtualDisk>,
}

impl Machine {
    /// Less than this does not hold the kernel, this program and a workload.
    const RAM_MIN: Bytes = Bytes::from_mib(256);

    /// A machine with two CPUs and so much RAM.
    pub const fn with_mib(mib: u64) -> Self {
        Self {
            ram: Bytes::from_mib(mib),
            cpus: 2,
            nodes: 1,
            disks: Vec::new(),
        }
    }

    /// Adds a disk.
    #[must_use]
    pub fn disk(mut self, disk: VirtualDisk) -> Self {
        self.disks.push(disk);
        self
    }

    /// Checks that it can run.
    ///
    /// # Errors
    /// [`LabError::TooSmall`].
    pub(crate) fn check(&self) -> Result<(), LabError> {
        if self.ram < Self::RAM_MIN {
            return Err(LabError::TooSmall {
                ram: self.ram,
                min: Self::RAM_MIN,
            });
        }
        Ok(())
    }
}

/// A disk.
#[derive(Debug, Clone, Copy)]
pub struct VirtualDisk {
    /// Its size.
    pub size: Bytes,
    /// Whether it holds an empty ext4 file system; else zeros.
    pub is_formatted: bool,
    /// Bytes a second that it reads and writes; `None`: as fast as the host.
    pub speed: Option<Bytes>,
}

impl VirtualDisk {
    /// A disk with an empty ext4 file system.
    pub const fn ext4(mib: u64) -> Self {
        Self {
            size: Bytes::from_mib(mib),
            is_formatted: true,
            speed: None,
        }
    }

    /// An empty disk, for swap.
    pub const fn empty(mib: u64) -> Self {
        Self {
            size: Bytes::from_mib(mib),
            is_formatted: false,
            speed: None,
        }
    }

    /// The same disk, limited to so many MiB a second.
    #[must_use]
    pub const fn slow(mut self, mib_per_second: u64) -> Self {
        self.speed = Some(Bytes::from_mib(mib_per_second));
        self
    }
}

/// How QEMU runs the guest's instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accelerator {
    /// The host's processor, by KVM.
    Kvm,
    /// Emulation.
    Tcg,
}

impl Accelerator {
    /// As people know it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Kvm => "KVM",
            Self::Tcg => "TCG",
        }
    }
}

/// Where the guest's console goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConsoleKind {
    /// To a file: what a guest that dies leaves.
    File,
    /// To this terminal.
    Terminal,
}

/// A running virtual machine.
#[derive(Debug)]
pub(crate) struct Vm {
    qemu: Child,
    directory: TempDir,
    accelerator: Accelerator,
    /// How much of the messages was read.
    read_to: u64,
}

/// Which accelerator works here, once one was found to.
static WORKS: OnceLock<Accelerator> = OnceLock::new();

impl Vm {
    /// Boots a machine until its first message.
    ///
    /// # Errors
    /// [`LabError::NoQemu`] where QEMU is not installed, [`LabError::Boot`] where the guest does not start.
    pub(crate) fn boot(
        image: &GuestImage,
        initramfs: &[PathBuf],
        machine: &Machine,
        progress: RunProgress<'_>,
    ) -> Result<Self, LabError> {
        // An emulated kernel may panic in early boot on a loaded host, when a timer does not tick in time: it gets a
        // second start.
        let candidates = match WORKS.get() {
            Some(known) => vec![*known, *known],
            // That it opens is no proof: a nested KVM may start and never run an instruction.
            None if opens_kvm() => vec![Accelerator::Kvm, Accelerator::Tcg, Accelerator::Tcg],
            None => vec![Accelerator::Tcg, Accelerator::Tcg],
        };
        let mut failed = None;
        for accelerator in candidates {
            let console = (accelerator, ConsoleKind::File);
            let mut vm = Self::start(image, initramfs, machine, console)?;
            match vm.wait_for_start(progress) {
                Ok(()) => {
                    let _ = WORKS.set(accelerator);
                    return Ok(vm);
                }
                Err(error @ LabError::Ended { .. }) => failed = Some(error),
                Err(error @ LabError::Boot { .. }) if accelerator == Accelerator::Kvm => {
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
        let initrd = directory.path().join("initrd");
        // The kernel unpacks archives that follow each other.
        let mut all = File::create(&initrd).at(&initrd)?;
        for part in initramfs {
            std::io::copy(&mut File::open(part).at(part)?, &mut all).at(&initrd)?;
        }
        let mut command = Command::new(QEMU);
        command
            .args(arguments(
                &image.kernel.image,
                machine,
                accelerator,
                console,
                directory.path(),
            )?)
            .stderr(File::create(&log).at(&log)?);
        if console == ConsoleKind::File {
            // A group of its own: Ctrl-C ends it by way of this process, which says so.
            command
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .process_group(0);
        }
        let parent = Some(getpid());
        // SAFETY: the closure runs in the child between fork and exec and makes two system calls, which are
        // async-signal-safe: it allocates nothing and takes no lock.
        #[allow(unsafe_code)]
        unsafe {
            command.pre_exec(move || {
                set_parent_process_death_signal(Some(Signal::KILL))?;
                // The signal is not sent for a parent that ended before.
                if getppid() == parent {
                    Ok(())
                } else {
                    Err(rustix::io::Errno::SRCH.into())
                }
            });
        }
        let qemu = match command.spawn() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(LabError::NoQemu);
            }
            started => started.at(Path::new(QEMU))?,
        };
        Ok(Self {
            qemu,
            directory,
            accelerator,
            read_to: 0,
        })
    }

    fn wait_for_start(&mut self, progress: RunProgress<'_>) -> Result<(), LabError> {
        let limit = match self.accelerator {
            Accelerator::Kvm => KVM_START,
            Accelerator::Tcg => TCG_START,
        };
        let begun = Instant::now();
        loop {
            let has_started =
                std::fs::metadata(self.messages_path()).is_ok_and(|file| file.len() > 0);
            if has_started {
                return Ok(());
            }
            let has_ended = self.has_ended();
            if has_ended {
                return Err(LabError::Ended {
                    last_words: self.last_words(),
                });
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

    /// Runs a machine on this terminal until it ends.
    ///
    /// # Errors
    /// As [`Self::boot`].
    pub(crate) fn run_on_terminal(
        image: &GuestImage,
        initramfs: &[PathBuf],
        machine: &Machine,
    ) -> Result<(), LabError> {
        // Which accelerator works is found with a machine whose console is a file.
        let probe = Self::boot(image, initramfs, machine, &mut |_| Ok(()))?;
        let accelerator = probe.accelerator;
        drop(probe);
        let terminal = (accelerator, ConsoleKind::Terminal);
        let mut vm = Self::start(image, initramfs, machine, terminal)?;
        vm.qemu.wait().at(Path::new(QEMU))?;
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
        file.take(MESSAGES_BYTES_MAX)
            .read_to_end(&mut new)
            .at(&path)?;
        let damaged = |why| LabError::Guest {
            why,
            last_words: self.last_words(),
        };
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
        [LOG, CONSOLE]
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

const CAPTURE: &str = "capture.jsonl";
const MESSAGES: &str = "messages.jsonl";
const CONSOLE: &str = "console";
/// What QEMU itself prints.
const LOG: &str = "qemu";

fn opens_kvm() -> bool {
    File::options()
        .read(true)
        .write(true)
        .open("/dev/kvm")
        .is_ok()
}

/// Makes an ext4 file system in a file. Its tables are written now, so that the guest's kernel does not do it later.
fn format(disk: &Path) -> Result<(), LabError> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    // An ordinary user's PATH may lack it.
    let mut places: Vec<PathBuf> = std::env::split_paths(&path).collect();
    places.extend([PathBuf::from("/usr/sbin"), PathBuf::from("/sbin")]);
    let program = places
        .iter()
        .map(|place| place.join(MKE2FS))
        .find(|program| program.is_file())
        .ok_or(LabError::NoMke2fs)?;
    let done = Command::new(&program)
        .args([
            "-q",
            "-F",
            "-t",
            "ext4",
            "-m",
            "0",
            "-E",
            "lazy_itable_init=0,lazy_journal_init=0",
        ])
        .arg(disk)
        .stdin(Stdio::null())
        .output()
        .at(&program)?;
    if done.status.success() {
        Ok(())
    } else {
        let why = String::from_utf8_lossy(&done.stderr).trim().to_owned();
        Err(std::io::Error::other(why)).at(&program)
    }
}

/// The arguments of QEMU; disks are made on the way.
fn arguments(
    kernel: &Path,
    machine: &Machine,
    accelerator: Accelerator,
    console: ConsoleKind,
    directory: &Path,
) -> Result<Vec<String>, LabError> {
    let accelerator = match accelerator {
        Accelerator::Kvm => "-accel kvm -cpu host",
        Accelerator::Tcg => "-accel tcg,thread=multi -cpu max",
    };
    let (ram, cpus) = (machine.ram.get() >> 20, machine.cpus);
    let mut all = QemuArguments::default();
    all.words("-nodefaults -no-user-config -display none -no-reboot -nic none")
        .words(accelerator)
        .words(&format!("-m {ram} -smp {cpus}"))
        .option("-kernel", kernel.display())
        .option("-initrd", directory.join("initrd").display());
    // The 8254 timer is not found on a loaded host; a panic ends the machine at once.
    let quiet = match console {
        ConsoleKind::File => "quiet",
        ConsoleKind::Terminal => "quiet loglevel=0",
    };
    all.option(
        "-append",
        format!("console=ttyS0 {quiet} psi=1 panic=-1 no_timer_check rdinit=/init"),
    );
    match console {
        ConsoleKind::File => {
            let path = directory.join(CONSOLE);
            all.option("-serial", format!("file:{}", path.display()));
        }
        ConsoleKind::Terminal => {
            all.words("-chardev stdio,id=terminal,signal=off -serial chardev:terminal");
        }
    }
    all.ports(directory);
    for (number, disk) in machine.disks.iter().enumerate() {
        all.disk(number, disk, directory)?;
    }
    if machine.nodes > 1 {
        all.nodes(machine.nodes, ram);
    }
    Ok(all.0)
}

/// Arguments of QEMU under construction.
#[derive(Debug, Default)]
struct QemuArguments(Vec<String>);

impl QemuArguments {
    /// Adds words that are separated by spaces.
    fn words(&mut self, words: &str) -> &mut Self {
        self.0.extend(words.split(' ').map(str::to_owned));
        self
    }

    /// Adds an option with its value, which may have spaces.
    fn option(&mut self, name: &str, value: impl std::fmt::Display) -> &mut Self {
        self.0.extend([name.to_owned(), value.to_string()]);
        self
    }

    /// Adds two ports, each written to a file.
    fn ports(&mut self, directory: &Path) {
        self.words("-device virtio-serial-pci");
        for (number, name) in [(1, CAPTURE), (2, MESSAGES)] {
            let path = comma_escaped(&directory.join(name));
            self.option("-chardev", format!("file,id=c{number},path={path}"))
                .option(
                    "-device",
                    format!("virtserialport,chardev=c{number},nr={number}"),
                );
        }
    }

    /// Adds a disk, and makes its file.
    fn disk(&mut self, number: usize, disk: &VirtualDisk, place: &Path) -> Result<(), LabError> {
        let path = place.join(format!("disk{number}"));
        let size = disk.size.get();
        File::create(&path)
            .and_then(|file| file.set_len(size))
            .at(&path)?;
        if disk.is_formatted {
            format(&path)?;
        }
        let speed = disk.speed.map_or_else(String::new, |speed| {
            let speed = speed.get();
            format!(",throttling.bps-read={speed},throttling.bps-write={speed}")
        });
        let path = comma_escaped(&path);
        self.option(
            "-drive",
            format!(
                "file={path},format=raw,if=none,id=d{number},cache=unsafe,werror=report{speed}"
            ),
        )
        .option("-device", format!("virtio-blk-pci,drive=d{number}"));
        Ok(())
    }

    /// Adds NUMA nodes of equal size with a CPU each, 21 apart.
    fn nodes(&mut self, nodes: u32, ram_mib: u64) {
        let size = ram_mib / u64::from(nodes);
        for node in 0..nodes {
            self.option(
                "-object",
                format!("memory-backend-ram,id=m{node},size={size}M"),
            )
            .option(
                "-numa",
                format!("node,nodeid={node},cpus={node},memdev=m{node}"),
            );
        }
        for (one, other) in (0..nodes).flat_map(|one| (one + 1..nodes).map(move |to| (one, to))) {
            self.option("-numa", format!("dist,src={one},dst={other},val=21"));
        }
    }
}

/// A path as a value of a QEMU option, where a comma ends a value unless it is doubled.
fn comma_escaped(path: &Path) -> String {
    path.display().to_string().replace(',', ",,")
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

    #[test]
    fn a_comma_in_a_path_does_not_end_an_option() {
        assert_eq!(comma_escaped(Path::new("/a,b")), "/a,,b");
    }
}
