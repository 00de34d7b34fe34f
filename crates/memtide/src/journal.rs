//! systemd: message priorities in the journal, and sd_notify(3).
//!
//! Both use environment variables and need no library: `$JOURNAL_STREAM` names the stream that is the journal,
//! `$NOTIFY_SOCKET` the socket for notifications, `$WATCHDOG_USEC` the interval in which they are expected.

use std::ffi::OsStr;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

/// Returns the prefix of a message: its priority in the journal, else nothing.
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

/// The service manager that expects notifications.
#[derive(Debug)]
pub(crate) struct Supervisor {
    socket: UnixDatagram,
    address: SocketAddr,
    /// The interval in which a keep-alive is expected.
    pub(crate) watchdog: Option<Duration>,
}

impl Supervisor {
    /// Returns the service manager named by the environment; `None` if there is none.
    pub(crate) fn find() -> Option<Self> {
        let path = std::env::var_os("NOTIFY_SOCKET")?;
        let micros = std::env::var("WATCHDOG_USEC").ok();
        let pid = std::env::var("WATCHDOG_PID").ok();
        let is_ours = pid.is_none_or(|pid| pid == std::process::id().to_string());
        let micros = micros.filter(|_| is_ours).and_then(|text| text.parse().ok());
        let socket = UnixDatagram::unbound().ok()?;
        // A manager that does not read must not block the exit.
        socket.set_nonblocking(true).ok()?;
        Some(Self { socket, address: address(&path)?, watchdog: micros.map(Duration::from_micros) })
    }

    /// Sends a state such as `READY=1`. It may be lost.
    pub(crate) fn notify(&self, state: &str) {
        let _ = self.socket.send_to_addr(state.as_bytes(), &self.address);
    }
}

/// Returns the address of a path, or of a name in the abstract namespace after `@`.
fn address(path: &OsStr) -> Option<SocketAddr> {
    match path.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name).ok(),
        None => SocketAddr::from_pathname(path).ok(),
    }
}
