//! Reading one small file of many processes in another thread, which is left behind at a process that does not answer.
//!
//! `io` of a process, and on 6.18 also `stat` and its links (`exe`, `fd/`), wait while the process starts another program
//! (`exec_update_lock`). That ends at once, unless one of the files that exec(2) closes lies on a file system that does not
//! answer: a dead NFS server, or FUSE of the user. No state shows it, and nothing calls the reader back. As long as the thread
//! waits, this file of the process is not read again. Once a process made it wait, others are left out that seem to be in exec(2),
//! too, by their `status`, which never waits. Of a file for which exec(2) is not the reason a few processes of a user are waited for.
//!
//! The files are asked for 64 at a time: a change of threads costs 10 µs, as much as one of them. Once buffers have their size
//! nothing is allocated, unless a process does not answer.

use std::fmt::Write as _;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use rustix::io::Errno;
use units::Span;

use crate::directory::Directory;
use crate::process::SILENT_AFTER;
use crate::process::status;
use crate::process::timed_read::{TICK, WaitedTime};

/// Files that are asked for at once.
const ASKED_MAX: usize = 64;
/// For how many processes of a user, and of all users but root, threads of a reader may wait at a time where nothing shows of whom.
const LEFT_OF_USER_MAX: usize = 4;
const LEFT_OF_USERS_MAX: usize = 8;
/// How many threads of all readers may wait at a time: the recorder's service has room for 32 threads.
pub(crate) const LEFT_MAX: usize = 12;
/// How long one call waits in all. A process that answers late each time is never left behind.
const WAITED_MAX: Span = Span::from_millis(300);
/// The thread only opens and reads.
const STACK_BYTES: usize = 128 << 10;

/// The threads of all readers that wait.
static LEFT: AtomicUsize = AtomicUsize::new(0);

/// The text of a file, or why there is none.
pub(crate) type TextRead<'a> = Result<&'a [u8], Errno>;

/// Reads the file of a process into the second buffer; the first has room for its path.
type ReadFile = dyn Fn(u32, &mut String, &mut Vec<u8>) -> Result<(), Errno> + Send + Sync;

/// Reads one file of processes.
pub(crate) struct ReaderThread {
    proc: PathBuf,
    /// Whether its file waits for exec(2) alone, so that `status` shows of whom.
    waits_for_exec: bool,
    read: Arc<ReadFile>,
    thread: Option<Thread>,
    left: Vec<LeftBehind>,
    /// Whether a process made it wait, or was refused, in this call or the one before.
    is_slow: bool,
    status: Vec<u8>,
    path: String,
}

#[derive(Debug)]
struct Thread {
    exchange: Arc<Exchange>,
    waited: WaitedTime,
}

/// A thread that waits for a process.
#[derive(Debug)]
struct LeftBehind {
    exchange: Arc<Exchange>,
    pid: u32,
    uid: Option<u32>,
}

#[derive(Debug, Default)]
struct Exchange {
    asked: Mutex<AskedFiles>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct AskedFiles {
    pids: Vec<u32>,
    /// Of the first processes, in order: where the file's text is in `texts`.
    answers: Vec<Result<Range<usize>, Errno>>,
    texts: Vec<u8>,
    /// Whether nobody waits for more: the thread was left behind, or its reader is gone.
    is_over: bool,
    is_left: bool,
}

impl ReaderThread {
    /// Creates a reader of `name` in the directories below `proc`. Its thread is started when it is first needed.
    pub(crate) fn new(proc: &Path, name: &'static str) -> Self {
        let directory = Directory::open(proc);
        let read = move |pid: u32, path: &mut String, text: &mut Vec<u8>| {
            path.clear();
            // Writing to a string cannot fail.
            let _ = write!(path, "{pid}/{name}");
            let directory = directory.as_ref().map_err(|errno| *errno)?;
            directory.read_record(path.as_bytes(), text)
        };
        Self::reading(proc, matches!(name, "stat" | "io"), Arc::new(read))
    }

    fn reading(proc: &Path, waits_for_exec: bool, read: Arc<ReadFile>) -> Self {
        Self {
            proc: proc.to_owned(),
            waits_for_exec,
            read,
            thread: None,
            left: Vec::new(),
            is_slow: false,
            status: Vec::new(),
            path: String::new(),
        }
    }

