//! `memtide record --from SOURCE --to DIR`: makes a recording of any source that `check` reads.

use std::path::Path;

use import::{OpenOptions, Resolution};
use units::Count;

use crate::command_error::{CommandError, ErrorContext};
use crate::commands::source;
use crate::exit::Exit;
use crate::output::Output;

pub(crate) fn run(from: &Path, to: &Path, output: &Output) -> Result<Exit, CommandError> {
    let options = OpenOptions { resolution: Resolution::Full, ..OpenOptions::default() };
    let source = source::open_part(from, options, output)?;
    source::warn(&source, output);
    let added = output
        .reading("writing", |progress| answers::add_to_recording(&source, from, to, progress));
    let (host, added) = added.with_context(|| format!("{} was not added", source.origin.name))?;
    for problem in &added.problems {
        output.warn(problem);
    }
    let samples = Count::new(source.timeline.len() as u64).named("sample", "samples");
    let to = to.display();
    output.note(&format!("{to}: {samples} of {}; memtide check {to}", host.name));
    Ok(if source.origin.is_cut_short { Exit::Unknown } else { Exit::Ok })
}
