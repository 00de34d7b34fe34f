//! Head files without any valid frame: renamed and left for inspection.

use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::head::{self, HeadFile};

const ASIDE: &str = "damaged";

/// Returns the name that such a file gets.
pub(crate) fn aside(path: &Path) -> PathBuf {
    path.with_extension(ASIDE)
}

/// Returns the damaged head files of a recording.
pub(crate) fn files(recording: &Path) -> io::Result<Vec<HeadFile>> {
    let entries = match fs::read_dir(head::directory_of(recording)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut files = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let number = path.file_stem().and_then(|name| name.to_str()?.parse().ok());
        let is_aside = path.extension().is_some_and(|found| found == ASIDE);
        files.extend(number.filter(|_| is_aside).map(|sequence| HeadFile { sequence, path }));
    }
    files.sort_by_key(|file| file.sequence);
    Ok(files)
}
