//! What to run next, to learn what a source could not show.

use diagnose::Diagnosis;
use timeline::{Source, SourceKind};

use super::Step;
use super::time::wall_second;
use crate::shell_words::quoted;

/// The next steps after a diagnosis; none for this host, live.
pub(super) fn steps(source: &Source, diagnosis: &Diagnosis) -> Vec<Step> {
    match source.origin.kind {
        SourceKind::Live => Vec::new(),
        // The past cannot be sampled again; its recording can be read in more detail.
        SourceKind::Recording => of_recording(source, diagnosis),
        _ => diagnosis.next.iter().map(Step::from).collect(),
    }
}

/// How to read in more detail what a recording shows; none where it shows nothing.
fn of_recording(source: &Source, diagnosis: &Diagnosis) -> Vec<Step> {
    let mut steps: Vec<Step> = every_sample(source, diagnosis).into_iter().collect();
    let name = quoted(&source.origin.name);
    let found = diagnosis.findings.iter().find_map(|finding| finding.when);
    if let (Some(_), Ok(accounting)) = (found, &diagnosis.accounting)
        && let Some(at) = wall_second(&source.timeline, accounting.at)
    {
        steps.push(Step {
            command: format!("memtide where {name} --at {at}"),
            shows: "what held memory at the worst moment".to_owned(),
        });
    }
    if found.is_some() || !source.timeline.recorder_events().is_empty() {
        steps.push(Step {
            command: format!("memtide events {name}"),
            shows: "kills, changed settings, services and the recorder, in order of time"
                .to_owned(),
        });
    }
    steps
}

/// How to read every sample of the worst time of a recording with downsampled parts.
fn every_sample(source: &Source, diagnosis: &Diagnosis) -> Option<Step> {
    let every = source.origin.thinned_to?;
    let timeline = &source.timeline;
    let stretch = diagnose::worth_full_detail(timeline, diagnosis)?;
    let (since, until) = (wall_second(timeline, stretch.from)?, wall_second(timeline, stretch.to)?);
    Some(Step {
        command: format!(
            "memtide check {} --since {since} --until {until}",
            quoted(&source.origin.name)
        ),
        shows: format!(
            "every sample of the worst time, of which this was judged at one in {every}"
        ),
    })
}

impl From<&diagnose::NextStep> for Step {
    fn from(step: &diagnose::NextStep) -> Self {
        Self { command: step.command.to_owned(), shows: step.shows.to_owned() }
    }
}
