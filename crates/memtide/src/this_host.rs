//! Who this host is, as a recording of it says.

use probe::{Root, host_facts};
use store::Identity;

/// Its machine ID and its name.
pub(crate) fn identity(root: &Root) -> Identity {
    let name = host_facts::hostname(root).unwrap_or_default();
    let id = machine_id().unwrap_or_else(|| name.clone());
    Identity { id, name }
}

/// machine-id(5): 32 hexadecimal digits that stay with an installation; a container without one has `uninitialized`.
fn machine_id() -> Option<String> {
    let places = ["/etc/machine-id", "/var/lib/dbus/machine-id"];
    let texts = places
        .iter()
        .filter_map(|place| std::fs::read_to_string(place).ok());
    texts
        .map(|text| text.trim().to_owned())
        .find(|id| id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit()))
}
