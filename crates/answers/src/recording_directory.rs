//! The default directory of this host's recording: one for root, one for each user.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use report::model::status::{RecorderProblem, RecorderState, StatusReport};
use units::Span;

/// The directory of the system's recorder.
const OF_SYSTEM: &str = "/var/lib/memtide";

/// Returns the directory that this user's recorder writes to: `/var/lib/memtide` for root, else
/// `$XDG_STATE_HOME/memtide` or `~/.local/state/memtide`. `None` if the user has no home.
pub fn to_write() -> Option<PathBuf> {
    if probe::host_facts::user_is_root() {
        return Some(PathBuf::from(OF_SYSTEM));
    }
    let state = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from);
    let home = std::env::var_os("HOME").map(PathBuf::from);
    of_user(state, home)
}

/// Returns the recording to read: the user's own, else the system's. `None` if neither exists.
pub fn to_read() -> Option<PathBuf> {
    places().find(|place| store::Recording::is_at(place))
}

/// Returns the recording to read if its recorder runs, has recorded for this long, and is not behind: what happened a moment
/// ago is in it.
pub fn up_to_date(least: Span) -> Option<PathBuf> {
    to_read().filter(|place| crate::status(place).is_ok_and(|status| is_enough(&status, least)))
}

fn is_enough(status: &StatusReport, least: Span) -> bool {
    let recorded = status.recording.as_ref().map(|recording| recording.recorded_s);
    let health = status.health.as_ref();
    status.state == RecorderState::Running
        && recorded >= Some(least)
        && health.is_some_and(|health| !health.has(RecorderProblem::Behind))
}

/// Returns the recording that this user may not read, if there is one.
pub fn denied() -> Option<PathBuf> {
    let is_denied = |place: &PathBuf| {
        // Without search permission the content of a directory is unknown.
        let inside = place.join("recording.json").metadata();
        inside.is_err_and(|error| error.kind() == ErrorKind::PermissionDenied)
    };
    places().find(is_denied)
}

fn places() -> impl Iterator<Item = PathBuf> {
    to_write().into_iter().chain([PathBuf::from(OF_SYSTEM)])
}

/// Returns the named source, else this host's recording.
///
/// # Errors
/// [`NoRecording`] if no source was named and this host has no recording that this user may read.
pub fn unless_named(source: Option<&Path>) -> Result<PathBuf, NoRecording> {
    source.map_or_else(required, |source| Ok(source.to_owned()))
}

/// Returns this host's recording, for a command that needs it.
///
/// # Errors
/// [`NoRecording`] if there is none, or this user may not read it.
pub fn required() -> Result<PathBuf, NoRecording> {
    to_read().ok_or_else(|| match denied() {
        Some(place) => NoRecording::Denied(place),
        None => NoRecording::Absent(to_write().unwrap_or_else(|| PathBuf::from(OF_SYSTEM))),
    })
}

/// Why this host's recording cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum NoRecording {
    /// It exists, but this user may not read it.
    #[error(
        "this user may not read the recording in {}; run memtide with sudo, or name a source", .0.display()
    )]
    Denied(PathBuf),
    /// It does not exist.
    #[error(
        "this host has no recording in {}; `memtide record` begins one, or name a source", .0.display()
    )]
    Absent(PathBuf),
}

/// By the XDG base directory specification a relative path counts as none.
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
            assert_eq!(of_user(path(state), path(home)), path(place), "{state} {home}");
        }
    }
}
