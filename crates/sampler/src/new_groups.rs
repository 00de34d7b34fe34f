//! Cgroups that came since the last scan of all, and what people call them.
//!
//! The thread that samples only compares: for a cgroup that it knows it allocates nothing. State files are read by
//! [`NameSearch`], in a thread that may wait for a disk. Cgroups of the host come first, and each user has a share: a user
//! may make cgroups that look like containers by the thousand.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::hash::{BuildHasherDefault, DefaultHasher};

use probe::{Root, group_names, host_cgroup_keys, thread_cpu};
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
/// At most so many cgroups of one user wait.
const OF_USER_MAX: usize = 256;
/// The cgroups of at most so many users wait.
const USERS_MAX: usize = 256;

/// Cgroups that wait for a search, with the searches so far.
#[derive(Debug, Default)]
pub(crate) struct WaitingGroups {
    of_host: VecDeque<(String, u32)>,
    of_users: BTreeMap<u32, VecDeque<(String, u32)>>,
}

impl WaitingGroups {
    /// Adds a cgroup below the slice of this user, or of the host. Returns whether it had room.
    fn add(&mut self, group: &str, user: Option<u32>, searches: u32) -> bool {
        let (queue, room) = match user {
            None => (&mut self.of_host, NAMES_MAX),
            Some(user) => {
                if self.of_users.len() >= USERS_MAX && !self.of_users.contains_key(&user) {
                    return false;
                }
                (self.of_users.entry(user).or_default(), OF_USER_MAX)
            }
        };
        let has_room = queue.len() < room;
        if has_room {
            queue.push_back((group.to_owned(), searches));
        }
        has_room
    }

    /// Takes the first of these cgroups: of the host, then of each user in turn.
    fn take(&mut self, count_max: usize) -> Vec<(String, u32)> {
        let count = self.of_host.len().min(count_max);
        let mut taken: Vec<_> = self.of_host.drain(..count).collect();
        while taken.len() < count_max && !self.of_users.is_empty() {
            let room = count_max - taken.len();
            let queues = self.of_users.values_mut().take(room);
            taken.extend(queues.filter_map(VecDeque::pop_front));
            self.of_users.retain(|_, queue| !queue.is_empty());
        }
        taken
    }

    /// Adds those of others for which there is room.
    fn add_all(&mut self, others: Self) {
        let of_host = others.of_host.into_iter().map(|it| (None, it));
        let of_users = others.of_users.into_iter();
        let of_users =
            of_users.flat_map(|(user, queue)| queue.into_iter().map(move |it| (Some(user), it)));
        for (user, (group, searches)) in of_host.chain(of_users) {
            self.add(&group, user, searches);
        }
    }

    fn has(&self, group: &str) -> bool {
        let queues = self.of_users.values().chain([&self.of_host]);
        queues.flatten().any(|(waiting, _)| waiting == group)
    }
}

/// The owner of the container, the pod or the user's slice that begins in this path, `Some(None)` is the host; `None` if no file
/// of this host names it. Containers in containers have their state files there.
fn searched_for(path: &str) -> Option<Option<u32>> {
    let name = GroupName::of(path);
    let is_named = match (name.container, name.pod) {
        (Some(container), _) => !container.is_in_container,
        (None, Some(pod)) => !pod.is_in_container && name.user.is_none(),
        (None, None) => name.user.is_some_and(|user| user.path == path),
    };
    is_named.then(|| name.user.map(|user| user.what))
}

/// The cgroups that are not new, by hashes of their keys.
#[derive(Debug, Default)]
pub(crate) struct NewGroups {
    known: HashSet<u64, BuildHasherDefault<DefaultHasher>>,
}

impl NewGroups {
    /// Adds to `waiting` the cgroups of a scan that name a container, a pod or a user and were not added before. Those
    /// for which it has no room are added after a later scan.
    pub(crate) fn find(&mut self, scan: &Sample, waiting: &mut WaitingGroups) {
        let rows = scan.table(Entity::Cgroup).rows().iter();
        self.find_of(rows.map(|row| row.key.as_str()), waiting);
    }

