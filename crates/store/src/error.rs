//! What can go wrong with a recording as a whole.

use std::path::PathBuf;

/// Why a directory cannot be recorded into or read.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The operating system refused.
    #[error("cannot {doing} {}: {reason}", path.display())]
    Io {
        /// What was tried: `read`, `create`, `lock`.
        doing: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The operating system's reason; in words, as an error's source would be shown a second time.
        reason: String,
    },
    /// A recorder ended before its disk had taken everything.
    #[error("the last samples are not kept: {reason}")]
    NotWritten {
        /// What the disk said.
        reason: String,
    },
    /// Another recorder writes to it.
    #[error("{} is being written by another memtide record{}", path.display(), pid.map_or_else(String::new, |pid| format!(" (pid {pid})")))]
    Locked {
        /// The directory.
        path: PathBuf,
        /// The other's PID, where it is known.
        pid: Option<u32>,
    },
    /// It holds files that are no recording's.
    #[error("{} is not a recording: it holds {found}", path.display())]
    NotARecording {
        /// The directory.
        path: PathBuf,
        /// What was found there.
        found: String,
    },
    /// It is another user's.
    #[error("{} belongs to {owner}, who could not read what is written here; record elsewhere, or as {owner}", path.display())]
    OtherUser {
        /// The directory.
        path: PathBuf,
        /// Whose it is.
        owner: String,
    },
    /// It is the recording of another host.
    #[error("{} holds the recording of {theirs}, and this is {ours}", path.display())]
    OtherHost {
        /// The directory.
        path: PathBuf,
        /// The host that it was recorded on.
        theirs: String,
        /// This host.
        ours: String,
    },
    /// What is to be added to it does not tell when it was, or the recording does not.
    #[error("{} cannot be added to: it or what is added does not tell at what times samples were taken", path.display())]
    Undated {
        /// The directory.
        path: PathBuf,
    },
    /// What is to be added to it is not later than what it has.
    #[error("{} has {first} to {last} already, and what is added begins at {begins}: nothing is overwritten", path.display())]
    NotLater {
        /// The directory.
        path: PathBuf,
        /// When what is added begins.
        begins: String,
        /// When the recording begins.
        first: String,
        /// When it ends.
        last: String,
    },
    /// It was written by a memtide of another format.
    #[error("{} was written by another memtide (format {format}; this one reads format {known})", path.display())]
    OtherFormat {
        /// The directory.
        path: PathBuf,
        /// Its format.
        format: u32,
        /// The one that is known here.
        known: u32,
    },
}

impl StoreError {
    /// The operating system refused `doing` something with a file or directory.
    pub(crate) fn io(doing: &'static str, path: &std::path::Path, error: &std::io::Error) -> Self {
        Self::Io {
            doing,
            path: path.to_owned(),
            reason: error.to_string(),
        }
    }
}
