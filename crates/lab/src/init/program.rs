//! A program of the host in the machine: its settings, the host's files, and what it prints.

use std::fs::File;
use std::process::{Child, Command, Stdio};

use rustix::mount::{MountFlags, mount, mount_move};
use rustix::process::{Pid, WaitOptions, WaitStatus, wait};

use super::setup;
use crate::host::share::SHARE_TAG;
use crate::machine_settings::{MachineSettings, MachineSwap};
use crate::message::{GuestMessage, ProgramJob, uptime_s};
use crate::mounts::{mount_at, mount_disk, swap_on, swap_on_zram};

/// Where the host's files are, seen through what the machine wrote.
const FILES: &str = "/root";
/// A file in the machine's own memory.
const INPUT: &str = "/input";

/// Runs a program to its end.
pub(super) fn run(job: &ProgramJob, mut messages: File) -> Result<(), String> {
    let output = setup::open_port(1)?;
    GuestMessage::Ready { boot_s: uptime_s() }.send(&mut messages);
    let done = match apply(&job.settings) {
        Ok(()) => match run_with(job, output) {
            Ok(()) => GuestMessage::Done,
            Err(why) => GuestMessage::Failed { why },
        },
        Err(why) => GuestMessage::NotSet { why },
    };
    done.send(&mut messages);
    Ok(())
}

fn run_with(job: &ProgramJob, output: File) -> Result<(), String> {
    let fails = |error: std::io::Error| format!("its program cannot be started: {error}");
    std::fs::write(INPUT, &job.input).map_err(fails)?;
    let input = File::open(INPUT).map_err(fails)?;
    let console = File::options().write(true).open("/dev/console").map_err(fails)?;
    crate::sys::loopback_up().map_err(|error| format!("it has no loopback device: {error}"))?;
    enter_files()?;
    let mut program = Command::new("/proc/self/exe");
    program
        .args(&job.arguments)
        .env_clear()
        .envs(job.environment.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::from(input))
        .stdout(Stdio::from(output))
        .stderr(Stdio::from(console));
    let status = end_of(&program.spawn().map_err(fails)?)?;
    match (status.exit_status(), status.terminating_signal()) {
        (Some(0), _) => Ok(()),
        (Some(code), _) => Err(format!("its program exited with code {code}")),
        (_, signal) => Err(format!("signal {} ended its program", signal.unwrap_or_default())),
    }
}

/// Waits for the end of a child, and as the first process of the machine for all that have lost their parent.
fn end_of(child: &Child) -> Result<WaitStatus, String> {
    let own = Pid::from_child(child);
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == own => return Ok(status),
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(format!("its program is lost: {error}")),
        }
    }
}

fn apply(settings: &MachineSettings) -> Result<(), String> {
    let write = |path: &str, value: &str| {
        std::fs::write(path, value)
            .map_err(|error| format!("{path} does not take {value}: {error}"))
    };
    match settings.swap {
        Some(MachineSwap::Disk(_)) => swap_on("/dev/vdb")?,
        Some(MachineSwap::Zram(size)) => swap_on_zram(size)?,
        None => {}
    }
    if let Some(mode) = &settings.thp {
        write("/sys/kernel/mm/transparent_hugepage/enabled", mode)?;
    }
    for (name, value) in &settings.vm {
        write(&format!("/proc/sys/vm/{name}"), value)?;
    }
    Ok(())
}

/// Makes the host's files the root: they are only read; what is written lies on the machine's first disk.
fn enter_files() -> Result<(), String> {
    let fails = |what: &str, error: &dyn std::fmt::Display| format!("{what}: {error}");
    std::fs::create_dir_all("/host").map_err(|error| fails("/host", &error))?;
    mount(SHARE_TAG, "/host", "virtiofs", MountFlags::RDONLY, None)
        .map_err(|error| fails("the host's files cannot be mounted", &error))?;
    mount_disk("/dev/vda", "/disk")?;
    for place in ["/disk/upper", "/disk/work"] {
        std::fs::create_dir_all(place).map_err(|error| fails(place, &error))?;
    }
    mount_at("overlay", FILES, Some("lowerdir=/host,upperdir=/disk/upper,workdir=/disk/work"))?;
    // What the kernel shows is this machine's.
    for place in ["/proc", "/sys", "/dev"] {
        mount_move(place, format!("{FILES}{place}")).map_err(|error| fails(place, &error))?;
    }
    rustix::process::chroot(FILES).map_err(|error| fails(FILES, &error))?;
    rustix::process::chdir("/").map_err(|error| fails("/", &error))?;
    mount_at("tmpfs", "/dev/shm", None)
}
