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

use rustix::process::{Signal, set_parent_process_death_signal};
use tempfile::TempDir;
use units::Bytes;

use crate::LabError;
use crate::message::GuestMessage;

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
        kernel: &Path,
        initramfs: &[&Path],
        machine: &Machine,
    ) -> Result<Self, LabError> {
        let candidates = match WORKS.get() {
            Some(known) => vec![*known],
            // That it opens is no proof: a nested KVM may start and never run an instruction.
            None if opens_kvm() => vec![Accelerator::Kvm, Accelerator::Tcg],
            None => vec![Accelerator::Tcg],
        };
        let mut failed = None;
        for accelerator in candidates {
            let mut vm = Self::start(kernel, initramfs, machine, accelerator)?;
            match vm.wait_for_start() {
                Ok(()) => {
                    let _ = WORKS.set(accelerator);
                    return Ok(vm);
                }
                Err(error) => failed = Some(error),
            }
        }
        Err(failed.unwrap_or(LabError::NoQemu))
    }

    fn start(
        kernel: &Path,
        initramfs: &[&Path],
        machine: &Machine,
        accelerator: Accelerator,
    ) -> Result<Self, LabError> {
        let directory = tempfile::Builder::new().prefix("memtide-lab-").tempdir()?;
        let initrd = directory.path().join("initrd");
        // The kernel unpacks archives that follow each other.
        let mut all = File::create(&initrd)?;
        for part in initramfs {
            std::io::copy(&mut File::open(part)?, &mut all)?;
        }
        let mut command = Command::new(QEMU);
        command
            .args(arguments(kernel, machine, accelerator, directory.path())?)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(directory.path().join("qemu"))?);
        // SAFETY: the closure runs in the child between fork and exec and makes one system call, which is
        // async-signal-safe: it allocates nothing and takes no lock.
        #[allow(unsafe_code)]
        unsafe {
            command.pre_exec(|| {
                set_parent_process_death_signal(Some(Signal::KILL))?;
                Ok(())
            });
        }
        let qemu = command.spawn().map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => LabError::NoQemu,
            _ => LabError::Io(error),
        })?;
        Ok(Self {
            qemu,
            directory,
            accelerator,
            read_to: 0,
        })
    }

    fn wait_for_start(&mut self) -> Result<(), LabError> {
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
            if has_ended || begun.elapsed() > limit {
                return Err(LabError::Boot {
                    accelerator: self.accelerator.name(),
                    after: begun.elapsed(),
                    last_words: self.last_words(),
                });
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Messages that arrived since this was last asked.
    ///
    /// # Errors
    /// The operating system's.
    pub(crate) fn messages(&mut self) -> Result<Vec<GuestMessage>, LabError> {
        let mut file = File::open(self.messages_path())?;
        file.seek(SeekFrom::Start(self.read_to))?;
        let mut new = Vec::new();
        file.take(MESSAGES_BYTES_MAX).read_to_end(&mut new)?;
        // A line that is still being written is read with the next.
        let whole = new
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |at| at + 1);
        self.read_to += whole as u64;
        let lines = new
            .get(..whole)
            .unwrap_or_default()
            .split(|byte| *byte == b'\n');
        Ok(lines
            .filter_map(|line| serde_json::from_slice(line).ok())
            .collect())
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

    /// Where the guest's console is written.
    pub(crate) fn console_path(&self) -> PathBuf {
        self.directory.path().join(CONSOLE)
    }

    /// How the guest's instructions run.
    pub(crate) fn accelerator(&self) -> Accelerator {
        self.accelerator
    }

    /// The end of what QEMU and the guest's console printed: why it did not start.
    pub(crate) fn last_words(&self) -> String {
        ["qemu", CONSOLE]
            .iter()
            .filter_map(|name| std::fs::read(self.directory.path().join(name)).ok())
            .flat_map(|text| {
                let text = String::from_utf8_lossy(&text).into_owned();
                let lines: Vec<String> = text.lines().rev().take(12).map(str::to_owned).collect();
                lines.into_iter().rev()
            })
            .collect::<Vec<_>>()
            .join("\n")
    }
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
    let done = Command::new(program)
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
        .output()?;
    if done.status.success() {
        Ok(())
    } else {
        let why = String::from_utf8_lossy(&done.stderr).trim().to_owned();
        Err(LabError::Io(std::io::Error::other(format!(
            "{MKE2FS}: {why}"
        ))))
    }
}

/// The arguments of QEMU; disks are made on the way.
fn arguments(
    kernel: &Path,
    machine: &Machine,
    accelerator: Accelerator,
    directory: &Path,
) -> Result<Vec<String>, LabError> {
    let at = |name: &str| directory.join(name).display().to_string();
    let ram = machine.ram.get() >> 20;
    let mut all: Vec<String> = Vec::new();
    let mut add = |words: &[&str]| all.extend(words.iter().map(|word| (*word).to_owned()));
    add(&[
        "-nodefaults",
        "-no-user-config",
        "-display",
        "none",
        "-no-reboot",
        "-nic",
        "none",
    ]);
    match accelerator {
        Accelerator::Kvm => add(&["-accel", "kvm", "-cpu", "host"]),
        Accelerator::Tcg => add(&["-accel", "tcg,thread=multi", "-cpu", "max"]),
    }
    add(&["-m", &ram.to_string(), "-smp", &machine.cpus.to_string()]);
    add(&[
        "-kernel",
        &kernel.display().to_string(),
        "-initrd",
        &at("initrd"),
    ]);
    // The 8254 timer is not found on a loaded host; a panic ends the machine at once.
    add(&[
        "-append",
        "console=ttyS0 quiet psi=1 panic=-1 no_timer_check rdinit=/init",
    ]);
    add(&["-serial", &format!("file:{}", at(CONSOLE))]);
    add(&["-device", "virtio-serial-pci"]);
    for (number, name) in [(1, CAPTURE), (2, MESSAGES)] {
        add(&["-chardev", &format!("file,id=c{number},path={}", at(name))]);
        add(&[
            "-device",
            &format!("virtserialport,chardev=c{number},nr={number}"),
        ]);
    }
    for (number, disk) in machine.disks.iter().enumerate() {
        let name = format!("disk{number}");
        File::create(directory.join(&name))?.set_len(disk.size.get())?;
        if disk.is_formatted {
            format(&directory.join(&name))?;
        }
        let speed = disk.speed.map_or_else(String::new, |speed| {
            let speed = speed.get();
            format!(",throttling.bps-read={speed},throttling.bps-write={speed}")
        });
        let path = at(&name);
        add(&[
            "-drive",
            &format!("file={path},format=raw,if=none,id=d{number},cache=unsafe{speed}"),
        ]);
        add(&["-device", &format!("virtio-blk-pci,drive=d{number}")]);
    }
    if machine.nodes > 1 {
        let size = ram / u64::from(machine.nodes);
        for node in 0..machine.nodes {
            add(&[
                "-object",
                &format!("memory-backend-ram,id=m{node},size={size}M"),
            ]);
            add(&[
                "-numa",
                &format!("node,nodeid={node},cpus={node},memdev=m{node}"),
            ]);
        }
        add(&["-numa", "dist,src=0,dst=1,val=21"]);
    }
    Ok(all)
}
