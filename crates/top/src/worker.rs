//! The thread that samples, judges and reads: the view never waits for it.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};

use report::Report;
use report::model::Incident;
use report::model::top::{Course, TopReport};
use timeline::{Source, TimePoint};
use units::{Span, WallClock};

use crate::ViewEvent;
use crate::feed::{Feed, FeedError, OpenedFeed};

/// How long a request is waited for before it is looked whether a sample is due.
const NAP: Span = Span::from_millis(200);
/// What was wrong is looked at when it has lasted for so long, or half of its time, so that there is evidence of it.
const INTO_INCIDENT: Span = Span::from_secs(30);

/// What the view asks for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum WorkerRequest {
    /// To show another moment.
    Go(Move),
    /// To show the same moment whatever is sampled; or no longer.
    Freeze(bool),
    /// With each frame what `check` says of this cgroup; or of none.
    Open(Option<String>),
    /// A capture of the minutes up to the moment.
    Save,
    /// To end with the view.
    End,
}

/// A way to another moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Move {
    /// So many samples on, or back.
    Samples(i32),
    /// So many minutes on, or back.
    Minutes(i32),
    /// To the next incident, or the one before.
    Incident { is_next: bool },
    /// To the first moment.
    Start,
    /// To the last sample, which the next one follows.
    End,
}

/// What the worker has for the view.
#[derive(Debug)]
pub(crate) enum ForView {
    /// A moment; whether it is the last sample.
    Frame { report: Arc<TopReport>, is_last: bool },
    /// How memory ran.
    Courses(Vec<Course>),
    /// What `check` says of the opened cgroup.
    Group(Arc<Report>),
    /// A sentence about what was asked for.
    Message(String),
}

pub(crate) struct ViewWorker {
    feed: OpenedFeed,
    to_view: Sender<ViewEvent>,
    /// The moment that is shown; `None`: the last sample.
    at: Option<TimePoint>,
    is_frozen: bool,
    opened: Option<String>,
    /// The report that is shown.
    shown: Option<Arc<TopReport>>,
    courses: Vec<Course>,
}

impl ViewWorker {
    /// Starts it, once it has its first frame.
    pub(crate) fn start(
        feed: Feed,
        requests: Receiver<WorkerRequest>,
        to_view: Sender<ViewEvent>,
    ) -> Result<(), FeedError> {
        let mut worker = Self {
            feed: feed.open()?,
            to_view,
            at: None,
            is_frozen: false,
            opened: None,
            shown: None,
            courses: Vec::new(),
        };
        worker.feed.sample(Span::ZERO);
        let first = worker.feed.last_frame()?;
        worker.show(first);
        std::thread::spawn(move || worker.run(&requests));
        Ok(())
    }

    fn send(&self, shown: ForView) {
        // Nobody listens once the view has ended.
        let _ = self.to_view.send(ViewEvent::Shown(shown));
    }

    fn message(&self, text: impl Into<String>) {
        self.send(ForView::Message(text.into()));
    }

    fn run(mut self, requests: &Receiver<WorkerRequest>) {
        self.send_courses();
        match self.feed.read_history() {
            Ok(()) => self.send_courses(),
            Err(error) => self.message(format!("the recording cannot be read: {error}")),
        }
        loop {
            let request = match self.feed.sample(Span::ZERO) {
                Some(true) => {
                    self.sampled();
                    requests.try_recv().ok()
                }
                Some(false) => match requests.recv_timeout(NAP.as_duration()) {
                    Ok(request) => Some(request),
                    Err(RecvTimeoutError::Timeout) => None,
                    Err(RecvTimeoutError::Disconnected) => return,
                },
                None => match requests.recv() {
                    Ok(request) => Some(request),
                    Err(_) => return,
                },
            };
            match request {
                Some(WorkerRequest::End) => return,
                Some(request) => self.answer(request),
                None => {}
            }
        }
    }

    /// Shows the new sample where the last one is shown.
    fn sampled(&mut self) {
        if self.at.is_none() && !self.is_frozen {
            self.show_last();
        }
        self.send_courses();
    }

    fn show_last(&mut self) {
        match self.feed.last_frame() {
            Ok(frame) => self.show(frame),
            Err(error) => self.message(error.to_string()),
        }
    }

    fn send_courses(&mut self) {
        // The frame of the last sample has the course of all that is watched.
        let is_last = self.at.is_none() && !self.is_frozen;
        let shown = self.shown.as_ref().filter(|_| is_last);
        self.courses = self.feed.courses(shown.map(|shown| &shown.course));
        self.send(ForView::Courses(self.courses.clone()));
    }

    fn show(&mut self, report: TopReport) {
        let report = Arc::new(report);
        self.shown = Some(Arc::clone(&report));
        self.send(ForView::Frame { report, is_last: self.at.is_none() });
        self.show_opened();
    }

    fn show_opened(&mut self) {
        let Some(path) = self.opened.clone() else { return };
        match self.feed.group(&path, self.at) {
            Some(report) => self.send(ForView::Group(Arc::new(report))),
            None => self.message(format!("{path} is not there at this moment")),
        }
    }

    fn answer(&mut self, request: WorkerRequest) {
        match request {
            WorkerRequest::Go(way) => self.go(way),
            WorkerRequest::Freeze(is_frozen) => {
                self.is_frozen = is_frozen;
                if !is_frozen {
                    self.go(Move::End);
                }
            }
            WorkerRequest::Open(path) => {
                self.opened = path;
                self.show_opened();
            }
            WorkerRequest::Save => match self.save() {
                Ok(path) => self.message(format!("saved {}", path.display())),
                Err(why) => self.message(format!("not saved: {why}")),
            },
            WorkerRequest::End => {}
        }
    }

