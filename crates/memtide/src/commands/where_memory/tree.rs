//! The tree of `where`.

use timeline::Source;

use crate::cli::{Format, WhereArgs};
use crate::command_error::{CommandError, ErrorContext};
use crate::output::Output;

/// Returns the tree, printed.
pub(super) fn tree(
    source: &Source,
    args: &WhereArgs,
    output: &Output,
) -> Result<String, CommandError> {
    let report = answers::where_memory(source, args.top())
        .context("the source has no /proc/meminfo with a MemTotal")?;
    Ok(match args.answer.get() {
        Format::Json => report::json(&report)? + "\n",
        Format::Text => report::text::where_tree(&report, &super::screen(args, output)),
    })
}
