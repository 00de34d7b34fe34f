//! What a scenario does while it is played: each phase as a line, and how the machine stands as graphs that move.

mod view;

use std::io::IsTerminal as _;
use std::path::PathBuf;

use indicatif::ProgressBar;
use lab::{GuestMessage, RunStep, Vitals};
use report::text::sparkline;

use crate::command_error::{CommandError, bail};
use crate::output::Output;
use view::RunView;

/// Cells of a graph: the last seconds.
const CELLS: usize = 24;

/// A name and a reading of it.
type VitalGraph = (&'static str, fn(&Vitals) -> f64);

const GRAPHS: [VitalGraph; 4] = [
    ("available", |vitals| vitals.available),
    ("swap", |vitals| vitals.swap_used),
    ("dirty", |vitals| vitals.dirty),
    ("stalled", |vitals| vitals.stalled),
];

/// Shows the steps of a run.
pub(super) struct RunWatcher<'a> {
    output: &'a Output,
    bar: ProgressBar,
    vitals: Vec<Vitals>,
    /// Whether there is to be a view once a machine has sampled.
    is_watched: bool,
    /// The arm that is played, and its capture.
    played: Option<(&'static str, PathBuf)>,
    view: Option<RunView>,
}

impl<'a> RunWatcher<'a> {
    pub(super) fn new(output: &'a Output) -> Self {
        Self {
            output,
            bar: output.busy(""),
            vitals: Vec::new(),
            is_watched: false,
            played: None,
            view: None,
        }
    }

    /// Shows the machines live, once there are samples of one.
    pub(super) fn show_live(&mut self) -> Result<(), CommandError> {
        if !(std::io::stdout().is_terminal() && std::io::stdin().is_terminal()) {
            bail!("`--watch` needs a terminal; without it the run prints its phases");
        }
        self.is_watched = true;
        Ok(())
    }

    pub(super) fn step(&mut self, step: &RunStep<'_>) {
        match step {
            RunStep::Booting { arm, kernel } => {
                self.summary();
                self.line(&format!("{arm}: Linux {kernel} boots"));
            }
            RunStep::Booted { arm, capture } => {
                self.played = Some((*arm, capture.clone()));
                if let Some(view) = &self.view {
                    view.show(arm, capture);
                }
            }
            RunStep::Message { at, message } => {
                let at = at.as_secs_f64();
                match message {
                    GuestMessage::Phase { text, .. } => self.line(&format!("{at:6.1} s  {text}")),
                    GuestMessage::Ready { boot_s } => self
                        .line(&format!("{at:6.1} s  ready, {boot_s:.1} s after the kernel began")),
                    GuestMessage::Vitals(vitals) => {
                        self.vitals.push(*vitals);
                        let from = self.vitals.len().saturating_sub(CELLS);
                        let last = self.vitals.get(from..).unwrap_or_default();
                        self.bar.set_message(graphs(last).join("  "));
                    }
                    _ => {}
                }
            }
            RunStep::Waiting => {
                self.open_view_if_sampled();
                self.close_view_if_ended();
            }
        }
    }

    pub(super) fn finish(mut self) {
        self.summary();
        self.close_view();
        self.bar.finish_and_clear();
    }

    /// Shows how an arm went from its begin to its end.
    fn summary(&mut self) {
        for graph in graphs(&std::mem::take(&mut self.vitals)) {
            self.line(&format!("          {graph}"));
        }
    }

    fn line(&mut self, text: &str) {
        match &mut self.view {
            Some(view) => view.keep(text),
            None => self.bar.suspend(|| self.output.note(text)),
        }
    }

    /// Opens the view once there is something to show: until then lines are printed.
    fn open_view_if_sampled(&mut self) {
        let Some((arm, capture)) = &self.played else { return };
        let has_samples = || std::fs::metadata(capture).is_ok_and(|file| file.len() > 0);
        if self.is_watched && self.view.is_none() && has_samples() {
            // Both would draw on the same terminal.
            self.bar.finish_and_clear();
            self.bar = ProgressBar::hidden();
            let view = RunView::open(self.output.screen());
            view.show(arm, capture);
            self.view = Some(view);
        }
    }

    /// Goes on with lines where the user has ended the view.
    fn close_view_if_ended(&mut self) {
        if self.view.as_ref().is_some_and(RunView::has_ended) {
            self.is_watched = false;
            self.close_view();
            self.bar = self.output.busy("");
            self.line("the run goes on; Ctrl-C ends it");
        }
    }

    /// Ends the view and prints what it had no room for.
    fn close_view(&mut self) {
        let Some(view) = self.view.take() else { return };
        for line in view.close() {
            self.line(&line);
        }
    }
}

/// A graph from 0 to 100 % of each reading that is not 0 all the time.
fn graphs(vitals: &[Vitals]) -> Vec<String> {
    let graphs = GRAPHS.iter().filter_map(|(name, read)| {
        let values: Vec<Option<f64>> = vitals.iter().map(|vitals| Some(read(vitals))).collect();
        let last = values.last().copied().flatten()?;
        let most = values.iter().flatten().copied().fold(0.0, f64::max);
        let graph = sparkline(&values, CELLS);
        (most >= 0.005).then(|| format!("{name} {graph} {:.0} %", last * 100.0))
    });
    graphs.collect()
}
