//! `memtide where`: a tree that adds up to MemTotal, or with `--by` a table.

mod besides;
mod cached_files;
mod table;
mod tree;

use answers::recording_directory;
use diagnose::accounting::GroupBy;
use report::Screen;
use sampler::WatchOptions;
use timeline::SourceKind;

use crate::cli::{Format, WhereArgs};
use crate::command_error::CommandError;
use crate::commands::source;
use crate::exit::Exit;
use crate::output::Output;
use besides::besides;
use table::table;
use tree::tree;

pub(crate) fn run(args: &WhereArgs, output: &Output) -> Result<Exit, CommandError> {
    cached_files::only_of_now(args)?;
    let recording = match (&args.file, args.at) {
        (None, Some(_)) => Some(recording_directory::required()?),
        (file, _) => file.clone(),
    };
    let by = args.by.map(GroupBy::from);
    let mut source = match &recording {
        Some(file) => {
            let part = answers::part_for_where(import::is_recording(file), by, args.at);
            source::open_part(file, part, output)?
        }
        None => source::watch(WatchOptions::one_sample(args.deep), besides(by, args), output)?,
    };
    if args.answer.get() == Format::Text {
        match recording {
            Some(_) => source::warn(&source, output),
            None => source.problems.iter().for_each(|problem| output.note(problem)),
        }
    }
    output.print(&match by {
        Some(by) => table(&mut source, by, args, output)?,
        None => tree(&source, args, output)?,
    })?;
    if source.origin.kind == SourceKind::Live && by.is_none() {
        let unread = answers::much_without_pss(&source);
        let note = report::text::pss_not_read(unread, args.deep);
        note.into_iter().for_each(|note| output.note(&note));
    }
    Ok(Exit::Ok)
}

/// The screen with as many rows of a kind as were asked for.
fn screen(args: &WhereArgs, output: &Output) -> Screen {
    let mut screen = output.screen();
    screen.top = args.top();
    screen
}
