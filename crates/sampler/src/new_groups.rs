//! Cgroups that came since the last scan of all, and what people call them.
//!
//! The thread that samples only compares: for a cgroup that it knows it allocates nothing. State files are read by
//! [`NameSearch`], in a thread that may wait for a disk.

use std::collections::{HashSet, VecDeque};
use std::hash::{BuildHasherDefault, DefaultHasher};

use probe::{Root, group_names};
use store::NAMES_MAX;
use timeline::cgroup::{GroupName, GroupNames};
use timeline::{Entity, Sample};
use units::Span;

/// From one search to the next.
pub(crate) const SEARCH_EVERY: Span = Span::from_secs(10);
/// At most so many cgroups of one search. Two files of a container take 50 to 100 µs, so this is 0.3 % of a CPU at most.
pub(crate) const GROUPS_PER_SEARCH_MAX: usize = 256;
/// How often a cgroup without a name is searched for: the kubelet makes its links after it has started a container.
const SEARCHES_MAX: u32 = 3;
/// How many cgroups are known; with more, all count as new again.
const KNOWN_MAX: usize = 65_536;

/// The cgroups that are not new, by hashes of their keys.
#[derive(Debug, Default)]
pub(crate) struct NewGroups {
    known: HashSet<u64, BuildHasherDefault<DefaultHasher>>,
}

impl NewGroups {
    /// Adds to `waiting` the cgroups of a scan that name a container, a pod or a user and were not added before. Those
    /// for which it has no room are added after a later scan.
    pub(crate) fn find(&mut self, scan: &Sample, waiting: &mut Vec<String>) {
        for row in scan.table(Entity::Cgroup).rows() {
            let hash = hash_of(&row.key);
            if self.known.contains(&hash) || waiting.len() >= NAMES_MAX {
                continue;
            }
            if self.known.len() >= KNOWN_MAX {
                self.known.clear();
            }
            self.known.insert(hash);
            let name = GroupName::of(&row.key);
            if name.container.is_some() || name.pod.is_some() || name.user.is_some() {
                waiting.push(row.key.clone());
            }
        }
    }
}

fn hash_of(key: &str) -> u64 {
    use std::hash::BuildHasher as _;
    BuildHasherDefault::<DefaultHasher>::default().hash_one(key)
}

/// Searches for the names of cgroups, each at most [`SEARCHES_MAX`] times.
#[derive(Debug)]
pub(crate) struct NameSearch {
    root: Root,
    /// Cgroups to search for, with the searches so far.
    waiting: VecDeque<(String, u32)>,
}

impl NameSearch {
    /// Searches in state files below `root`.
    pub(crate) fn new(root: &Root) -> Self {
        Self {
            root: root.clone(),
            waiting: VecDeque::new(),
        }
    }

    /// Adds cgroups; what is beyond [`NAMES_MAX`] of them stays without a name.
    pub(crate) fn add(&mut self, groups: impl IntoIterator<Item = String>) {
        let room = NAMES_MAX.saturating_sub(self.waiting.len());
        let groups = groups.into_iter().take(room);
        self.waiting.extend(groups.map(|group| (group, 0)));
    }

    /// Whether it has yet to search for a cgroup.
    pub(crate) fn is_waiting(&self, group: &str) -> bool {
        self.waiting.iter().any(|(waiting, _)| waiting == group)
    }

    /// Returns the names of the first of these cgroups.
    pub(crate) fn run(&mut self, groups_max: usize) -> GroupNames {
        let count = self.waiting.len().min(groups_max);
        if count == 0 {
            return GroupNames::default();
        }
        let now: Vec<(String, u32)> = self.waiting.drain(..count).collect();
        let groups = now.iter().map(|(group, _)| group.as_str());
        let names = group_names::read_of(&self.root, groups);
        for (group, searches) in now {
            if searches + 1 < SEARCHES_MAX && !names.has_all_of(&group) {
                self.waiting.push_back((group, searches + 1));
            }
        }
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(number: u64) -> String {
        format!("/docker/{number:064x}")
    }

    fn scan(paths: &[String]) -> Sample {
        let mut sample = Sample::at(Span::ZERO);
        for path in paths {
            sample.table_mut(Entity::Cgroup).entry(path);
        }
        sample
    }

    #[test]
    fn a_cgroup_is_new_once() {
        let mut new = NewGroups::default();
        let mut found = |scan: &Sample| {
            let mut waiting = Vec::new();
            new.find(scan, &mut waiting);
            waiting
        };
        let first = scan(&[path(1), "/system.slice/ssh.service".to_owned()]);
        assert_eq!(found(&first), [path(1)]);
        assert_eq!(found(&first), [""; 0]);
        let second = scan(&[path(1), path(2)]);
        assert_eq!(found(&second), [path(2)]);
    }

    #[test]
    fn what_finds_no_room_is_new_in_a_later_scan() {
        let mut new = NewGroups::default();
        let mut full: Vec<String> = (0..NAMES_MAX).map(|_| String::new()).collect();
        new.find(&scan(&[path(1)]), &mut full);
        assert_eq!(full.len(), NAMES_MAX);
        let mut waiting = Vec::new();
        new.find(&scan(&[path(1)]), &mut waiting);
        assert_eq!(waiting, [path(1)]);
    }

    #[test]
    fn a_container_is_searched_for_until_it_has_a_name_and_no_more_than_three_times() {
        let directory = tempfile::tempdir().unwrap();
        let mut search = NameSearch::new(&Root::at(directory.path()));
        search.add([path(1), path(2)]);
        assert_eq!(search.run(1).count(), 0);
        assert_eq!(search.waiting.len(), 2);
        let id = format!("{:064x}", 1);
        let state = directory.path().join("var/lib/docker/containers").join(&id);
        std::fs::create_dir_all(&state).unwrap();
        std::fs::write(state.join("config.v2.json"), r#"{"Name":"/web"}"#).unwrap();
        let names = search.run(GROUPS_PER_SEARCH_MAX);
        assert_eq!(names.containers[&id].name, "web");
        assert_eq!(search.waiting, [(path(2), 1)]);
        for _ in 0..2 {
            assert_eq!(search.run(GROUPS_PER_SEARCH_MAX).count(), 0);
        }
        assert_eq!(search.waiting.len(), 0);
    }
}
