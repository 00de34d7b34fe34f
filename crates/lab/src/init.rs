//! This program as the first process of the machine: it mounts, loads modules, and plays the scenario of its job.

mod program;
mod setup;
mod vitals;

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::system::{RebootCommand, reboot};

use crate::guest::{Guest, GuestContainer};
use crate::message::{GuestMessage, JOB, Job, uptime_s};
use crate::scenarios;

/// Whether this process is the init of a lab. The first process of a container in its machine is not.
pub fn is_here() -> bool {
    std::process::id() == 1 && Path::new(JOB).exists() && !GuestContainer::is_around()
}

/// Whether this process runs in a lab's machine.
pub fn is_inside() -> bool {
    Path::new(JOB).exists()
}

/// Plays the job of this machine and ends the machine.
pub fn main() -> ! {
    if let Err(error) = play() {
        // The console is all that is left.
        write_to_console(&error);
    }
    // Disks are thrown away: what is not written yet need not be.
    let _ = reboot(RebootCommand::Restart);
    std::process::exit(1)
}

fn write_to_console(text: &str) {
    if let Ok(mut console) = File::options().write(true).open("/dev/console") {
        let _ = writeln!(console, "memtide lab: {text}");
    }
}

fn play() -> Result<(), String> {
    setup::mount_file_systems()?;
    let job = std::fs::read(JOB).map_err(|error| error.to_string())?;
    let job: Job = serde_json::from_slice(&job).map_err(|error| error.to_string())?;
    setup::mount_cgroups(job.is_cgroup_v1)?;
    setup::load_modules(&job.modules)?;
    let messages = setup::open_port(2)?;
    let Some(scenario) = &job.scenario else {
        return match &job.program {
            Some(program) => program::run(program, messages),
            None => setup::shell(messages),
        };
    };
    let scenario = scenarios::by_name(scenario).ok_or_else(|| format!("no scenario {scenario}"))?;
    let capture = setup::open_port(1)?;
    let port = messages.try_clone().map_err(|error| error.to_string())?;
    let mglru = job.mglru;
    let mut guest = Guest::new(job, messages, capture);
    guest.send(&GuestMessage::Ready { boot_s: uptime_s() });
    if let Some(is_on) = mglru {
        // A kernel without it has nothing to switch off.
        let written = guest.write("/sys/kernel/mm/lru_gen/enabled", if is_on { "y" } else { "n" });
        if is_on {
            written?;
        }
    }
    let _ = rustix::mm::mlockall(rustix::mm::MlockAllFlags::CURRENT);
    let has_ended = Arc::new(AtomicBool::new(false));
    let vitals = vitals::report(port, &has_ended);
    let played = (scenario.play)(&mut guest);
    has_ended.store(true, Ordering::Relaxed);
    let _ = vitals.join();
    let played = played.and(guest.finish());
    guest.send(&match played {
        Ok(()) => GuestMessage::Done,
        Err(why) => GuestMessage::Failed { why },
    });
    Ok(())
}
