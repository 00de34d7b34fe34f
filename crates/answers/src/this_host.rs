//! This host: its identity, as its recording has it, and its recording before the live samples.

use probe::{Root, host_facts};
use store::HostIdentity;
use timeline::Source;

use crate::open::screen;
use crate::recording_directory;

/// The live source with this host's recording before its samples, where there is one that reaches them. Where root could
/// have read one, that is among its problems.
pub fn with_history(live: Source, root: &Root) -> Source {
    let mut source = match recording_directory::to_read() {
        Some(directory) => {
            import::with_history(&directory, &identity(root).id, live, Some(screen()))
        }
        None => live,
    };
    if source.origin.live_from.is_none()
        && let Some(place) = recording_directory::denied()
    {
        source.problems.push(format!(
            "root could also read the recording in {} for the time before",
            place.display()
        ));
    }
    source
}

/// Its machine ID and its name.
pub fn identity(root: &Root) -> HostIdentity {
    let name = host_facts::hostname(root).unwrap_or_default();
    let id = machine_id().unwrap_or_else(|| name.clone());
    HostIdentity { id, name }
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
