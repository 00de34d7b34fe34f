//! What a scenario does while it is played: each phase as a line, and how the machine stands as graphs that move.

use indicatif::ProgressBar;
use lab::{GuestMessage, RunStep, Vitals};
use report::text::sparkline;

use crate::output::Output;

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
}

impl<'a> RunWatcher<'a> {
    pub(super) fn new(output: &'a Output) -> Self {
        Self { output, bar: output.busy(""), vitals: Vec::new() }
    }

    pub(super) fn step(&mut self, step: &RunStep<'_>) {
        match step {
            RunStep::Booting { arm, kernel } => {
                self.summary();
                self.line(&format!("{arm}: Linux {kernel} boots"));
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
            RunStep::Waiting => {}
        }
    }

    pub(super) fn finish(mut self) {
        self.summary();
        self.bar.finish_and_clear();
    }

    /// Shows how an arm went from its begin to its end.
    fn summary(&mut self) {
        for graph in graphs(&std::mem::take(&mut self.vitals)) {
            self.line(&format!("          {graph}"));
        }
    }

    fn line(&self, text: &str) {
        self.bar.suspend(|| self.output.note(text));
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
