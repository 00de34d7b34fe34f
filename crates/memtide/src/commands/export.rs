//! `memtide export`: a source in formats of other programs.

mod format;
mod parquet;
mod write;

use ::export::Picks;

pub(super) use self::write::write;
use crate::cli::ExportArgs;
use crate::command_error::CommandError;
use crate::commands::source;
use crate::exit::Exit;
use crate::output::Output;
use crate::output_file::OutputTarget;

pub(crate) fn run(args: &ExportArgs, output: &Output) -> Result<Exit, CommandError> {
    let picks = Picks::from_names(&args.signals)?;
    let exporter = format::exporter(args)?;
    let path = answers::recording_directory::unless_named(args.source.as_deref())?;
    let open = || {
        source::open_part(&path, args.part.options(), output)
            .inspect(|opened| source::warn(opened, output))
    };
    let Some(exporter) = exporter else {
        parquet::write(&open()?, &path, &args.output, output)?;
        return Ok(Exit::Ok);
    };
    let target = OutputTarget::new(&args.output, args.force)?;
    write(&open()?, &*exporter, &picks, &target, output)
}
