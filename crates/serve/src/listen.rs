//! Where connections are accepted: an address of this host, or a socket in the file system.

use std::fmt::{self, Display};
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tokio::net::{TcpListener, UnixListener};

/// Where to listen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListenAddress {
    /// An address and port; port 0 is one that is free.
    Tcp(SocketAddr),
    /// A socket, for this user alone.
    Unix(PathBuf),
}

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BoundAddress {
    /// An address with the port that it got.
    Tcp(SocketAddr),
    /// A socket in the file system.
    Unix(PathBuf),
}

/// Why an address cannot be listened at.
// The message of a variant says what its fields are.
#[allow(missing_docs)]
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// Another program listens there.
    #[error("{0} is in use: another program listens there")]
    InUse(ListenAddress),
    /// The path is taken by something that is no socket.
    #[error("{} exists and is no socket; it stays", .0.display())]
    NoSocket(PathBuf),
    /// The system refuses.
    #[error("cannot listen on {address}")]
    Refused { address: ListenAddress, source: io::Error },
}

impl ListenError {
    /// What to do about it.
    pub fn help(&self) -> Option<String> {
        match self {
            Self::InUse(ListenAddress::Tcp(at)) => {
                let free = SocketAddr::new(at.ip(), 0);
                Some(format!(
                    "`ss -ltnp 'sport = :{}'` names it; --listen {free} takes a free port",
                    at.port()
                ))
            }
            Self::Refused { address: ListenAddress::Tcp(at), source }
                if source.kind() == ErrorKind::AddrNotAvailable =>
            {
                Some(format!("{} is no address of this host; `ip address` lists them", at.ip()))
            }
            Self::Refused { source, .. } if source.kind() == ErrorKind::PermissionDenied => {
                Some("ports below 1024 and other users' directories need root".to_owned())
            }
            Self::NoSocket(_) => Some("name a path that does not exist".to_owned()),
            Self::InUse(_) | Self::Refused { .. } => None,
        }
    }
}

impl Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(at) => at.fmt(f),
            Self::Unix(path) => path.display().fmt(f),
        }
    }
}

impl ListenAddress {
    /// What is listened at by default: a port that no well-known service has.
    pub const USUAL: Self =
        Self::Tcp(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), ListenAddress::PORT));
    /// The usual port.
    pub const PORT: u16 = 7424;

    /// Whether only programs of this host can connect.
    pub fn is_of_this_host(&self) -> bool {
        match self {
            Self::Tcp(at) => is_loopback(at.ip()),
            Self::Unix(_) => true,
        }
    }
}

fn is_loopback(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.is_loopback(),
        IpAddr::V6(ip) => {
            ip == Ipv6Addr::LOCALHOST || ip.to_ipv4_mapped().is_some_and(|ip| ip.is_loopback())
        }
    }
}

/// An open listener.
#[derive(Debug)]
pub(crate) enum Listener {
    Tcp(TcpListener, SocketAddr),
    Unix(UnixListener, PathBuf),
}

impl Listener {
    /// Listens. It needs an event loop.
    pub(crate) fn bind(address: &ListenAddress) -> Result<Self, ListenError> {
        let refused = |source: io::Error| match source.kind() {
            ErrorKind::AddrInUse => ListenError::InUse(address.clone()),
            _ => ListenError::Refused { address: address.clone(), source },
        };
        match address {
            ListenAddress::Tcp(at) => {
                let listener = std::net::TcpListener::bind(at).map_err(refused)?;
                let bound = listener.local_addr().map_err(refused)?;
                listener.set_nonblocking(true).map_err(refused)?;
                Ok(Self::Tcp(TcpListener::from_std(listener).map_err(refused)?, bound))
            }
            ListenAddress::Unix(path) => {
                remove_stale(path, address)?;
                let listener = bind_private(path).map_err(refused)?;
                Ok(Self::Unix(listener, path.clone()))
            }
        }
    }

    pub(crate) fn address(&self) -> BoundAddress {
        match self {
            Self::Tcp(_, at) => BoundAddress::Tcp(*at),
            Self::Unix(_, path) => BoundAddress::Unix(path.clone()),
        }
    }

    /// The path that is to be removed at the end.
    pub(crate) fn socket(&self) -> Option<PathBuf> {
        match self {
            Self::Tcp(..) => None,
            Self::Unix(_, path) => Some(path.clone()),
        }
    }
}

/// Removes the socket of a server that is gone: nobody answers there.
fn remove_stale(path: &Path, address: &ListenAddress) -> Result<(), ListenError> {
    let Ok(found) = std::fs::symlink_metadata(path) else { return Ok(()) };
    if !found.file_type().is_socket() {
        return Err(ListenError::NoSocket(path.to_owned()));
    }
    match std::os::unix::net::UnixStream::connect(path) {
        Ok(_) => Err(ListenError::InUse(address.clone())),
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => std::fs::remove_file(path)
            .map_err(|source| ListenError::Refused { address: address.clone(), source }),
        Err(source) => Err(ListenError::Refused { address: address.clone(), source }),
    }
}

/// Makes a socket that only this user can connect to, from its first moment on.
fn bind_private(path: &Path) -> io::Result<UnixListener> {
    let before = rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o177));
    let listener = UnixListener::bind(path);
    rustix::process::umask(before);
    let listener = listener?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_and_sockets_are_of_this_host() {
        for (text, is_of_this_host) in [
            ("127.0.0.1:1", true),
            ("127.8.0.1:1", true),
            ("[::1]:1", true),
            ("[::ffff:127.0.0.1]:1", true),
            ("0.0.0.0:1", false),
            ("[::]:1", false),
            ("192.168.1.4:1", false),
        ] {
            let address = ListenAddress::Tcp(text.parse().unwrap());
            assert_eq!(address.is_of_this_host(), is_of_this_host, "{text}");
        }
        assert!(ListenAddress::Unix("/run/x".into()).is_of_this_host());
    }
}
