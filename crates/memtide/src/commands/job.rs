//! `memtide job`: the page cache that a job needs.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::process::Command;

use ::job::{JobPlan, JobReport, job_screen, observe};

use crate::cli::{JobArgs, JobFormat};
use crate::command_error::{CommandError, ErrorContext};
use crate::exit::Exit;
use crate::interrupt;
use crate::output::Output;
use crate::output_file::OutputTarget;

/// The longest text of a plan.
const PLAN_LEN_MAX: u64 = 16 << 20;

pub(crate) fn run(args: &JobArgs, output: &Output) -> Result<Exit, CommandError> {
    let target = OutputTarget::new(&args.output, args.force)?;
    let report = match &args.plan {
        Some(path) => JobReport::of_plan(&plan(path, args)?, &args.caches),
        None => watched(args)?,
    };
    let text = match args.format {
        JobFormat::Text => job_screen(&report, &output.screen_with(args.all)),
        JobFormat::Json => serde_json::to_string_pretty(&report)? + "\n",
    };
    if target.is_stdout() {
        output.print(&text)?;
    } else {
        let written = target.write(|out| out.write_all(text.as_bytes()));
        written.with_context(|| format!("cannot write {}", args.output.display()))?;
    }
    Ok(Exit::Ok)
}

fn plan(path: &Path, args: &JobArgs) -> Result<JobPlan, CommandError> {
    let failed = || format!("cannot read {}", path.display());
    let mut text = String::new();
    let file = File::open(path).with_context(failed)?;
    file.take(PLAN_LEN_MAX).read_to_string(&mut text).with_context(failed)?;
    let name = path.file_stem().map(|name| name.to_string_lossy().into_owned());
    let mut plan = JobPlan::read(&text, &name.unwrap_or_default())
        .with_context(|| format!("{} is no plan", path.display()))?;
    plan.disk = args.disk.or(plan.disk);
    Ok(plan)
}

fn watched(args: &JobArgs) -> Result<JobReport, CommandError> {
    let mut command = Command::new(&args.command[0]);
    command.args(&args.command[1..]);
    let is_interrupted = interrupt::listen_to_any();
    let seen = observe(command, args.watch.into(), &is_interrupted)?;
    let words: Vec<String> = args.command.iter().map(|word| report::quoted(word)).collect();
    Ok(JobReport::of_observation(&words.join(" "), &seen, &args.caches, args.disk))
}
