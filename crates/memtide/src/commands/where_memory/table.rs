//! The table of `where --by`.

use diagnose::accounting::GroupBy;
use timeline::{Source, SourceKind};

use crate::cli::{Format, WhereArgs};
use crate::command_error::CommandError;
use crate::commands::source::name_containers;
use crate::output::Output;

/// Returns the table by owners of one kind, printed.
pub(super) fn table(
    source: &mut Source,
    by: GroupBy,
    args: &WhereArgs,
    output: &Output,
) -> Result<String, CommandError> {
    // Of the live host they are known already.
    if source.origin.kind == SourceKind::Recording {
        name_containers(source)?;
    }
    let report = answers::where_by(source, by)?;
    Ok(match args.answer.get() {
        Format::Json => report::json(&report)? + "\n",
        Format::Text => report::text::where_by(&report, &super::screen(args, output)),
    })
}
