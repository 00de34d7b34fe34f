//! Errors that concern a recording as a whole.

use std::borrow::Cow;
use std::path::PathBuf;

/// Why a recording cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A system call failed.
    #[error("cannot {doing} {}: {reason}", path.display())]
    Io {
        /// The failed operation: `read`, `create`, `lock`.
        doing: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The operating system's error, as text because an error's source would be shown a second time.
        reason: String,
    },
    /// A recorder ended before everything was written.
    #[error("the last samples were not written: {reason}")]
    NotWritten {
        /// The error of the disk.
        reason: String,
    },
    /// Another recorder writes to it.
    #[error("{} is being written by another memtide record{}", path.display(), pid.map_or_else(String::new, |pid| format!(" (pid {pid})")))]
    Locked {
        /// The directory.
        path: PathBuf,
        /// The PID of the other recorder, where known.
        pid: Option<u32>,
    },
    /// It contains files that are not a recording's.
    #[error("{} is not a recording: it contains {found}", path.display())]
    NotARecording {
        /// The directory.
        path: PathBuf,
        /// What was found there.
        found: String,
    },
    /// It belongs to another user.
    #[error("{} belongs to {owner}, who could not read new files in it", path.display())]
    OtherUser {
        /// The directory.
        path: PathBuf,
        /// That user.
        owner: String,
    },
    /// Another user could lead elsewhere what is written to it.
    #[error("{} is not safe to write to: {why}", path.display())]
    NotTrusted {
        /// The directory.
        path: PathBuf,
        /// Who could, and how.
        why: String,
    },
    /// It is the recording of another host.
    #[error("{} is the recording of {theirs}, but this host is {ours}", path.display())]
    OtherHost {
        /// The directory.
        path: PathBuf,
        /// The host that it was recorded on.
        theirs: String,
        /// This host.
        ours: String,
    },
    /// The recording or the timeline to be added has no wall-clock times.
    #[error("cannot add to {}: the recording or the new samples have no wall-clock times", path.display())]
    Undated {
        /// The directory.
        path: PathBuf,
    },
    /// The timeline to be added does not begin after the recording's end.
    #[error("{} already covers {first} to {last}, and the new samples begin at {begins}: nothing \
             is overwritten", path.display())]
    NotLater {
        /// The directory.
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
        /// The directory.
        path: PathBuf,
        /// Its format.
        format: u32,
        /// The format of this memtide.
        known: u32,
    },
}

impl StoreError {
    /// What to do about it.
    pub fn help(&self) -> Cow<'static, str> {
        let help = match self {
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
            | Self::OtherUser { path, .. }
            | Self::NotTrusted { path, .. }
            | Self::OtherHost { path, .. }
            | Self::Undated { path }
            | Self::NotLater { path, .. }
            | Self::OtherFormat { path, .. } => Some(path),
        }
    }

    /// A system call failed while `doing` something with a file or directory.
    pub(crate) fn io(doing: &'static str, path: &std::path::Path, error: &std::io::Error) -> Self {
        Self::Io { doing, path: path.to_owned(), reason: error.to_string() }
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
            StoreError::io("read", &path(), &std::io::ErrorKind::PermissionDenied.into()),
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
            let (text, help) = (error.to_string(), error.help());
            let has_no_place = matches!(error, StoreError::NotWritten { .. });
            assert!(has_no_place || text.contains("/srv/rec"), "{text}");
            assert!(!text.ends_with('.') && !text.contains("  "), "{text}");
            assert!(!help.ends_with('.') && help.len() > 10, "{help}");
            // The status of another directory would be that of another recorder.
            let is_complete = !help.contains("--status") || help.contains("--status --to /srv/rec");
            assert!(is_complete, "{help}");
        }
    }
}
