//! What fills the page cache now.

use std::path::{Path, PathBuf};

use ::job::{CachedNow, cached_screen};
use answers::this_host::Besides;
use probe::Root;
use probe::inventory::cached_files::refused;
use sampler::WatchOptions;

use crate::cli::{JobArgs, JobFormat};
use crate::command_error::CommandError;
use crate::commands::source;
use crate::output::Output;

/// Searches processes, and all directories of the root that are on disks.
pub(super) fn answer(args: &JobArgs, output: &Output) -> Result<String, CommandError> {
    let directories = directories();
    let besides = Besides { cached_files: Some(&directories), ..Besides::default() };
    let source = source::watch(WatchOptions::one_sample(false), besides, output)?;
    let now = CachedNow::of(&source);
    Ok(match args.format {
        JobFormat::Text => cached_screen(&now, &output.screen_with(args.all)),
        JobFormat::Json => serde_json::to_string_pretty(&now)? + "\n",
    })
}

fn directories() -> Vec<PathBuf> {
    let entries = std::fs::read_dir("/").into_iter().flatten().flatten();
    let directories = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let on_disks = |path: &PathBuf| refused(&Root::default(), Path::new(path)).is_none();
    let mut found: Vec<PathBuf> = directories.map(|entry| entry.path()).filter(on_disks).collect();
    found.retain(|path| std::fs::read_dir(path).is_ok_and(|mut below| below.next().is_some()));
    found.sort();
    found
}
