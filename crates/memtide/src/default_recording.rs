//! Where this host's recording is when nobody says where: one place for root, one for each user.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::Context;

/// Where the recorder of the system writes.
const OF_SYSTEM: &str = "/var/lib/memtide";

/// Where a recorder started by this user writes: `/var/lib/memtide` for root, else `$XDG_STATE_HOME/memtide` or
/// `~/.local/state/memtide`. `None` where the user has no home.
pub(crate) fn to_write() -> Option<PathBuf> {
    if probe::host_facts::user_is_root() {
        return Some(PathBuf::from(OF_SYSTEM));
    }
    let state = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from);
    let home = std::env::var_os("HOME").map(PathBuf::from);
    of_user(state, home)
}

/// Where a recording is found for reading: the user's own, else that of the system. `None` where neither is there.
pub(crate) fn to_read() -> Option<PathBuf> {
    places().find(|place| store::Recording::is_at(place))
}

/// The recording that this user may not read, where there is one.
pub(crate) fn denied() -> Option<PathBuf> {
    let is_denied = |place: &PathBuf| {
        // Without leave to search a directory nobody can tell what is in it.
        let inside = place.join("recording.json").metadata();
        inside.is_err_and(|error| error.kind() == ErrorKind::PermissionDenied)
    };
    places().find(is_denied)
}

fn places() -> impl Iterator<Item = PathBuf> {
    to_write().into_iter().chain([PathBuf::from(OF_SYSTEM)])
}

/// Where a user's programs are configured: `$XDG_CONFIG_HOME` or `~/.config`.
pub(crate) fn config_home() -> Option<PathBuf> {
    let config = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from);
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let absolute = |path: &PathBuf| path.is_absolute();
    config.filter(absolute).or_else(|| {
        let home = home.filter(absolute)?;
        Some(home.join(".config"))
    })
}

/// The source that was named, else this host's recording.
pub(crate) fn unless_named(source: Option<&Path>) -> anyhow::Result<PathBuf> {
    source.map_or_else(required, |source| Ok(source.to_owned()))
}

/// Where this host's recording is, for a command that cannot do without.
pub(crate) fn required() -> anyhow::Result<PathBuf> {
    let place = || to_write().unwrap_or_else(|| PathBuf::from(OF_SYSTEM));
    to_read().with_context(|| match denied() {
        Some(place) => format!(
            "this user may not read the recording in {}; run memtide with sudo, or name a source",
            place.display()
        ),
        None => format!(
            "this host has no recording in {}; `memtide record` begins one, or name a source",
            place().display()
        ),
    })
}

/// As the XDG base directories have it: a relative path counts as none.
fn of_user(state: Option<PathBuf>, home: Option<PathBuf>) -> Option<PathBuf> {
    let absolute = |path: &PathBuf| path.is_absolute();
    let state = state.filter(absolute).or_else(|| {
        let home = home.filter(|home| absolute(home) && home != Path::new("/"));
        home.map(|home| home.join(".local/state"))
    });
    state.map(|state| state.join("memtide"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_records_below_the_state_directory_and_without_a_home_nowhere() {
        let path = |text: &str| (!text.is_empty()).then(|| PathBuf::from(text));
        for (state, home, place) in [
            ("/s", "/home/u", "/s/memtide"),
            ("", "/home/u", "/home/u/.local/state/memtide"),
            ("relative", "/home/u", "/home/u/.local/state/memtide"),
            ("", "/", ""),
            ("", "", ""),
        ] {
            assert_eq!(
                of_user(path(state), path(home)),
                path(place),
                "{state} {home}"
            );
        }
    }
}
