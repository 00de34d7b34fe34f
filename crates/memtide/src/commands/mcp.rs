//! `memtide mcp`: the answers for an assistant that speaks the Model Context Protocol.

use std::io::IsTerminal as _;
use std::path::PathBuf;

use answers::recording_directory;
use mcp::McpOptions;

use crate::command_error::{CommandError, ErrorContext as _, bail};
use crate::exit::Exit;

pub(crate) fn run() -> Result<Exit, CommandError> {
    if std::io::stdin().is_terminal() {
        bail!("`memtide mcp` is started by an assistant's client, which speaks to it by pipes");
    }
    mcp::serve_stdio(options(None)?)?;
    Ok(Exit::Ok)
}

/// The tools are commands of this program; `source` is what they are about where a call names none.
pub(super) fn options(source: Option<PathBuf>) -> Result<McpOptions, CommandError> {
    let program = std::env::current_exe().with_context(|| "cannot find this program".to_owned())?;
    Ok(McpOptions { program, recording: recording_directory::to_read(), source })
}
