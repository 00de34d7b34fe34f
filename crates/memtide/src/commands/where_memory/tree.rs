//! The tree of `where`.

use anyhow::Context;
use probe::Root;
use timeline::{Source, SourceKind};

use crate::cli::{Format, WhereArgs};
use crate::output::Output;

/// Returns the tree, printed.
pub(super) fn tree(
    source: &mut Source,
    args: &WhereArgs,
    output: &Output,
) -> anyhow::Result<String> {
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
        Format::Text => report::text::where_tree(&report, &super::screen(args, output)),
    })
}