    /// Reads the file of each process, and passes the text on, in the same order. Each has [`SILENT_AFTER`] and `patience` to
    /// answer, and all of them [`WAITED_MAX`] and `patience`. Returns how many did not, or were not asked, because they or too
    /// many others of their user did not before.
    ///
    /// # Errors
    /// The number of the error if there is no room for a thread; those that were passed on are read.
    pub(crate) fn each(
        &mut self,
        pids: impl IntoIterator<Item = u32>,
        patience: Span,
        see: &mut dyn FnMut(u32, TextRead<'_>),
    ) -> Result<usize, Errno> {
        let mut pids = pids.into_iter();
        // Fewer than ASKED_MAX: what a thread had still to read when it was left behind.
        let mut rest = Vec::new();
        let (mut silent, mut waited) = (0, Span::ZERO);
        let most = (SILENT_AFTER.plus(patience), WAITED_MAX.plus(patience));
        loop {
            let mut thread = match self.thread.take() {
                Some(thread) => thread,
                None => self.start()?,
            };
            let exchange = Arc::clone(&thread.exchange);
            let mut asked = exchange.lock();
            asked.clear();
            for pid in rest.drain(..).chain(&mut pids) {
                if waited >= most.1 || self.is_refused(pid) {
                    silent += 1;
                    continue;
                }
                asked.pids.push(pid);
                if asked.pids.len() == ASKED_MAX {
                    break;
                }
            }
            if asked.pids.is_empty() {
                self.is_slow = waited > Span::ZERO || silent > 0;
                self.thread = Some(thread);
                return Ok(silent);
            }
            exchange.changed.notify_all();
            let limits = (most.0, most.1.saturating_sub(waited));
            let (mut asked, silent_at) = thread.wait(&exchange, asked, limits);
            waited = waited.plus(thread.waited.in_all());
            self.is_slow |= waited > Span::ZERO;
            asked.each(see);
            let Some(at) = silent_at else {
                self.thread = Some(thread);
                continue;
            };
            silent += 1;
            (asked.is_over, asked.is_left) = (true, true);
            LEFT.fetch_add(1, Ordering::Relaxed);
            rest.extend_from_slice(&asked.pids[at + 1..]);
            let pid = asked.pids[at];
            drop(asked);
            // The owner of its directory is root also for what a user made undumpable.
            self.read_status(pid);
            let uid = status::uid(&self.status);
            self.left.push(LeftBehind { exchange, pid, uid });
        }
    }

    /// Reads the file of one process, and passes the text on; nothing if it does not answer.
    pub(crate) fn one(&mut self, pid: u32, patience: Span, see: &mut dyn FnMut(TextRead<'_>)) {
        // Without a thread nothing is read.
        let _ = self.each([pid], patience, &mut |_, read| see(read));
    }

    /// Starts a thread, if there is room for one.
    fn start(&self) -> Result<Thread, Errno> {
        let (exchange, waited) = (Arc::<Exchange>::default(), WaitedTime::default());
        let (own, number, read) = (Arc::clone(&exchange), waited.number(), Arc::clone(&self.read));
        let builder =
            std::thread::Builder::new().name("memtide-proc".to_owned()).stack_size(STACK_BYTES);
        let run = move || {
            number.set();
            own.serve(&*read);
        };
        match builder.spawn(run) {
            Ok(_) => Ok(Thread { exchange, waited }),
            Err(error) => Err(Errno::from_io_error(&error).unwrap_or(Errno::AGAIN)),
        }
    }

    /// Whether a process is not asked: a thread waits for it, or it would wait too, or for too many threads wait already.
    fn is_refused(&mut self, pid: u32) -> bool {
        // One that was slow may have answered meanwhile.
        self.left.retain(LeftBehind::is_waiting);
        if self.left.is_empty() && !self.is_slow {
            return false;
        }
        let is_awaited = self.left.iter().any(|left| left.pid == pid);
        if is_awaited || (!self.left.is_empty() && LEFT.load(Ordering::Relaxed) >= LEFT_MAX) {
            return true;
        }
        self.read_status(pid);
        if self.waits_for_exec {
            return status::is_in_exec(&self.status);
        }
        let uid = status::uid(&self.status);
        let of_users = self.left.iter().filter(|left| left.uid != Some(0));
        let of_user = self.left.iter().filter(|left| left.uid == uid);
        uid != Some(0)
            && (of_users.count() >= LEFT_OF_USERS_MAX || of_user.count() >= LEFT_OF_USER_MAX)
    }

    /// Reads `status`, for which no process is waited for; it is empty if that fails.
    fn read_status(&mut self, pid: u32) {
        self.status.clear();
        self.path.clear();
        // Writing to a string cannot fail.
        let _ = write!(self.path, "{pid}/status");
        if let Ok(proc) = Directory::open(&self.proc) {
            let _ = proc.read_record(self.path.as_bytes(), &mut self.status);
        }
    }
}

impl Drop for ReaderThread {
    fn drop(&mut self) {
        if let Some(thread) = &self.thread {
            thread.exchange.lock().is_over = true;
            thread.exchange.changed.notify_all();
        }
    }
}

impl std::fmt::Debug for ReaderThread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReaderThread")
            .field("thread", &self.thread)
            .field("left", &self.left)
            .finish_non_exhaustive()
    }
}

impl Thread {
    /// Waits until all are read, or one process had too long, or all together. Returns the place of that one.
    fn wait<'a>(
        &mut self,
        exchange: &'a Exchange,
        mut asked: MutexGuard<'a, AskedFiles>,
        (of_one, of_all): (Span, Span),
    ) -> (MutexGuard<'a, AskedFiles>, Option<usize>) {
        self.waited.restart();
        let (mut answered, mut before) = (0, Span::ZERO);
        loop {
            let began = Instant::now();
            let waited =
                exchange.changed.wait_timeout_while(asked, TICK, |asked| asked.has_unread());
            asked = waited.unwrap_or_else(PoisonError::into_inner).0;
            if !asked.has_unread() {
                return (asked, None);
            }
            // It must not wait for this lock meanwhile.
            drop(asked);
            self.waited.note(began);
            asked = exchange.lock();
            if !asked.has_unread() {
                return (asked, None);
            }
            let in_all = self.waited.in_all();
            if asked.answers.len() > answered {
                (answered, before) = (asked.answers.len(), in_all);
            }
            if in_all.saturating_sub(before) >= of_one || in_all >= of_all {
                return (asked, Some(answered));
            }
        }
    }
}

