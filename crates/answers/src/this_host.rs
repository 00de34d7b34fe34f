//! This host: what an answer needs besides its samples, and its identity as in its recording.

pub(crate) mod names;
mod owners;
mod watched;

pub use owners::NotSearched;
pub use watched::WatchedHost;

use std::path::PathBuf;

use probe::{Root, host_facts};
use store::HostIdentity;
use timeline::{Source, SourceKind};

use crate::open::screen;
use crate::recording_directory;

/// What an answer shows of the live host besides its samples, each at its cost.
#[derive(Debug, Clone, Copy, Default)]
pub struct Besides<'a> {
    /// Its recording before the samples.
    pub history: bool,
    /// Owners of memory that no counter names.
    pub owners: bool,
    /// The user of each process.
    pub users: bool,
    /// The files in the page cache: those that processes have, and those below these directories.
    pub cached_files: Option<&'a [PathBuf]>,
}

/// Completes a source, right after its last sample: of the live host, with what an answer shows `besides`; of it and of a
/// recording, with what people call the containers. Every other source stays as it is. No answer needs more, in whatever
/// program.
///
/// # Errors
/// [`NotSearched`] if a directory cannot be searched for files in the page cache.
pub fn complete(root: &Root, source: &mut Source, besides: Besides<'_>) -> Result<(), NotSearched> {
    if source.origin.kind == SourceKind::Live {
        if besides.history {
            *source = with_history(std::mem::take(source), root);
        }
        names::add(root, source);
        if besides.owners {
            owners::add(root, source);
        }
        if besides.users {
            names::add_users(root, source);
        }
        if let Some(directories) = besides.cached_files {
            owners::add_cached_files(root, source, directories)?;
        }
    } else if source.origin.kind == SourceKind::Recording {
        names::add(root, source);
    }
    Ok(())
}

/// Returns the live source with this host's recording before its samples, if there is one that reaches them. A
/// recording that only root may read is among the problems.
fn with_history(live: Source, root: &Root) -> Source {
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
