//! A limit that binds before RAM does.

use super::{Bounds, DemandKind};

/// The kind of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitKind {
    /// The host's RAM, where a cgroup's limit comes first.
    Ram,
    /// A NUMA node's own memory.
    Node,
    /// A cgroup's limit.
    Cgroup,
    /// The kernel's commit limit: how much memory it promises in all.
    Commit,
    /// RAM reserved for huge pages.
    Hugetlb,
    /// The size of a tmpfs.
    Tmpfs,
}

impl LimitKind {
    /// Its name in lists.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ram => "RAM",
            Self::Node => "node",
            Self::Cgroup => "cgroup",
            Self::Commit => "commit limit",
            Self::Hugetlb => "hugetlb",
            Self::Tmpfs => "tmpfs",
        }
    }
}

/// Something that limits what can be added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeadroomLimit {
    /// Its kind.
    pub kind: LimitKind,
    /// Its name; empty where there is only one of its kind.
    pub name: String,
    /// The room below it at its worst sample, as bounds where figures are unknown.
    pub bounds: Bounds,
    /// Whether it applies, or may apply, to anything that is added here, not only to one cgroup's own memory.
    pub holds: bool,
    /// The limit in a sentence.
    pub text: String,
}

impl HeadroomLimit {
    /// Whether it limits memory of this kind.
    pub(super) fn concerns(&self, kind: Option<DemandKind>) -> bool {
        // Page cache is not committed.
        self.holds && !(self.kind == LimitKind::Commit && kind == Some(DemandKind::Cache))
    }
}
