//! A virtual machine with a prompt: this program, and the host's own tools.

use std::collections::BTreeSet;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::LabError;
use crate::error::AtPath as _;
use crate::host::accelerator::Accelerator;
use crate::host::image::GuestImage;
use crate::host::initramfs::Archive;
use crate::host::kernel::ModuleNeed;
use crate::host::machine::{Machine, has_memory_for};
use crate::host::vm::Vm;
use crate::message::Job;

/// Programs that are taken along where the host has them.
const TOOLS: &[&str] = &[
    "sh", "awk", "cat", "chmod", "cp", "date", "dd", "df", "dmesg", "du", "echo", "env", "false",
    "find", "free", "grep", "head", "id", "kill", "less", "ln", "ls", "mkdir", "mke2fs", "mkswap",
    "mount", "mv", "nice", "nproc", "ps", "rm", "rmdir", "sed", "seq", "sleep", "sort", "stat",
    "stty", "swapoff", "swapon", "sync", "sysctl", "tail", "tee", "timeout", "top", "touch", "tr",
    "true", "umount", "uname", "uptime", "vmstat", "wc", "xargs",
];

/// Before 6.12 zram finds its compressor by name; without a module loader nobody else loads it.
const ZRAM_IF_ANY: &[ModuleNeed] =
    &[ModuleNeed::if_any("lzo"), ModuleNeed::if_any("lzo_rle"), ModuleNeed::if_any("zram")];

/// Runs a machine with a shell on this terminal, until the shell ends. Afterwards the terminal is as it was.
///
/// # Errors
/// [`LabError::NoTerminal`] where standard input is not a terminal, [`LabError::Interrupted`] where the user ended it, others
/// where the machine cannot be started.
pub fn shell(
    kernel: Option<&Path>,
    machine: &Machine,
    accelerator: Option<Accelerator>,
    is_interrupted: &dyn Fn() -> bool,
) -> Result<(), LabError> {
    // What comes from a pipe is lost until the guest listens.
    if !std::io::stdin().is_terminal() {
        return Err(LabError::NoTerminal);
    }
    machine.check()?;
    has_memory_for(machine.ram, 1)?;
    let image = GuestImage::build(kernel, ZRAM_IF_ANY, add_tools)?;
    let initramfs = image.with_job(Job::default())?;
    Vm::run_on_terminal(&image, &initramfs, machine, accelerator, &mut |_| {
        if is_interrupted() { Err(LabError::Interrupted) } else { Ok(()) }
    })
}

/// Adds the host's tools and the libraries that they need.
fn add_tools(archive: &mut Archive) -> Result<(), LabError> {
    let mut libraries = BTreeSet::new();
    for name in TOOLS {
        let Some(path) = find(name) else {
            continue;
        };
        archive.file(&Path::new("/bin").join(name), &std::fs::read(&path).at(&path)?);
        libraries.extend(libraries_of(&path)?);
    }
    for library in libraries {
        archive.copy(&library)?;
    }
    Ok(())
}

fn find(name: &str) -> Option<PathBuf> {
    ["/bin", "/usr/bin", "/sbin", "/usr/sbin"]
        .map(|place| Path::new(place).join(name))
        .into_iter()
        .find(|path| path.is_file())
}

/// The libraries that a program maps, as its dynamic linker finds them; none for a script or a static program.
fn libraries_of(program: &Path) -> Result<Vec<PathBuf>, LabError> {
    let Some(linker) = crate::host::initramfs::interpreter(&std::fs::read(program).at(program)?)
    else {
        return Ok(Vec::new());
    };
    let listed = Command::new(&linker).arg("--list").arg(program).output().at(&linker)?;
    let text = String::from_utf8_lossy(&listed.stdout).into_owned();
    // `libc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f…)`
    let found = text.lines().filter_map(|line| {
        let path = line.split_once("=> ")?.1.split(" (").next()?;
        path.starts_with('/').then(|| PathBuf::from(path))
    });
    Ok(found.chain([linker]).collect())
}
