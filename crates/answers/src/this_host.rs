//! This host: its identity as in its recording, and its recording before the live samples.

use probe::{Root, host_facts};
use store::HostIdentity;
use timeline::Source;

use crate::open::screen;
use crate::recording_directory;

/// Returns the live source with this host's recording before its samples, if there is one that reaches them. A
/// recording that only root may read is among the problems.
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

/// Returns the host's machine ID and name.
pub fn identity(root: &Root) -> HostIdentity {
    let name = host_facts::hostname(root).unwrap_or_default();
    let id = machine_id().unwrap_or_else(|| name.clone());
    HostIdentity { id, name }
}

/// machine-id(5): 32 hexadecimal digits that an installation keeps. A container without one has `uninitialized`.
fn machine_id() -> Option<String> {
    let places = ["/etc/machine-id", "/var/lib/dbus/machine-id"];
    let texts = places.iter().filter_map(|place| std::fs::read_to_string(place).ok());
    texts
        .map(|text| text.trim().to_owned())
        .find(|id| id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit()))
}
