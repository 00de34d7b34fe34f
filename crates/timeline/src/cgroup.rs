//! Paths of cgroups, what they name, and what their event counters include. Uses no readings.

mod known_names;
mod path_name;

pub use known_names::{ContainerNames, GroupNames, NAME_LEN_MAX, PodNames};
pub use path_name::{
    ContainerPart, ContainerRuntime, GroupName, Named, PathPart, PodPart, QosClass, is_within,
    unescaped, unique_name,
};

use crate::facts::{CgroupMode, Facts, KernelVersion};

/// Since this kernel the events of a cgroup include those of its descendants (commit 9852ae3fe529).
const HIERARCHICAL_SINCE: KernelVersion = KernelVersion { major: 5, minor: 2 };

/// The root as the source sees it: of the host, or of the container in which it was read.
pub const ROOT: &str = "/";

/// The most levels of a path that count: container runtimes nest a handful of cgroups; a hostile path may have millions.
const LEVELS_MAX: usize = 64;

/// The path of the parent; `None` for the root.
pub fn parent(key: &str) -> Option<&str> {
    match key.rsplit_once('/')? {
        ("", "") => None,
        ("", _) => Some(ROOT),
        (above, _) => Some(above),
    }
}

/// A cgroup's path and those of its ancestors, the root last; of a path with impossibly many levels the nearest.
pub fn ancestors(key: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(key), |key| parent(key)).take(LEVELS_MAX)
}

/// Whether one cgroup lies within the other, or is the same. The root is around all: what it has is the host's.
pub fn is_related(a: &str, b: &str) -> bool {
    let leads = |outer: &str, inner: &str| ancestors(inner).any(|above| above == outer);
    a != ROOT && b != ROOT && (leads(a, b) || leads(b, a))
}

/// Whether the event counters of a cgroup include its descendants: not on cgroup v1, nor on v2 before 5.2. True where
/// the kernel is unknown.
pub fn counts_below(facts: &Facts) -> bool {
    facts.cgroup_mode != Some(CgroupMode::V1)
        && facts.kernel().is_none_or(|kernel| kernel >= HIERARCHICAL_SINCE)
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
        assert_eq!(ancestors(&"/a".repeat(1_000)).count(), LEVELS_MAX);
        for (a, b, expected) in [
            ("/a", "/a/b", true),
            ("/a/b", "/a", true),
            ("/a", "/a", true),
            ("/a", "/ab", false),
            ("/a/b", "/a/c", false),
            ("/", "/a", false),
        ] {
            assert_eq!(is_related(a, b), expected, "{a} {b}");
        }
    }
}
