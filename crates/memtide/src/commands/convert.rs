//! `memtide convert`: `memtide export --format capture` for sources that are not captures.

use ::export::{Capture, Picks};
use timeline::SourceKind;

use crate::cli::ConvertArgs;
use crate::command_error::{CommandError, bail};
use crate::commands::{export, source};
use crate::exit::Exit;
use crate::output::Output;
use crate::output_file::OutputTarget;

pub(crate) fn run(args: &ConvertArgs, output: &Output) -> Result<Exit, CommandError> {
    let target = OutputTarget::new(&args.output, args.force)?;
    let opened = source::open(&args.source, output)?;
    if opened.origin.kind == SourceKind::Capture {
        bail!("{} is a capture already", opened.origin.name);
    }
    if opened.timeline.is_empty() {
        bail!("{} has no sample: a capture of it would be empty", opened.origin.name);
    }
    export::write(&opened, &Capture, &Picks::default(), &target, output)
}
