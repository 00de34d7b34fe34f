//! A command of this program in a virtual machine that has this host's files: what it changes there ends with the machine.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::time::{Duration, Instant};

use units::{Bytes, Span};

use crate::LabError;
use crate::error::AtPath as _;
use crate::host::accelerator::Accelerator;
use crate::host::image::GuestImage;
use crate::host::kernel::{Kernel, ModuleNeed};
use crate::host::machine::{Machine, VirtualDisk, has_memory_for};
use crate::host::tools::ZRAM_IF_ANY;
use crate::host::vm::Vm;
use crate::machine_settings::{MachineSettings, MachineSwap};
use crate::message::{GuestMessage, Job, ProgramJob};

/// Modules by which a guest mounts the host's files below what it writes itself.
const FILES: &[ModuleNeed] = &[ModuleNeed::always("virtiofs"), ModuleNeed::always("overlay")];
/// The disk for what a guest writes, a sparse file on the host.
const DISK_MIB: u64 = 4096;

/// A command of this program, as a machine runs it.
#[derive(Debug, Clone, Copy)]
pub struct MachineProgram<'a> {
    /// Its arguments, without the program.
    pub arguments: &'a [&'a str],
    /// All of its standard input.
    pub input: &'a str,
    /// What is set before it starts.
    pub settings: &'a MachineSettings,
    /// How long it may take from the start of the machine.
    pub timeout: Span,
}

/// How a machine ended.
#[derive(Debug, Clone)]
pub enum MachineEnd {
    /// The program is done.
    Done {
        /// What it wrote to standard output.
        output: Vec<u8>,
        /// How the machine's instructions ran.
        accelerator: Accelerator,
    },
    /// Its kernel did not take a setting.
    NotSet(String),
    /// The program failed: how it ended, and the last line of what it printed.
    Failed(String),
    /// It died, or did not end in time: its last words.
    Died(String),
}

/// Virtual machines with this host's files, all of one kernel and one size.
#[derive(Debug)]
pub struct HostMachine {
    image: GuestImage,
    ram: Bytes,
    cpus: u32,
    disk_speed: Option<Bytes>,
}

impl HostMachine {
    /// Prepares machines with this kernel, an image or a version. Their disks read and write `disk_speed` bytes a second.
    ///
    /// # Errors
    /// [`LabError`] where no kernel can be booted, or it lacks a module.
    pub fn prepare(
        kernel: &Path,
        ram: Bytes,
        cpus: u32,
        disk_speed: Option<Bytes>,
    ) -> Result<Self, LabError> {
        let image = GuestImage::build(Some(kernel), &[FILES, ZRAM_IF_ANY].concat(), |_| Ok(()))?;
        let machine = Self { image, ram, cpus, disk_speed };
        machine.machine(None).check()?;
        Ok(machine)
    }

    /// The kernel that they boot.
    pub fn kernel(&self) -> &Kernel {
        &self.image.kernel
    }

    fn machine(&self, swap: Option<MachineSwap>) -> Machine {
        let disk = |size, is_formatted| VirtualDisk { size, is_formatted, speed: self.disk_speed };
        let mut disks = vec![disk(Bytes::from_mib(DISK_MIB), true)];
        if let Some(MachineSwap::Disk(size)) = swap {
            disks.push(disk(size, false));
        }
        Machine { ram: self.ram, cpus: self.cpus, nodes: 1, disks, has_host_files: true }
    }

    /// Boots a machine, runs a program in it, and ends it.
    ///
    /// # Errors
    /// [`LabError`] where no machine can be started, or the user ended it.
    pub fn run(
        &self,
        program: &MachineProgram<'_>,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<MachineEnd, LabError> {
        has_memory_for(self.ram, 1)?;
        let job = Job {
            program: Some(ProgramJob {
                arguments: program.arguments.iter().map(|&word| word.to_owned()).collect(),
                environment: own_environment(),
                input: program.input.to_owned(),
                settings: program.settings.clone(),
            }),
            ..Job::default()
        };
        let initramfs = self.image.with_job(job)?;
        let machine = self.machine(program.settings.swap);
        let begun = Instant::now();
        let check = || if is_interrupted() { Err(LabError::Interrupted) } else { Ok(()) };
        let mut vm = Vm::boot(&self.image, &initramfs, &machine, None, &mut |_| check())?;
        loop {
            let has_ended = vm.has_ended();
            for message in vm.messages()? {
                match message {
                    GuestMessage::Done => {
                        vm.wait_for_end();
                        let output = output_of(&vm)?;
                        return Ok(MachineEnd::Done { output, accelerator: vm.accelerator() });
                    }
                    GuestMessage::NotSet { why } => return Ok(MachineEnd::NotSet(why)),
                    GuestMessage::Failed { why } => {
                        let words = vm.last_words();
                        let last = words.lines().last().unwrap_or_default();
                        return Ok(MachineEnd::Failed(format!("{why}: {last}")));
                    }
                    _ => {}
                }
            }
            if has_ended {
                return Ok(MachineEnd::Died(cause_of_death(&vm.last_words())));
            }
            if vm.has_lost_files() {
                // It ends with QEMU, too.
                vm.wait_for_end();
                let is_alone = !vm.has_ended();
                return Ok(MachineEnd::Died(if is_alone {
                    "virtiofsd ended, which had its files".to_owned()
                } else {
                    cause_of_death(&vm.last_words())
                }));
            }
            if begun.elapsed() > program.timeout.as_duration() {
                return Ok(MachineEnd::Died(format!("it did not end within {}", program.timeout)));
            }
            check()?;
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// What the program wrote.
fn output_of(vm: &Vm) -> Result<Vec<u8>, LabError> {
    /// A guest may write without limit.
    const BYTES_MAX: u64 = 64 << 20;
    let path = vm.capture_path();
    let mut output = Vec::new();
    let file = File::open(&path).at(&path)?;
    file.take(BYTES_MAX).read_to_end(&mut output).at(&path)?;
    Ok(output)
}

/// The line of a console that says why its kernel ended: behind it come registers and a trace.
fn cause_of_death(words: &str) -> String {
    let is_cause = |line: &&str| line.contains("Kernel panic") || line.contains("reboot: ");
    let cause = words.lines().find(is_cause);
    let cause = cause.or_else(|| words.lines().rfind(|line| !line.trim().is_empty()));
    cause.unwrap_or("it printed nothing").trim().to_owned()
}

/// The environment of this process, as far as it is text.
fn own_environment() -> Vec<(String, String)> {
    let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    std::env::vars_os().filter_map(text).collect()
}