    /// The same of keys.
    fn find_of<'a>(&mut self, keys: impl Iterator<Item = &'a str>, waiting: &mut WaitingGroups) {
        for key in keys {
            let hash = hash_of(key);
            if self.known.contains(&hash) {
                continue;
            }
            let is_done = searched_for(key).is_none_or(|user| waiting.add(key, user, 0));
            if is_done {
                if self.known.len() >= KNOWN_MAX {
                    self.known.clear();
                }
                self.known.insert(hash);
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
    waiting: WaitingGroups,
    /// What was found by a listing.
    listed: NewGroups,
}

impl NameSearch {
    /// Searches in state files below `root`.
    pub(crate) fn new(root: &Root) -> Self {
        Self { root: root.clone(), waiting: WaitingGroups::default(), listed: NewGroups::default() }
    }

    /// Adds the cgroups of the host that came since the last listing, without those of its users. Returns what that cost.
    pub(crate) fn list(&mut self) -> Span {
        let before = thread_cpu();
        let keys = host_cgroup_keys(&self.root, NAMES_MAX);
        let keys = keys.iter().map(String::as_str);
        self.listed.find_of(keys, &mut self.waiting);
        thread_cpu().saturating_sub(before)
    }

    /// Adds cgroups; what finds no room stays without a name.
    pub(crate) fn add(&mut self, groups: WaitingGroups) {
        self.waiting.add_all(groups);
    }

    /// Adds a cgroup that a kernel report names, if it does not wait yet.
    pub(crate) fn add_reported(&mut self, group: &str) {
        if let Some(user) = searched_for(group).filter(|_| !self.waiting.has(group)) {
            self.waiting.add(group, user, 0);
        }
    }

    /// Returns the names of the first of these cgroups.
    pub(crate) fn run(&mut self, groups_max: usize) -> GroupNames {
        let now = self.waiting.take(groups_max);
        if now.is_empty() {
            return GroupNames::default();
        }
        let groups = now.iter().map(|(group, _)| group.as_str());
        let names = group_names::read_of(&self.root, groups);
        for (group, searches) in now {
            if searches + 1 < SEARCHES_MAX && !names.has_all_of(&group) {
                let user = searched_for(&group).flatten();
                self.waiting.add(&group, user, searches + 1);
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
    fn a_container_of_the_host_is_listed_without_a_scan_and_once() {
        let directory = tempfile::tempdir().unwrap();
        let file = |path: &str, text: &str| {
            let path = directory.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let mount = "25 1 0:22 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
        file("proc/self/mountinfo", mount);
        file("sys/fs/cgroup/cgroup.controllers", "memory\n");
        file(&format!("sys/fs/cgroup{}/memory.max", path(1)), "max\n");
        let of_al = format!("/user.slice/user-1000.slice/{:064x}", 2);
        file(&format!("sys/fs/cgroup{of_al}/memory.max"), "max\n");
        let mut search = NameSearch::new(&Root::at(directory.path()));
        search.list();
        assert!(search.waiting.has(&path(1)) && !search.waiting.has(&of_al));
        search.waiting = WaitingGroups::default();
        search.list();
        assert!(!search.waiting.has(&path(1)));
    }

    #[test]
    fn a_cgroup_is_new_once() {
        let mut new = NewGroups::default();
        let mut found = |scan: &Sample| {
            let mut waiting = WaitingGroups::default();
            new.find(scan, &mut waiting);
            let taken = waiting.take(usize::MAX).into_iter();
            taken.map(|(group, _)| group).collect::<Vec<_>>()
        };
        let first = scan(&[path(1), "/system.slice/ssh.service".to_owned()]);
        assert_eq!(found(&first), [path(1)]);
        assert_eq!(found(&first), [""; 0]);
        let second = scan(&[path(1), path(2)]);
        assert_eq!(found(&second), [path(2)]);
    }

    fn of_user(uid: u32, number: u64) -> String {
        format!("/user.slice/user-{uid}.slice/user@{uid}.service/docker-{number:064x}.scope")
    }

    #[test]
    fn what_finds_no_room_is_new_in_a_later_scan_and_users_take_no_room_of_others() {
        let mut new = NewGroups::default();
        let many: Vec<String> = (0..OF_USER_MAX as u64 + 50).map(|n| of_user(7, n)).collect();
        let all = [&many[..], &[of_user(8, 1), path(1)]].concat();
        let mut waiting = WaitingGroups::default();
        new.find(&scan(&all), &mut waiting);
        let taken = waiting.take(usize::MAX);
        let groups: Vec<&str> = taken.iter().map(|(group, _)| &**group).collect();
        assert_eq!(groups.len(), OF_USER_MAX + 2);
        assert_eq!(groups[0], path(1), "the host's first");
        assert!(groups[1..3].contains(&&*of_user(8, 1)), "users in turn");
        new.find(&scan(&all), &mut waiting);
        assert_eq!(waiting.take(usize::MAX).len(), 50);
        new.find(&scan(&all), &mut waiting);
        assert!(waiting.take(usize::MAX).is_empty());
    }

    #[test]
    fn only_what_a_file_may_name_is_searched_for() {
        let slice = "/user.slice/user-7.slice";
        for (path, expected) in [
            (path(1), Some(None)),
            (of_user(7, 1), Some(Some(7))),
            (slice.to_owned(), Some(Some(7))),
            (format!("{slice}/session-1.scope"), None),
            (format!("{}/docker/{:064x}", path(1), 2), None),
            ("/system.slice/ssh.service".to_owned(), None),
        ] {
            assert_eq!(searched_for(&path), expected, "{path}");
        }
    }

    #[test]
    fn a_container_is_searched_for_until_it_has_a_name_and_no_more_than_three_times() {
        let directory = tempfile::tempdir().unwrap();
        let mut search = NameSearch::new(&Root::at(directory.path()));
        for number in [1, 2, 2] {
            search.add_reported(&path(number));
        }
        assert_eq!(search.run(1).count(), 0);
        assert_eq!(search.waiting.of_host.len(), 2);
        let id = format!("{:064x}", 1);
        let state = directory.path().join("var/lib/docker/containers").join(&id);
        std::fs::create_dir_all(&state).unwrap();
        std::fs::write(state.join("config.v2.json"), r#"{"Name":"/web"}"#).unwrap();
        let names = search.run(GROUPS_PER_SEARCH_MAX);
        assert_eq!(names.containers[&path(1)].name, "web");
        assert_eq!(search.waiting.of_host, [(path(2), 1)]);
        for _ in 0..2 {
            assert_eq!(search.run(GROUPS_PER_SEARCH_MAX).count(), 0);
        }
        assert_eq!(search.waiting.of_host.len(), 0);
    }
}
