//! What an init must do before anything else can run.

use std::ffi::CString;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::mount::{MountFlags, mount};
use units::Bytes;

/// The kernel may answer ENXIO for a port that its driver just made.
const PORT_LIMIT: Duration = Duration::from_secs(5);

pub(super) fn mount_file_systems() -> Result<(), String> {
    for (kind, place) in
        [("proc", "/proc"), ("sysfs", "/sys"), ("devtmpfs", "/dev"), ("tmpfs", "/tmp")]
    {
        mount_at(kind, place, None)?;
    }
    Ok(())
}

fn mount_at(kind: &str, place: &str, options: Option<&str>) -> Result<(), String> {
    let fails = |error: &dyn std::fmt::Display| format!("cannot mount {kind} at {place}: {error}");
    std::fs::create_dir_all(place).map_err(|error| fails(&error))?;
    let options = match options {
        Some(options) => Some(CString::new(options).map_err(|error| fails(&error))?),
        None => None,
    };
    mount(kind, place, kind, MountFlags::empty(), options.as_deref()).map_err(|error| fails(&error))
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

pub(super) fn mount_tmpfs(place: &str, size: Bytes) -> Result<(), String> {
    mount_at("tmpfs", place, Some(&format!("size={}", size.get())))
}

pub(super) fn mount_disk(disk: &str, place: &str) -> Result<(), String> {
    let fails = |error: &dyn std::fmt::Display| format!("cannot mount {disk} at {place}: {error}");
    std::fs::create_dir_all(place).map_err(|error| fails(&error))?;
    mount(disk, place, "ext4", MountFlags::NOATIME, None).map_err(|error| fails(&error))
}

pub(super) fn unmount(place: &str) -> Result<(), String> {
    rustix::mount::unmount(place, rustix::mount::UnmountFlags::empty())
        .map_err(|error| format!("cannot unmount {place}: {error}"))
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

/// Makes a disk a swap area, as mkswap does (include/linux/swap.h, `union swap_header`), and uses it.
pub(super) fn swap_on(disk: &str) -> Result<(), String> {
    let fails = |error: &dyn std::fmt::Display| format!("cannot swap to {disk}: {error}");
    let file = File::options().read(true).write(true).open(disk).map_err(|error| fails(&error))?;
    let page = rustix::param::page_size();
    let size = size_of_disk(disk).map_err(|error| fails(&error))?;
    let mut header = vec![0_u8; page];
    let last_page = u32::try_from(size / page as u64 - 1).unwrap_or(u32::MAX);
    for (at, value) in [(1024, 1), (1028, last_page)] {
        header[at..at + 4].copy_from_slice(&value.to_ne_bytes());
    }
    header[page - 10..].copy_from_slice(b"SWAPSPACE2");
    file.write_all_at(&header, 0).map_err(|error| fails(&error))?;
    file.sync_all().map_err(|error| fails(&error))?;
    crate::sys::swap_on(disk).map_err(|error| fails(&error))
}

/// The size of a block device in bytes.
pub(super) fn size_of_disk(disk: &str) -> std::io::Result<u64> {
    let name = disk.trim_start_matches("/dev/");
    let sectors = std::fs::read_to_string(format!("/sys/class/block/{name}/size"))?;
    let sectors: u64 = sectors.trim().parse().map_err(std::io::Error::other)?;
    Ok(sectors * 512)
}

/// Seconds since the kernel's start.
pub(super) fn uptime_s() -> f64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    Duration::try_from(now).unwrap_or_default().as_secs_f64()
}

/// Runs a shell on the console until it ends.
pub(super) fn shell(mut messages: File) -> Result<(), String> {
    super::send(&mut messages, &crate::message::GuestMessage::Ready { boot_s: uptime_s() });
    let fails = |error: std::io::Error| format!("cannot use the console: {error}");
    std::os::unix::fs::symlink("/init", "/bin/memtide").map_err(fails)?;
    let terminal = File::options().read(true).write(true).open("/dev/ttyS0");
    let terminal = terminal.map_err(fails)?;
    let mut shell = Command::new("/bin/sh");
    shell
        .arg("-i")
        .env("PATH", "/bin:/usr/bin:/sbin:/usr/sbin")
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
