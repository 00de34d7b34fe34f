//! What is printed when a server has started: where it is, how to get there from elsewhere, and who can.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use serve::{BoundAddress, ListenAddress};

use crate::output::Output;

pub(super) fn announce(
    addresses: &[BoundAddress],
    about: &str,
    is_protected: bool,
    output: &Output,
) {
    output.note(&format!("serving {about}"));
    for address in addresses {
        match address {
            BoundAddress::Tcp(at) => of_network(*at, is_protected, output),
            BoundAddress::Unix(path) => {
                let path = path.display();
                output.note(&format!("  at {path}, for this user alone"));
                output.note(&format!(
                    "  ask:  curl --unix-socket {path} http://localhost/api/v1/check"
                ));
                output.note(&format!("  from elsewhere:  ssh -L 7424:{path} {}", host()));
            }
        }
    }
    output.note("Ctrl-C ends it.");
}

fn of_network(at: SocketAddr, is_protected: bool, output: &Output) {
    if !ListenAddress::Tcp(at).is_of_this_host() {
        let port = at.port();
        output.note(&format!("  at http://{}/", readable(at)));
        if is_protected {
            output.warn(&format!(
                "without TLS the token and all answers can be read on the way to port {port}; put a proxy with TLS before it"
            ));
        }
        return;
    }
    output.note(&format!("  open  http://{}/", readable(at)));
    output.note(&format!(
        "  from elsewhere:  ssh -L {0}:{1} {2}   then open http://127.0.0.1:{0}/",
        at.port(),
        readable(at),
        host()
    ));
}

/// An address that a browser can open: one that means all of them is none.
fn readable(at: SocketAddr) -> SocketAddr {
    let ip = match at.ip() {
        IpAddr::V4(Ipv4Addr::UNSPECIFIED) => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(Ipv6Addr::UNSPECIFIED) => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(ip, at.port())
}

/// The name of this host, as far as it is one that can be typed.
fn host() -> String {
    let name = probe::host_facts::hostname(&probe::Root::default()).unwrap_or_default();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-');
    if name.is_empty() || !name.chars().all(is_plain) { "HOST".to_owned() } else { name }
}
