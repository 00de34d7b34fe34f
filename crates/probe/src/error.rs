//! Errors of kernel files: a file cannot be read, or its text is malformed.

use std::path::Path;

use timeline::Absence;

/// A kernel file could not be read.
#[allow(missing_docs)] // names say it
#[derive(Debug, thiserror::Error)]
#[error("cannot read {path}")]
pub struct ReadError {
    pub path: String,
    /// The operating system's reason.
    pub source: std::io::Error,
}

impl ReadError {
    pub(crate) fn new(path: &Path, source: impl Into<std::io::Error>) -> Self {
        Self { path: path.display().to_string(), source: source.into() }
    }

    /// Returns the reason in the timeline's terms.
    pub fn absence(&self) -> Absence {
        match self.source.kind() {
            std::io::ErrorKind::NotFound => Absence::NotFound,
            std::io::ErrorKind::PermissionDenied => Absence::PermissionDenied,
            // A kernel without PSI, or with PSI switched off, has the file but refuses to open it.
            std::io::ErrorKind::Unsupported => Absence::NotFound,
            _ => Absence::Failed(self.source.to_string()),
        }
    }
}

/// A line of a kernel file is malformed. Readings of the other lines are valid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}, line {line}: expected {expected}, found `{found}`")]
pub struct ParseError {
    /// The file, as the kernel calls it.
    pub file: &'static str,
    /// Counted from 1.
    pub line: usize,
    /// What the parser expects there.
    pub expected: &'static str,
    /// What is there: printable, at most 40 characters.
    pub found: String,
}

impl ParseError {
    pub(crate) fn new(
        file: &'static str,
        line: usize,
        expected: &'static str,
        found: &[u8],
    ) -> Self {
        let text: String = String::from_utf8_lossy(&found[..found.len().min(160)])
            .chars()
            .take(40)
            .map(|c| if c.is_control() { '\u{fffd}' } else { c })
            .collect();
        Self { file, line, expected, found: text }
    }
}

/// Keeps the first error of a file while the rest of its lines are read.
#[derive(Debug, Default)]
pub(crate) struct First(Option<ParseError>);

impl First {
    pub(crate) fn note(&mut self, make: impl FnOnce() -> ParseError) {
        if self.0.is_none() {
            self.0 = Some(make());
        }
    }

    pub(crate) fn into_result(self) -> Result<(), ParseError> {
        self.0.map_or(Ok(()), Err)
    }
}
