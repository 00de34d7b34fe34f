//! Where frames come from: this host while it is watched, with its recording behind it; a recording; another source; captures that
//! others write meanwhile.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::{Duration, Instant};

use answers::this_host::{self, Besides, WatchedHost};
use import::OpenError;
use probe::Root;
use report::Report;
use report::model::top::{Course, TopReport};
use sampler::RECENT;
use timeline::{Facts, OutOfRange, Source, SourceKind, TimePoint, TimeRange, Timeline};
use units::{Span, WallClock};

/// A frame is about a moment and the minutes before it.
const MINUTES_BEFORE: Span = Span::from_mins(10);
/// How much of a recording is shown behind what is watched.
const HISTORY: Span = Span::from_hours(1);
/// The recording is read again when so much more of what was watched is forgotten.
const HISTORY_AGAIN: Span = Span::from_mins(5);
/// Reading a capture that grows may take this part of the time.
const READING_SHARE: u32 = 10;
/// Judging may take this part of the time. An engineering choice.
const JUDGING_SHARE: u32 = 50;
/// A judgement is not shown for longer than this, whatever the next one takes.
const JUDGED_AGE_MAX: Duration = Duration::from_secs(10);

/// What a view shows.
#[derive(Debug)]
pub enum Feed {
    /// This host while it is watched.
    Live(LiveFeed),
    /// A recording, of which a part is read for each moment.
    Recording(PathBuf, Option<String>),
    /// A source in memory.
    Source(Box<Source>, Option<String>),
    /// What runs elsewhere and is captured into files here.
    Run(Receiver<RunNews>),
}

/// News of a run that is captured while it is shown.
#[derive(Debug)]
pub enum RunNews {
    /// Samples are written into another capture from now on.
    Capture {
        /// How it is called on the screen.
        name: String,
        /// Where it is.
        path: PathBuf,
    },
    /// Something new began, in a few words.
    Phase(String),
    /// The run has ended, and the view with it.
    End,
}

/// What a feed has since it was last asked.
#[derive(Debug, PartialEq)]
pub(crate) enum FeedStep {
    Nothing,
    Sampled,
    /// A sentence for whoever watches.
    Note(String),
    /// There will be nothing more to show.
    Ended,
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
    Run(Box<FollowedRun>),
}

/// A run of which the last capture is read again and again.
struct FollowedRun {
    news: Receiver<RunNews>,
    /// The last capture, and how it is called.
    capture: Option<(String, PathBuf)>,
    /// How many bytes of the capture are read.
    read: u64,
    /// Before this it is not read again: reading has its share of the time, as judging has.
    next: Instant,
    source: Source,
}

struct Live {
    host: WatchedHost,
    root: Root,
    recording: Option<PathBuf>,
    judged: Option<LastJudgement>,
    /// Of the cgroup that is opened.
    opened: Option<(String, LastJudgement)>,
    /// Until when its recording was read, or is being read.
    history_until: Option<WallClock>,
}

/// A part of a recording that is read to show how memory ran.
#[derive(Debug)]
pub(crate) struct HistoryPart {
    path: PathBuf,
    range: TimeRange,
    root: Root,
}

impl HistoryPart {
    /// Reads it, which may take seconds.
    pub(crate) fn read(self) -> Result<Course, FeedError> {
        Ok(answers::course(&open(&self.path, self.range, &self.root)?))
    }
}

/// The last judgement, when it ended, and what it took.
struct LastJudgement {
    report: Report,
    ended: Instant,
    took: Duration,
}

impl LastJudgement {
    /// Notes what was found since `begun`.
    fn since(begun: Instant, report: Report) -> Self {
        Self { report, took: begun.elapsed(), ended: Instant::now() }
    }

    /// Whether it is time for the next one.
    fn is_due(&self) -> bool {
        self.ended.elapsed() >= (self.took * JUDGING_SHARE).min(JUDGED_AGE_MAX)
    }
}

