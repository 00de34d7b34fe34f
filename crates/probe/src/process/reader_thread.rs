//! Reading one small file of many processes in another thread, which is left behind at a process that does not answer.
//!
//! `io` of a process, and on 6.18 also `stat` and its links (`exe`, `fd/`), wait while the process starts another program (`exec_update_lock`). That ends at
//! once, unless one of the files that exec(2) closes lies on a file system that does not answer: a dead NFS server, or FUSE of
//! the user. No state shows it, and nothing calls the reader back. As long as the thread waits, this file of the process is not read
//! again. After a few such processes of a user no file of his is waited for; root's are read on.
//!
//! The files are asked for 64 at a time: a change of threads costs 10 µs, as much as one of them. Once buffers have their size
//! nothing is allocated, unless a process does not answer.

use std::fmt::Write as _;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use rustix::io::Errno;
use units::Span;

use crate::directory::Directory;
use crate::process::SILENT_AFTER;
use crate::process::status::StatusFacts;
use crate::process::timed_read::{TICK, Waiting};

/// Files that are asked for at once.
const ASKED_MAX: usize = 64;
/// For how many processes of a user a thread may wait at a time; of all users but root; and of all.
const LEFT_OF_USER_MAX: usize = 4;
const LEFT_OF_USERS_MAX: usize = 16;
const LEFT_MAX: usize = 32;
/// The thread only opens and reads.
const STACK_BYTES: usize = 128 << 10;

/// The text of a file, or why there is none.
pub(crate) type TextRead<'a> = Result<&'a [u8], Errno>;

/// Reads one file of processes.
#[derive(Debug)]
pub(crate) struct ReaderThread {
    proc: PathBuf,
    name: &'static str,
    thread: Option<Thread>,
    left: Vec<LeftBehind>,
}

#[derive(Debug)]
struct Thread {
    shared: Arc<Exchange>,
    waiting: Waiting,
}

/// A thread that waits for a process.
#[derive(Debug)]
struct LeftBehind {
    shared: Arc<Exchange>,
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
    /// Whether nobody waits for more.
    is_over: bool,
}

impl ReaderThread {
    /// Creates a reader of `name` in the directories below `proc`. Its thread is started when it is first needed.
    pub(crate) fn new(proc: PathBuf, name: &'static str) -> Self {
        Self {
            proc,
            name,
            thread: None,
            left: Vec::new(),
        }
    }

