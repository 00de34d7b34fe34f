//! Writes a source in a format, and reports the result.

use std::io::ErrorKind;

use ::export::{Exported, Exporter, Picks};
use timeline::Source;

use crate::command_error::{CommandError, ErrorContext, bail};
use crate::exit::Exit;
use crate::output::Output;
use crate::output_file::OutputTarget;

/// Writes a source and reports the result.
pub(crate) fn write(
    opened: &Source,
    format: &dyn Exporter,
    picks: &Picks,
    target: &OutputTarget,
    output: &Output,
) -> Result<Exit, CommandError> {
    if let Some(thinned) = opened.origin.thinned_to {
        output.warn(&format!(
            "the source is long: one sample every {thinned} is written; --since and --until choose \
             a part with every sample"
        ));
    }
    match target.write(|out| format.export(opened, picks, out)) {
        Ok(exported) => say(&exported, opened, format, target, output),
        // A closed pipe (`| head`) is no error.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
        Err(error) if error.kind() == ErrorKind::Unsupported => {
            bail!("{}: {error}", opened.origin.name)
        }
        Err(error) => {
            return Err(error).with_context(|| format!("cannot write {target}"));
        }
    }
    Ok(Exit::Ok)
}

fn say(
    exported: &Exported,
    opened: &Source,
    format: &dyn Exporter,
    target: &OutputTarget,
    output: &Output,
) {
    for left_out in &exported.left_out {
        output.warn(&format!("left out: {left_out}"));
    }
    if exported.written == 0 {
        output.warn(&format!(
            "{} has none of that: nothing is written but the header",
            opened.origin.name
        ));
    } else if !target.is_stdout() {
        let (written, unit) = (exported.written, format.unit());
        let plural = if written == 1 { "" } else { "s" };
        output.note(&format!("{target}: {written} {unit}{plural} written"));
    }
}
