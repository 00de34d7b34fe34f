//! The thread that samples, judges and reads: the view never waits for it.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};

use report::Report;
use report::model::Incident;
use report::model::top::{Course, TopReport};
use report::text::top::TopMoment;
use timeline::{Source, TimePoint};
use units::{Span, WallClock};

use crate::ViewEvent;
use crate::feed::{Feed, FeedError, FeedStep, OpenedFeed};

/// What was wrong is looked at when it has lasted for so long, or half of its time, so that there is evidence of it.
const INTO_INCIDENT: Span = Span::from_secs(30);

/// So many steps that arrived together are taken together; each may read a part of a recording.
const SAMPLES_AT_ONCE: u32 = 100;

/// What the view asks for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum WorkerRequest {
    /// To show another moment.
    Go(Move),
    /// To stay at the moment that is shown whatever is sampled, or to go on with the last sample.
    Freeze,
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

/// Where a way leads.
enum MoveTarget {
    At(TimePoint),
    /// To the last sample.
    End,
    /// Nowhere, and why.
    Nowhere(&'static str),
}

/// What arrives for the worker.
#[derive(Debug)]
pub(crate) enum ForWorker {
    /// The view asks.
    Request(WorkerRequest),
    /// How memory ran before was read.
    History(Result<Box<Course>, FeedError>),
}

/// What the worker has for the view.
#[derive(Debug)]
pub(crate) enum ForView {
    /// A moment, and whether it moves on.
    Frame { report: Arc<TopReport>, moment: TopMoment },
    /// How memory ran.
    Courses(Vec<Course>),
    /// What `check` says of the cgroup that was opened; `None` where it is not there at that moment.
    Group(String, Option<Arc<Report>>),
    /// A sentence about what was asked for.
    Message(String),
}

pub(crate) struct ViewWorker {
    feed: OpenedFeed,
    to_view: Sender<ViewEvent>,
    to_self: Sender<ForWorker>,
    /// The moment that is shown; `None`: the last sample.
    at: Option<TimePoint>,
    /// Whether it is the one at which the view was frozen.
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
        (to_self, requests): (Sender<ForWorker>, Receiver<ForWorker>),
        to_view: Sender<ViewEvent>,
    ) -> Result<(), FeedError> {
        let mut worker = Self {
            feed: feed.open()?,
            to_view,
            to_self,
            at: None,
            is_frozen: false,
            opened: None,
            shown: None,
            courses: Vec::new(),
        };
        worker.feed.step();
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

    fn run(mut self, requests: &Receiver<ForWorker>) {
        self.send_courses();
        self.read_history();
        let mut waiting = None;
        loop {
            match self.feed.step() {
                FeedStep::Nothing => {}
                FeedStep::Sampled => self.sampled(),
                FeedStep::Note(text) => self.message(text),
                FeedStep::Ended => {
                    let _ = self.to_view.send(ViewEvent::End);
                    return;
                }
            }
            let first = match (waiting.take(), self.feed.due()) {
                (Some(waiting), _) => Ok(waiting),
                (None, Some(due)) => requests.recv_timeout(due.as_duration()),
                (None, None) => requests.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            let arrived = first.map(|first| {
                let (arrived, other) = merged(first, requests);
                waiting = other;
                arrived
            });
            match arrived {
                Ok(ForWorker::Request(WorkerRequest::End))
                | Err(RecvTimeoutError::Disconnected) => return,
                Ok(ForWorker::Request(request)) => self.answer(request),
                Ok(ForWorker::History(Ok(course))) => {
                    self.feed.remember(*course);
                    self.send_courses();
                }
                Ok(ForWorker::History(Err(error))) => {
                    self.message(format!("the recording cannot be read: {error}"));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// Shows the new sample where the last one is shown.
    fn sampled(&mut self) {
        if self.at.is_none() {
            self.show_last();
        }
        self.send_courses();
        self.read_history();
    }

    /// Reads how memory ran before, in a thread: a week of it may take seconds.
    fn read_history(&mut self) {
        let Some(part) = self.feed.history() else { return };
        let to_self = self.to_self.clone();
        std::thread::spawn(move || {
            // The view may have ended meanwhile.
            let _ = to_self.send(ForWorker::History(part.read().map(Box::new)));
        });
    }

    fn show_last(&mut self) {
        match self.feed.last_frame() {
            Ok(frame) => self.show(frame),
            Err(error) => self.message(error.to_string()),
        }
    }

    fn send_courses(&mut self) {
        // The frame of the last sample has the course of all that is watched.
        let shown = self.shown.as_ref().filter(|_| self.at.is_none());
        self.courses = self.feed.courses(shown.map(|shown| &shown.course));
        self.send(ForView::Courses(self.courses.clone()));
    }

    fn show(&mut self, report: TopReport) {
        let report = Arc::new(report);
        self.shown = Some(Arc::clone(&report));
        self.send(ForView::Frame { report, moment: self.moment() });
        self.show_opened();
    }

    fn moment(&self) -> TopMoment {
        match (self.feed.is_live(), self.at) {
            (false, _) => TopMoment::Replay,
            (true, None) => TopMoment::Live,
            (true, Some(_)) if self.is_frozen => TopMoment::Frozen,
            (true, Some(_)) => TopMoment::Earlier,
        }
    }

    fn show_opened(&mut self) {
        let Some(path) = self.opened.clone() else { return };
        let report = self.feed.group(&path, self.at);
        self.send(ForView::Group(path, report.map(Arc::new)));
    }

    fn answer(&mut self, request: WorkerRequest) {
        match request {
            WorkerRequest::Go(way) => self.go(way),
            WorkerRequest::Freeze if !self.feed.is_live() => {}
            WorkerRequest::Freeze if self.at.is_some() => self.go(Move::End),
            WorkerRequest::Freeze => {
                if let Some(now) = self.now() {
                    self.is_frozen = true;
                    self.show_at(now, Move::End);
                }
            }
            WorkerRequest::Open(path) => {
                self.opened = path;
                self.show_opened();
            }
            WorkerRequest::Save => self.save(),
            WorkerRequest::End => {}
        }
    }

    fn go(&mut self, way: Move) {
        self.is_frozen = false;
        match self.target(way) {
            MoveTarget::At(to) => self.show_at(to, way),
            MoveTarget::End => {
                let was_there = self.at.is_none() && !self.feed.is_live();
                self.at = None;
                self.show_last();
                if was_there {
                    self.message("nothing further");
                }
            }
            MoveTarget::Nowhere(why) => self.message(why),
        }
    }

    fn show_at(&mut self, to: TimePoint, way: Move) {
        match self.feed.frame_at(to) {
            Ok(frame) => {
                self.at = Some(to);
                self.show(frame);
            }
            // Beyond an end there is the sample at that end.
            Err(FeedError::OutOfRange(_)) if matches!(way, Move::Minutes(1..)) => {
                self.go(Move::End);
            }
            Err(FeedError::OutOfRange(_)) if matches!(way, Move::Minutes(_)) => {
                self.go(Move::Start);
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

    fn target(&mut self, way: Move) -> MoveTarget {
        let Some(now) = self.now() else {
            return MoveTarget::Nowhere("this source has no time to move in");
        };
        match way {
            Move::Samples(count) => {
                let mut to = None;
                for _ in 0..count.unsigned_abs().min(SAMPLES_AT_ONCE) {
                    let Some(next) = self.feed.neighbour(to.unwrap_or(now), count > 0) else {
                        if count > 0 {
                            return MoveTarget::End;
                        }
                        break;
                    };
                    to = Some(next);
                }
                to.map_or(MoveTarget::Nowhere("nothing before this sample"), MoveTarget::At)
            }
            Move::Minutes(count) => {
                let by = Span::from_mins(1).times(f64::from(count).abs());
                MoveTarget::At(if count > 0 { now.later(by) } else { now.earlier(by) })
            }
            Move::Start => match self.courses.first() {
                Some(Course { from: Some(from), .. }) => MoveTarget::At(TimePoint::At(wall(*from))),
                Some(_) => MoveTarget::At(TimePoint::AfterStart(Span::ZERO)),
                None => MoveTarget::Nowhere("this source has no time to move in"),
            },
            // The sample that is shown may lie before the moment that was asked for: the same incident is not the next one.
            Move::Incident { is_next } => match self.incident(self.at.unwrap_or(now), is_next) {
                Some(at) => MoveTarget::At(at),
                None if is_next => MoveTarget::Nowhere("no incident after this moment"),
                None => MoveTarget::Nowhere("no incident before this moment"),
            },
            Move::End => MoveTarget::End,
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

    /// Writes a capture of the minutes up to the moment into the working directory, in a thread: it may take seconds.
    fn save(&mut self) {
        let (Some(source), Some(shown)) = (self.feed.kept(self.at), &self.shown) else {
            return self.message("not saved: there is nothing to save");
        };
        let time = match shown.at {
            Some(at) => at.strftime("%Y%m%dT%H%M%SZ").to_string(),
            None => format!("{:.0}s", shown.at_s),
        };
        let path = PathBuf::from(format!("memtide-top-{time}.jsonl.zst"));
        self.message(format!("writing {} …", path.display()));
        let to_view = self.to_view.clone();
        std::thread::spawn(move || {
            let text = match put_capture(&source, &path) {
                Ok(()) => format!("saved {}", path.display()),
                Err(error) => format!("not saved: {}: {error}", path.display()),
            };
            // The view may have ended meanwhile.
            let _ = to_view.send(ViewEvent::Shown(ForView::Message(text)));
        });
    }
}

/// What arrived first, with the moves that arrived after it where it is one: only where they lead is shown. And what arrived behind
/// those, if anything.
fn merged(first: ForWorker, more: &Receiver<ForWorker>) -> (ForWorker, Option<ForWorker>) {
    let ForWorker::Request(WorkerRequest::Go(mut way)) = first else { return (first, None) };
    while let Ok(next) = more.try_recv() {
        way = match (way, &next) {
            (_, ForWorker::Request(WorkerRequest::Go(to @ (Move::Start | Move::End)))) => *to,
            (Move::Samples(one), ForWorker::Request(WorkerRequest::Go(Move::Samples(other)))) => {
                Move::Samples(one.saturating_add(*other))
            }
            (Move::Minutes(one), ForWorker::Request(WorkerRequest::Go(Move::Minutes(other)))) => {
                Move::Minutes(one.saturating_add(*other))
            }
            _ => return (ForWorker::Request(WorkerRequest::Go(way)), Some(next)),
        };
    }
    (ForWorker::Request(WorkerRequest::Go(way)), None)
}

/// Writes a new file, which is whole or not there.
fn put_capture(source: &Source, path: &Path) -> std::io::Result<()> {
    let file = File::create_new(path)?;
    write_capture(source, file, path).inspect_err(|_| {
        let _ = std::fs::remove_file(path);
    })
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::sync::mpsc;

    use super::*;

    /// A worker over a labelled capture, and what it shows.
    struct Shown {
        worker: ViewWorker,
        events: Receiver<ViewEvent>,
    }

    impl Shown {
        fn of(case: &str) -> Self {
            let path = Path::new(env!("CARGO_MANIFEST_DIR"))
                .join(format!("../../corpus/captures/{case}/capture.jsonl.gz"));
            let source = import::open(&path, &mut |_| ()).unwrap();
            let (to_view, events) = mpsc::channel();
            let feed = Feed::Source(Box::new(source), None).open().unwrap();
            let mut worker = ViewWorker {
                feed,
                to_view,
                to_self: mpsc::channel().0,
                at: None,
                is_frozen: false,
                opened: None,
                shown: None,
                courses: Vec::new(),
            };
            worker.show_last();
            worker.send_courses();
            Self { worker, events }
        }

        /// The second that is shown after a way.
        fn go(&mut self, way: Move) -> f64 {
            self.worker.answer(WorkerRequest::Go(way));
            // To a quarter of a second: samples are a little early or late.
            (self.worker.shown.as_ref().unwrap().offset_s() * 4.0).round() / 4.0
        }

        fn last_message(&self) -> Option<String> {
            self.events
                .try_iter()
                .filter_map(|event| match event {
                    ViewEvent::Shown(ForView::Message(text)) => Some(text),
                    _ => None,
                })
                .last()
        }
    }

    #[test]
    fn each_step_is_one_sample_and_an_end_is_an_end() {
        let mut shown = Shown::of("cgroup-cache-starved--6.12-80m");
        // A sample each second from 0 to 23 s, and a last one 0.02 s later.
        assert_eq!(shown.go(Move::Start), 0.0);
        assert_eq!(shown.go(Move::Samples(-1)), 0.0);
        assert_eq!(shown.last_message().as_deref(), Some("nothing before this sample"));
        assert_eq!(shown.go(Move::Samples(1)), 1.0);
        assert_eq!(shown.go(Move::Samples(1)), 2.0);
        assert_eq!(shown.go(Move::Samples(-1)), 1.0);
        assert_eq!(shown.go(Move::Samples(4)), 5.0);
        assert_eq!(shown.go(Move::Minutes(60)), 23.0);
        assert_eq!(shown.go(Move::Samples(-2)), 22.0);
        assert_eq!(shown.go(Move::Samples(9)), 23.0);
        assert_eq!(shown.go(Move::End), 23.0);
        assert_eq!(shown.last_message().as_deref(), Some("nothing further"));
        assert_eq!(shown.go(Move::Minutes(-60)), 0.0);
    }

    #[test]
    fn an_incident_is_found_once() {
        let mut shown = Shown::of("cgroup-cache-starved--6.12-80m");
        shown.go(Move::Start);
        let at = shown.go(Move::Incident { is_next: true });
        assert!(at > 0.0, "{at}");
        assert_eq!(shown.go(Move::Incident { is_next: true }), at);
        assert_eq!(shown.last_message().as_deref(), Some("no incident after this moment"));
    }
}
