//! Arguments of `memtide serve`.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use clap::Args;
use serve::ListenAddress;
use units::Span;

use super::typed::{every, span};

/// Show the answers in a browser, live, and as JSON and metrics
///
/// The page of `memtide report`, alive: it follows the host, shows any range of a recording, and its address is a link to what
/// it shows. Programs ask /api/v1/check, where, headroom, compare, events and series for the JSON of the command line;
/// Prometheus scrapes /metrics, which has node_exporter's names, memtide's findings and what still fits. Assistants call the tools
/// of `memtide mcp` at /mcp.
///
/// Without SOURCE it serves this host's recording while `memtide record` writes to it, and goes on with it. Without a recorder
/// it watches this host itself and keeps the last half hour in memory.
///
/// It answers programs of this host alone: from elsewhere, come through ssh. Another address needs --token-file: whoever has
/// the token sees the names of all programs, services and users. It changes nothing and needs no root; root sees more.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  memtide serve                                   then open http://127.0.0.1:7424/
  ssh -L 7424:127.0.0.1:7424 db7 memtide serve    the same of another host, from here
  memtide serve /var/lib/memtide                  a recording, and what is written to it
  memtide serve sick.jsonl.zst                    a capture of another host
  memtide serve --unix /run/memtide.sock          a socket instead of a port, for this user alone
  memtide serve --listen 10.0.0.7:7424 --token-file /etc/memtide/token
  curl -s localhost:7424/api/v1/check?since=2h+ago | jq .headline
  curl -s -H \"Authorization: Bearer $(cat TOKEN)\" db7:7424/metrics

  claude mcp add --transport http memtide http://127.0.0.1:7424/mcp

docs/serve.md has all addresses, and how Prometheus, systemd and a proxy with TLS are set up.

Ctrl-C or SIGTERM ends it. Exit codes: 0 ended   3 an error, nothing was served")]
pub(crate) struct ServeArgs {
    /// A recording, a capture, text, a log, a bundle; `-` is standard input. Without it, this host
    #[arg(value_name = "SOURCE")]
    pub(crate) source: Option<PathBuf>,

    /// Where to listen: ADDRESS:PORT, or a port of 127.0.0.1; port 0 is one that is free [default: 127.0.0.1:7424]
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    listen: Vec<SocketAddr>,

    /// Listen at a socket in the file system, which only this user can connect to
    #[arg(long, value_name = "PATH")]
    unix: Option<PathBuf>,

    /// Answer only who sends the secret in this file, which nobody else may read
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,

    /// A name of this host under which browsers may ask for it, beside its addresses and localhost
    #[arg(long = "allow-host", value_name = "NAME")]
    pub(crate) allowed_hosts: Vec<String>,

    /// Interval between samples of this host, where it is watched
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = every, conflicts_with = "source")]
    pub(crate) every: Span,

    /// How much of this host is kept in memory, where it is watched
    #[arg(long, value_name = "TIME", default_value = "30m", value_parser = span, conflicts_with = "source")]
    pub(crate) window: Span,

    /// Watch this host even if a recorder runs
    #[arg(long, conflicts_with = "source")]
    pub(crate) live: bool,

    /// /metrics: of so many cgroups and services at most, those with most memory
    #[arg(long, value_name = "COUNT", default_value_t = 50)]
    pub(crate) units_max: usize,
}

impl ServeArgs {
    /// Returns where to listen.
    pub(crate) fn addresses(&self) -> Vec<ListenAddress> {
        let typed = self.listen.iter().copied().map(ListenAddress::Tcp);
        let typed: Vec<_> = typed.chain(self.unix.clone().map(ListenAddress::Unix)).collect();
        if typed.is_empty() { vec![ListenAddress::USUAL] } else { typed }
    }
}

fn address(typed: &str) -> Result<SocketAddr, String> {
    if let Ok(port) = typed.strip_prefix(':').unwrap_or(typed).parse::<u16>() {
        return Ok(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port));
    }
    if let Ok(ip) = typed.trim_matches(['[', ']']).parse::<IpAddr>() {
        return Ok(SocketAddr::new(ip, ListenAddress::PORT));
    }
    let typed = typed
        .strip_prefix("localhost:")
        .map_or(typed.to_owned(), |port| format!("127.0.0.1:{port}"));
    typed
        .parse()
        .map_err(|_| "write ADDRESS:PORT, as 127.0.0.1:7424 or [::1]:7424, or a port".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_written_as_people_write_it() {
        for (typed, at) in [
            ("8080", "127.0.0.1:8080"),
            (":8080", "127.0.0.1:8080"),
            ("localhost:8080", "127.0.0.1:8080"),
            ("0.0.0.0:80", "0.0.0.0:80"),
            ("10.0.0.7", "10.0.0.7:7424"),
            ("::1", "[::1]:7424"),
            ("[::1]:9", "[::1]:9"),
        ] {
            assert_eq!(address(typed), Ok(at.parse().unwrap()), "{typed}");
        }
        for typed in ["", "host:80", "127.0.0.1:x", "1.2.3.4:99999"] {
            assert!(address(typed).unwrap_err().contains("127.0.0.1:7424"), "{typed}");
        }
    }
}
