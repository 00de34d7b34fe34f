//! All processes of a program in the answer of `explain`.

use schemars::JsonSchema;
use serde::Serialize;
use units::Bytes;

/// What the processes of one program have together, and how the explained one differs from the others.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ProgramEntry {
    /// The name that was asked for.
    pub name: String,
    pub processes: u64,
    /// The sum of their PSS: pages that several of them map count once.
    pub pss_bytes: Bytes,
    /// Of that, shared memory: tmpfs, memfd, System V, anonymous shared memory; null on kernels before 5.4.
    pub shared_bytes: Option<Bytes>,
    /// The sum of their RSS, which counts a shared page for each process.
    pub rss_bytes: Bytes,
    /// What the end of one process would free: the median of all.
    pub typical_own_bytes: Bytes,
    /// The same of the explained process, the largest of them.
    pub explained_own_bytes: Bytes,
    /// Processes that could not be read; they are in none of these sizes.
    pub unread: u64,
}
