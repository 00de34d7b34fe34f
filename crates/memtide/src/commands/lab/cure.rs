//! `memtide lab cure`: carries out the first fix of each finding that a scenario makes, and shows what came of it.

use lab::{LabError, RunOptions, Scenario, scenarios};

use super::progress::RunWatcher;
use crate::cli::{Format, LabCureArgs};
use crate::command_error::CommandError;
use crate::exit::Exit;
use crate::interrupt;
use crate::output::Output;

pub(super) fn cure(args: &LabCureArgs, output: &Output) -> Result<Exit, CommandError> {
    let named: Result<Vec<&Scenario>, LabError> =
        args.names.iter().map(|name| scenarios::named(name)).collect();
    let mut chosen = named?;
    if chosen.is_empty() {
        chosen.extend(scenarios::ALL.iter().copied());
    }
    let options = RunOptions {
        arm: args.arm.clone(),
        is_cgroup_v1: args.cgroup_v1,
        accelerator: args.accel.map(Into::into),
        timeout: args.timeout,
        output: args.keep.clone(),
        ..RunOptions::default()
    };
    let is_interrupted = interrupt::listen_to_any();
    let mut watcher = RunWatcher::new(output);
    let report = lab::cure(&chosen, &args.kernels, &options, &mut |step| {
        watcher.step(&step);
        if is_interrupted() { Err(LabError::Interrupted) } else { Ok(()) }
    });
    watcher.finish();
    let report = report?;
    match args.answer.get() {
        Format::Json => output.print(&report::model::json(&report)?)?,
        Format::Text => output.print(&lab::cure_screen(&report, &output.screen()))?,
    }
    let is_bad =
        report.rows.iter().any(|row| row.is_worse() || (row.is_tried() && !row.is_cured()));
    Ok(if is_bad { Exit::Critical } else { Exit::Ok })
}