impl LeftBehind {
    fn is_waiting(&self) -> bool {
        // The thread has the other one.
        Arc::strong_count(&self.exchange) > 1
    }
}

impl Exchange {
    fn lock(&self) -> MutexGuard<'_, AskedFiles> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads what is asked for until nobody waits for more.
    fn serve(&self, read: &ReadFile) {
        let (mut path, mut text) = (String::new(), Vec::new());
        let mut asked = self.lock();
        while !asked.is_over {
            if !asked.has_unread() {
                self.changed.notify_all();
                let is_idle = |asked: &mut AskedFiles| !asked.has_unread() && !asked.is_over;
                let woken = self.changed.wait_while(asked, is_idle);
                asked = woken.unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let pid = asked.pids[asked.answers.len()];
            drop(asked);
            let answer = read(pid, &mut path, &mut text);
            asked = self.lock();
            asked.answer(answer.map(|()| text.as_slice()));
        }
        if asked.is_left {
            LEFT.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl AskedFiles {
    fn has_unread(&self) -> bool {
        self.answers.len() < self.pids.len()
    }

    fn clear(&mut self) {
        self.pids.clear();
        self.answers.clear();
        self.texts.clear();
    }

    fn answer(&mut self, read: TextRead<'_>) {
        let from = self.texts.len();
        self.texts.extend_from_slice(read.unwrap_or_default());
        self.answers.push(read.map(|_| from..self.texts.len()));
    }

    fn each(&self, see: &mut dyn FnMut(u32, TextRead<'_>)) {
        for (pid, answer) in self.pids.iter().zip(&self.answers) {
            let text = |range: &Range<usize>| &self.texts[range.clone()];
            see(*pid, answer.as_ref().map(text).map_err(|errno| *errno));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::fs;
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::time::Duration;

    #[test]
    fn more_than_a_batch_comes_in_order_and_what_is_missing_is_an_error() {
        let proc = tempfile::tempdir().unwrap();
        let pids = 1..=150; // Two batches and a part.
        for pid in pids.clone().filter(|pid| *pid != 70) {
            let process = proc.path().join(pid.to_string());
            fs::create_dir(&process).unwrap();
            fs::write(process.join("stat"), format!("text of {pid}")).unwrap();
        }
        let mut reader = ReaderThread::new(proc.path(), "stat");
        for _ in 0..2 {
            let mut seen = Vec::new();
            let silent = reader.each(pids.clone(), Span::ZERO, &mut |pid, read| {
                match read {
                    Ok(text) => assert_eq!(text, format!("text of {pid}").as_bytes()),
                    Err(errno) => assert_eq!((pid, errno), (70, Errno::NOENT)),
                }
                seen.push(pid);
            });
            assert_eq!((seen, silent), (pids.clone().collect(), Ok(0)));
        }
    }

    /// A `/proc` with a process of user 1000 for each PID to 99, and of root above. Some are in exec(2), and do not answer until they
    /// are released.
    struct Host {
        proc: tempfile::TempDir,
        reader: ReaderThread,
        blocked: BTreeMap<u32, Sender<()>>,
    }

    impl Host {
        fn with_silent(pids: &[u32]) -> Self {
            let proc = tempfile::tempdir().unwrap();
            for pid in 1..120 {
                let process = proc.path().join(pid.to_string());
                let uid = if pid < 100 { 1000 } else { 0 };
                fs::create_dir(&process).unwrap();
                let program = if pids.contains(&pid) { 0 } else { 4 };
                let status =
                    format!("Uid:\t{uid}\t{uid}\nVmSize:\t 132 kB\nVmExe:\t {program} kB\n");
                fs::write(process.join("status"), status).unwrap();
            }
            let (mut blocked, mut waits) = (BTreeMap::new(), BTreeMap::new());
            for pid in pids.iter().copied() {
                let (release, released) = channel::<()>();
                blocked.insert(pid, release);
                waits.insert(pid, Mutex::new(released));
            }
            let read = move |pid: u32, _: &mut String, text: &mut Vec<u8>| {
                let wait = |released: &Mutex<Receiver<()>>| released.lock().unwrap().recv();
                // It is released for good when the sender is dropped.
                let _ = waits.get(&pid).map(wait);
                text.clear();
                text.extend(pid.to_string().bytes());
                Ok(())
            };
            Self { reader: ReaderThread::reading(proc.path(), true, Arc::new(read)), proc, blocked }
        }

        /// Reads all and returns the PIDs of those that answer, with the number of those that do not.
        fn read(&mut self) -> (Vec<u32>, usize) {
            let mut seen = Vec::new();
            let silent = self.reader.each(1..120, Span::ZERO, &mut |pid, text| {
                assert_eq!(text.unwrap(), pid.to_string().as_bytes());
                seen.push(pid);
            });
            (seen, silent.unwrap())
        }

        fn release(&mut self, pid: u32) {
            self.blocked.remove(&pid);
            let status = "Uid:\t0\t0\nVmSize:\t 132 kB\nVmExe:\t 4 kB\n";
            fs::write(self.proc.path().join(format!("{pid}/status")), status).unwrap();
            while self.reader.left.iter().any(|left| left.pid == pid && left.is_waiting()) {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }

    #[test]
    fn a_silent_process_is_left_out_until_it_answers_and_the_others_are_read() {
        let mut host = Host::with_silent(&[7, 110]);
        let others: Vec<u32> = (1..120).filter(|pid| ![7, 110].contains(pid)).collect();
        for _ in 0..2 {
            assert_eq!(host.read(), (others.clone(), 2));
        }
        host.release(7);
        let (seen, silent) = host.read();
        assert!(seen.contains(&7) && silent == 1, "{seen:?}");
    }

    #[test]
    fn after_the_first_others_in_exec_are_not_asked_and_the_rest_is() {
        let silent = [3, 4, 5, 6, 8, 9];
        let mut host = Host::with_silent(&silent);
        let others: Vec<u32> = (1..120).filter(|pid| !silent.contains(pid)).collect();
        assert_eq!(host.read(), (others, 6));
        assert_eq!(host.reader.left.len(), 1);
        for pid in silent {
            host.release(pid);
        }
        assert_eq!(host.read().1, 0);
    }
}
