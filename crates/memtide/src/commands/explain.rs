//! `memtide explain`: one process, down to its malloc heap.

mod picture;
mod runtime;

use answers::ExplainOptions;
use anyhow::Context;
use probe::{ProcessIdentity, Root};
use units::Count;

use crate::cli::{ExplainArgs, Format};
use crate::exit::Exit;
use crate::output::Output;

pub(crate) fn run(args: &ExplainArgs, output: &Output) -> anyhow::Result<Exit> {
    let root = Root::default();
    let Some(target) = args.target() else {
        let file = args.runtime_stats.as_ref().context("name a process")?;
        return runtime::alone(file, args.answer.get(), output);
    };
    let processes = target.select(&root)?;
    let (first, others) = processes.split_first().context("no process")?;
    if !others.is_empty() {
        output.note(&others_note(first, others));
    }
    let options = ExplainOptions {
        freeze: args.freeze,
        with_rows: args.heap_picture.is_some() || args.full,
    };
    let mut report = match args.watch {
        None => answers::explain(&root, first.pid, options),
        Some(lasts) => output.watching("watching the process", lasts, |progress| {
            answers::explain_watched(&root, first.pid, options, lasts, progress)
        }),
    }?;
    if let Some(file) = &args.runtime_stats {
        report.runtime = Some(runtime::beside(file, &report)?);
    }
    output.print(&match args.answer.get() {
        Format::Json => report::json(&report)? + "\n",
        Format::Text => report::text::explain(&report, &output.screen_with(args.full)),
    })?;
    args.heap_picture.as_ref().map_or(Ok(Exit::Ok), |file| {
        picture::draw(&report, file, args.force, output)
    })
}

/// Names the other processes that were meant too.
fn others_note(first: &ProcessIdentity, others: &[ProcessIdentity]) -> String {
    const NAMED: usize = 8;
    let pids = others.iter().take(NAMED).map(|one| one.pid.to_string());
    let more = if others.len() > NAMED { " …" } else { "" };
    format!(
        "PID {} is the largest of {}; the others: {}{more}",
        first.pid,
        Count::new(others.len() as u64 + 1).named("process", "processes"),
        pids.collect::<Vec<_>>().join(", "),
    )
}
