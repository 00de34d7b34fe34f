//! What is served: this host while it is watched, a recording that a recorder may go on writing, or what a file has.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::{io, thread};

use answers::this_host::{self, Besides, WatchedHost};
use import::OpenOptions;
use probe::Root;
use store::Recording;
use timeline::{Source, SourceKind, TimePoint, TimeRange};
use tokio::sync::watch;
use units::{Span, WallClock};

use crate::ServeError;
use crate::refusal::Unanswered;

/// What every answer is about.
#[derive(Debug)]
pub enum ServedSource {
    /// This host, watched by the server itself.
    Live(LiveSource),
    /// A recording; a recorder may be writing to it.
    Recording(PathBuf),
    /// Anything else, which was read once.
    Read(Box<Source>),
}

/// How this host is watched.
#[derive(Debug, Clone)]
pub struct LiveSource {
    /// The host's files.
    pub root: Root,
    /// From one sample to the next.
    pub every: Span,
    /// How much is remembered.
    pub window: Span,
}

/// What of a recording is shown where no range is named: the time that one looks back when something is wrong now.
const USUAL_RANGE: Span = Span::from_hours(1);
/// A recorder takes a sample a second.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// A recorder takes a sample a second, or one in ten minutes at most: after so long without one it has ended.
pub(crate) const LATE: Span = Span::from_mins(20);
/// At the start nobody waits longer for the second sample.
const WAITED_MAX: Span = Span::from_secs(2);
/// How long the sampling thread waits before it looks whether the server has ended.
const NAP: Span = Span::from_millis(200);

/// The source that is served, as it is at any moment.
pub(crate) struct SourceFeed {
    kind: FeedKind,
    pulse: watch::Sender<Pulse>,
}

enum FeedKind {
    Live { watched: Box<Mutex<WatchedHost>>, root: Root },
    Recording(PathBuf),
    Read(Box<Source>),
}

/// How a source goes on.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pulse {
    /// Another number each time that there is something new.
    pub(crate) version: u64,
    /// When the last sample was taken.
    pub(crate) last_sample: Option<WallClock>,
    /// Since when there is nothing to read any more, and why.
    pub(crate) gone: Option<Unanswered>,
}

/// The thread that follows a source; it ends with this value.
pub(crate) struct Following(Arc<AtomicBool>);

impl Drop for Following {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl std::fmt::Debug for SourceFeed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SourceFeed").field("pulse", &self.pulse()).finish_non_exhaustive()
    }
}

