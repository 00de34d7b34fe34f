//! The state of a writer, readable while it writes. The sampler counts without a lock; only the text of the last error
//! has one, for which no sampler waits.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicU64, Ordering::Relaxed};

use units::{Bytes, WallClock};

use crate::directory::pinned::PinnedDirectory;

/// The state of a recording's disk.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum DiskState {
    /// Writes succeed.
    #[default]
    Ok,
    /// The disk is full, and all parts that may be dropped were dropped. Writes are retried.
    Full,
    /// The file system is read-only. Writes are retried.
    ReadOnly,
    /// The directory is gone. Writes are retried.
    Vanished,
    /// Another error. Writes are retried.
    Failed(String),
}

/// Describes the error, or says that there is none.
impl std::fmt::Display for DiskState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Ok => "nothing is wrong",
            Self::Full => "the disk is full",
            Self::ReadOnly => "the file system is read-only",
            Self::Vanished => "the directory is gone",
            Self::Failed(why) => why,
        })
    }
}

/// The state of a writer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WriterState {
    /// Samples that are on disk, synced.
    pub samples_written: u64,
    /// Samples lost because the disk could not be written.
    pub samples_lost: u64,
    /// Parts of the recording that were dropped because the disk was full, oldest first.
    pub parts_dropped: u64,
    /// Since when samples are lost; `None` while they are written.
    pub lost_since: Option<WallClock>,
    /// The state of the disk.
    pub disk: DiskState,
    /// Bytes that are only in memory.
    pub waiting: Bytes,
    /// The last error, in words; it may be over.
    pub last_error: Option<String>,
    /// Sequence number of the head file that is being written.
    pub sequence: u64,
    /// The directory's new path, if it was renamed or another took its place; recording goes on in it.
    pub moved_to: Option<PathBuf>,
}

/// State shared by the sampler, the disk thread and observers.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) written: AtomicU64,
    pub(crate) lost: AtomicU64,
    /// Parts dropped from a full disk.
    pub(crate) dropped: AtomicU64,
    /// Nanoseconds of the wall clock; `i64::MIN` if the source has none.
    lost_since: AtomicI64,
    pub(crate) losing: AtomicBool,
    /// Bytes in the sampler's buffer, and in the disk thread's.
    pub(crate) filling: AtomicU64,
    pub(crate) flushing: AtomicU64,
    pub(crate) sequence: AtomicU64,
    disk: AtomicU8,
    /// Whether the writer ends: the disk thread must try only once more.
    pub(crate) closing: AtomicBool,
    /// Whether earlier frames are lost: the next sample must be complete.
    pub(crate) begin_anew: AtomicBool,
    /// Whether the disk thread has facts that are not written yet.
    pub(crate) facts_pending: AtomicBool,
    /// Whether the directory was removed and recording goes on in a new one, until an event reports it.
    pub(crate) is_replaced: AtomicBool,
    /// Whether the directory was moved, until an event reports it.
    pub(crate) is_moved: AtomicBool,
    place: Mutex<RecordingPlace>,
    last_error: Mutex<Option<String>>,
}

/// Where the recording is.
#[derive(Debug)]
struct RecordingPlace {
    pinned: PinnedDirectory,
    moved_to: Option<PathBuf>,
}

const OK: u8 = 0;
const FULL: u8 = 1;
const READ_ONLY: u8 = 2;
const VANISHED: u8 = 3;
const FAILED: u8 = 4;

impl Shared {
    pub(crate) fn new(pinned: PinnedDirectory) -> Self {
        let place = RecordingPlace { pinned, moved_to: None };
        Self {
            written: AtomicU64::default(),
            lost: AtomicU64::default(),
            dropped: AtomicU64::default(),
            lost_since: AtomicI64::default(),
            losing: AtomicBool::default(),
            filling: AtomicU64::default(),
            flushing: AtomicU64::default(),
            sequence: AtomicU64::default(),
            disk: AtomicU8::default(),
            closing: AtomicBool::default(),
            begin_anew: AtomicBool::default(),
            facts_pending: AtomicBool::default(),
            is_replaced: AtomicBool::default(),
            is_moved: AtomicBool::default(),
            place: Mutex::new(place),
            last_error: Mutex::default(),
        }
    }

    /// Sets the directory that is written, a new one.
    pub(crate) fn place_is(&self, pinned: PinnedDirectory) {
        self.with_place(|place| {
            place.pinned = pinned;
            place.moved_to = None;
        });
        self.is_replaced.store(true, Relaxed);
    }

    /// Sets where the directory went. Returns whether that is news.
    pub(crate) fn moved(&self, to: Option<PathBuf>) -> bool {
        let is_news = self.with_place(|place| {
            let is_news = place.moved_to != to;
            place.moved_to = to;
            is_news
        });
        self.is_moved.fetch_or(is_news, Relaxed);
        is_news
    }

    /// Returns where the directory was found, and where it is now; `None` while that is being changed.
    pub(crate) fn moves(&self) -> Option<(String, String)> {
        let place = self.place.try_lock().ok()?;
        let shown = |path: &Path| path.display().to_string();
        let from = place.pinned.name();
        Some((shown(from), shown(place.moved_to.as_deref().unwrap_or(from))))
    }

    /// Returns the directory that is written.
    pub(crate) fn pinned(&self) -> PinnedDirectory {
        self.with_place(|place| place.pinned.clone())
    }

    fn with_place<T>(&self, work: impl FnOnce(&mut RecordingPlace) -> T) -> T {
        let place = self.place.lock();
        // Nothing in it can be half done.
        work(&mut place.unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    pub(crate) fn lose(&self, wall: Option<WallClock>) {
        self.lost.fetch_add(1, Relaxed);
        if !self.losing.swap(true, Relaxed) {
            let nanos = wall.map_or(i64::MIN, WallClock::unix_nanos);
            self.lost_since.store(nanos, Relaxed);
        }
    }

    pub(crate) fn disk_is_well(&self) {
        self.disk.store(OK, Relaxed);
    }

    /// Stores the state of the disk and its error.
    pub(crate) fn disk_is(&self, state: &DiskState, error: String) {
        let code = match state {
            DiskState::Ok => OK,
            DiskState::Full => FULL,
            DiskState::ReadOnly => READ_ONLY,
            DiskState::Vanished => VANISHED,
            DiskState::Failed(_) => FAILED,
        };
        self.disk.store(code, Relaxed);
        self.note_error(error);
    }

    pub(crate) fn note_error(&self, error: String) {
        if let Ok(mut last) = self.last_error.lock() {
            *last = Some(error);
        }
    }

    pub(crate) fn state(&self) -> WriterState {
        let last_error = self.last_error.try_lock().ok().and_then(|last| last.clone());
        let disk = match self.disk.load(Relaxed) {
            OK => DiskState::Ok,
            FULL => DiskState::Full,
            READ_ONLY => DiskState::ReadOnly,
            VANISHED => DiskState::Vanished,
            _ => DiskState::Failed(last_error.clone().unwrap_or_default()),
        };
        let since = self.lost_since.load(Relaxed);
        let losing = self.losing.load(Relaxed) && since != i64::MIN;
        WriterState {
            samples_written: self.written.load(Relaxed),
            samples_lost: self.lost.load(Relaxed),
            parts_dropped: self.dropped.load(Relaxed),
            lost_since: losing.then(|| WallClock::from_unix_nanos(since)),
            disk,
            waiting: Bytes::new(self.filling.load(Relaxed) + self.flushing.load(Relaxed)),
            last_error,
            sequence: self.sequence.load(Relaxed),
            moved_to: self.with_place(|place| place.moved_to.clone()),
        }
    }
}
