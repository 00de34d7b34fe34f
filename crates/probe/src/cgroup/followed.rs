//! The cgroup that is read with every sample, with those around it and in it.

use crate::cgroup::tree::CgroupTree;

/// The cgroup that is followed, if one is.
#[derive(Debug, Default)]
pub(super) struct FollowedCgroup {
    /// Its path below the mount.
    path: Option<Vec<u8>>,
}

impl FollowedCgroup {
    /// Cgroups in it that become rows with it.
    const INWARDS_MAX: usize = 32;

    pub(super) fn set(&mut self, key: &str) {
        self.path = Some(key.trim_matches('/').as_bytes().to_owned());
    }

    pub(super) fn is_set(&self) -> bool {
        self.path.is_some()
    }

    /// Adds it and those around it to the order, then those in it. Returns how many are the former.
    pub(super) fn order(&self, tree: &CgroupTree, order: &mut Vec<usize>) -> usize {
        let Some(path) = &self.path else {
            return 0;
        };
        order.extend(tree.outwards(path));
        let outwards = order.len();
        order.extend(tree.inwards(path).take(Self::INWARDS_MAX));
        outwards
    }

    /// Whether a cgroup is the followed one, lies in it or around it.
    pub(super) fn is_near(&self, path: &[u8]) -> bool {
        let followed = self.path.as_deref();
        followed.is_some_and(|followed| is_within(path, followed) || is_within(followed, path))
    }
}

/// Whether a cgroup is another one or lies in it.
fn is_within(path: &[u8], outer: &[u8]) -> bool {
    let below = path.strip_prefix(outer);
    below.is_some_and(|below| below.is_empty() || below.starts_with(b"/"))
}
