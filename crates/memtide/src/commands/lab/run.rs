//! `memtide lab run`: plays a scenario, compares with the article, and draws it.

use std::path::{Path, PathBuf};

use answers::PageSource;
use diagnose::headroom::Question;
use lab::model::LabReport;
use lab::{ArmOutcomes, LabError, RunOptions, scenarios};
use timeline::TimeRange;

use super::pages_directory::PagesDirectory;
use super::progress::RunWatcher;
use crate::cli::{Format, LabRunArgs};
use crate::command_error::{CommandError, ErrorContext};
use crate::commands::page;
use crate::exit::Exit;
use crate::interrupt;
use crate::output::Output;
use crate::output_file::OutputTarget;

pub(super) fn run(args: &LabRunArgs, output: &Output) -> Result<Exit, CommandError> {
    let scenario = scenarios::named(&args.name)?;
    let directory = args.output.clone();
    let directory = directory.unwrap_or_else(|| PathBuf::from(format!("lab-{}", scenario.name)));
    // One that cannot be used is better known before a scenario is played.
    let directory = PagesDirectory::take(directory)?;
    let options = RunOptions {
        kernel: args.kernel.clone(),
        ram: args.ram,
        arm: args.arm.clone(),
        settings: args.settings.iter().cloned().collect(),
        is_cgroup_v1: args.cgroup_v1,
        mglru: args.mglru,
        accelerator: args.accel.map(Into::into),
        timeout: args.timeout,
        is_profiled: args.profile,
        output: args.keep.then(|| directory.path().to_owned()),
        ..RunOptions::default()
    };
    let is_interrupted = interrupt::listen_to_any();
    let mut watcher = RunWatcher::new(output);
    if args.watch {
        watcher.show_live()?;
    }
    let outcomes = lab::run(scenario, &options, &mut |step| {
        watcher.step(&step);
        if is_interrupted() { Err(LabError::Interrupted) } else { Ok(()) }
    });
    watcher.finish();
    if outcomes.is_err() {
        directory.remove_if_new();
    }
    let directory = directory.path();
    let outcomes = outcomes?;
    let mut report = lab::answer(scenario, &outcomes);
    write(&mut report, &outcomes, directory, args.keep, output)?;
    match args.answer.get() {
        Format::Json => output.print(&report::model::json(&report)?)?,
        Format::Text => output.print(&lab::run_screen(&report, &output.screen()))?,
    }
    output.note(&format!("{}", directory.join("report.html").display()));
    Ok(if report.holds { Exit::Ok } else { Exit::Critical })
}

/// Writes the page of all arms, and a page of each.
fn write(
    report: &mut LabReport,
    outcomes: &ArmOutcomes,
    directory: &Path,
    is_kept: bool,
    output: &Output,
) -> Result<(), CommandError> {
    for (arm, outcome) in report.arms.iter_mut().zip(&outcomes.arms) {
        let of = PageSource {
            source: &outcome.source,
            path: &outcome.capture,
            range: TimeRange::default(),
            group: None,
            at: None,
        };
        let question = Question::default();
        let mut drawn = page::checked(answers::page(of, &question), output);
        drawn.title = Some(format!("{} · {}", report.scenario, arm.name));
        let name = format!("{}.html", arm.name);
        let html = report::html::report(&drawn, &output.screen());
        put(&directory.join(&name), &html)?;
        arm.page = Some(name);
        arm.capture = is_kept.then(|| format!("{}.jsonl", arm.name));
    }
    for (number, figure) in (1..).zip(&report.figures) {
        for panel in &figure.panels {
            let name = format!("figure-{number}-{}.svg", panel.arm);
            put(&directory.join(name), &lab::panel_drawing(figure, panel))?;
        }
    }
    put(&directory.join("report.html"), &lab::run_page(report))
}

/// Writes a file of a run anew: it is complete, or as it was.
fn put(path: &Path, text: &str) -> Result<(), CommandError> {
    OutputTarget::new(path, true)?
        .write(|out| out.write_all(text.as_bytes()))
        .with_context(|| format!("cannot write {}", path.display()))
}
