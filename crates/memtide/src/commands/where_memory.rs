//! `memtide where`: a tree that adds up to MemTotal, or with `--by` a table.

mod part;
mod table;

use std::path::Path;

use answers::recording_directory;
use anyhow::Context;
use probe::Root;
use report::Screen;
use sampler::WatchOptions;
use timeline::{Source, SourceKind};

use crate::cli::{Format, WhereArgs};
use crate::commands::source;
use crate::exit::Exit;
use crate::output::Output;
use part::part;
use table::table;

pub(crate) fn run(args: &WhereArgs, output: &Output) -> anyhow::Result<Exit> {
    if args.cached_files().is_some() && (args.file.is_some() || args.at.is_some()) {
        return Err(files_are_of_now(args.file.as_deref()));
    }
    let recording = match (&args.file, args.at) {
        (None, Some(_)) => Some(recording_directory::required()?),
        (file, _) => file.clone(),
    };
    let mut source = match &recording {
        Some(file) => source::open_part(file, part(file, args), output)?,
        None => source::watch(WatchOptions::one_sample(args.deep), output),
    };
    if recording.is_some() && args.answer.get() == Format::Text {
        source::warn(&source, output);
    }
    output.print(&match args.by {
        Some(by) => table(&mut source, by.into(), args, output)?,
        None => tree(&mut source, args, output)?,
    })?;
    if source.origin.kind == SourceKind::Live && args.by.is_none() {
        let unread = answers::much_without_pss(&source);
        if let Some(note) = report::text::pss_not_read(unread, args.deep) {
            output.note(&note);
        }
    }
    Ok(Exit::Ok)
}

/// Files in the page cache were asked of a source that cannot know them.
fn files_are_of_now(file: Option<&Path>) -> anyhow::Error {
    let directory = file.filter(|file| file.is_dir() && !import::is_recording(file));
    let instead = match (directory, file) {
        (Some(directory), _) => format!(
            "to search that directory: `memtide where --files-in {}`",
            directory.display()
        ),
        (None, Some(file)) => format!("without it: `memtide where {}`", file.display()),
        (None, None) => "of then: `memtide where --at WHEN` alone".to_owned(),
    };
    anyhow::anyhow!(
        "which files are in the page cache is only known of this host as it is now, no capture or recording has it\n\
         now: `memtide where --files`\n{instead}"
    )
}

/// The screen with as many rows of a kind as were asked for.
fn screen(args: &WhereArgs, output: &Output) -> Screen {
    let mut screen = output.screen();
    screen.top = args.top();
    screen
}

/// Returns the tree, printed.
fn tree(source: &mut Source, args: &WhereArgs, output: &Output) -> anyhow::Result<String> {
    if source.origin.kind == SourceKind::Live {
        answers::find_owners(&Root::default(), source);
        if let Some(directories) = args.cached_files() {
            answers::find_cached_files(&Root::default(), source, directories)
                .map_err(anyhow::Error::msg)?;
        }
    }
    let report = answers::where_memory(source, args.top())
        .context("the source has no /proc/meminfo with a MemTotal")?;
    Ok(match args.answer.get() {
        Format::Json => report::json(&report)? + "\n",
        Format::Text => report::text::where_tree(&report, &screen(args, output)),
    })
}
