//! When a server is ready.

use std::fmt;
use std::io::{Read as _, Write as _};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What shows that a server is ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReadyWhen {
    /// It accepts a connection at HOST:PORT.
    Tcp(String),
    /// It accepts a connection at a socket's path.
    Unix(String),
    /// It answers `GET /PATH` at HOST:PORT with a status below 400.
    Http {
        /// The server as HOST:PORT.
        address: String,
        /// With its slash.
        path: String,
    },
    /// A command succeeds, as a shell reads it.
    Command(String),
    /// So many milliseconds have passed.
    AfterMillis(u64),
}

/// A connection that takes longer is tried again.
const TRY_MAX: Duration = Duration::from_millis(250);

impl ReadyWhen {
    /// Reads `tcp:HOST:PORT`, `unix:PATH`, `http://HOST:PORT/PATH`, `exec:COMMAND` or `after:SECONDS`.
    ///
    /// # Errors
    /// What can be written instead.
    pub fn read(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "`{text}` is no sign of a ready server; write tcp:127.0.0.1:5432, unix:/run/db.sock, \
                 http://127.0.0.1:8080/health, exec:COMMAND or after:SECONDS"
            )
        };
        if let Some(rest) = text.strip_prefix("http://") {
            let (address, path) = rest.split_once('/').unwrap_or((rest, ""));
            let address =
                if address.contains(':') { address.to_owned() } else { format!("{address}:80") };
            return Ok(Self::Http { address, path: format!("/{path}") });
        }
        let (kind, value) = text.split_once(':').ok_or_else(wrong)?;
        match kind {
            "tcp" if value.contains(':') => Ok(Self::Tcp(value.to_owned())),
            "tcp" if value.parse::<u16>().is_ok() => Ok(Self::Tcp(format!("127.0.0.1:{value}"))),
            "unix" => Ok(Self::Unix(value.to_owned())),
            "exec" => Ok(Self::Command(value.to_owned())),
            "after" => match value.trim_end_matches('s').parse::<f64>() {
                #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // below an hour
                Ok(seconds) if (0.0..3600.0).contains(&seconds) => {
                    Ok(Self::AfterMillis((seconds * 1000.0) as u64))
                }
                _ => Err(wrong()),
            },
            _ => Err(wrong()),
        }
    }

    /// Whether its address answers while the server does not run: then another would be measured.
    pub(crate) fn is_answered_before(&self) -> bool {
        match self {
            Self::Tcp(_) | Self::Unix(_) | Self::Http { .. } => self.is_ready(Duration::ZERO),
            Self::Command(_) | Self::AfterMillis(_) => false,
        }
    }

    /// Asks once. `after` is the time since the server was started.
    pub(crate) fn is_ready(&self, after: Duration) -> bool {
        match self {
            Self::Tcp(address) => connect(address).is_some(),
            Self::Unix(path) => UnixStream::connect(path).is_ok(),
            Self::Http { address, path } => answers(address, path).unwrap_or(false),
            // The run starts the command, and does not wait for it.
            Self::Command(_) => false,
            Self::AfterMillis(millis) => after >= Duration::from_millis(*millis),
        }
    }
}

fn connect(address: &str) -> Option<TcpStream> {
    let mut addresses = address.to_socket_addrs().ok()?;
    addresses.find_map(|address| TcpStream::connect_timeout(&address, TRY_MAX).ok())
}

/// Whether a server answers with a status below 400.
fn answers(address: &str, path: &str) -> Option<bool> {
    let mut stream = connect(address)?;
    stream.set_read_timeout(Some(TRY_MAX)).ok()?;
    write!(stream, "GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n").ok()?;
    let mut head = [0; 12];
    stream.read_exact(&mut head).ok()?;
    let status = std::str::from_utf8(&head).ok()?.get(9..)?.parse::<u16>().ok()?;
    Some(status < 400)
}

impl fmt::Display for ReadyWhen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => write!(f, "tcp:{address}"),
            Self::Unix(path) => write!(f, "unix:{path}"),
            Self::Http { address, path } => write!(f, "http://{address}{path}"),
            Self::Command(line) => write!(f, "exec:{line}"),
            #[allow(clippy::cast_precision_loss)] // below an hour
            Self::AfterMillis(millis) => write!(f, "after:{}", *millis as f64 / 1000.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn what_is_typed_is_read_and_printed_again() {
        for text in [
            "tcp:127.0.0.1:5432",
            "unix:/run/a.sock",
            "http://h:80/health",
            "exec:a b",
            "after:2.5",
        ] {
            assert_eq!(ReadyWhen::read(text).map(|ready| ready.to_string()), Ok(text.to_owned()));
        }
        assert_eq!(ReadyWhen::read("tcp:80"), Ok(ReadyWhen::Tcp("127.0.0.1:80".into())));
        for text in ["", "tcp:x", "port:80", "after:-1"] {
            assert!(ReadyWhen::read(text).unwrap_err().contains("write tcp:"), "{text}");
        }
    }

    #[test]
    fn a_listening_server_is_ready_and_none_is_not() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        assert!(ReadyWhen::Tcp(address.clone()).is_ready(Duration::ZERO));
        drop(listener);
        assert!(!ReadyWhen::Tcp(address).is_ready(Duration::ZERO));
        assert!(!ReadyWhen::AfterMillis(50).is_ready(Duration::from_millis(40)));
    }
}
