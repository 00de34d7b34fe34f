//! The live view of a run, in a thread of its own: the run goes on when it is closed.

use std::path::Path;
use std::sync::mpsc::{self, Sender};
use std::thread::JoinHandle;

use report::Screen;
use report::text::top::TopView;
use top::{Feed, RunNews, TopError};

/// The view, and the lines that are printed after it.
pub(super) struct RunView {
    to: Sender<RunNews>,
    view: JoinHandle<Result<(), TopError>>,
    lines: Vec<String>,
}

impl RunView {
    /// Opens it; its first frame has two samples.
    pub(super) fn open(screen: Screen) -> Self {
        let (to, news) = mpsc::channel();
        let view =
            std::thread::spawn(move || top::run(Feed::Run(news), screen, TopView::default()));
        Self { to, view, lines: Vec::new() }
    }

    /// Shows the samples that arrive in this capture from now on.
    pub(super) fn show(&self, arm: &str, capture: &Path) {
        let (name, path) = (format!("arm {arm}"), capture.to_owned());
        // A view that the user has ended shows nothing.
        let _ = self.to.send(RunNews::Capture { name, path });
    }

    /// Shows a line in the view, and keeps it for later.
    pub(super) fn keep(&mut self, line: &str) {
        let _ = self.to.send(RunNews::Phase(line.trim_start().to_owned()));
        self.lines.push(line.to_owned());
    }

    /// Whether the user has ended it.
    pub(super) fn has_ended(&self) -> bool {
        self.view.is_finished()
    }

    /// Ends it and returns the lines that were kept, with what went wrong.
    pub(super) fn close(self) -> Vec<String> {
        let _ = self.to.send(RunNews::End);
        let mut lines = self.lines;
        // Before the first sample there was nothing to show, which is no failure.
        if let Ok(Err(error @ TopError::Terminal(_))) = self.view.join() {
            lines.push(error.to_string());
        }
        lines
    }
}