/// What a thread left behind that failed while it held the lock is as complete as before.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SourceFeed {
    /// Opens what is served.
    ///
    /// # Errors
    /// If a recording cannot be read, or a file has no sample.
    pub(crate) fn open(source: ServedSource) -> Result<Self, ServeError> {
        let kind = match source {
            ServedSource::Live(live) => {
                let mut watched = WatchedHost::open(&live.root, live.every, live.window);
                watched.take();
                // With a second one there are rates, and charts on the first page that is asked for.
                if live.every <= WAITED_MAX {
                    thread::sleep(watched.until_due().as_duration());
                    watched.take();
                }
                FeedKind::Live { watched: Box::new(Mutex::new(watched)), root: live.root }
            }
            ServedSource::Recording(path) => {
                Recording::open(&path).map_err(import::OpenError::from)?;
                FeedKind::Recording(path)
            }
            ServedSource::Read(source) => {
                if source.timeline.is_empty() {
                    return Err(ServeError::Empty(source.origin.name.clone()));
                }
                FeedKind::Read(source)
            }
        };
        let feed = Self { kind, pulse: watch::Sender::default() };
        feed.look();
        Ok(feed)
    }

    /// Whether more samples may come.
    pub(crate) fn grows(&self) -> bool {
        !matches!(self.kind, FeedKind::Read(_))
    }

    /// How old the last sample is.
    pub(crate) fn age(&self) -> Option<Span> {
        let last = self.pulse().last_sample?;
        Some(probe::now().wall?.saturating_since(last))
    }

    /// Whether what it shows goes on now: a recording to which nobody writes is of the past.
    pub(crate) fn goes_on(&self) -> bool {
        match self.kind {
            FeedKind::Live { .. } => true,
            FeedKind::Recording(_) => self.age().is_none_or(|age| age <= LATE),
            FeedKind::Read(_) => false,
        }
    }

    /// Whether it is this host, watched by the server itself.
    pub(crate) fn is_live(&self) -> bool {
        matches!(self.kind, FeedKind::Live { .. })
    }

    /// The name of this host, where the server watches it: its samples have none.
    pub(crate) fn title(&self) -> Option<String> {
        match &self.kind {
            FeedKind::Live { root, .. } => probe::host_facts::hostname(root),
            _ => None,
        }
    }

    /// The recording's directory.
    pub(crate) fn recording(&self) -> Option<&Path> {
        match &self.kind {
            FeedKind::Recording(path) => Some(path),
            _ => None,
        }
    }

    /// How the source goes on.
    pub(crate) fn pulse(&self) -> Pulse {
        self.pulse.borrow().clone()
    }

    /// Returns what wakes each time that the source goes on.
    pub(crate) fn pulses(&self) -> watch::Receiver<Pulse> {
        self.pulse.subscribe()
    }

    /// Follows the source in a thread of its own: samples this host, or looks whether a recording has grown.
    pub(crate) fn follow(self: &Arc<Self>) -> io::Result<Following> {
        let has_ended = Arc::new(AtomicBool::new(false));
        if self.grows() {
            let (feed, ends) = (Arc::clone(self), Arc::clone(&has_ended));
            let thread = thread::Builder::new().name("follow".to_owned());
            thread.spawn(move || {
                while !ends.load(Ordering::Relaxed) {
                    feed.go_on();
                }
            })?;
        }
        Ok(Following(has_ended))
    }

    fn go_on(&self) {
        match &self.kind {
            FeedKind::Live { watched, .. } => {
                // Who asks for an answer meanwhile does not wait for the next sample.
                let due = locked(watched).until_due();
                if due == Span::ZERO {
                    locked(watched).take();
                    self.look();
                } else {
                    thread::sleep(due.min(NAP).as_duration());
                }
            }
            _ => {
                thread::sleep(LOOK_EVERY);
                self.look();
            }
        }
    }

    /// Notes how the source goes on.
    fn look(&self) {
        match &self.kind {
            FeedKind::Live { watched, .. } => {
                let last = end_of(locked(watched).source());
                self.pulse.send_modify(|pulse| {
                    pulse.version += 1;
                    pulse.last_sample = last;
                });
            }
            FeedKind::Recording(path) => {
                let known = self.pulse();
                match Recording::mark(path) {
                    Ok(version) if version == known.version && known.gone.is_none() => {}
                    Ok(version) => {
                        let last_sample = last_sample(path).or(known.last_sample);
                        self.pulse.send_replace(Pulse { version, last_sample, gone: None });
                    }
                    Err(_) if known.gone.is_some() => {}
                    Err(why) => {
                        self.is_gone(gone(path, &why));
                    }
                }
            }
            FeedKind::Read(source) => {
                self.pulse.send_modify(|pulse| pulse.last_sample = end_of(source));
            }
        }
    }

    /// Notes that there is nothing to read any more; returns the reason that was found first.
    fn is_gone(&self, why: Unanswered) -> Unanswered {
        self.pulse.send_modify(|pulse| {
            pulse.gone.get_or_insert(why.clone());
        });
        self.pulse().gone.unwrap_or(why)
    }

    /// The range that is meant where none is named.
    pub(crate) fn usual_range(&self) -> TimeRange {
        match self.kind {
            FeedKind::Recording(_) => {
                TimeRange { since: Some(TimePoint::BeforeEnd(USUAL_RANGE)), until: None }
            }
            _ => TimeRange::default(),
        }
    }

    /// The path by which an answer reads it once more; empty where nothing is read again.
    pub(crate) fn path(&self) -> &Path {
        self.recording().unwrap_or_else(|| Path::new(""))
    }

    /// Returns what a range holds now, in the detail that a judgement needs.
    pub(crate) fn judged(&self, range: TimeRange) -> Result<Source, Unanswered> {
        self.read(range, |path| answers::open_screened(path, range, &mut |_| ()))
    }

    /// The same in the detail that events need.
    pub(crate) fn with_events(&self, range: TimeRange) -> Result<Source, Unanswered> {
        self.read(range, |path| answers::open_for_events(path, range, &mut |_| ()))
    }

    /// The same, as these options say.
    pub(crate) fn part(&self, options: OpenOptions) -> Result<Source, Unanswered> {
        self.read(options.range, |path| answers::open(path, options, &mut |_| ()))
    }

    fn read(
        &self,
        range: TimeRange,
        open: impl FnOnce(&Path) -> Result<Source, import::OpenError>,
    ) -> Result<Source, Unanswered> {
        if range.is_backwards() {
            return Err(Unanswered::bad(
                "the range ends before it begins: `since` is later than `until`",
            ));
        }
        let of_memory = |source: Source| {
            let name = match source.origin.kind {
                SourceKind::Live => "this host, as far as it was watched,".to_owned(),
                _ => source.origin.name.clone(),
            };
            source.within(range).map_err(|why| import::OpenError::OutOfRange { name, why }.into())
        };
        match &self.kind {
            FeedKind::Live { watched, .. } => {
                let source = locked(watched).named_source().clone();
                of_memory(source)
            }
            FeedKind::Read(source) => of_memory(source.as_ref().clone()),
            FeedKind::Recording(path) => match open(path) {
                Ok(mut source) => {
                    // Nothing is searched for, so nothing can fail.
                    let _ = this_host::complete(&Root::default(), &mut source, Besides::default());
                    Ok(source)
                }
                Err(error) => Err(match Recording::mark(path) {
                    Ok(_) => error.into(),
                    Err(why) => self.is_gone(gone(path, &why)),
                }),
            },
        }
    }
}

/// When the last sample of a source was taken.
fn end_of(source: &Source) -> Option<WallClock> {
    let last = source.timeline.len().checked_sub(1)?;
    source.timeline.stamp(last)?.wall
}

fn last_sample(directory: &Path) -> Option<WallClock> {
    let recording = Recording::open(directory).ok()?;
    recording.span().map(|(_, last)| last)
}

fn gone(directory: &Path, why: &io::Error) -> Unanswered {
    let path = directory.display();
    let text = match why.kind() {
        io::ErrorKind::NotFound => {
            format!("the recording {path} is gone: it was deleted or moved while it was served")
        }
        _ => format!("the recording {path} cannot be read any more: {why}"),
    };
    Unanswered::later(text).with_help(format!(
        "a recorder that lost its directory must be started again; `memtide record --status --to {path}` says how it is"
    ))
}
