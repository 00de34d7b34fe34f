//! Reading a process that may never answer: in a thread of its own, which is left alone when it has waited for too long.
//!
//! A page that lies behind a userfaultfd(2) comes when the program that serves it likes. The files of `/proc/PID` that take
//! the lock of its address space (`maps`, `smaps`, `pagemap`, `mem`, `environ`, `cmdline`) wait for whoever has it, as for a
//! thread that waits for a file system in user space (FUSE). Nothing calls a thread back from there. It ends with what it waits
//! for, or with this program: some waits not even then (`process_vm_readv` for that lock, anything for a FUSE server), so
//! who must end in time reads in a child, which it can leave behind.
//!
//! What counts is the time that the thread waits. While it runs or waits for a CPU it does not, so that a busy host makes a
//! reading slower and not incomplete. Cost: a thread, some 50 µs; where it takes longer than 20 ms, 20 µs for each of them.

use std::fmt::Write as _;
use std::panic::resume_unwind;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use units::Span;

use crate::directory::Directory;
use crate::process::stat;
use crate::text;

/// How often the thread's state is looked at.
pub(crate) const TICK: Duration = Duration::from_millis(20);

/// A reading in a thread of its own.
#[derive(Debug)]
pub struct TimedRead<T> {
    thread: Option<JoinHandle<()>>,
    result: Receiver<T>,
    waited: WaitedTime,
}

/// For how long a thread has waited. Once made it allocates nothing to see that.
#[derive(Debug)]
pub(crate) struct WaitedTime {
    thread: ThreadNumber,
    waited: Span,
    path: String,
    text: Vec<u8>,
}

/// The number of a thread; zero before it runs.
#[derive(Debug, Clone, Default)]
pub(crate) struct ThreadNumber(Arc<AtomicI32>);

/// Why a reading has no result: it waited for too long.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("could not be read within {within}: {why}")]
pub struct NoAnswer {
    /// For how long it waited.
    pub within: Span,
    /// What for, in words.
    pub why: String,
}

impl<T: Send + 'static> TimedRead<T> {
    /// Starts reading.
    ///
    /// # Errors
    /// [`NoAnswer`] if there is no room for a thread.
    pub fn start(read: impl FnOnce() -> T + Send + 'static) -> Result<Self, NoAnswer> {
        let (sender, result) = sync_channel(1);
        let waited = WaitedTime::default();
        let number = waited.number();
        let thread = std::thread::Builder::new().name("memtide-read".to_owned());
        let thread = thread.spawn(move || {
            number.set();
            // Nobody waits for a result that is too late.
            let _ = sender.send(read());
        });
        match thread {
            Ok(thread) => Ok(Self { thread: Some(thread), result, waited }),
            Err(error) => Err(NoAnswer {
                within: Span::ZERO,
                why: format!("no thread could be started: {error}"),
            }),
        }
    }

    /// Returns the result once it is there. Ends when the reading has waited for `most` since it was started; it may be asked for
    /// again with a longer time.
    ///
    /// # Errors
    /// [`NoAnswer`] if it has waited for as long.
    pub fn within(&mut self, most: Span) -> Result<T, NoAnswer> {
        while self.waited.in_all() < most {
            let began = Instant::now();
            match self.result.recv_timeout(TICK) {
                Ok(result) => return Ok(result),
                Err(RecvTimeoutError::Timeout) => self.waited.note(began),
                Err(RecvTimeoutError::Disconnected) => self.panicked(),
            }
        }
        if let Ok(result) = self.result.try_recv() {
            return Ok(result);
        }
        Err(NoAnswer { within: most, why: self.waited.why() })
    }

    /// Passes the panic of the thread on.
    fn panicked(&mut self) {
        if let Some(Err(panic)) = self.thread.take().map(JoinHandle::join) {
            resume_unwind(panic);
        }
    }
}

impl WaitedTime {
    /// Returns the number, for the thread to set.
    pub(crate) fn number(&self) -> ThreadNumber {
        self.thread.clone()
    }

    /// Begins anew.
    pub(crate) fn restart(&mut self) {
        self.waited = Span::ZERO;
    }

    /// Counts the time since `began` if the thread waits now.
    pub(crate) fn note(&mut self, began: Instant) {
        if self.is_waiting() {
            // Where this thread itself had no CPU, nothing is known of the time between.
            let waited = began.elapsed().min(2 * TICK);
            self.waited = self.waited.plus(Span::from_secs_f64(waited.as_secs_f64()));
        }
    }

    /// Returns what was counted.
    pub(crate) const fn in_all(&self) -> Span {
        self.waited
    }

