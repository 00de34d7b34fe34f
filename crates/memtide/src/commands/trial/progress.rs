//! How a trial goes on: the run that runs now, what is left, the intervals so far.

use ::trial::{Analysis, Trial, TrialEvent, TrialMetric};
use indicatif::ProgressBar;
use std::time::Instant;
use units::Span;

use crate::output::Output;

pub(super) struct TrialProgress<'a> {
    output: &'a Output,
    bar: ProgressBar,
    names: Vec<String>,
    looks: Vec<usize>,
    blocks_done: usize,
    runs_done: u32,
    begun: Instant,
    so_far: String,
}

impl<'a> TrialProgress<'a> {
    pub(super) fn new(trial: &Trial, output: &'a Output) -> Self {
        let plan = trial.plan();
        Self {
            output,
            bar: output.busy(""),
            names: plan.variants.iter().map(|one| one.name.clone()).collect(),
            looks: plan.looks.clone(),
            blocks_done: 0,
            runs_done: 0,
            begun: Instant::now(),
            so_far: String::new(),
        }
    }

    pub(super) fn tell(&mut self, event: &TrialEvent<'_>) {
        match event {
            TrialEvent::Begins { place, places } => {
                let name = self.names.get(place.variant).map_or("", String::as_str);
                self.bar.set_message(format!(
                    "block {} of {} · run {} of {places}: {name}{}{}",
                    place.block + 1,
                    self.next_look(),
                    place.place + 1,
                    self.left(*places, place.place),
                    self.so_far,
                ));
            }
            TrialEvent::Ended(run) => {
                self.runs_done += 1;
                if let Some(what) = run.fault() {
                    let name = self.names.get(run.variant).map_or("", String::as_str);
                    self.line(&format!("{name}: {what}"));
                }
            }
            TrialEvent::Again(why) => self.line(&format!("a run is made again: {why}")),
            TrialEvent::Block(analysis) => {
                self.blocks_done += 1;
                self.so_far = so_far(analysis, &self.names);
                let done = self.blocks_done;
                if !self.so_far.is_empty() {
                    self.line(&format!("block {done}{}", self.so_far));
                }
            }
        }
    }

    /// The block after which the results are looked at.
    fn next_look(&self) -> usize {
        let next = self.looks.iter().find(|look| **look > self.blocks_done);
        next.or(self.looks.last()).copied().unwrap_or(0)
    }

    /// The time until the next look, by the runs so far.
    fn left(&self, places: usize, place: usize) -> String {
        if self.runs_done == 0 {
            return String::new();
        }
        let each = self.begun.elapsed().as_secs_f64() / f64::from(self.runs_done);
        let runs = (self.next_look() - self.blocks_done.min(self.next_look())) * places
            - place.min(places);
        #[allow(clippy::cast_precision_loss)] // a few hundred
        let left = Span::from_secs_f64(each * runs as f64);
        format!(" · {left} until the next look")
    }

    pub(super) fn finish(&self) {
        self.bar.finish_and_clear();
    }

    fn line(&self, text: &str) {
        self.bar.suspend(|| self.output.note(text));
    }
}

/// The memory of each variant so far, with its interval.
fn so_far(analysis: &Analysis, names: &[String]) -> String {
    let Some(memory) = analysis.metric(TrialMetric::Memory) else {
        return String::new();
    };
    let one = |effect: &::trial::Effect| {
        let name = names.get(effect.variant).map_or("", String::as_str);
        format!(" · {name} {}", ::trial::ratio(effect))
    };
    let all: String = memory.effects.iter().map(one).collect();
    format!(" · memory so far{all}")
}
