//! A limit that binds before RAM does.

use super::{Bounds, DemandKind};

/// What kind of limit it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitKind {
    /// A NUMA node's own memory.
    Node,
    /// A cgroup's limit.
    Cgroup,
    /// What the kernel promises at most.
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
            Self::Node => "node",
            Self::Cgroup => "cgroup",
            Self::Commit => "commit limit",
            Self::Hugetlb => "hugetlb",
            Self::Tmpfs => "tmpfs",
        }
    }
}

/// Something that limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeadroomLimit {
    /// Of what kind.
    pub kind: LimitKind,
    /// Which one; empty where there is one only.
    pub name: String,
    /// Room below it at its worst sample, with unknowns taken both ways.
    pub bounds: Bounds,
    /// Whether it holds, or may hold, for whatever is added here, not only for somebody's own memory.
    pub holds: bool,
    /// In a sentence.
    pub text: String,
}

impl HeadroomLimit {
    /// Whether it limits memory of this kind.
    pub(super) fn concerns(&self, kind: Option<DemandKind>) -> bool {
        // Page cache is not committed.
        self.holds && !(self.kind == LimitKind::Commit && kind == Some(DemandKind::Cache))
    }
}
