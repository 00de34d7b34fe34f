//! The host's files in a machine: virtiofsd serves them, the guest's kernel mounts them.
//!
//! They are only read: the guest mounts them so, below an overlay with the upper directory on a disk of its own. Where memtide is
//! root, virtiofsd sees all file systems read-only itself; elsewhere it has the rights of the user.

use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::Signal;

use crate::LabError;
use crate::error::AtPath as _;
use crate::sys::{die_with_parent, keep_open, read_only_files};

/// The name by which a guest mounts it.
pub(crate) const SHARE_TAG: &str = "host";
const DAEMON: &str = "virtiofsd";
/// Where distributions have it: it is no command for users.
const PLACES: &[&str] = &["/usr/libexec", "/usr/lib/qemu", "/usr/lib"];

/// A running virtiofsd, which ends with the machine that it serves, or with this value.
#[derive(Debug)]
pub(crate) struct HostShare {
    daemon: Child,
    socket: PathBuf,
}

impl HostShare {
    /// Serves the host's files at a socket in the directory of a machine.
    ///
    /// # Errors
    /// [`LabError::NoShare`] where virtiofsd is not installed.
    pub(crate) fn start(directory: &Path) -> Result<Self, LabError> {
        let program = daemon().ok_or(LabError::NoShare)?;
        let socket = directory.join("files");
        // It is given the socket: by itself it would leave a lock file for each in /run.
        let listener = UnixListener::bind(&socket).at(&socket)?;
        let log = directory.join(Self::LOG);
        let is_root = rustix::process::geteuid().is_root();
        let mut command = Command::new(&program);
        command
            .arg(format!("--fd={}", listener.as_raw_fd()))
            // Words that its versions in C and in Rust both take.
            .args(["-o", "source=/", "-o", "cache=always"])
            // Neither can make the root that all others see a root of its own.
            .args(if is_root { ["-o", "sandbox=chroot"] } else { ["--sandbox", "none"] })
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(&log).at(&log)?)
            // A group of its own: Ctrl-C ends it by way of this process.
            .process_group(0);
        keep_open(&mut command, &listener);
        if is_root {
            read_only_files(&mut command);
        }
        die_with_parent(&mut command, Signal::KILL);
        Ok(Self { daemon: command.spawn().at(&program)?, socket })
    }

    /// What it prints, in the directory of the machine.
    pub(crate) const LOG: &str = "files.log";

    /// Where QEMU finds it.
    pub(crate) fn socket(&self) -> &Path {
        &self.socket
    }

    /// Whether it serves no more, in which case a guest waits for ever.
    pub(crate) fn has_ended(&mut self) -> bool {
        !matches!(self.daemon.try_wait(), Ok(None))
    }
}

fn daemon() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places = std::env::split_paths(&path).chain(PLACES.iter().map(PathBuf::from));
    places.find_map(|place| Some(place.join(DAEMON)).filter(|program| program.is_file()))
}

impl Drop for HostShare {
    fn drop(&mut self) {
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
    }
}
