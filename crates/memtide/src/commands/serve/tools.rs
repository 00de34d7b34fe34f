//! What assistants may call on a server: the tools of `memtide mcp`, about what is served.

use std::path::{Path, PathBuf};

use answers::recording_directory;
use mcp::HttpTools;

use crate::cli::ServeArgs;
use crate::command_error::CommandError;
use crate::commands::mcp::options;

/// Returns the tools; `None` where what is served was read from standard input, which a call cannot read again.
pub(super) fn of(args: &ServeArgs) -> Result<Option<HttpTools>, CommandError> {
    let source = match args.source.as_deref() {
        Some(path) if path == Path::new("-") => return Ok(None),
        Some(path) => of_another_host(path),
        None => None,
    };
    Ok(Some(HttpTools::new(options(source)?)))
}

/// What is served, unless it is the recording of this host: calls about that are about this host, which can be asked more.
fn of_another_host(served: &Path) -> Option<PathBuf> {
    let served = std::path::absolute(served).unwrap_or_else(|_| served.to_owned());
    let own = recording_directory::to_read().and_then(|path| path.canonicalize().ok());
    Some(served).filter(|path| own.is_none() || path.canonicalize().ok() != own)
}
