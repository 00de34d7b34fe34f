//! The page of `report` and of `compare`: made from a source, and written to its file.

use std::io::ErrorKind;
use std::path::Path;

use anyhow::Context;
use diagnose::headroom::Question;
use report::html::Page;
use timeline::{Source, TimeRange};
use units::Bytes;

use super::export::OutputTarget;
use crate::exit::Exit;
use crate::output::Output;

/// The page of a source, with warnings of what was wrong while it was read again.
pub(super) fn page(
    source: &Source,
    path: &Path,
    range: TimeRange,
    question: &Question,
    output: &Output,
) -> Page {
    let (page, problems) = answers::page(source, path, range, question);
    for problem in &problems {
        output.warn(&format!("{}: {problem}", source.origin.name));
    }
    page
}

/// Writes a page to its file, and notes that.
pub(super) fn write(html: &str, target: &OutputTarget, output: &Output) -> anyhow::Result<Exit> {
    match target.write(|out| out.write_all(html.as_bytes())) {
        Ok(()) if !target.is_stdout() => {
            let size = Bytes::new(html.len() as u64);
            output.note(&format!(
                "{target}: {size} written; it opens in any browser, offline"
            ));
        }
        Ok(()) => {}
        // A reader that went away (`| head`) is no error.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
        Err(error) => return Err(error).with_context(|| format!("cannot write {target}")),
    }
    Ok(Exit::Ok)
}
