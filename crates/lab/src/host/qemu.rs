//! How QEMU is called for a machine, and the files that it needs.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::Signal;

use crate::LabError;
use crate::error::AtPath as _;
use crate::host::accelerator::Accelerator;
use crate::host::machine::{Machine, VirtualDisk};
use crate::host::share::SHARE_TAG;

pub(crate) const QEMU: &str = "qemu-system-x86_64";
const MKE2FS: &str = "mke2fs";
/// Where the guest's samples arrive.
pub(crate) const CAPTURE: &str = "capture.jsonl";
pub(crate) const MESSAGES: &str = "messages.jsonl";
pub(crate) const CONSOLE: &str = "console";
/// The archives that the kernel unpacks.
pub(crate) const INITRD: &str = "initrd";

/// Where the guest's console goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConsoleKind {
    /// To a file: what a guest that dies leaves.
    File,
    /// To this terminal.
    Terminal,
}

impl ConsoleKind {
    /// What ends QEMU when memtide is killed: on a terminal one that it can handle, as only QEMU is left to set that back.
    pub(crate) fn end_signal(self) -> Signal {
        match self {
            Self::File => Signal::KILL,
            Self::Terminal => Signal::TERM,
        }
    }
}

/// The arguments of QEMU; disks are made on the way. `files` is the socket of virtiofsd.
pub(crate) fn arguments(
    kernel: &Path,
    machine: &Machine,
    accelerator: Accelerator,
    console: ConsoleKind,
    directory: &Path,
    files: Option<&Path>,
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
        .option("-initrd", directory.join(INITRD).display());
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
    if let Some(socket) = files {
        all.host_files(socket, ram);
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
                .option("-device", format!("virtserialport,chardev=c{number},nr={number}"));
        }
    }

    /// Adds a disk, and makes its file.
    fn disk(&mut self, number: usize, disk: &VirtualDisk, place: &Path) -> Result<(), LabError> {
        let path = place.join(format!("disk{number}"));
        let size = disk.size.get();
        File::create(&path).and_then(|file| file.set_len(size)).at(&path)?;
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

    /// Adds the host's files. Their server has the guest's memory, too: so that is shared.
    fn host_files(&mut self, socket: &Path, ram_mib: u64) {
        let socket = comma_escaped(socket);
        self.option("-object", format!("memory-backend-memfd,id=ram,size={ram_mib}M,share=on"))
            .option("-machine", "memory-backend=ram")
            .option("-chardev", format!("socket,id=files,path={socket}"))
            .option("-device", format!("vhost-user-fs-pci,chardev=files,tag={SHARE_TAG}"));
    }

    /// Adds NUMA nodes of equal size with a CPU each, 21 apart.
    fn nodes(&mut self, nodes: u32, ram_mib: u64) {
        let size = ram_mib / u64::from(nodes);
        for node in 0..nodes {
            self.option("-object", format!("memory-backend-ram,id=m{node},size={size}M"))
                .option("-numa", format!("node,nodeid={node},cpus={node},memdev=m{node}"));
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
        .args(["-q", "-F", "-t", "ext4", "-m", "0", "-E", "lazy_itable_init=0,lazy_journal_init=0"])
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comma_in_a_path_does_not_end_an_option() {
        assert_eq!(comma_escaped(Path::new("/a,b")), "/a,,b");
    }
}
