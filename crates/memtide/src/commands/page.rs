//! The page of `report` and of `compare`: its problems as warnings, and its file.

use std::io::ErrorKind;
use std::path::Path;

use report::html::Page;
use units::Bytes;

use crate::command_error::{CommandError, ErrorContext};
use crate::exit::Exit;
use crate::output::Output;
use crate::output_file::OutputTarget;

/// Prints the problems met while a page's source was read again, as warnings, and returns the page.
pub(super) fn checked((page, problems): (Page, Vec<String>), output: &Output) -> Page {
    for problem in &problems {
        output.warn(&format!(
            "{}: {problem}",
            page.report.source.name.as_deref().unwrap_or_default()
        ));
    }
    page
}

/// Writes a page to its file, and notes where.
pub(super) fn write(
    html: &str,
    target: &OutputTarget,
    output: &Output,
) -> Result<Exit, CommandError> {
    match target.write(|out| out.write_all(html.as_bytes())) {
        Ok(()) if !target.is_stdout() => {
            let size = Bytes::new(html.len() as u64);
            output.note(&format!("{target}: {size} written; it opens in any browser, offline"));
        }
        Ok(()) => {}
        // A closed pipe (`| head`) is no error.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
        Err(error) => return Err(error).with_context(|| format!("cannot write {target}")),
    }
    Ok(Exit::Ok)
}

/// Whether both paths name the same file.
pub(crate) fn is_one_file(source: &Path, output: &Path) -> bool {
    let found = |path: &Path| path.canonicalize().ok();
    found(source).is_some_and(|source| found(output) == Some(source))
}
