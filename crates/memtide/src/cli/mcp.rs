//! Arguments of `memtide mcp`.

use clap::Args;

/// Answer an assistant's questions about memory (MCP)
///
/// Serves, by the Model Context Protocol on standard input and output, the client that starts it: check, where, explain, headroom, events, growth,
/// compare, rules and profile as tools. They only read, and give the text that the commands print, at most 20 KB. A call
/// that is cancelled is ended. docs/assistants.md says how to add it to a client.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  claude mcp add memtide -- memtide mcp         this host, in Claude Code
  claude mcp add db-07 -- ssh db-07 memtide mcp another host; it needs memtide there, and nothing listens")]
pub(crate) struct McpArgs {}
