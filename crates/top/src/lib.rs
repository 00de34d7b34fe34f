//! The live view of memory in a terminal, and the same screen over a recording or another file.
//!
//! Three threads, each with one job: the [`worker`] samples and judges, a reader waits for keys, and this one draws
//! what it has. So no key waits for a judgement. A frame is made by `report::text::top`; here are only the choices of the
//! reader ([`State`]) and the terminal.

mod feed;
mod keys;
mod state;
mod terminal;
mod worker;

use std::sync::mpsc;

use report::Screen;
use report::model::top::TopReport;
use report::text::TextPage;
use report::text::top::{TopMoment, TopView, frame};

pub use feed::{Feed, FeedError, LiveFeed, RunNews};
pub use state::State;

use worker::{ForView, ForWorker, ViewWorker, WorkerRequest};

/// Why there is no view, or why it ended.
#[derive(Debug, thiserror::Error)]
pub enum TopError {
    /// The source cannot be read.
    #[error(transparent)]
    Feed(#[from] FeedError),
    /// The terminal cannot be read or written.
    #[error("the terminal failed")]
    Terminal(#[source] std::io::Error),
}

/// Returns one frame of the last sample as text, of so many lines at most; the source is watched for two samples first where
/// it is this host.
///
/// # Errors
/// [`TopError`] if the source cannot be read.
pub fn once(
    feed: Feed,
    view: &TopView,
    (screen, lines): (&Screen, usize),
) -> Result<String, TopError> {
    let (report, courses) = last(feed)?;
    let courses: Vec<_> = courses.iter().collect();
    let drawn = frame(&report, &courses, view, None, (screen, lines));
    let mut page = TextPage::new(screen);
    // The keys mean nothing on paper.
    let body = drawn.lines.split_last().map_or(&[][..], |(_, body)| body);
    let end = body.iter().rposition(|line| !line.is_empty()).map_or(0, |last| last + 1);
    // A panel that does not fill its room leaves no empty lines on paper.
    for line in &body[..end] {
        if line.is_empty() { page.gap() } else { page.line(line) }
    }
    Ok(page.finish())
}

/// Returns the frame of the last sample as data.
///
/// # Errors
/// As [`once`].
pub fn report(feed: Feed) -> Result<TopReport, TopError> {
    Ok(last(feed)?.0)
}

fn last(feed: Feed) -> Result<(TopReport, Vec<report::model::top::Course>), TopError> {
    let mut opened = feed.open()?;
    opened.watch_a_little();
    let report = opened.last_frame()?;
    let courses = opened.courses(Some(&report.course));
    Ok((report, courses))
}

/// Shows the view until it is ended by a key or a signal. The terminal is as before then, whatever ended it.
///
/// # Errors
/// [`TopError`] if the source cannot be read or the terminal fails.
pub fn run(feed: Feed, screen: Screen, view: TopView) -> Result<(), TopError> {
    let is_live = feed.is_live();
    let (to_ui, events) = mpsc::channel();
    let (to_worker, requests) = mpsc::channel();
    ViewWorker::start(feed, (to_worker.clone(), requests), to_ui.clone())?;
    let mut terminal = terminal::Terminal::open(screen.colour).map_err(TopError::Terminal)?;
    terminal::read_keys(to_ui.clone());
    terminal::listen_to_signals(to_ui).map_err(TopError::Terminal)?;
    let moment = if is_live { TopMoment::Live } else { TopMoment::Replay };
    let mut state = State::new(TopView { moment, ..view }, screen);
    let result = show(&mut state, &mut terminal, &events, &to_worker);
    drop(terminal);
    // It may be busy reading; it ends with the channel.
    let _ = to_worker.send(ForWorker::Request(WorkerRequest::End));
    result
}

/// An event of the view.
#[derive(Debug)]
pub(crate) enum ViewEvent {
    /// The worker has something new.
    Shown(ForView),
    /// A key was pressed.
    Key(ratatui::crossterm::event::KeyEvent),
    /// The terminal has another size.
    Resized,
    /// A signal asks to end.
    End,
    /// A signal has continued this process.
    Continued,
}

fn show(
    state: &mut State,
    terminal: &mut terminal::Terminal,
    events: &mpsc::Receiver<ViewEvent>,
    worker: &mpsc::Sender<ForWorker>,
) -> Result<(), TopError> {
    loop {
        terminal.draw(state).map_err(TopError::Terminal)?;
        let Ok(first) = events.recv() else { return Ok(()) };
        let mut next = Some(first);
        // What has come meanwhile is drawn once, up to a key: it means what stands on the screen.
        while let Some(event) = next {
            next = match event {
                ViewEvent::Key(_) => None,
                _ => events.try_recv().ok(),
            };
            match event {
                ViewEvent::Shown(shown) => state.take(shown),
                ViewEvent::Key(key) => match state.press(key) {
                    keys::AfterKey::Nothing => {}
                    keys::AfterKey::Ask(request) => {
                        let _ = worker.send(ForWorker::Request(request));
                    }
                    keys::AfterKey::Suspend => terminal.suspend().map_err(TopError::Terminal)?,
                    keys::AfterKey::End => return Ok(()),
                },
                ViewEvent::Resized => terminal.resized(),
                ViewEvent::Continued => terminal.again().map_err(TopError::Terminal)?,
                ViewEvent::End => return Ok(()),
            }
        }
    }
}
