//! Trace points of the kernel in an instance of their own, which no other tracer sees or disturbs, with the processes of one
//! job alone.
//!
//! tracefs is taken from where it is mounted, and otherwise mounted without a place in any directory (fsmount(2), 5.2): nothing
//! on the host changes, and it is gone when the last descriptor is closed. The instance is removed by its guard however this
//! process ends. Cost on the job: 0.2 to 0.5 µs of CPU an event, one event for each read and each page made dirty.
#![allow(unsafe_code)]

use std::collections::HashMap;
use std::fs::File;
use std::io::{PipeWriter, Read as _, Write as _};
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, Mode, OFlags, mkdirat, openat, unlinkat};
use rustix::io::Errno;
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};
use thiserror::Error;
use units::{PageSize, Span};

use crate::observe::process_tree;
use crate::observe::trace_line::EVENTS;
use crate::observe::trace_touches::{TraceTouches, Traced};
use crate::touches::FileNumber;

/// Where tracefs is usually mounted.
const PLACES: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// Buffers of all CPUs together, in KiB.
const BUFFERS_MAX_KIB: usize = 64 << 10;

/// The buffer of one CPU, in KiB.
const BUFFER_KIB: std::ops::RangeInclusive<usize> = 512..=8192;

/// From one reading of an empty buffer to the next.
const EVERY: Duration = Duration::from_millis(5);

/// Without these there is no answer; others may be missing.
const NEEDED: [usize; 3] = [0, 3, 4];

const GUARD: &str = include_str!("guard.sh");

/// Why the kernel cannot be traced.
#[derive(Debug, Error)]
pub enum TraceError {
    /// Not as this user.
    #[error("tracefs is for root")]
    NotPermitted,
    /// The kernel has none.
    #[error("tracefs cannot be mounted: {0}")]
    NoTracefs(Errno),
    /// The kernel lacks an event.
    #[error("this kernel has no event {0} (6.12 has it)")]
    NoEvent(&'static str),
    /// A file of tracefs does not take what it is for.
    #[error("cannot set up {place}: {source}")]
    SetUp {
        /// The file below tracefs, or what else.
        place: String,
        /// What the system says.
        source: std::io::Error,
    },
}

impl TraceError {
    /// What to do about it.
    pub fn help(&self) -> Option<String> {
        match self {
            Self::NotPermitted => Some("run memtide job with sudo".to_owned()),
            Self::NoTracefs(_) => Some("mount -t tracefs tracefs /sys/kernel/tracing".to_owned()),
            Self::NoEvent(_) | Self::SetUp { .. } => None,
        }
    }
}

/// A running trace.
#[derive(Debug)]
pub(super) struct Trace {
    instance: Instance,
    is_over: Arc<AtomicBool>,
    reader: JoinHandle<Traced>,
}

/// An instance of the tracer, which is removed with this value, or by the guard.
#[derive(Debug)]
struct Instance {
    tracefs: OwnedFd,
    name: String,
    guard: Child,
    /// Its end is what the guard waits for.
    _open: PipeWriter,
}

impl Trace {
    /// Makes an instance and begins to read it; no process is followed yet.
    pub(super) fn begin(page: PageSize) -> Result<Self, TraceError> {
        let tracefs = tracefs()?;
        for event in NEEDED.map(|needed| EVENTS[needed]) {
            let path = format!("events/{event}");
            if openat(&tracefs, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).is_err() {
                return Err(TraceError::NoEvent(event));
            }
        }
        let instance = Instance::make(tracefs)?;
        let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let buffer = (BUFFERS_MAX_KIB / cpus).clamp(*BUFFER_KIB.start(), *BUFFER_KIB.end());
        instance.write("buffer_size_kb", &buffer.to_string())?;
        instance.write("trace_clock", "mono")?;
        instance.write("options/event-fork", "1")?;
        let pipe = instance.open("trace_pipe", OFlags::RDONLY | OFlags::NONBLOCK)?;
        let is_over = Arc::new(AtomicBool::new(false));
        let begun = probe::now();
        let begun = begun.awake.unwrap_or(begun.boot);
        let reader = {
            let is_over = Arc::clone(&is_over);
            std::thread::Builder::new()
                .name("trace".to_owned())
                .spawn(move || read(File::from(pipe), TraceTouches::new(page, begun), &is_over))
        };
        let reader = match reader {
            Ok(reader) => reader,
            Err(source) => return Err(set_up("a thread that reads events", source)),
        };
        Ok(Self { instance, is_over, reader })
    }

    /// The process that removes the instance if this one cannot.
    pub(super) fn guard(&self) -> u32 {
        self.instance.guard.id()
    }

    /// Traces this command and all that it starts, from its first instruction on.
    pub(super) fn follow(&self, command: &mut Command) -> Result<(), TraceError> {
        let pids = self.instance.open("set_event_pid", OFlags::WRONLY)?;
        // SAFETY: the closure runs in the child between fork and exec. It formats a number on the stack and makes two system
        // calls, which are async-signal-safe: it allocates nothing and takes no lock.
        unsafe {
            command.pre_exec(move || {
                let mut digits = [0_u8; 12];
                let mut at = digits.len();
                let mut pid = rustix::process::getpid().as_raw_nonzero().get().unsigned_abs();
                while pid > 0 {
                    at -= 1;
                    digits[at] = b'0' + u8::try_from(pid % 10).unwrap_or(0);
                    pid /= 10;
                }
                rustix::io::write(&pids, &digits[at..])?;
                Ok(())
            });
        }
        // Without any process in the list, all of the host would be traced until the command adds itself; the guard only waits.
        self.instance.write("set_event_pid", &self.guard().to_string())?;
        self.enable()
    }

