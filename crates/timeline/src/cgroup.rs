//! Paths of control groups, and what their event counters count. Knows no figure of theirs.

use crate::facts::{CgroupMode, Facts, KernelVersion};

/// A group's events count those of its descendants too since this kernel (commit 9852ae3fe529).
const HIERARCHICAL_SINCE: KernelVersion = KernelVersion { major: 5, minor: 2 };

/// The path of the group above; `None` for the top.
pub fn parent(key: &str) -> Option<&str> {
    match key.rsplit_once('/')? {
        ("", "") => None,
        ("", _) => Some("/"),
        (above, _) => Some(above),
    }
}

/// A group's path and those above it, innermost first, the top last.
pub fn ancestors(key: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(key), |key| parent(key))
}

/// Whether events of a group are counted at those above it too: cgroup v1 counts in the group alone, and so did v2
/// before 5.2. Where the kernel is not known they are taken to be.
pub fn counts_below(facts: &Facts) -> bool {
    facts.cgroup_mode != Some(CgroupMode::V1)
        && facts
            .kernel()
            .is_none_or(|kernel| kernel >= HIERARCHICAL_SINCE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ancestors_end_at_the_root() {
        assert_eq!(parent("/a/b"), Some("/a"));
        assert_eq!(parent("/a"), Some("/"));
        assert_eq!(parent("/"), None);
        let all: Vec<_> = ancestors("/a/b").collect();
        assert_eq!(all, ["/a/b", "/a", "/"]);
    }
}
