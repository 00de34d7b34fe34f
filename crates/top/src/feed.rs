//! Where frames come from: this host while it is watched, with its recording behind it; a recording; another source.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use answers::this_host::{self, Besides};
use import::OpenError;
use probe::{ProcessDetail, Root};
use report::Report;
use report::model::top::{Course, TopReport};
use sampler::{RECENT, WatchOptions, Watcher};
use timeline::{OutOfRange, Source, SourceKind, TimePoint, TimeRange};
use units::{Span, WallClock};

/// A frame is about a moment and the minutes before it.
const MINUTES_BEFORE: Span = Span::from_mins(10);
/// How much of a recording is shown behind what is watched.
const HISTORY: Span = Span::from_hours(1);
/// With every tenth sample the PSS of the largest processes is read.
const PSS_EVERY: Option<NonZeroUsize> = NonZeroUsize::new(10);
/// Names of containers are read again as often as settings.
const NAMES_EVERY: Duration = Duration::from_secs(60);
/// Judging may take this part of the time. An engineering choice.
const JUDGING_SHARE: u32 = 50;

/// What a view shows.
#[derive(Debug)]
pub enum Feed {
    /// This host while it is watched.
    Live(LiveFeed),
    /// A recording, of which a part is read for each moment.
    Recording(PathBuf, Option<String>),
    /// A source in memory.
    Source(Box<Source>, Option<String>),
}

/// How this host is watched.
#[derive(Debug, Clone)]
pub struct LiveFeed {
    /// The host's files.
    pub root: Root,
    /// From one sample to the next.
    pub every: Span,
    /// The cgroup that it is about; `None`: all of the host.
    pub group: Option<String>,
    /// This host's recording, for the time before.
    pub recording: Option<PathBuf>,
}

/// Why a moment cannot be shown.
#[derive(Debug, thiserror::Error)]
pub enum FeedError {
    /// The file cannot be read.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The source has nothing then.
    #[error("there is no sample at that time")]
    OutOfRange(OutOfRange),
    /// The source has no sample at all.
    #[error("{0} has no sample to show")]
    Empty(String),
}

/// A feed that frames are taken from.
pub(crate) struct OpenedFeed {
    kind: OpenedKind,
    group: Option<String>,
    /// How memory ran before what is watched, or over all of a source.
    history: Vec<Course>,
    /// The source that was shown last.
    shown: Option<Source>,
}

enum OpenedKind {
    Live(Box<Live>),
    Recording(PathBuf),
    Source(Box<Source>),
}

struct Live {
    watcher: Watcher,
    root: Root,
    recording: Option<PathBuf>,
    /// When names of containers were read.
    named: Option<Instant>,
    judged: Option<LastJudgement>,
}

/// The last judgement, when it ended, and what it took.
struct LastJudgement {
    report: Report,
    ended: Instant,
    took: Duration,
}

impl Feed {
    pub(crate) const fn is_live(&self) -> bool {
        matches!(self, Self::Live(_))
    }

    pub(crate) fn open(self) -> Result<OpenedFeed, FeedError> {
        let opened = |kind, group| OpenedFeed { kind, group, history: Vec::new(), shown: None };
        Ok(match self {
            Self::Live(live) => {
                let watcher = Watcher::open(
                    &live.root,
                    WatchOptions {
                        duration: Span::from_hours(24 * 3_650),
                        every: live.every,
                        last: ProcessDetail::COMPLETE,
                        recent: RECENT,
                        window: Some(MINUTES_BEFORE),
                        pss_every: PSS_EVERY,
                    },
                );
                let kind = OpenedKind::Live(Box::new(Live {
                    watcher,
                    root: live.root,
                    recording: live.recording,
                    named: None,
                    judged: None,
                }));
                opened(kind, live.group)
            }
            Self::Recording(path, group) => opened(OpenedKind::Recording(path), group),
            Self::Source(source, group) => {
                if source.timeline.is_empty() {
                    return Err(FeedError::Empty(source.origin.name.clone()));
                }
                opened(OpenedKind::Source(source), group)
            }
        })
    }
}

impl OpenedFeed {
    /// Takes two samples of this host, so that there are rates.
    pub(crate) fn watch_a_little(&mut self) {
        if let OpenedKind::Live(live) = &mut self.kind {
            for _ in 0..2 {
                while !live.watcher.wait(Span::from_secs(1)) {}
                live.watcher.take();
            }
        }
    }

    /// Takes a sample if one is due, or waits for it, at most so long. Returns whether one was taken; `None` where the source
    /// is not this host.
    pub(crate) fn sample(&mut self, at_most: Span) -> Option<bool> {
        let OpenedKind::Live(live) = &mut self.kind else { return None };
        let is_due = live.watcher.wait(at_most);
        if is_due {
            live.watcher.take();
        }
        Some(is_due)
    }

    /// The frame of the last sample.
    pub(crate) fn last_frame(&mut self) -> Result<TopReport, FeedError> {
        let group = self.group.as_deref();
        match &mut self.kind {
            OpenedKind::Live(live) => Ok(live.frame(group)),
            _ => self.frame_at(TimePoint::BeforeEnd(Span::ZERO)),
        }
    }

    /// The frame of the last sample at or before a moment.
    pub(crate) fn frame_at(&mut self, at: TimePoint) -> Result<TopReport, FeedError> {
        let source = self.part(at)?;
        let report = answers::top(&source, RECENT, self.group.as_deref(), None);
        self.shown = Some(source);
        Ok(report)
    }

