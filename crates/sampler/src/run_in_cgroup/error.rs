//! Why a command could not be run in a cgroup.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use units::{Bytes, Limit};

/// Why a command could not be run in a cgroup, or not be ended.
// The message of a variant says what its fields are.
#[allow(missing_docs)]
#[derive(Debug, thiserror::Error)]
pub enum CgroupRunError {
    /// There is no memory controller, or our own cgroup cannot be seen.
    #[error("no memory controller of cgroups is mounted where this process's own cgroup is seen")]
    NotMounted,
    /// The memory controller is not enabled for a new cgroup (v2).
    #[error(
        "the memory controller is not enabled in {}/cgroup.subtree_control",
        parent.display()
    )]
    NotEnabled {
        /// The cgroup that would be around it.
        parent: PathBuf,
    },
    /// A cgroup beside ours would not be held to our limit (v2).
    #[error("{} has a limit, which a cgroup beside it would escape", own.display())]
    OwnLimit { own: PathBuf },
    /// A cgroup of this name is there.
    #[error("a cgroup {} exists already", group.display())]
    Exists { group: PathBuf },
    /// The cgroup cannot be made.
    #[error("the cgroup {} cannot be made", group.display())]
    NotMade { group: PathBuf, source: std::io::Error },
    /// This kernel, or this version of cgroups, has no such limit.
    #[error("there is no {limit} on this host")]
    NoSuchLimit {
        /// The limit's name on v2.
        limit: &'static str,
    },
    /// A limit cannot be set.
    #[error("{} cannot be set to {limit}", file.display())]
    NotSet {
        file: PathBuf,
        /// What it was to be.
        limit: Bytes,
        source: std::io::Error,
    },
    /// A limit was set, and the kernel reports another.
    #[error("{} was set to {limit} and is {}", file.display(), named(*found))]
    NotInForce {
        file: PathBuf,
        /// What it was set to.
        limit: Bytes,
        /// What the kernel reports; `None`: nothing.
        found: Option<Limit>,
    },
    /// The guard cannot be started.
    #[error("the guard process cannot be started")]
    NoGuard { source: std::io::Error },
    /// The command's process could not join the cgroup.
    #[error("the command cannot join {}", group.display())]
    NotJoined { group: PathBuf, source: std::io::Error },
    /// The command cannot be started.
    #[error("cannot run {program}")]
    NotStarted { program: String, source: std::io::Error },
    /// The command cannot be waited for.
    #[error("the command cannot be waited for")]
    NotWaitedFor { source: std::io::Error },
    /// Processes did not end.
    #[error("processes of {} do not end after SIGKILL: {pids:?}", group.display())]
    NotEnded {
        group: PathBuf,
        /// The first of them.
        pids: Vec<u32>,
    },
    /// The cgroup cannot be removed.
    #[error("the cgroup {} cannot be removed", group.display())]
    NotRemoved { group: PathBuf, source: std::io::Error },
}

/// What the kernel reports of a limit.
fn named(found: Option<Limit>) -> String {
    match found {
        Some(Limit::Bytes(bytes)) => bytes.to_string(),
        Some(Limit::Unlimited) => "unlimited".to_owned(),
        None => "not readable".to_owned(),
    }
}

impl CgroupRunError {
    pub(super) fn not_made(group: &Path, source: std::io::Error) -> Self {
        let group = group.to_owned();
        match source.kind() {
            ErrorKind::AlreadyExists => Self::Exists { group },
            _ => Self::NotMade { group, source },
        }
    }

    /// What to do about it.
    pub fn help(&self) -> Option<&'static str> {
        const SCOPE: &str = "as root, or with cgroup v2 in a scope of the user's systemd: \
                             systemd-run --user --scope memtide …";
        match self {
            Self::NotMade { source, .. } | Self::NotJoined { source, .. } => match source.kind() {
                ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => Some(SCOPE),
                _ => None,
            },
            Self::NotEnabled { .. } => Some(SCOPE),
            Self::NotMounted => Some(
                "in a container, the host's cgroups are not seen: run it on the host, or with \
                 --cgroupns=host and /sys/fs/cgroup mounted",
            ),
            Self::OwnLimit { .. } => {
                Some("run it outside of that cgroup, and give the limit to the command alone")
            }
            Self::Exists { .. } => Some("remove it with rmdir if nothing runs in it"),
            Self::NotEnded { .. } => {
                Some("they wait for a disk or another machine; the cgroup is left until they end")
            }
            _ => None,
        }
    }
}
