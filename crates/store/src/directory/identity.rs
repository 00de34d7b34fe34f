//! `recording.json`: the host of a recording. It is written when the recording begins, and renamed into place.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};
use units::Span;

use crate::StoreError;
use crate::files;
use crate::format::FORMAT;

/// The host of a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostIdentity {
    /// Its unique ID: the machine's ID, or a text for the source of an import.
    pub id: String,
    /// Its display name: the host name.
    pub name: String,
}

/// The file that makes a directory a recording.
pub(crate) const FILE: &str = "recording.json";

/// The temporary name under which it is written.
pub(crate) const DRAFT: &str = ".recording.json";

/// A longer file of this name is not from a recording.
const IDENTITY_BYTES_MAX: u64 = 64 << 10;

#[derive(Debug, Serialize, Deserialize)]
struct RecordingFile {
    format: u32,
    /// The version of memtide that began it.
    #[serde(default)]
    memtide: String,
    host: HostEntry,
    /// When it was begun, in seconds since 1970.
    #[serde(default)]
    created_unix_s: Option<u64>,
    /// Nominal interval of samples, in seconds.
    #[serde(default)]
    every_s: Option<f64>,
}

#[derive(Debug, Serialize, Deserialize)]
struct HostEntry {
    id: String,
    name: String,
}

/// Only the format, which is read first: other formats may have other fields.
#[derive(Debug, Deserialize)]
struct OnlyFormat {
    format: u32,
}

/// Reads the host of a recording.
pub(crate) fn read(directory: &Path) -> Result<HostIdentity, StoreError> {
    let path = directory.join(FILE);
    let text = files::read_regular(&path, IDENTITY_BYTES_MAX)
        .map_err(|error| StoreError::io("read", &path, error))?;
    let strange = |source| StoreError::NoIdentity { path: directory.to_owned(), source };
    let OnlyFormat { format } = serde_json::from_slice(&text).map_err(strange)?;
    if format != FORMAT {
        return Err(StoreError::OtherFormat { path: directory.to_owned(), format, known: FORMAT });
    }
    let content: RecordingFile = serde_json::from_slice(&text).map_err(strange)?;
    let HostEntry { id, name } = content.host;
    Ok(HostIdentity { id, name })
}

/// Whether a directory is not a recording yet: absent or empty. Returns false for a recording of this host.
///
/// # Errors
/// It contains something else, another host's recording, or one of another format. Nothing is changed.
pub(crate) fn is_new(directory: &Path, host: &HostIdentity) -> Result<bool, StoreError> {
    match fs::metadata(directory) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(true),
        Err(error) => return Err(StoreError::io("read", directory, error)),
        Ok(meta) if !meta.is_dir() => {
            return Err(StoreError::NotARecording {
                path: directory.to_owned(),
                found: "nothing, as it is a file".to_owned(),
            });
        }
        Ok(_) => {}
    }
    if !directory.join(FILE).exists() {
        return match foreign(directory)? {
            None => Ok(true),
            Some(found) => Err(StoreError::NotARecording { path: directory.to_owned(), found }),
        };
    }
    let theirs = read(directory)?;
    if theirs.id != host.id {
        return Err(StoreError::OtherHost {
            path: directory.to_owned(),
            theirs: named(&theirs, host),
            ours: named(host, &theirs),
        });
    }
    is_of_this_user(directory)?;
    Ok(false)
}

/// Refuses a recording of another user, who could not read what root adds to it.
fn is_of_this_user(directory: &Path) -> Result<(), StoreError> {
    let Ok(theirs) = fs::symlink_metadata(directory.join(FILE)) else {
        // The directory was removed meanwhile: the next write reports it.
        return Ok(());
    };
    if theirs.uid() == rustix::process::geteuid().as_raw() {
        return Ok(());
    }
    match files::owner_of_new(directory) {
        Ok(ours) if ours == theirs.uid() => Ok(()),
        Err(error) if error.kind() != ErrorKind::PermissionDenied => Ok(()),
        _ => Err(StoreError::OtherUser { path: directory.to_owned(), owner: user(theirs.uid()) }),
    }
}

