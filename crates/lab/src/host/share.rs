//! The host's files in a machine: virtiofsd serves them, the guest's kernel mounts them.
//!
//! They are read-only there: the guest mounts them so, below an overlay with the upper directory on a disk of its own.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::LabError;
use crate::error::AtPath as _;
use crate::sys::die_with_parent;

/// The name by which a guest mounts it.
pub(crate) const SHARE_TAG: &str = "host";
const DAEMON: &str = "virtiofsd";
/// Where distributions have it: it is no command for users.
const PLACES: &[&str] = &["/usr/libexec", "/usr/lib/qemu", "/usr/lib", "/usr/bin"];
/// It makes its socket at once.
const SOCKET_MAX: Duration = Duration::from_secs(5);

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
    /// [`LabError::NoShare`] where virtiofsd is not installed, or does not start.
    pub(crate) fn start(directory: &Path) -> Result<Self, LabError> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let mut places = std::env::split_paths(&path).chain(PLACES.iter().map(PathBuf::from));
        let program = places
            .find_map(|place| Some(place.join(DAEMON)).filter(|program| program.is_file()))
            .ok_or_else(|| LabError::NoShare { why: "it is not installed".to_owned() })?;
        let socket = directory.join("files");
        let log = directory.join("files.log");
        let mut command = Command::new(&program);
        command
            .arg(format!("--socket-path={}", socket.display()))
            // Words that its versions in C and in Rust both take.
            .args(["-o", "source=/", "-o", "cache=always"])
            // Neither can make the root that all others see a root of its own.
            .args(if rustix::process::geteuid().is_root() {
                ["-o", "sandbox=chroot"]
            } else {
                ["--sandbox", "none"]
            })
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(&log).at(&log)?);
        die_with_parent(&mut command, Signal::KILL);
        let mut share = Self { daemon: command.spawn().at(&program)?, socket };
        let begun = Instant::now();
        while !share.socket.exists() {
            let has_ended = !matches!(share.daemon.try_wait(), Ok(None));
            if has_ended || begun.elapsed() > SOCKET_MAX {
                let words = std::fs::read_to_string(&log).unwrap_or_default();
                let last = words.lines().last().unwrap_or("it made no socket");
                return Err(LabError::NoShare { why: last.to_owned() });
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(share)
    }

    /// Where QEMU finds it.
    pub(crate) fn socket(&self) -> &Path {
        &self.socket
    }
}

impl Drop for HostShare {
    fn drop(&mut self) {
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
    }
}
