//! memtide's answers for assistants, by the Model Context Protocol (MCP): on standard input and output, or over HTTP.
//!
//! Each tool is a command of memtide that only reads, and its answer is the text of that command: nothing is judged or
//! worded here. The command runs in a process of its own, so that a call can be cancelled, has a time limit, and cannot take
//! the server with it.

mod answer;
mod call;
mod http_tools;
mod tools;

use std::path::PathBuf;

use rmcp::ServiceExt as _;

pub use answer::{JSON_BYTES_MAX, TEXT_BYTES_MAX};
pub use http_tools::HttpTools;
use tools::MemoryTools;

/// Why the server could not serve.
#[derive(Debug, thiserror::Error)]
pub enum McpError {
    /// The runtime could not be started, or standard input failed.
    #[error("standard input or output failed")]
    Io(#[from] std::io::Error),
    /// What came in was not the protocol.
    #[error("the client does not speak the Model Context Protocol: {0}")]
    Protocol(String),
}

/// What the server calls.
#[derive(Debug, Clone)]
pub struct McpOptions {
    /// The program of memtide: its commands are the tools.
    pub program: PathBuf,
    /// This host's recording, which `compare` takes where no source is named.
    pub recording: Option<PathBuf>,
    /// What calls are about that name no source; `None`: this host.
    pub source: Option<PathBuf>,
}

/// What is known of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientTrust {
    /// It has proved that it may read what the user of this process reads: it started it, knows its secret, or came by a socket
    /// of that user.
    SameUser,
    /// It is a program of this host, of whichever user: it may not have files read.
    AnyUser,
}

/// Serves the client on standard input and output until that ends.
///
/// # Errors
/// [`McpError`] if the client does not begin with the protocol, or standard input cannot be read.
pub fn serve_stdio(options: McpOptions) -> Result<(), McpError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let served = runtime.block_on(async {
        let transport = rmcp::transport::stdio();
        let serving = MemoryTools::new(options, ClientTrust::SameUser).serve(transport).await;
        let serving = serving.map_err(|error| McpError::Protocol(error.to_string()))?;
        serving.waiting().await.map_err(|error| McpError::Protocol(error.to_string()))?;
        Ok(())
    });
    // A thread may still wait for standard input, which nobody closes.
    runtime.shutdown_background();
    served
}