/// Returns the name of a user, from /etc/passwd.
pub(crate) fn user(id: u32) -> String {
    let text = files::read_regular(Path::new("/etc/passwd"), 1 << 20).unwrap_or_default();
    let text = String::from_utf8_lossy(&text).into_owned();
    let mut users = text.lines().map(|line| line.split(':'));
    let name = users.find_map(|mut fields| {
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(id)).then(|| format!("the user {name}"))
    });
    name.unwrap_or_else(|| format!("the user of ID {id}"))
}

/// Returns the name of a host, with its ID if both hosts have the same name.
fn named(host: &HostIdentity, other: &HostIdentity) -> String {
    if host.name == other.name {
        format!("{} (ID {})", host.name, host.id)
    } else {
        host.name.clone()
    }
}

/// Lists the entries of a directory that is not a recording; `None` if it counts as empty: a recorder that was killed
/// at its start leaves a lock and a draft, and a new file system has `lost+found`.
fn foreign(directory: &Path) -> Result<Option<String>, StoreError> {
    const SHOWN: usize = 3;
    let failed = |error: std::io::Error| StoreError::io("read", directory, error);
    let mut names = Vec::new();
    for entry in fs::read_dir(directory).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        if ![DRAFT, crate::directory::lock::FILE, "lost+found"].iter().any(|known| name == *known) {
            names.push(format!("`{}`", name.to_string_lossy().escape_debug()));
        }
    }
    names.sort();
    let more = names.len().saturating_sub(SHOWN);
    let shown = names.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    Ok(match (names.len(), more) {
        (0, _) => None,
        (_, 0) => Some(shown),
        (_, more) => Some(format!("{shown} and {more} more")),
    })
}

/// Makes a directory a recording.
pub(crate) fn write(
    directory: &Path,
    identity: &HostIdentity,
    every: Span,
) -> Result<(), StoreError> {
    let path = directory.join(FILE);
    write_whole(directory, identity, every).map_err(|error| StoreError::io("write", &path, error))
}

/// Writes the file under a temporary name and renames it.
fn write_whole(directory: &Path, identity: &HostIdentity, every: Span) -> io::Result<()> {
    let draft = directory.join(DRAFT);
    let mut file = files::create_draft(&draft)?;
    let mut text = serde_json::to_vec_pretty(&content(&file, identity, every)?)?;
    text.push(b'\n');
    file.write_all(&text)?;
    file.sync_all()?;
    fs::rename(draft, directory.join(FILE))?;
    files::sync(directory)
}

/// Returns the content of a new recording's file.
fn content(file: &File, identity: &HostIdentity, every: Span) -> io::Result<RecordingFile> {
    // The file system's clock is good enough: nothing depends on it.
    let age = file.metadata()?.modified()?.duration_since(UNIX_EPOCH);
    Ok(RecordingFile {
        format: FORMAT,
        memtide: env!("CARGO_PKG_VERSION").to_owned(),
        host: HostEntry { id: identity.id.clone(), name: identity.name.clone() },
        created_unix_s: age.ok().map(|age| age.as_secs()),
        every_s: Some(every.as_secs_f64()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_of_another_user_is_refused_with_whose_it_is() {
        if !rustix::process::geteuid().is_root() {
            assert!(std::env::var_os("CI").is_none(), "run as root: this test gives a file away");
            println!("skipped: giving a file away needs root");
            return;
        }
        let directory = tempfile::tempdir().unwrap();
        let host = HostIdentity { id: "1".to_owned(), name: "host".to_owned() };
        write(directory.path(), &host, Span::from_secs(1)).unwrap();
        assert!(!is_new(directory.path(), &host).unwrap(), "one's own");
        let path = directory.path().join(FILE);
        for (id, name) in [(1, user(1)), (4_000_000, "the user of ID 4000000".to_owned())] {
            std::os::unix::fs::chown(&path, Some(id), None).unwrap();
            let error = is_new(directory.path(), &host).unwrap_err().to_string();
            assert!(error.contains(&format!("belongs to {name},")), "{error}");
        }
        assert_eq!(user(0), "the user root");
        assert!(!directory.path().join(DRAFT).exists());
    }
}