    /// Reads the file of each process, and passes the text on, in the same order. Each has [`SILENT_AFTER`] and `more` to answer.
    /// Returns how many did not, or were not asked, because they or too many others of their user did not before.
    pub(crate) fn each(
        &mut self,
        pids: impl IntoIterator<Item = u32>,
        more: Span,
        see: &mut dyn FnMut(u32, TextRead<'_>),
    ) -> usize {
        self.left.retain(LeftBehind::is_waiting);
        let mut pids = pids.into_iter();
        // Fewer than ASKED_MAX: what a thread had still to read when it was left behind.
        let mut rest = Vec::new();
        let mut silent = 0;
        loop {
            let Some(mut thread) = self.thread.take().or_else(|| self.start()) else {
                return silent + rest.len() + pids.count();
            };
            let shared = Arc::clone(&thread.shared);
            let mut asked = shared.lock();
            asked.clear();
            for pid in rest.drain(..).chain(&mut pids) {
                if self.is_refused(pid) {
                    silent += 1;
                    continue;
                }
                asked.pids.push(pid);
                if asked.pids.len() == ASKED_MAX {
                    break;
                }
            }
            if asked.pids.is_empty() {
                self.thread = Some(thread);
                return silent;
            }
            shared.changed.notify_all();
            let (mut asked, at) = thread.wait(&shared, asked, SILENT_AFTER.plus(more));
            asked.each(see);
            let Some(at) = at else {
                self.thread = Some(thread);
                continue;
            };
            silent += 1;
            asked.is_over = true;
            rest.extend_from_slice(&asked.pids[at + 1..]);
            let pid = asked.pids[at];
            drop(asked);
            let uid = self.uid(pid);
            self.left.push(LeftBehind { shared, pid, uid });
        }
    }

    /// Reads the file of one process, and passes the text on. Returns whether it answered.
    pub(crate) fn one(&mut self, pid: u32, more: Span, see: &mut dyn FnMut(TextRead<'_>)) -> bool {
        self.each([pid], more, &mut |_, read| see(read)) == 0
    }

    /// Starts a thread, if there is room for one.
    fn start(&self) -> Option<Thread> {
        let proc = Directory::open(&self.proc).ok()?;
        let (shared, waiting) = (Arc::<Exchange>::default(), Waiting::default());
        let (own, number, name) = (Arc::clone(&shared), waiting.number(), self.name);
        let builder = std::thread::Builder::new()
            .name("memtide-proc".to_owned())
            .stack_size(STACK_BYTES);
        let run = move || {
            number.set();
            own.serve(&proc, name);
        };
        builder.spawn(run).ok()?;
        Some(Thread { shared, waiting })
    }

    /// Whether a process is not asked: a thread waits for it, or for too many others.
    fn is_refused(&self, pid: u32) -> bool {
        if self.left.iter().any(|left| left.pid == pid) {
            return true;
        }
        if self.left.len() < LEFT_OF_USER_MAX {
            return false;
        }
        let uid = self.uid(pid);
        if uid == Some(0) {
            return self.left.len() >= LEFT_MAX;
        }
        let of_user = self.left.iter().filter(|left| left.uid == uid).count();
        self.left.len() >= LEFT_OF_USERS_MAX || of_user >= LEFT_OF_USER_MAX
    }

    /// Reads to whom the process belongs. The owner of its directory is root also for what a user made undumpable.
    fn uid(&self, pid: u32) -> Option<u32> {
        let process = Directory::open(&self.proc).and_then(|proc| proc.below(pid));
        let mut text = Vec::new();
        process.ok()?.read_record(b"status", &mut text).ok()?;
        StatusFacts::parse(&text).uid
    }
}

impl Drop for ReaderThread {
    fn drop(&mut self) {
        if let Some(thread) = &self.thread {
            thread.shared.lock().is_over = true;
            thread.shared.changed.notify_all();
        }
    }
}

impl Thread {
    /// Waits until all are read, or one process had too long. Returns the place of that one.
    fn wait<'a>(
        &mut self,
        shared: &'a Exchange,
        mut asked: MutexGuard<'a, AskedFiles>,
        most: Span,
    ) -> (MutexGuard<'a, AskedFiles>, Option<usize>) {
        self.waiting.restart();
        let mut answered = 0;
        loop {
            let began = Instant::now();
            let waited = shared
                .changed
                .wait_timeout_while(asked, TICK, AskedFiles::has_more);
            asked = waited.unwrap_or_else(PoisonError::into_inner).0;
            if !asked.has_more() {
                return (asked, None);
            }
            if asked.answers.len() > answered {
                answered = asked.answers.len();
                self.waiting.restart();
                continue;
            }
            // It must not wait for this lock meanwhile.
            drop(asked);
            self.waiting.note(began);
            asked = shared.lock();
            if self.waiting.is_over(most) && asked.answers.len() == answered && asked.has_more() {
                return (asked, Some(answered));
            }
        }
    }
}

impl LeftBehind {
    fn is_waiting(&self) -> bool {
        // The thread has the other one.
        Arc::strong_count(&self.shared) > 1
    }
}

impl Exchange {
    fn lock(&self) -> MutexGuard<'_, AskedFiles> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads what is asked for until nobody waits for more.
    fn serve(&self, proc: &Directory, name: &str) {
        let (mut path, mut text) = (String::new(), Vec::new());
        let mut asked = self.lock();
        while !asked.is_over {
            if !asked.has_more() {
                self.changed.notify_all();
                let waited = self
                    .changed
                    .wait_while(asked, |it| !it.has_more() && !it.is_over);
                asked = waited.unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let pid = asked.pids[asked.answers.len()];
            drop(asked);
            path.clear();
            // Writing to a string cannot fail.
            let _ = write!(path, "{pid}/{name}");
            let read = proc.read_record(path.as_bytes(), &mut text);
            asked = self.lock();
            asked.answer(read.map(|()| text.as_slice()));
        }
    }
}

impl AskedFiles {
    fn has_more(&mut self) -> bool {
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
    use std::fs;

    #[test]
    fn more_than_a_batch_comes_in_order_and_what_is_missing_is_an_error() {
        let proc = tempfile::tempdir().unwrap();
        let pids = 1..=150; // Two batches and a part.
        for pid in pids.clone().filter(|pid| *pid != 70) {
            let process = proc.path().join(pid.to_string());
            fs::create_dir(&process).unwrap();
            fs::write(process.join("stat"), format!("text of {pid}")).unwrap();
        }
        let mut reader = ReaderThread::new(proc.path().to_owned(), "stat");
        for _ in 0..2 {
            let mut seen = Vec::new();
            let silent = reader.each(pids.clone(), Span::ZERO, &mut |pid, read| {
                match read {
                    Ok(text) => assert_eq!(text, format!("text of {pid}").as_bytes()),
                    Err(errno) => assert_eq!((pid, errno), (70, Errno::NOENT)),
                }
                seen.push(pid);
            });
            assert_eq!((seen, silent), (pids.clone().collect(), 0));
        }
    }

    #[test]
    fn without_a_directory_nobody_answers() {
        let mut reader = ReaderThread::new("/proc/none".into(), "stat");
        let silent = reader.each([7, 8], Span::ZERO, &mut |_, _| panic!("nothing is read"));
        assert_eq!(silent, 2);
    }
}
