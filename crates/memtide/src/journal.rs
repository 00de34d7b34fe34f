//! Being a service of systemd: priorities of messages in its journal, and word of how it goes (sd_notify).
//!
//! Both are by environment variables and need no library: `$JOURNAL_STREAM` names the stream that is the journal,
//! `$NOTIFY_SOCKET` where word is expected, `$WATCHDOG_USEC` how often.

use std::ffi::OsStr;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

/// What a line of a message begins with: nothing, or in the journal its priority.
pub(crate) fn prefix(line: &str) -> &'static str {
    if !is_stderr() {
        return "";
    }
    match line.split_once(':') {
        Some(("error", _)) => "<3>",
        Some(("warning", _)) => "<4>",
        Some(("help", _)) => "<5>",
        _ => "<6>",
    }
}

/// Whether stderr is the journal's stream: device and inode in decimal.
pub(crate) fn is_stderr() -> bool {
    let named = std::env::var("JOURNAL_STREAM").unwrap_or_default();
    !named.is_empty()
        && rustix::fs::fstat(std::io::stderr())
            .is_ok_and(|stat| named == format!("{}:{}", stat.st_dev, stat.st_ino))
}

/// Whoever waits for word from us.
#[derive(Debug)]
pub(crate) struct Supervisor {
    socket: UnixDatagram,
    address: SocketAddr,
    /// How often we must show that we are alive.
    pub(crate) watchdog: Option<Duration>,
}

impl Supervisor {
    /// The one that the environment names; `None` where there is none.
    pub(crate) fn find() -> Option<Self> {
        let path = std::env::var_os("NOTIFY_SOCKET")?;
        let micros = std::env::var("WATCHDOG_USEC").ok();
        let pid = std::env::var("WATCHDOG_PID").ok();
        let is_ours = pid.is_none_or(|pid| pid == std::process::id().to_string());
        let micros = micros
            .filter(|_| is_ours)
            .and_then(|text| text.parse().ok());
        let socket = UnixDatagram::unbound().ok()?;
        // Whoever does not listen must not keep us from ending.
        socket.set_nonblocking(true).ok()?;
        Some(Self {
            socket,
            address: address(&path)?,
            watchdog: micros.map(Duration::from_micros),
        })
    }

    /// Sends word: `READY=1`. It may be lost; whoever waits will say so.
    pub(crate) fn tell(&self, word: &str) {
        let _ = self.socket.send_to_addr(word.as_bytes(), &self.address);
    }
}

/// A path, or a name of the abstract namespace behind `@`.
fn address(path: &OsStr) -> Option<SocketAddr> {
    match path.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name).ok(),
        None => SocketAddr::from_pathname(path).ok(),
    }
}
