//! Inside the virtual machine: this program is init. It mounts, loads modules, records, and plays a scenario.

mod setup;

use std::fs::File;
use std::io::{BufRead as _, BufReader, BufWriter, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use probe::Root;
use rustix::system::{RebootCommand, reboot};
use sampler::{CaptureOptions, Secrets};
use units::Span;

use crate::message::{GuestMessage, JOB, Job};
use crate::scenarios;

/// Longer than any scenario.
const DURATION_MAX: Span = Span::from_hours(2);

/// Whether this process is the init of a lab.
pub fn is_here() -> bool {
    std::process::id() == 1 && Path::new(JOB).exists()
}

/// Plays the job of this machine and ends the machine.
pub fn main() -> ! {
    if let Err(error) = play() {
        // The console is all that is left.
        eprintln_console(&error);
    }
    rustix::fs::sync();
    let _ = reboot(RebootCommand::Restart);
    std::process::exit(1)
}

fn eprintln_console(text: &str) {
    if let Ok(mut console) = File::options().write(true).open("/dev/console") {
        let _ = writeln!(console, "memtide lab: {text}");
    }
}

fn play() -> Result<(), String> {
    setup::mount_file_systems()?;
    let job = std::fs::read(JOB).map_err(|error| error.to_string())?;
    let job: Job = serde_json::from_slice(&job).map_err(|error| error.to_string())?;
    setup::load_modules(&job.modules)?;
    let messages = setup::open_port(2)?;
    let capture = setup::open_port(1)?;
    let mut guest = Guest {
        job,
        messages,
        begun: Instant::now(),
    };
    guest.send(&GuestMessage::Ready {
        boot_s: setup::uptime_s(),
    });
    let _ = rustix::mm::mlockall(rustix::mm::MlockAllFlags::CURRENT);
    let has_ended = Arc::new(AtomicBool::new(false));
    let sampler = record(capture, guest.job.every_s, &has_ended);
    match guest.run() {
        Ok(()) => {}
        Err(why) => guest.send(&GuestMessage::Failed { why }),
    }
    has_ended.store(true, Ordering::Relaxed);
    let _ = sampler.join();
    guest.send(&GuestMessage::Done);
    Ok(())
}

/// Samples this machine into a port until it has ended.
fn record(port: File, every_s: f64, has_ended: &Arc<AtomicBool>) -> std::thread::JoinHandle<()> {
    let has_ended = Arc::clone(has_ended);
    let options = CaptureOptions {
        duration: DURATION_MAX,
        every: Span::from_secs_f64(every_s),
        secrets: Secrets::default(),
    };
    std::thread::spawn(move || {
        let _ = rustix::process::nice(-20);
        let _ = sampler::capture(
            &Root::default(),
            options,
            BufWriter::with_capacity(1 << 20, port),
            &mut |_| {
                if has_ended.load(Ordering::Relaxed) {
                    std::ops::ControlFlow::Break(())
                } else {
                    std::ops::ControlFlow::Continue(())
                }
            },
        );
    })
}

/// A scenario's hands inside the machine.
#[derive(Debug)]
pub struct Guest {
    job: Job,
    messages: File,
    begun: Instant,
}

impl Guest {
    fn run(&mut self) -> Result<(), String> {
        let scenario = scenarios::by_name(&self.job.scenario)
            .ok_or_else(|| format!("there is no scenario {}", self.job.scenario))?;
        (scenario.play)(self)
    }

    fn send(&mut self, message: &GuestMessage) {
        if let Ok(mut line) = serde_json::to_vec(message) {
            line.push(b'\n');
            let _ = self.messages.write_all(&line);
        }
    }

    /// Something new begins.
    pub fn phase(&mut self, text: impl Into<String>) {
        self.send(&GuestMessage::Phase {
            at_s: setup::uptime_s(),
            text: text.into(),
        });
    }

    /// Reports a number.
    pub fn measured(&mut self, name: impl Into<String>, value: f64) {
        self.send(&GuestMessage::Measured {
            name: name.into(),
            value,
        });
    }

    /// The arm's name.
    pub fn arm(&self) -> &str {
        &self.job.arm
    }

    /// A number of the arm or of the user.
    pub fn number(&self, name: &str) -> Option<f64> {
        self.job.settings.get(name)?.parse().ok()
    }

    /// Starts a part of a workload: `memtide lab PART …`.
    ///
    /// # Errors
    /// Where it cannot be started.
    pub fn start(&self, part: &[&str]) -> Result<Part, String> {
        let child = Command::new("/proc/self/exe")
            .arg("lab")
            .args(part)
            .arg("--numbers")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("cannot start {}: {error}", part.join(" ")))?;
        Ok(Part(child))
    }

    /// Mounts an ext4 disk.
    ///
    /// # Errors
    /// Where the kernel refuses it.
    pub fn mount(&self, disk: &str, place: &str) -> Result<(), String> {
        setup::mount_disk(disk, place)
    }

    /// Writes all dirty pages and drops the page cache.
    ///
    /// # Errors
    /// Where the kernel refuses it.
    pub fn drop_caches(&self) -> Result<(), String> {
        rustix::fs::sync();
        self.write("/proc/sys/vm/drop_caches", "3")
    }

    /// Makes a cgroup with these settings; gives its directory.
    ///
    /// # Errors
    /// Where the kernel refuses it.
    pub fn cgroup(&self, name: &str, settings: &[(&str, &str)]) -> Result<String, String> {
        let directory = format!("/sys/fs/cgroup/{name}");
        std::fs::create_dir_all(&directory)
            .map_err(|error| format!("cannot make {directory}: {error}"))?;
        for (file, value) in settings {
            self.write(&format!("{directory}/{file}"), value)?;
        }
        Ok(directory)
    }

    /// A field of a NUMA node's meminfo in bytes.
    pub fn node_field(&self, node: u32, name: &str) -> f64 {
        setup::node_field(node, name).unwrap_or_default() * 1024.0
    }

    /// A number in a file of a cgroup, such as `oom_kill` of `memory.events`.
    pub fn cgroup_field(&self, directory: &str, file: &str, name: &str) -> f64 {
        setup::field(&format!("{directory}/{file}"), name).unwrap_or_default()
    }

    /// Writes a kernel setting: `write("/proc/sys/vm/swappiness", "1")`.
    ///
    /// # Errors
    /// Where the kernel refuses it.
    pub fn write(&self, path: &str, value: &str) -> Result<(), String> {
        std::fs::write(path, value)
            .map_err(|error| format!("cannot write {value} to {path}: {error}"))
    }

    /// A number of `/proc/vmstat`; zero where this kernel has none of that name.
    pub fn vmstat(&self, name: &str) -> f64 {
        setup::field("/proc/vmstat", name).unwrap_or_default()
    }

    /// A field of `/proc/meminfo` in bytes.
    pub fn meminfo_bytes(&self, name: &str) -> f64 {
        setup::field("/proc/meminfo", &format!("{name}:")).unwrap_or_default() * 1024.0
    }

    /// Makes a disk a swap area and uses it.
    ///
    /// # Errors
    /// Where the disk cannot be written or used.
    pub fn swap_on(&self, disk: &str) -> Result<(), String> {
        setup::swap_on(disk)
    }

    /// Waits.
    pub fn sleep(&self, seconds: f64) {
        std::thread::sleep(Duration::from_secs_f64(seconds));
    }

    /// Since the scenario began, in seconds.
    pub fn elapsed_s(&self) -> f64 {
        self.begun.elapsed().as_secs_f64()
    }
}

/// A running part of a workload; it is killed when dropped.
#[derive(Debug)]
pub struct Part(Child);

impl Part {
    /// Waits for its end; whether it ended well.
    pub fn wait(mut self) -> bool {
        self.0.wait().is_ok_and(|status| status.success())
    }

    /// Hears each line of numbers that it prints, until it ends; whether it ended well.
    pub fn each(mut self, mut line: impl FnMut(&[f64])) -> bool {
        let Some(output) = self.0.stdout.take() else {
            return false;
        };
        for text in BufReader::new(output).lines().map_while(Result::ok) {
            let numbers: Vec<f64> = text
                .split_whitespace()
                .filter_map(|word| word.parse().ok())
                .collect();
            line(&numbers);
        }
        self.wait()
    }

    /// Whether it still runs.
    pub fn is_running(&mut self) -> bool {
        matches!(self.0.try_wait(), Ok(None))
    }

    /// Its PID.
    pub fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
