//! `memtide mcp`: the answers for an assistant that speaks the Model Context Protocol.

use std::io::IsTerminal as _;

use answers::recording_directory;
use mcp::McpOptions;

use crate::command_error::{CommandError, ErrorContext as _, bail};
use crate::exit::Exit;

pub(crate) fn run() -> Result<Exit, CommandError> {
    if std::io::stdin().is_terminal() {
        bail!("`memtide mcp` is started by an assistant's client, which speaks to it by pipes");
    }
    let program = std::env::current_exe().with_context(|| "cannot find this program".to_owned())?;
    let recording = recording_directory::to_read();
    mcp::serve_stdio(McpOptions { program, recording })?;
    Ok(Exit::Ok)
}
