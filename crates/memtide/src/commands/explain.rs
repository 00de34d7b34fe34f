//! `memtide explain`: one process, down to its malloc heap.

mod picture;
mod runtime;
mod selected;
mod watched;

use answers::ExplainOptions;
use probe::Root;

use crate::cli::{ExplainArgs, Format};
use crate::command_error::{CommandError, ErrorContext};
use crate::exit::Exit;
use crate::output::Output;
use picture::PictureOutput;
use runtime::RuntimeText;

pub(super) use picture::{page_alone, with_picture};

pub(crate) fn run(args: &ExplainArgs, output: &Output) -> Result<Exit, CommandError> {
    let root = Root::default();
    let stats = args.runtime_stats.as_deref().map(RuntimeText::read).transpose()?;
    let Some(target) = args.target() else {
        let stats = stats.context("name a process")?;
        return stats.print(args.answer.get(), output);
    };
    let picture = (args.heap_picture.as_deref())
        .map(|file| PictureOutput::new(file, args.force))
        .transpose()?;
    let (pid, program) = selected::process(&root, &target, output)?;
    let options = ExplainOptions {
        freeze: args.freeze && selected::stops(&root, pid, output)?,
        with_rows: picture.is_some() || args.full,
        has_runtime_stats: stats.is_some(),
    };
    let mut report = match args.watch {
        None => answers::explain(&root, pid, options),
        Some(lasts) => watched::explain(&root, pid, options, lasts, output),
    }?;
    report.program = program;
    if let Some(stats) = &stats {
        report.runtime_stats = Some(stats.beside(&report)?);
    }
    output.print(&match args.answer.get() {
        Format::Json => report::json(&report)? + "\n",
        Format::Text => report::text::explain(&report, &output.screen_with(args.full)),
    })?;
    picture.map_or(Ok(Exit::Ok), |picture| picture.draw(&report, output))
}