impl Feed {
    pub(crate) const fn is_live(&self) -> bool {
        matches!(self, Self::Live(_) | Self::Run(_))
    }

    pub(crate) fn open(self) -> Result<OpenedFeed, FeedError> {
        let opened = |kind, group| OpenedFeed { kind, group, history: Vec::new(), shown: None };
        Ok(match self {
            Self::Live(live) => {
                let host = WatchedHost::open(&live.root, live.every, MINUTES_BEFORE);
                let kind = OpenedKind::Live(Box::new(Live {
                    host,
                    root: live.root,
                    recording: live.recording,
                    judged: None,
                    opened: None,
                    history_until: None,
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
            Self::Run(news) => opened(OpenedKind::Run(Box::new(FollowedRun::begin(news)?)), None),
        })
    }
}

impl OpenedFeed {
    /// Takes two samples of this host, so that there are rates.
    pub(crate) fn watch_a_little(&mut self) {
        if let OpenedKind::Live(live) = &mut self.kind {
            for _ in 0..2 {
                std::thread::sleep(live.host.until_due().as_duration());
                live.host.take();
            }
        }
    }

    /// Takes a sample of this host if one is due, or reads what others have captured since.
    pub(crate) fn step(&mut self) -> FeedStep {
        match &mut self.kind {
            OpenedKind::Live(live) if live.host.until_due() == Span::ZERO => {
                live.host.take();
                FeedStep::Sampled
            }
            OpenedKind::Run(run) => run.step(),
            _ => FeedStep::Nothing,
        }
    }

    /// How long it is until there may be something new; `None` where there never will.
    pub(crate) fn due(&self) -> Option<Span> {
        match &self.kind {
            OpenedKind::Live(live) => Some(live.host.until_due()),
            OpenedKind::Run(_) => Some(FollowedRun::EVERY),
            OpenedKind::Recording(_) | OpenedKind::Source(_) => None,
        }
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
            (OpenedKind::Live(live), None, _) => Some(live.group(path)),
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
            OpenedKind::Run(run) => {
                all.push(last.cloned().unwrap_or_else(|| answers::course(&run.source)));
            }
            OpenedKind::Source(source) if all.is_empty() => {
                self.history = vec![answers::course(source)];
                all.clone_from(&self.history);
            }
            _ => {}
        }
        all
    }

    /// What is to be read of the time before: of this host the hour of its recording before what is still known, again where much of
    /// that was forgotten; of a recording all of it, once. `None`: nothing new.
    pub(crate) fn history(&mut self) -> Option<HistoryPart> {
        match &mut self.kind {
            OpenedKind::Live(live) => {
                let (path, begin) = (live.recording.clone()?, live.begin()?);
                let is_new =
                    live.history_until.is_none_or(|until| begin >= until.plus(HISTORY_AGAIN));
                live.history_until = is_new.then_some(begin).or(live.history_until);
                let range = TimeRange::before(TimePoint::At(begin), HISTORY);
                is_new.then(|| HistoryPart { path, range, root: live.root.clone() })
            }
            OpenedKind::Recording(path) if self.history.is_empty() => Some(HistoryPart {
                path: path.clone(),
                range: TimeRange::default(),
                root: Root::default(),
            }),
            _ => None,
        }
    }

    /// Takes what was read of the time before.
    pub(crate) fn remember(&mut self, course: Course) {
        self.history = vec![course];
    }

    /// Whether new samples come.
    pub(crate) const fn is_live(&self) -> bool {
        matches!(self.kind, OpenedKind::Live(_) | OpenedKind::Run(_))
    }

    /// The moment of the sample after the one that is shown at a moment, or before it; `None` where there is none.
    pub(crate) fn neighbour(&mut self, at: TimePoint, is_next: bool) -> Option<TimePoint> {
        match &mut self.kind {
            OpenedKind::Live(live) => {
                let is_watched = live.is_watched(at);
                let recorded =
                    |live: &Live| neighbour_recorded(live.recording.as_deref()?, at, is_next);
                let before = (!is_watched).then(|| recorded(live)).flatten();
                before
                    .or_else(|| neighbour_in(live.host.source(), at, is_next))
                    .or_else(|| if is_watched && !is_next { recorded(live) } else { None })
            }
            OpenedKind::Recording(path) => neighbour_recorded(path, at, is_next),
            OpenedKind::Source(source) => neighbour_in(source, at, is_next),
            OpenedKind::Run(run) => neighbour_in(&run.source, at, is_next),
        }
    }

    /// The minutes up to the moment that is shown, to be kept.
    pub(crate) fn kept(&mut self, at: Option<TimePoint>) -> Option<Source> {
        match (&mut self.kind, at) {
            (OpenedKind::Live(live), None) => Some(live.host.source().clone()),
            _ => self.shown.clone(),
        }
    }

    fn part(&mut self, at: TimePoint) -> Result<Source, FeedError> {
        let range = TimeRange::before(at, MINUTES_BEFORE);
        match &mut self.kind {
            OpenedKind::Live(live) => {
                let is_watched = live.is_watched(at);
                match (&live.recording, is_watched) {
                    (Some(path), false) => open(path, range, &live.root),
                    // All of it is watched for these minutes: reports of the time before stay.
                    _ => {
                        let range = TimeRange { until: Some(at), ..TimeRange::default() };
                        let source = live.host.source().clone();
                        source.within(range).map_err(FeedError::OutOfRange)
                    }
                }
            }
            OpenedKind::Recording(path) => open(path, range, &Root::default()),
            OpenedKind::Source(source) => {
                source.as_ref().clone().within(range).map_err(FeedError::OutOfRange)
            }
            OpenedKind::Run(run) => run.source.clone().within(range).map_err(FeedError::OutOfRange),
        }
    }
}

impl FollowedRun {
    /// How often it is looked for new samples.
    const EVERY: Span = Span::from_millis(250);

    /// Waits for the first samples.
    fn begin(news: Receiver<RunNews>) -> Result<Self, FeedError> {
        let source = Source::new(SourceKind::Live, "", Timeline::default(), Facts::default());
        let mut run = Self { news, capture: None, read: 0, next: Instant::now(), source };
        loop {
            match run.step() {
                FeedStep::Sampled => return Ok(run),
                FeedStep::Ended => return Err(FeedError::Empty("the run".to_owned())),
                FeedStep::Nothing | FeedStep::Note(_) => {
                    std::thread::sleep(Self::EVERY.as_duration());
                }
            }
        }
    }

    fn step(&mut self) -> FeedStep {
        let mut note = None;
        loop {
            match self.news.try_recv() {
                Ok(RunNews::Capture { name, path }) => {
                    self.capture = Some((name, path));
                    self.read = 0;
                }
                Ok(RunNews::Phase(text)) => note = Some(text),
                Ok(RunNews::End) | Err(TryRecvError::Disconnected) => return FeedStep::Ended,
                Err(TryRecvError::Empty) => break,
            }
        }
        if let Some(text) = note {
            return FeedStep::Note(text);
        }
        let begun = Instant::now();
        if begun < self.next || self.read_new().is_none() {
            return FeedStep::Nothing;
        }
        self.next = Instant::now() + begun.elapsed() * READING_SHARE;
        FeedStep::Sampled
    }

    /// Reads the capture anew if there is more of it. A file that is gone, or has no sample yet, leaves what is shown.
    fn read_new(&mut self) -> Option<()> {
        let (name, path) = self.capture.as_ref()?;
        let len = std::fs::metadata(path).ok()?.len();
        if len <= self.read {
            return None;
        }
        let mut bytes = std::fs::read(path).ok()?;
        // The last line is still being written.
        bytes.truncate(bytes.iter().rposition(|byte| *byte == b'\n')? + 1);
        let source = import::open_bytes(name, &bytes).ok()?;
        if source.timeline.len() < 2 {
            return None;
        }
        self.read = len;
        self.source = source;
        Some(())
    }
}

/// The moment of the sample after the last one that is not after `at`, or of the one before it.
fn neighbour_in(source: &Source, at: TimePoint, is_next: bool) -> Option<TimePoint> {
    let timeline = &source.timeline;
    let begin = timeline.times().first().copied().unwrap_or_default();
    let moment = |index: usize| match at {
        TimePoint::At(_) => Some(TimePoint::At(timeline.stamp(index)?.wall?)),
        _ => Some(TimePoint::AfterStart(timeline.times().get(index)?.saturating_sub(begin))),
    };
    let is_later = |index: usize| match (moment(index), at) {
        (Some(TimePoint::At(one)), TimePoint::At(at)) => one > at,
        (Some(TimePoint::AfterStart(one)), TimePoint::AfterStart(at)) => one > at,
        _ => false,
    };
    let shown = (0..timeline.len()).rev().find(|index| !is_later(*index));
    match (shown, is_next) {
        (None, true) => moment(0),
        (None, false) => None,
        (Some(shown), true) => moment(shown + 1),
        (Some(shown), false) => moment(shown.checked_sub(1)?),
    }
}

/// As [`neighbour_in`], in a recording: near the moment each sample is read, further away what is kept of it.
fn neighbour_recorded(path: &Path, at: TimePoint, is_next: bool) -> Option<TimePoint> {
    [Span::from_mins(2), Span::from_hours(24), Span::from_hours(24 * 366)].into_iter().find_map(
        |far| {
            let range = if is_next {
                TimeRange { since: Some(at), until: Some(at.later(far)) }
            } else {
                TimeRange::before(at, far)
            };
            let part = answers::open_screened(path, range, &mut |_| ()).ok()?;
            neighbour_in(&part, at, is_next)
        },
    )
}

/// Reads a part of a recording, with the names of its containers.
fn open(path: &Path, range: TimeRange, root: &Root) -> Result<Source, FeedError> {
    let mut source =
        answers::open_screened(path, range, &mut |_| ()).map_err(|error| match error {
            OpenError::OutOfRange { why, .. } => FeedError::OutOfRange(why),
            error => FeedError::Open(error),
        })?;
    // Nothing is searched for, so nothing can fail.
    let _ = this_host::complete(root, &mut source, Besides::default());
    Ok(source)
}

impl Live {
    /// When the first sample was taken that is still known.
    fn begin(&mut self) -> Option<WallClock> {
        self.host.source().timeline.stamp(0)?.wall
    }

    /// Whether a moment is one of what is watched, rather than before it.
    fn is_watched(&mut self, at: TimePoint) -> bool {
        match (at, self.begin()) {
            (TimePoint::At(at), Some(begin)) => at >= begin,
            _ => true,
        }
    }

    /// What `check` says of a cgroup now, or what it found shortly before.
    fn group(&mut self, path: &str) -> Report {
        let known = self.opened.take().filter(|(known, judged)| known == path && !judged.is_due());
        let judged = known.map_or_else(
            || {
                let begun = Instant::now();
                let report = answers::check_now(self.host.source(), RECENT, Some(path));
                LastJudgement::since(begun, report)
            },
            |(_, judged)| judged,
        );
        let report = judged.report.clone();
        self.opened = Some((path.to_owned(), judged));
        report
    }

    fn course(&mut self) -> Course {
        let judged = self.judged.as_ref().map(|judged| judged.report.incidents.clone());
        Course::new(self.host.source(), judged.unwrap_or_default())
    }

    fn frame(&mut self, group: Option<&str>) -> TopReport {
        let source = self.host.named_source();
        let known = self.judged.as_ref().filter(|judged| !judged.is_due());
        let still = known.map(|judged| judged.report.clone());
        let is_new = still.is_none();
        let begun = Instant::now();
        let report = answers::top(source, RECENT, group, still);
        if is_new {
            self.judged = Some(LastJudgement::since(begun, report.check.clone()));
        }
        report
    }
}
