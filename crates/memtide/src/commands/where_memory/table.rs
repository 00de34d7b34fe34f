//! The table of `where --by`.

use diagnose::accounting::GroupBy;
use timeline::Source;

use crate::cli::{Format, WhereArgs};
use crate::output::Output;

/// Returns the table by owners of one kind, printed.
pub(super) fn table(
    source: &Source,
    by: GroupBy,
    args: &WhereArgs,
    output: &Output,
) -> anyhow::Result<String> {
    let report = answers::where_by(source, by).map_err(anyhow::Error::msg)?;
    Ok(match args.answer.get() {
        Format::Json => report::json(&report)? + "\n",
        Format::Text => report::text::where_by(&report, &super::screen(args, output)),
    })
}
