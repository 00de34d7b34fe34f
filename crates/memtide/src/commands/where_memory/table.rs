//! The table of `where --by`.

use diagnose::accounting::GroupBy;
use probe::Root;
use timeline::{Source, SourceKind};

use crate::cli::{Format, WhereArgs};
use crate::output::Output;

/// Returns the table by owners of one kind, printed.
pub(super) fn table(
    source: &mut Source,
    by: GroupBy,
    args: &WhereArgs,
    output: &Output,
) -> anyhow::Result<String> {
    let root = Root::default();
    match (source.origin.kind, by) {
        (SourceKind::Live, GroupBy::Mount) => answers::find_owners(&root, source),
        (SourceKind::Live, GroupBy::User) => {
            answers::find_names(&root, source);
            answers::find_users(&root, source);
        }
        (SourceKind::Live | SourceKind::Recording, _) => answers::find_names(&root, source),
        _ => {}
    }
    let report = answers::where_by(source, by).map_err(anyhow::Error::msg)?;
    Ok(match args.answer.get() {
        Format::Json => report::json(&report)? + "\n",
        Format::Text => report::text::where_by(&report, &super::screen(args, output)),
    })
}
