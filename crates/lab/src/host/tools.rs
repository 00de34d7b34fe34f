//! The host's own tools, for commands that run inside a machine.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::LabError;
use crate::error::AtPath as _;
use crate::host::initramfs::Archive;
use crate::host::kernel::ModuleNeed;

/// Programs that are taken along where the host has them.
const TOOLS: &[&str] = &[
    "sh",
    "awk",
    "cat",
    "chmod",
    "cp",
    "date",
    "dd",
    "df",
    "dmesg",
    "du",
    "echo",
    "env",
    "fallocate",
    "false",
    "find",
    "free",
    "grep",
    "head",
    "id",
    "kill",
    "less",
    "ln",
    "ls",
    "mkdir",
    "mke2fs",
    "mkswap",
    "mount",
    "mv",
    "nice",
    "nproc",
    "ps",
    "rm",
    "rmdir",
    "sed",
    "seq",
    "sleep",
    "sort",
    "stat",
    "stty",
    "swapoff",
    "swapon",
    "sync",
    "sysctl",
    "tail",
    "tee",
    "timeout",
    "top",
    "touch",
    "tr",
    "true",
    "umount",
    "uname",
    "uptime",
    "vmstat",
    "wc",
    "xargs",
    "zramctl",
];

/// Before 6.12 zram finds its compressor by name; without a module loader nobody else loads it.
pub(crate) const ZRAM_IF_ANY: &[ModuleNeed] = &[
    ModuleNeed::if_any("lzo"),
    ModuleNeed::if_any("lzo_rle"),
    ModuleNeed::if_any("zstd"),
    ModuleNeed::if_any("zram"),
];

/// Adds the host's tools and the libraries that they need.
pub(crate) fn add_tools(archive: &mut Archive) -> Result<(), LabError> {
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
