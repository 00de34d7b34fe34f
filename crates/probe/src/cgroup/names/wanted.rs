//! Which containers and pods a search is for, and which files may name each: those of root or of a user.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

use timeline::cgroup::{GroupName, Named, parent, unique_name};

use crate::cgroup::hierarchy::Hierarchy;
use crate::kernel_file::Root;

/// At most so many cgroups of containers of root, and so many of pods, are searched for.
const OF_ROOT_MAX: usize = 4_096;
/// At most so many cgroups of containers of one user.
const OF_USER_MAX: usize = 256;
/// At most so many of all users together.
const OF_USERS_MAX: usize = 1_024;

/// Containers or pods by their ids, each with the unique names of its cgroups.
#[derive(Debug, Default)]
pub(super) struct Wanted {
    pub(super) by_id: BTreeMap<String, BTreeSet<String>>,
    groups: usize,
}

impl Wanted {
    /// Adds a cgroup that is new, if there are fewer. Returns whether it did.
    fn add(&mut self, id: &str, path: &str, groups_max: usize) -> bool {
        let group = unique_name(path);
        let is_known = (self.by_id.get(id)).is_some_and(|groups| groups.contains(group));
        if is_known || self.groups >= groups_max {
            return false;
        }
        let groups = self.by_id.entry(id.to_owned()).or_default();
        groups.insert(group.to_owned());
        self.groups += 1;
        true
    }
}

/// What is searched for.
#[derive(Debug, Default)]
pub(super) struct WantedNames {
    /// Containers that files of root name.
    pub(super) of_root: Wanted,
    /// Containers that files in a user's home name.
    pub(super) of_users: BTreeMap<u32, Wanted>,
    /// Pods, which files of root name.
    pub(super) pods: Wanted,
    /// Users with slices of their own.
    pub(super) users: BTreeSet<u32>,
}

impl WantedNames {
    /// Takes paths of cgroups, and names of services, which are unique names.
    pub(super) fn of<'a>(root: &Root, groups: impl Iterator<Item = &'a str>) -> Self {
        let mut wanted = Self::default();
        let makers = GroupMakers::find(root);
        let mut of_users = 0;
        for group in groups {
            let path = if group.starts_with('/') {
                group.into()
            } else {
                std::borrow::Cow::Owned(format!("/{group}"))
            };
            let name = GroupName::of(&path);
            let user = name.user.map(|user| user.what);
            wanted.users.extend(user);
            if let Some(container) = &name.container {
                let (into, room) = match user {
                    None => (&mut wanted.of_root, OF_ROOT_MAX),
                    Some(user) => {
                        let of_user = wanted.of_users.entry(user).or_default();
                        (of_user, OF_USER_MAX.min(OF_USERS_MAX - of_users))
                    }
                };
                if user.is_some() || makers.is_of_root(container) {
                    let is_new = into.add(container.what.id, container.path, room);
                    of_users += usize::from(is_new && user.is_some());
                }
            }
            let pod = name.pod.filter(|_| user.is_none());
            if let Some(pod) = pod.filter(|pod| makers.is_of_root(pod)) {
                wanted.pods.add(&pod.what.uid(), pod.path, OF_ROOT_MAX);
            }
        }
        wanted
    }
}

/// Who can have made a cgroup: who owns the directory around it.
struct GroupMakers {
    /// Where the hierarchy is mounted, and its owner.
    mount: Option<(PathBuf, u32)>,
}

impl GroupMakers {
    fn find(root: &Root) -> Self {
        let point = Hierarchy::find(root).map(|found| root.path(&found.point));
        let mount = point.and_then(|point| {
            let owner = point.metadata().ok()?.uid();
            Some((point, owner))
        });
        Self { mount }
    }

    /// Whether root made the cgroup, and no root of a container. One that is gone was made by the host's systemd, or is
    /// unknown.
    fn is_of_root<T>(&self, group: &Named<'_, T>) -> bool {
        if group.is_in_container {
            return false;
        }
        let Some((point, owner)) = &self.mount else {
            return true;
        };
        let above = parent(group.path).unwrap_or_default();
        match point.join(above.trim_start_matches('/')).symlink_metadata() {
            Ok(found) => found.uid() == *owner,
            Err(_) => unique_name(group.path) != group.path,
        }
    }
}