    /// What `check` says of a cgroup at the moment that is shown: `at`, or the last sample.
    pub(crate) fn group(&mut self, path: &str, at: Option<TimePoint>) -> Option<Report> {
        match (&mut self.kind, at, &self.shown) {
            (OpenedKind::Live(live), None, _) => {
                Some(answers::check_now(live.watcher.source(), RECENT, Some(path)))
            }
            (_, _, Some(shown)) => Some(answers::check_now(shown, RECENT, Some(path))),
            _ => None,
        }
    }

    /// How memory ran, in order of time: what was before, then what is watched, `last` where the frame of the last sample has
    /// that already.
    pub(crate) fn courses(&mut self, last: Option<&Course>) -> Vec<Course> {
        let mut all = self.history.clone();
        match &mut self.kind {
            OpenedKind::Live(live) => {
                all.push(last.cloned().unwrap_or_else(|| live.course()));
            }
            OpenedKind::Source(source) if all.is_empty() => {
                self.history = vec![answers::course(source)];
                all.clone_from(&self.history);
            }
            _ => {}
        }
        all
    }

    /// Reads what was before: of this host the last hour of its recording, of a recording all of it.
    pub(crate) fn read_history(&mut self) -> Result<(), FeedError> {
        let source = match &mut self.kind {
            OpenedKind::Live(live) => {
                let Some(path) = live.recording.clone() else { return Ok(()) };
                let Some(begin) = live.begin() else { return Ok(()) };
                let range = TimeRange::before(TimePoint::At(begin), HISTORY);
                open(&path, range, &live.root)?
            }
            OpenedKind::Recording(path) => open(path, TimeRange::default(), &Root::default())?,
            OpenedKind::Source(_) => return Ok(()),
        };
        self.history = vec![answers::course(&source)];
        Ok(())
    }

    /// The distance of samples at the moment that is shown.
    pub(crate) fn interval(&self) -> Span {
        let usual = || match &self.kind {
            OpenedKind::Source(source) => source.timeline.interval(),
            _ => None,
        };
        let shown = self.shown.as_ref().and_then(|shown| shown.timeline.interval());
        shown.or_else(usual).unwrap_or(Span::from_secs(1))
    }

    /// The minutes up to the moment that is shown, to be kept.
    pub(crate) fn kept(&mut self, at: Option<TimePoint>) -> Option<Source> {
        match (&mut self.kind, at) {
            (OpenedKind::Live(live), None) => Some(live.watcher.source().clone()),
            _ => self.shown.clone(),
        }
    }

    fn part(&mut self, at: TimePoint) -> Result<Source, FeedError> {
        let range = TimeRange::before(at, MINUTES_BEFORE);
        match &mut self.kind {
            OpenedKind::Live(live) => {
                let is_watched = match (at, live.begin()) {
                    (TimePoint::At(at), Some(begin)) => at >= begin,
                    _ => true,
                };
                match (&live.recording, is_watched) {
                    (Some(path), false) => Ok(open(path, range, &live.root)?),
                    // All of it is watched for these minutes: reports of the time before stay.
                    _ => {
                        let range = TimeRange { until: Some(at), ..TimeRange::default() };
                        let source = live.watcher.source().clone();
                        source.within(range).map_err(FeedError::OutOfRange)
                    }
                }
            }
            OpenedKind::Recording(path) => Ok(open(path, range, &Root::default())?),
            OpenedKind::Source(source) => {
                source.as_ref().clone().within(range).map_err(FeedError::OutOfRange)
            }
        }
    }
}

/// Reads a part of a recording, with the names of its containers.
fn open(path: &Path, range: TimeRange, root: &Root) -> Result<Source, OpenError> {
    let mut source = answers::open_screened(path, range, &mut |_| ())?;
    // Nothing is searched for, so nothing can fail.
    let _ = this_host::complete(root, &mut source, Besides::default());
    Ok(source)
}

impl Live {
    /// When the first sample was taken that is still known.
    fn begin(&mut self) -> Option<WallClock> {
        self.watcher.source().timeline.stamp(0)?.wall
    }

    fn course(&mut self) -> Course {
        let judged = self.judged.as_ref().map(|judged| judged.report.incidents.clone());
        Course::new(self.watcher.source(), judged.unwrap_or_default())
    }

    fn frame(&mut self, group: Option<&str>) -> TopReport {
        let is_due = |then: Instant, every: Duration| then.elapsed() >= every;
        let source = self.watcher.source();
        if self.named.is_none_or(|then| is_due(then, NAMES_EVERY)) {
            self.named = Some(Instant::now());
            debug_assert_eq!(source.origin.kind, SourceKind::Live);
            let _ = this_host::complete(&self.root, source, Besides::default());
        }
        let still = self
            .judged
            .as_ref()
            .filter(|judged| !is_due(judged.ended, judged.took * JUDGING_SHARE))
            .map(|judged| judged.report.clone());
        let is_new = still.is_none();
        let begun = Instant::now();
        let report = answers::top(source, RECENT, group, still);
        if is_new {
            let judged = LastJudgement {
                report: report.check.clone(),
                took: begun.elapsed(),
                ended: Instant::now(),
            };
            self.judged = Some(judged);
        }
        report
    }
}
