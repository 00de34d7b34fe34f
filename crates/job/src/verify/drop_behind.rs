//! Drops a job's files from the page cache as it goes along, for a program that gives no hint itself: what `nocache` does from
//! within, from outside.
//!
//! What lies behind the position of an open file is handed to the disk (sync_file_range(2)) if it was written, and dropped
//! (posix_fadvise(2), `POSIX_FADV_DONTNEED`); after it was closed, all of it. A file that was in the cache before the job reached
//! it is left there: others may use it. Files that are opened and closed between two looks are missed.
#![allow(unsafe_code)]

use std::collections::{HashMap, HashSet, VecDeque};
use std::fs::File;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use probe::{NamedCache, Root};
use rustix::fs::{Advice, fadvise, fdatasync};
use units::PageSize;

use crate::observe::OpenFiles;
use crate::touches::FileNumber;

/// Files that are followed at once.
const FILES_MAX: usize = 1024;

/// So much is dropped at once: each call walks the pages of its range.
const STEP: u64 = 4 << 20;

/// How long the disk has before what was handed to it is dropped.
const WRITING: Duration = Duration::from_millis(200);

/// What is this far ahead of the position was not read by the job: read-ahead is less.
const AHEAD_MAX: u64 = 32 << 20;

#[derive(Debug)]
struct BehindFile {
    file: File,
    /// It was in the cache before the job reached it.
    is_of_others: bool,
    is_written: bool,
    position: u64,
    /// Handed to the disk up to here, and when; the last one is the newest.
    handed: VecDeque<(u64, Instant)>,
    dropped: u64,
    closed: Option<Instant>,
}

/// Drops what lies behind the positions of a job.
#[derive(Debug)]
pub(super) struct DropBehind {
    counts: NamedCache,
    files: HashMap<FileNumber, BehindFile>,
    /// Files that could not be opened.
    refused: HashSet<FileNumber>,
}

impl DropBehind {
    pub(super) fn new(page: PageSize) -> Self {
        /// No job is longer.
        const TIME_MAX: Duration = Duration::from_secs(30 * 86_400);
        Self {
            counts: NamedCache::within(&Root::default(), page, TIME_MAX),
            files: HashMap::new(),
            refused: HashSet::new(),
        }
    }

    /// Drops what the job has left behind since the last look.
    pub(super) fn look(&mut self, open: &OpenFiles) {
        let now = Instant::now();
        let mut met = HashSet::new();
        for at in open.positions() {
            met.insert(at.number);
            if !self.files.contains_key(&at.number) {
                if self.files.len() >= FILES_MAX || self.refused.contains(&at.number) {
                    continue;
                }
                let nonblocking = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
                let path = format!("/proc/{}/fd/{}", at.pid, at.descriptor);
                let opened = File::options().read(true).custom_flags(nonblocking).open(path);
                let Ok(file) = opened else {
                    if self.refused.len() < FILES_MAX {
                        self.refused.insert(at.number);
                    }
                    continue;
                };
                let found = at.name.and_then(|name| self.counts.count(Path::new(name)));
                let cached = found.map_or(0, |found| found.cache.cached.get());
                // It went on meanwhile.
                let position = position_of(at.pid, at.descriptor).unwrap_or(u64::MAX);
                self.files.insert(
                    at.number,
                    BehindFile {
                        file,
                        is_of_others: !at.is_written && cached > position.saturating_add(AHEAD_MAX),
                        is_written: false,
                        position: 0,
                        handed: VecDeque::new(),
                        dropped: 0,
                        closed: None,
                    },
                );
            }
            if let Some(file) = self.files.get_mut(&at.number) {
                if file.closed.take().is_some() {
                    // Opened again.
                    file.handed.clear();
                }
                file.is_written |= at.is_written;
                file.position = at.position;
            }
        }
        for (number, file) in &mut self.files {
            if !met.contains(number) && file.closed.is_none() {
                file.closed = Some(now);
                file.hand_over(u64::MAX, now);
            }
            if file.closed.is_none() {
                file.drop_behind(now);
            }
        }
        self.files.retain(|_, file| {
            let is_done = file.closed.is_some_and(|closed| now - closed >= WRITING);
            if is_done {
                file.drop_all();
            }
            !is_done
        });
    }

    /// The job has ended: what it wrote is waited for and dropped, as a program does that syncs before it ends.
    pub(super) fn finish(self) {
        for file in self.files.values() {
            if file.is_written {
                let _ = fdatasync(&file.file);
            }
            file.drop_all();
        }
    }
}

/// How far a process is in a file now.
fn position_of(pid: u32, descriptor: u32) -> Option<u64> {
    let text = std::fs::read(format!("/proc/{pid}/fdinfo/{descriptor}")).ok()?;
    probe::fdinfo_field(&text, "pos")?.parse().ok()
}

impl BehindFile {
    fn drop_behind(&mut self, now: Instant) {
        // Rewound: it reads again from there.
        self.dropped = self.dropped.min(self.position);
        let mut behind = self.position;
        if self.is_written {
            behind = self.dropped;
            let last = self.handed.back().map_or(0, |(end, _)| *end);
            if self.position >= last.saturating_add(STEP) {
                self.hand_over(self.position, now);
            }
            while let Some((end, _)) =
                self.handed.front().copied().filter(|(_, at)| now - *at >= WRITING)
            {
                behind = end;
                self.handed.pop_front();
            }
        }
        if behind >= self.dropped.saturating_add(STEP)
            && let Some(length) = std::num::NonZeroU64::new(behind).filter(|_| !self.is_of_others)
        {
            // From the beginning: what was still being written the last time is dropped now.
            let _ = fadvise(self.file.as_fd(), 0, Some(length), Advice::DontNeed);
            self.dropped = behind;
        }
    }

    fn drop_all(&self) {
        if !self.is_of_others {
            // Without a length it is to the end.
            let _ = fadvise(self.file.as_fd(), 0, None, Advice::DontNeed);
        }
    }

    /// Begins to write what is dirty, without waiting for the disk.
    fn hand_over(&mut self, to: u64, now: Instant) {
        if !self.is_written {
            return;
        }
        let from = self.handed.back().map_or(0, |(end, _)| *end);
        // A length of zero is to the end.
        let length = i64::try_from(to.saturating_sub(from)).unwrap_or(0);
        let from = i64::try_from(from).unwrap_or(0);
        // SAFETY: the descriptor is open during the call, which has no pointer.
        unsafe {
            libc::sync_file_range(self.file.as_raw_fd(), from, length, libc::SYNC_FILE_RANGE_WRITE);
        }
        self.handed.push_back((to, now));
    }
}
