//! What an init must do before anything else can run.

use std::fs::File;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::mount::MountFlags;

use crate::guest::TOOL_PLACES;
use crate::message::{GuestMessage, uptime_s};
use crate::mounts::mount_at;

/// The kernel may answer ENXIO for a port that its driver just made.
const PORT_LIMIT: Duration = Duration::from_secs(5);

pub(super) fn mount_file_systems() -> Result<(), String> {
    for (kind, place) in
        [("proc", "/proc"), ("sysfs", "/sys"), ("devtmpfs", "/dev"), ("tmpfs", "/tmp")]
    {
        mount_at(kind, place, None)?;
    }
    // A kernel may have been built without it.
    let _ = rustix::mount::mount(
        "tracefs",
        "/sys/kernel/tracing",
        "tracefs",
        MountFlags::empty(),
        None,
    );
    Ok(())
}

/// Mounts the memory controller, of v2 or of v1.
pub(super) fn mount_cgroups(is_v1: bool) -> Result<(), String> {
    const PLACE: &str = "/sys/fs/cgroup";
    if is_v1 {
        mount_at("cgroup", PLACE, Some("memory")).map_err(|error| {
            format!(
                "{error}: this kernel may have no memory controller of cgroup v1, as newer ones \
                 have not (CONFIG_MEMCG_V1)"
            )
        })?;
        // As systemd does: before 5.11 what is below a cgroup does not count towards its limit by itself. Newer kernels have
        // no other way, and may have no such file.
        let _ = std::fs::write(format!("{PLACE}/memory.use_hierarchy"), "1");
        return Ok(());
    }
    mount_at("cgroup2", PLACE, None)?;
    // Controllers of version 2 are enabled for children.
    std::fs::write(format!("{PLACE}/cgroup.subtree_control"), "+memory +io")
        .map_err(|error| format!("cannot enable the memory controller: {error}"))
}

pub(super) fn load_modules(files: &[String]) -> Result<(), String> {
    for file in files {
        let fails = |error: &dyn std::fmt::Display| format!("cannot load {file}: {error}");
        let module = File::open(file).map_err(|error| fails(&error))?;
        match rustix::system::finit_module(module, c"", 0) {
            Ok(()) | Err(rustix::io::Errno::EXIST) => {}
            Err(error) => return Err(fails(&error)),
        }
    }
    Ok(())
}

/// Opens a port to the host for writing.
pub(super) fn open_port(number: u32) -> Result<File, String> {
    let path = format!("/dev/vport0p{number}");
    let begun = Instant::now();
    loop {
        match File::options().write(true).open(&path) {
            Ok(port) => return Ok(port),
            Err(error) if begun.elapsed() > PORT_LIMIT => {
                return Err(format!("cannot open {path}: {error}"));
            }
            Err(_) => std::thread::sleep(Duration::from_millis(10)),
        }
    }
}

/// Runs a shell on the console until it ends.
pub(super) fn shell(mut messages: File) -> Result<(), String> {
    GuestMessage::Ready { boot_s: uptime_s() }.send(&mut messages);
    let fails = |error: std::io::Error| format!("cannot use the console: {error}");
    std::os::unix::fs::symlink("/init", "/bin/memtide").map_err(fails)?;
    let terminal = File::options().read(true).write(true).open("/dev/ttyS0");
    let terminal = terminal.map_err(fails)?;
    let mut shell = Command::new("/bin/sh");
    shell
        .arg("-i")
        .env("PATH", TOOL_PLACES)
        .env("PS1", "lab# ")
        .env("HOME", "/")
        .env("TERM", "dumb")
        .stdin(terminal.try_clone().map_err(fails)?)
        .stdout(terminal.try_clone().map_err(fails)?)
        .stderr(terminal.try_clone().map_err(fails)?);
    crate::sys::with_terminal(&mut shell, &terminal).map_err(fails)?;
    let status = shell.status();
    status.map_err(|error| format!("cannot start /bin/sh: {error}"))?;
    Ok(())
}