    fn go(&mut self, way: Move) {
        if way == Move::End {
            self.at = None;
            self.is_frozen = false;
            return self.show_last();
        }
        let Some(to) = self.moment_after(way) else {
            return self.message(match way {
                Move::Incident { is_next: true } => "no incident after this moment",
                Move::Incident { is_next: false } => "no incident before this moment",
                _ => "this source has no time to move in",
            });
        };
        let before = self.shown.clone();
        match self.feed.frame_at(to) {
            Ok(frame) => {
                let is_same =
                    before.is_some_and(|before| before.at == frame.at && before.at_s == frame.at_s);
                self.at = Some(to);
                self.show(frame);
                if is_same {
                    self.message("nothing further");
                }
            }
            // Beyond the last sample there is the last one.
            Err(FeedError::OutOfRange(_)) if matches!(way, Move::Minutes(1..)) => {
                self.go(Move::End);
            }
            Err(error) => self.message(error.to_string()),
        }
    }

    /// The moment that is shown.
    fn now(&self) -> Option<TimePoint> {
        let shown = self.shown.as_ref()?;
        let Some(at) = shown.at else {
            return Some(TimePoint::AfterStart(Span::from_secs_f64(shown.offset_s())));
        };
        Some(TimePoint::At(wall(at)))
    }

    fn moment_after(&self, way: Move) -> Option<TimePoint> {
        let now = self.now()?;
        let by = |span: Span, is_later: bool| match now {
            TimePoint::At(at) if is_later => TimePoint::At(at.plus(span)),
            TimePoint::At(at) => TimePoint::At(at.minus(span)),
            TimePoint::AfterStart(at) if is_later => TimePoint::AfterStart(at.plus(span)),
            TimePoint::AfterStart(at) => TimePoint::AfterStart(at.saturating_sub(span)),
            TimePoint::BeforeEnd(_) => now,
        };
        match way {
            // Samples come a little early or late: half of the distance beyond the one that is meant, the next is not reached.
            Move::Samples(count) => {
                let samples = (f64::from(count) + 0.5).abs();
                Some(by(self.feed.interval().times(samples), count > 0))
            }
            Move::Minutes(count) => {
                Some(by(Span::from_mins(1).times(f64::from(count).abs()), count > 0))
            }
            Move::Start => {
                let first = self.courses.first()?;
                Some(
                    first.from.map_or(TimePoint::AfterStart(Span::ZERO), |from| {
                        TimePoint::At(wall(from))
                    }),
                )
            }
            // The sample that is shown may lie before the moment that was asked for: the same incident is not the next one.
            Move::Incident { is_next } => self.incident(self.at.unwrap_or(now), is_next),
            Move::End => None,
        }
    }

    /// The moment of the next incident after this one, or of the last before it.
    fn incident(&self, now: TimePoint, is_next: bool) -> Option<TimePoint> {
        let all = self.courses.iter().flat_map(|course| &course.incidents);
        let moments = all.filter(|one| one.is_listed()).map(moment_of);
        let now = position(now)?;
        let apart = moments.filter_map(|moment| Some((position(moment)?, moment)));
        let found = if is_next {
            apart.filter(|(at, _)| *at > now).min_by_key(|(at, _)| *at)
        } else {
            apart.filter(|(at, _)| *at < now).max_by_key(|(at, _)| *at)
        };
        found.map(|(_, moment)| moment)
    }

    /// Writes a capture of the minutes up to the moment into the working directory.
    fn save(&mut self) -> Result<PathBuf, String> {
        let source = self.feed.kept(self.at).ok_or("there is nothing to save")?;
        let shown = self.shown.as_ref().ok_or("there is nothing to save")?;
        let time = match shown.at {
            Some(at) => at.strftime("%Y%m%dT%H%M%SZ").to_string(),
            None => format!("{:.0}s", shown.at_s),
        };
        let path = PathBuf::from(format!("memtide-top-{time}.jsonl.zst"));
        let file =
            File::create_new(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let written = write_capture(&source, file, &path);
        written.map_err(|error| {
            let _ = std::fs::remove_file(&path);
            error.to_string()
        })?;
        Ok(path)
    }
}

fn write_capture(source: &Source, file: File, path: &Path) -> std::io::Result<()> {
    use export::Exporter as _;
    let mut packed = export::Packed::over(file, path)?;
    export::Capture.export(source, &export::Picks::default(), &mut packed)?;
    packed.finish()
}

/// A moment in nanoseconds, on the wall clock or from the start of a source that has none; `None` where it counts from the end.
fn position(moment: TimePoint) -> Option<i128> {
    match moment {
        TimePoint::At(at) => Some(at.unix_nanos().into()),
        TimePoint::AfterStart(after) => Some(after.as_nanos().into()),
        TimePoint::BeforeEnd(_) => None,
    }
}

/// A moment at which the incident can be seen.
fn moment_of(incident: &Incident) -> TimePoint {
    let lasts = Span::from_secs_f64(incident.to_s - incident.from_s);
    let into = lasts.times(0.5).min(INTO_INCIDENT);
    match incident.from {
        Some(from) => TimePoint::At(wall(from).plus(into)),
        None => TimePoint::AfterStart(Span::from_secs_f64(incident.from_s).plus(into)),
    }
}

/// A time of a report on the wall clock. Reports write milliseconds, so it is the end of that one.
fn wall(at: jiff::Timestamp) -> WallClock {
    let nanos = i64::try_from(at.as_nanosecond()).unwrap_or(i64::MAX);
    WallClock::from_unix_nanos(nanos).plus(Span::from_nanos(999_999))
}