    /// Traces these processes with all their threads, and all that they start, from now on.
    pub(super) fn follow_running(&self, pids: &[u32]) {
        for thread in pids.iter().flat_map(|pid| process_tree::threads(&pid.to_string())) {
            // It may have ended.
            let _ = self.instance.write("set_event_pid", &thread);
        }
    }

    /// Begins to trace processes that run already: none yet, as the guard only waits.
    pub(super) fn attach(&self) -> Result<(), TraceError> {
        self.instance.write("set_event_pid", &self.guard().to_string())?;
        self.enable()
    }

    fn enable(&self) -> Result<(), TraceError> {
        for (at, event) in EVENTS.iter().enumerate() {
            let enabled = self.instance.write(&format!("events/{event}/enable"), "1");
            if NEEDED.contains(&at) {
                enabled?;
            }
        }
        Ok(())
    }

    /// Ends the trace: what is still in its buffers is read, then it is removed. Names are those of open files that were seen.
    pub(super) fn end(self, names: HashMap<FileNumber, String>, begun: Instant) -> Traced {
        let _ = self.instance.write("tracing_on", "0");
        self.is_over.store(true, Ordering::Release);
        let mut traced = self.reader.join().unwrap_or_default();
        drop(self.instance);
        traced.name(names, Span::from_secs_f64(begun.elapsed().as_secs_f64()));
        traced
    }
}

impl Instance {
    fn make(tracefs: OwnedFd) -> Result<Self, TraceError> {
        let name = format!("memtide-job-{}", std::process::id());
        let failed = |source| set_up("the guard of the trace", source);
        let (wait, open) = std::io::pipe().map_err(failed)?;
        let guard = Command::new("/bin/sh")
            .args(["-c", GUARD, "memtide-guard", &name])
            .stdin(Stdio::from(wait))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .current_dir(format!("/proc/self/fd/{}/instances", tracefs.as_raw_fd()))
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into()))
            .process_group(0)
            .spawn()
            .map_err(failed)?;
        let instance = Self { tracefs, name, guard, _open: open };
        let path = format!("instances/{}", instance.name);
        // One of this name is of an ended process that had our PID.
        let _ = unlinkat(&instance.tracefs, &path, AtFlags::REMOVEDIR);
        match mkdirat(&instance.tracefs, &path, Mode::RWXU) {
            Ok(()) => Ok(instance),
            Err(errno) => Err(set_up(&path, errno.into())),
        }
    }

    fn open(&self, file: &str, flags: OFlags) -> Result<OwnedFd, TraceError> {
        let path = format!("instances/{}/{file}", self.name);
        openat(&self.tracefs, &path, flags | OFlags::CLOEXEC, Mode::empty())
            .map_err(|errno| set_up(&path, errno.into()))
    }

    fn write(&self, file: &str, value: &str) -> Result<(), TraceError> {
        let mut opened = File::from(self.open(file, OFlags::WRONLY)?);
        opened.write_all(value.as_bytes()).map_err(|source| set_up(file, source))
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        /// A reader of another process, such as somebody's `cat`, keeps it.
        const TRIES: u32 = 20;
        let path = format!("instances/{}", self.name);
        for _ in 0..TRIES {
            match unlinkat(&self.tracefs, &path, AtFlags::REMOVEDIR) {
                Err(Errno::BUSY) => std::thread::sleep(EVERY),
                _ => {
                    let _ = self.guard.kill();
                    let _ = self.guard.wait();
                    return;
                }
            }
        }
        // The guard goes on trying once the pipe is closed.
    }
}

fn set_up(place: &str, source: std::io::Error) -> TraceError {
    TraceError::SetUp { place: place.to_owned(), source }
}

/// The directory of tracefs, mounted by the host or by this process alone.
fn tracefs() -> Result<OwnedFd, TraceError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    for place in PLACES {
        let Ok(opened) = rustix::fs::open(place, flags, Mode::empty()) else { continue };
        // Without the mount it is an empty directory.
        if openat(opened.as_fd(), "instances", flags, Mode::empty()).is_ok() {
            return Ok(opened);
        }
    }
    let mounted = || {
        let context = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
        fsconfig_create(context.as_fd())?;
        fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())
    };
    match mounted() {
        Ok(root) => openat(&root, ".", flags, Mode::empty()).map_err(TraceError::NoTracefs),
        Err(Errno::PERM | Errno::ACCESS) => Err(TraceError::NotPermitted),
        Err(errno) => Err(TraceError::NoTracefs(errno)),
    }
}

/// Reads events until it is over and nothing is left.
fn read(mut pipe: File, mut touches: TraceTouches, is_over: &AtomicBool) -> Traced {
    let mut buffer = vec![0; 1 << 16];
    let mut line = Vec::new();
    loop {
        // Before the read: what was written before the end is read after it.
        let is_last = is_over.load(Ordering::Acquire);
        match pipe.read(&mut buffer) {
            Ok(got) if got > 0 => {
                for part in buffer[..got].split_inclusive(|byte| *byte == b'\n') {
                    line.extend_from_slice(part);
                    if line.ends_with(b"\n") {
                        touches.take(&String::from_utf8_lossy(&line));
                        line.clear();
                    }
                }
            }
            _ if is_last => return touches.finish(),
            _ => std::thread::sleep(EVERY),
        }
    }
}