    /// Says what the thread waits for.
    fn why(&mut self) -> String {
        waits_for(self.file("wchan"))
    }

    fn is_waiting(&mut self) -> bool {
        if self.thread.0.load(Ordering::Relaxed) == 0 {
            return false;
        }
        let (identity, _) = stat::read(self.file("stat"), |_, _| ());
        identity.is_none_or(|identity| identity.state != Some(b'R'))
    }

    /// Reads a file of the thread; empty if it cannot be read.
    fn file(&mut self, name: &str) -> &[u8] {
        let tid = self.thread.0.load(Ordering::Relaxed);
        self.path.clear();
        self.text.clear();
        // Writing to a string cannot fail.
        let _ = write!(self.path, "{tid}/{name}");
        if let Ok(tasks) = Directory::open(Path::new("/proc/self/task")) {
            let _ = tasks.read_record(self.path.as_bytes(), &mut self.text);
        }
        &self.text
    }
}

impl Default for WaitedTime {
    fn default() -> Self {
        Self {
            thread: ThreadNumber::default(),
            waited: Span::ZERO,
            path: String::with_capacity(32),
            text: Vec::with_capacity(4096),
        }
    }
}

impl ThreadNumber {
    /// Says that this thread is meant.
    pub(crate) fn set(&self) {
        let own = rustix::thread::gettid().as_raw_nonzero().get();
        self.0.store(own, Ordering::Relaxed);
    }
}

/// Reads something, unless that waits for longer than `most`.
///
/// # Errors
/// [`NoAnswer`] if it does.
pub fn read_within<T: Send + 'static>(
    most: Span,
    read: impl FnOnce() -> T + Send + 'static,
) -> Result<T, NoAnswer> {
    TimedRead::start(read)?.within(most)
}

/// Says what a thread waits for, by the function of the kernel in which it does (`/proc/PID/wchan`).
fn waits_for(function: &[u8]) -> String {
    let name = text::lossy(text::trim(function));
    let has = |parts: &[&str]| parts.iter().any(|part| name.contains(part));
    if has(&["userfault"]) {
        return "a page did not come from its userfaultfd".to_owned();
    }
    if has(&LOCK) {
        return "another task holds the lock of its address space".to_owned();
    }
    match &*name {
        "" | "0" => "the kernel made the reader wait".to_owned(),
        name => format!("the kernel made the reader wait in `{name}`"),
    }
}

/// Parts of the names of functions that wait for the lock of an address space: the lock's own, or those that take it, where
/// the kernel leaves its own out.
const LOCK: [&str; 8] = [
    "process_vm_rw",
    "rwsem",
    "down_read",
    "m_start",
    "pagemap",
    "smaps",
    "remote_vm",
    "environ_read",
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;

    const SOON: Span = Span::from_millis(200);

    #[test]
    fn a_reading_returns_what_it_read() {
        assert_eq!(read_within(SOON, || 7), Ok(7));
    }

    #[test]
    fn a_reading_that_waits_is_left_alone_and_its_result_may_come_later() {
        let (mut from, to) = std::io::pipe().unwrap();
        let mut reading = TimedRead::start(move || from.read_to_end(&mut Vec::new()).ok()).unwrap();
        let refused = reading.within(SOON).unwrap_err();
        assert_eq!(refused.within, SOON);
        let text = refused.to_string();
        assert!(text.starts_with("could not be read within 200 ms: "), "{text}");
        assert!(reading.within(SOON).is_err());
        drop(to);
        assert_eq!(reading.within(Span::from_secs(60)), Ok(Some(0)));
    }

    #[test]
    fn time_in_which_the_reader_runs_does_not_count() {
        let began = Instant::now();
        let computed = read_within(Span::from_millis(100), move || {
            let mut sum = 0_u64;
            while began.elapsed() < Duration::from_secs(1) {
                sum = std::hint::black_box(sum.wrapping_add(1));
            }
            sum
        });
        assert!(computed.is_ok_and(|sum| sum > 0));
    }

    #[test]
    #[should_panic(expected = "of the reader")]
    fn a_panic_of_the_reader_is_one_here() {
        let _: Result<(), _> = read_within(SOON, || panic!("of the reader"));
    }

    #[test]
    fn a_wait_is_called_by_its_cause() {
        for (function, cause) in [
            (&b"handle_userfault"[..], "userfaultfd"),
            (b"rwsem_down_read_slowpath\n", "the lock"),
            (b"m_start", "the lock"),
            (b"pagemap_read", "the lock"),
            (b"request_wait_answer", "`request_wait_answer`"),
            (b"0", "made the reader wait"),
        ] {
            let why = waits_for(function);
            assert!(why.contains(cause), "{why}");
        }
    }
}
