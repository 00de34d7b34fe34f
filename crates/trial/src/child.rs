//! The process of a run as it is started: its environment, what it announces, what it writes to standard error.
#![allow(unsafe_code)]

use std::collections::VecDeque;
use std::io::{Read, Write as _};
use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use rustix::io::{dup2, fcntl_dupfd_cloexec};
use rustix::thread::CpuSet;

use crate::variant::VariantSetting;

/// The variable that names the file descriptor on which a program can announce.
pub const ANNOUNCE_VARIABLE: &str = "MEMTIDE_FD";

/// What is set here is put in front of what memtide's own environment has: the baseline is the command as the user runs it.
const LOADED: &str = "LD_PRELOAD";
const TUNABLES: &str = "GLIBC_TUNABLES";

/// The number of the file descriptor on which programs announce, reserved as long as a trial goes on. It is taken before other
/// files are opened, so that it has one digit: dash redirects to no other.
#[derive(Debug)]
pub(crate) struct AnnounceNumber(OwnedFd);

impl AnnounceNumber {
    pub(crate) fn reserve() -> std::io::Result<Self> {
        let null = std::fs::File::open("/dev/null")?;
        Ok(Self(fcntl_dupfd_cloexec(&null, 3)?))
    }
}

/// The last of what a program wrote to standard error.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tail(Arc<(Mutex<TailText>, Condvar)>);

/// What of a stream is kept, and whether it has ended.
#[derive(Debug, Default)]
struct TailText {
    kept: VecDeque<u8>,
    has_ended: bool,
}

impl Tail {
    /// What is kept.
    const BYTES_MAX: usize = 4096;
    /// A process that outlives the program may hold the stream open.
    const END_MAX: Duration = Duration::from_millis(200);

    /// Reads to the end in a thread of its own, so that a program that writes 10 GB waits for nobody and costs 4 KiB.
    pub(crate) fn of(mut stream: impl Read + Send + 'static) -> Self {
        let tail = Self::default();
        let shared = Arc::clone(&tail.0);
        std::thread::spawn(move || {
            let (text, ended) = &*shared;
            let mut buffer = [0; 16 << 10];
            while let Ok(got @ 1..) = stream.read(&mut buffer) {
                let mut text = text.lock().unwrap_or_else(PoisonError::into_inner);
                text.kept.extend(&buffer[..got]);
                let surplus = text.kept.len().saturating_sub(Self::BYTES_MAX);
                text.kept.drain(..surplus);
            }
            text.lock().unwrap_or_else(PoisonError::into_inner).has_ended = true;
            ended.notify_all();
        });
        tail
    }

    /// The last lines of a program that has ended.
    pub(crate) fn text(&self) -> String {
        let (text, ended) = &*self.0;
        let text = text.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = ended.wait_timeout_while(text, Self::END_MAX, |text| !text.has_ended);
        let (text, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let bytes: Vec<u8> = text.kept.iter().copied().collect();
        String::from_utf8_lossy(&bytes).trim().to_owned()
    }
}

/// What a program announced.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Announcement {
    /// Operations so far.
    Operations(f64),
    /// The latency of one operation in milliseconds.
    Latency(f64),
    /// What came before was warming up.
    Steady,
    /// The work is done, and the program waits.
    Hold,
}

/// Our end of what a program announces. A thread reads it: a program that announces each of its operations must not wait for
/// the next reading of its memory.
#[derive(Debug)]
pub(crate) struct Announcements {
    stream: UnixStream,
    read: Arc<Mutex<Vec<Announcement>>>,
    reader: Option<JoinHandle<()>>,
}

impl Announcements {
    /// From one read to the next; what a socket holds meanwhile is some hundred lines.
    const EVERY: Duration = Duration::from_millis(1);
    /// A line that is longer is none of ours.
    const LINE_MAX: usize = 4096;
    /// More are not kept between two readings.
    const KEPT_MAX: usize = 1 << 20;

