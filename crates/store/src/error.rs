//! Errors that concern a recording as a whole.

use std::borrow::Cow;
use std::io::{self, ErrorKind};
use std::path::PathBuf;

/// Why a recording cannot be read or written.
// The message of a variant says what its fields are.
#[allow(missing_docs)]
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A system call failed.
    #[error("cannot {doing} {}", path.display())]
    Io {
        /// The failed operation: `read`, `create`, `lock`.
        doing: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    /// A recorder ended before everything was written.
    #[error("the last samples were not written: {reason}")]
    NotWritten { reason: String },
    /// Another recorder writes to it.
    #[error("{} is being written by another memtide record{}", path.display(), pid.map_or_else(String::new, |pid| format!(" (pid {pid})")))]
    Locked {
        path: PathBuf,
        /// The PID of the other recorder, where known.
        pid: Option<u32>,
    },
    /// It contains files that are not a recording's.
    #[error("{} is not a recording: it contains {found}", path.display())]
    NotARecording { path: PathBuf, found: String },
    /// Its `recording.json` is damaged.
    #[error("{} is not a recording: its recording.json cannot be understood", path.display())]
    NoIdentity {
        path: PathBuf,
        /// What is wrong in the file, and where.
        source: serde_json::Error,
    },
    /// It belongs to another user.
    #[error("{} belongs to {owner}, who could not read new files in it", path.display())]
    OtherUser { path: PathBuf, owner: String },
    /// Another user could lead elsewhere what is written to it.
    #[error("{} is not safe to write to: {why}", path.display())]
    NotTrusted {
        path: PathBuf,
        /// Who could, and how.
        why: String,
    },
    /// It is the recording of another host.
    #[error("{} is the recording of {theirs}, but this host is {ours}", path.display())]
    OtherHost {
        path: PathBuf,
        /// The host that it was recorded on.
        theirs: String,
        /// This host.
        ours: String,
    },
    /// The recording or the timeline to be added has no wall-clock times.
    #[error("cannot add to {}: the recording or the new samples have no wall-clock times", path.display())]
    Undated { path: PathBuf },
    /// The timeline to be added does not begin after the recording's end.
    #[error("{} already covers {first} to {last}, and the new samples begin at {begins}: nothing \
             is overwritten", path.display())]
    NotLater {
        path: PathBuf,
        /// When the timeline to be added begins.
        begins: String,
        /// When the recording begins.
        first: String,
        /// When it ends.
        last: String,
    },
    /// It has another format.
    #[error("{} was written by another memtide (format {format}; this one reads format \
             {known})", path.display())]
    OtherFormat {
        path: PathBuf,
        format: u32,
        /// The format of this memtide.
        known: u32,
    },
}

impl StoreError {
    /// What to do about it.
    pub fn help(&self) -> Cow<'static, str> {
        let help = match self {
            Self::Io { doing: "read", source, .. }
                if source.kind() == ErrorKind::PermissionDenied =>
            {
                "run memtide as the owner of the directory or as root (sudo), or name another one"
            }
            Self::Io { .. } => {
                "check that the directory is yours, writable, and on a disk with free space"
            }
            Self::NotWritten { .. } => {
                "check the disk's free space and health; what was synced before is kept"
            }
            Self::Locked { path, .. } => {
                let path = path.display();
                return Cow::Owned(format!(
                    "`memtide record --status --to {path}` shows it; record elsewhere with `--to \
                     DIR`"
                ));
            }
            Self::NotARecording { .. } => "name a new or empty directory with `--to DIR`",
            Self::NoIdentity { .. } => {
                "restore its recording.json from a backup, or name another directory"
            }
            Self::OtherUser { .. } => "record as that user, or elsewhere with `--to DIR`",
            Self::NotTrusted { .. } => {
                "make it yours with `chown` and `chmod go-w`, or name another directory with `--to \
                 DIR`"
            }
            Self::OtherHost { .. } => "name a directory for each host with `--to DIR`",
            Self::NotLater { .. } | Self::Undated { .. } => {
                "name another directory with `--to DIR`"
            }
            Self::OtherFormat { .. } => "use that memtide, or another directory",
        };
        Cow::Borrowed(help)
    }

    /// Returns the path that it names.
    pub(crate) fn path_mut(&mut self) -> Option<&mut PathBuf> {
        match self {
            Self::NotWritten { .. } => None,
            Self::Io { path, .. }
            | Self::Locked { path, .. }
            | Self::NotARecording { path, .. }
            | Self::NoIdentity { path, .. }
            | Self::OtherUser { path, .. }
            | Self::NotTrusted { path, .. }
            | Self::OtherHost { path, .. }
            | Self::Undated { path }
            | Self::NotLater { path, .. }
            | Self::OtherFormat { path, .. } => Some(path),
        }
    }

    /// A system call failed while `doing` something with a file or directory.
    pub(crate) fn io(doing: &'static str, path: &std::path::Path, source: io::Error) -> Self {
        Self::Io { doing, path: path.to_owned(), source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One of each error. A new variant does not compile in `help` until it says what to do.
    fn every_error() -> Vec<StoreError> {
        let path = || PathBuf::from("/srv/rec");
        let text = || "web3".to_owned();
        vec![
            StoreError::io("read", &path(), ErrorKind::PermissionDenied.into()),
            StoreError::io("write", &path(), ErrorKind::StorageFull.into()),
            StoreError::NoIdentity {
                path: path(),
                source: <_ as serde::de::Error>::custom("no format"),
            },
            StoreError::NotWritten { reason: text() },
            StoreError::Locked { path: path(), pid: Some(812) },
            StoreError::NotARecording { path: path(), found: text() },
            StoreError::OtherUser { path: path(), owner: text() },
            StoreError::NotTrusted { path: path(), why: text() },
            StoreError::OtherHost { path: path(), theirs: text(), ours: text() },
            StoreError::Undated { path: path() },
            StoreError::NotLater { path: path(), begins: text(), first: text(), last: text() },
            StoreError::OtherFormat { path: path(), format: 3, known: 2 },
        ]
    }

    #[test]
    fn every_error_names_the_place_and_says_what_to_do() {
        for error in every_error() {
            let (text, help) = (timeline::with_causes(&error), error.help());
            let has_no_place = matches!(error, StoreError::NotWritten { .. });
            assert_eq!(text.matches("/srv/rec").count(), usize::from(!has_no_place), "{text}");
            assert!(!text.ends_with('.') && !text.contains("  "), "{text}");
            assert!(!help.ends_with('.') && help.len() > 10, "{help}");
            // The status of another directory would be that of another recorder.
            let is_complete = !help.contains("--status") || help.contains("--status --to /srv/rec");
            assert!(is_complete, "{help}");
        }
    }

    #[test]
    fn a_cause_keeps_its_kind_and_decides_what_to_do() {
        let path = std::path::Path::new("/srv/rec");
        let denied = StoreError::io("read", path, ErrorKind::PermissionDenied.into());
        assert_eq!(denied.to_string(), "cannot read /srv/rec");
        assert_eq!(timeline::with_causes(&denied), "cannot read /srv/rec: permission denied");
        assert!(denied.help().contains("sudo"), "{}", denied.help());
        // Who may not write needs another directory, not other rights to read.
        let full = StoreError::io("read", path, ErrorKind::StorageFull.into());
        assert!(!full.help().contains("sudo"), "{}", full.help());
    }
}
