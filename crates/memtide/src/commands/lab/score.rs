//! `memtide lab corpus` and `lab score`: labelled captures, and how well check does on them.

use std::path::Path;

use lab::{CasesBelow, CorpusOptions, CorpusStep, LabError, RunOptions, WorkDirectory};

use crate::cli::{CorpusArgs, Format, LabCorpusArgs, LabScoreArgs};
use crate::command_error::{CommandError, ErrorContext, bail};
use crate::commands::page;
use crate::exit::Exit;
use crate::interrupt;
use crate::output::Output;
use crate::output_file::OutputTarget;

pub(super) fn corpus(args: &LabCorpusArgs, output: &Output) -> Result<Exit, CommandError> {
    let failed = make(&args.corpus, &args.output, output)?;
    let cases = CasesBelow::find(&args.output)?;
    let directory = args.output.display();
    output.print(&format!(
        "{} labelled captures in {directory}: memtide lab score {directory}\n",
        cases.whole.len()
    ))?;
    for case in &cases.damaged {
        output.warn(&format!("{} cannot be scored: {}", case.case, case.why));
    }
    Ok(if failed == 0 { Exit::Ok } else { Exit::Unknown })
}

pub(super) fn score(args: &LabScoreArgs, output: &Output) -> Result<Exit, CommandError> {
    let mut cases = CasesBelow::default();
    // Captures that are made now go with this.
    let mut played = None;
    let mut failed = 0;
    for directory in &args.directories {
        let below = CasesBelow::find(directory)
            .with_context(|| format!("cannot read cases below {}", directory.display()))?;
        cases.extend(below);
    }
    if args.directories.is_empty() {
        let work = WorkDirectory::new()?;
        failed = make(&args.corpus, work.path(), output)?;
        cases = CasesBelow::find(work.path())?;
        played = Some(work);
    }
    if cases.whole.is_empty() && cases.damaged.is_empty() {
        bail!("there is no labelled case: none was found, and none could be played");
    }
    let bar = output.progress("checking", cases.whole.len() as u64);
    let report = lab::score(&cases, &mut |done| bar.set_position(done as u64));
    bar.finish_and_clear();
    for case in &report.unscored {
        output.warn(&format!("{} is not scored: {}", case.case, case.why));
    }
    if report.cases.is_empty() {
        bail!("no case has both labels and a source that can be read");
    }
    match args.answer.get() {
        Format::Json => output.print(&report::model::json(&report)?)?,
        Format::Text => output.print(&lab::score_screen(&report, &output.screen()))?,
    }
    if let Some(path) = &args.output {
        let html = lab::score_page(&report);
        page::write(&html, &OutputTarget::new(path, true)?, output)?;
    }
    let reaches = |share: Option<f64>, min| share.is_none_or(|share| share >= min);
    let is_enough =
        reaches(report.precision, args.min_precision) && reaches(report.recall, args.min_recall);
    drop(played);
    let is_whole = failed == 0 && report.unscored.is_empty();
    Ok(match (is_enough, is_whole) {
        (false, _) => Exit::Critical,
        (true, false) => Exit::Unknown,
        (true, true) => Exit::Ok,
    })
}

/// Plays scenarios into a directory of cases; returns how many could not be played.
fn make(args: &CorpusArgs, directory: &Path, output: &Output) -> Result<usize, LabError> {
    let options = CorpusOptions {
        scenarios: args.scenarios.clone(),
        kernels: args.kernels.clone(),
        variants: args.variants,
        seeds: args.seeds,
        jobs: args.jobs.into(),
        run: RunOptions {
            accelerator: args.accel.map(Into::into),
            timeout: args.timeout,
            is_cgroup_v1: args.cgroup_v1,
            mglru: args.mglru,
            ..RunOptions::default()
        },
    };
    let is_interrupted = interrupt::listen_to_any();
    let mut failed = 0;
    let mut show = |step: CorpusStep| match step {
        CorpusStep::Playing { name, number, all } => {
            output.note(&format!("{number} of {all}: {name}"));
        }
        CorpusStep::Kept { name } => output.note(&format!("there already: {name}")),
        CorpusStep::Failed { name, error } => {
            failed += 1;
            output.warn(&format!("{name}: {}", timeline::with_causes(&error)));
            if let Some(help) = error.help() {
                output.note(&format!("help: {help}"));
            }
        }
    };
    lab::corpus(&options, directory, &mut show, &is_interrupted)?;
    Ok(failed)
}