    fn of(stream: UnixStream) -> std::io::Result<Self> {
        let mut theirs = stream.try_clone()?;
        let read = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&read);
        let reader = std::thread::spawn(move || {
            let (mut buffer, mut unread) = (vec![0; 64 << 10], Vec::new());
            while let Ok(got @ 1..) = theirs.read(&mut buffer) {
                unread.extend_from_slice(&buffer[..got]);
                let all = take_lines(&mut unread);
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                let room = Self::KEPT_MAX.saturating_sub(kept.len());
                kept.extend(all.into_iter().take(room));
                drop(kept);
                std::thread::sleep(Self::EVERY);
            }
        });
        Ok(Self { stream, read, reader: Some(reader) })
    }

    /// Takes what has come since.
    pub(crate) fn take(&self) -> Vec<Announcement> {
        std::mem::take(&mut self.read.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes the last ones, when the program has ended.
    pub(crate) fn take_last(&mut self) -> Vec<Announcement> {
        // What is queued is delivered before the end.
        let _ = self.stream.shutdown(std::net::Shutdown::Read);
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
        self.take()
    }

    /// Lets a program go on that holds.
    pub(crate) fn release(&mut self) {
        let _ = self.stream.write_all(b"go\n");
    }
}

impl Drop for Announcements {
    fn drop(&mut self) {
        // Ends the thread, also where a process that escaped has the other end open.
        let _ = self.stream.shutdown(std::net::Shutdown::Both);
    }
}

/// Takes whole lines from what was read.
fn take_lines(unread: &mut Vec<u8>) -> Vec<Announcement> {
    let whole = unread.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let lines = unread[..whole].split(|byte| *byte == b'\n');
    let all = lines.filter_map(|line| announcement(std::str::from_utf8(line).ok()?)).collect();
    unread.drain(..whole);
    if unread.len() > Announcements::LINE_MAX {
        unread.clear();
    }
    all
}

fn announcement(line: &str) -> Option<Announcement> {
    let mut words = line.split_whitespace().skip_while(|word| *word == "memtide:");
    let word = words.next()?;
    let mut value = || words.next()?.parse::<f64>().ok().filter(|value| value.is_finite());
    Some(match word {
        "ops" => Announcement::Operations(value()?),
        "latency_ms" => Announcement::Latency(value()?),
        "phase" => (words.next()? == "steady").then_some(Announcement::Steady)?,
        "hold" => Announcement::Hold,
        _ => return None,
    })
}

/// A command with a variant's settings, ready to be started.
pub(crate) struct PreparedChild {
    pub(crate) command: Command,
    pub(crate) announcements: Announcements,
    /// The program's end, open until it has been started.
    pub(crate) their_end: OwnedFd,
}

/// Prepares a command: in a session of its own, without input, its output discarded.
///
/// # Errors
/// There are no more file descriptors.
pub(crate) fn prepare(
    words: &[String],
    settings: &[VariantSetting],
    preload: Option<&str>,
    announced: &AnnounceNumber,
    is_in_machine: bool,
) -> std::io::Result<PreparedChild> {
    let (ours, theirs) = UnixStream::pair()?;
    let their_end = OwnedFd::from(theirs);
    let number = announced.0.as_raw_fd();
    let mut command = Command::new(words.first().map_or("", String::as_str));
    command
        .args(words.get(1..).unwrap_or_default())
        .env(ANNOUNCE_VARIABLE, number.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    if let Some(library) = preload {
        command.env(LOADED, joined(LOADED, library, ' '));
    }
    let mut tunables = Vec::new();
    let (mut has_thp, mut cpus) = (true, None);
    for setting in settings {
        match setting {
            VariantSetting::Arenas(arenas) => {
                command.env("MALLOC_ARENA_MAX", arenas.to_string());
            }
            VariantSetting::Environment { name, value } => {
                command.env(name, value);
            }
            VariantSetting::Tunable { name, value } => {
                tunables.push(format!("glibc.malloc.{name}={value}"));
            }
            VariantSetting::ThpOff => has_thp = false,
            VariantSetting::Cpus(list) => {
                let mut set = CpuSet::new();
                list.iter().filter(|cpu| **cpu < CpuSet::MAX_CPU).for_each(|cpu| set.set(*cpu));
                cpus = Some(set);
            }
            VariantSetting::Command(_)
            | VariantSetting::Malloc(_)
            | VariantSetting::Vm { .. }
            | VariantSetting::SwapArea(_)
            | VariantSetting::Thp(_)
            | VariantSetting::Kernel(_)
            | VariantSetting::Limit(_)
            | VariantSetting::High(_)
            | VariantSetting::Swap(_) => {}
        }
    }
    if !tunables.is_empty() {
        command.env(TUNABLES, joined(TUNABLES, &tunables.join(":"), ':'));
    }
    let end = their_end.try_clone()?;
    // SAFETY: the closure runs in the child between fork and exec and makes system calls on files that the parent keeps open
    // until then, which are async-signal-safe: it allocates nothing and takes no lock. The number that it overwrites is
    // reserved: nothing else of the parent has it, so that no file of another closure or of `spawn` is closed.
    unsafe {
        command.pre_exec(move || {
            // Not closed with this value: it is to stay open in the program.
            let mut announced = ManuallyDrop::new(OwnedFd::from_raw_fd(number));
            dup2(&end, &mut announced)?;
            if is_in_machine {
                // What is started by a program that the kernel must not kill inherits that.
                let path = c"/proc/self/oom_score_adj";
                let file = rustix::fs::open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
                rustix::io::write(&file, b"0")?;
            }
            // Without a terminal: a program that needs one fails, and does not stop.
            let _ = rustix::process::setsid();
            if !has_thp {
                rustix::thread::disable_transparent_huge_pages(true)?;
            }
            if let Some(cpus) = &cpus {
                rustix::thread::sched_setaffinity(None, cpus)?;
            }
            Ok(())
        });
    }
    let announcements = Announcements::of(ours)?;
    Ok(PreparedChild { command, announcements, their_end })
}

/// A value in front of the one that memtide's own environment has.
fn joined(name: &str, value: &str, separator: char) -> String {
    match std::env::var(name).ok().filter(|own| !own.is_empty()) {
        Some(own) => format!("{value}{separator}{own}"),
        None => value.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_announces_on_the_file_that_it_was_given() {
        let script = "echo ops 5 >&$MEMTIDE_FD; echo memtide: latency_ms 2.5 >&$MEMTIDE_FD; echo \
            'phase steady\nnoise\nops x\nhold' >&$MEMTIDE_FD; read answer <&$MEMTIDE_FD; echo $answer >&2; [ ! -t 0 ]";
        let words = ["/bin/sh", "-c", script].map(str::to_owned);
        let number = AnnounceNumber::reserve().unwrap();
        let mut child = prepare(&words, &[VariantSetting::ThpOff], None, &number, false).unwrap();
        let mut started = child.command.stderr(Stdio::piped()).spawn().unwrap();
        drop(child.command);
        drop(child.their_end);
        let tail = Tail::of(started.stderr.take().unwrap());
        let mut all = Vec::new();
        while !all.contains(&Announcement::Hold) {
            all.extend(child.announcements.take());
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        use Announcement::{Hold, Latency, Operations, Steady};
        assert_eq!(all, [Operations(5.0), Latency(2.5), Steady, Hold]);
        child.announcements.release();
        assert!(started.wait().unwrap().success());
        assert_eq!(tail.text(), "go");
    }
}
