//! Which processes of a name come first: the largest of each owner, then each owner's second, and so on. Whoever may start
//! processes of any name and size must not push away those of others.
//!
//! Size is anonymous memory, in RAM and in swap: pages of a file cost nobody anything, however often a process maps them.
//! The owner is the user, and within a container the container, as its root may be any user there. Processes of a user's
//! slice are that user's, whatever numbers the user's containers have.

use std::cmp::Reverse;
use std::collections::HashMap;

use timeline::cgroup::PathPart;

use crate::process::identity::ProcessIdentity;

/// The owner of processes that take turns.
#[derive(Debug, PartialEq, Eq, Hash)]
enum ProcessOwner<'a> {
    User(Option<u32>),
    /// By the path of its cgroup, or of its pod's.
    Container(&'a str),
}

impl<'a> ProcessOwner<'a> {
    fn of(process: &'a ProcessIdentity) -> Self {
        let path = process.cgroup.as_deref().unwrap_or_default();
        for (at, _) in path.match_indices('/') {
            let (above, below) = path.split_at(at);
            let part = below.split('/').nth(1).unwrap_or_default();
            let names = PathPart::of(part, above);
            if let Some(uid) = names.uid {
                return Self::User(Some(uid));
            }
            if names.container.is_some() || names.pod.is_some() {
                return Self::Container(path.get(..=at + part.len()).unwrap_or(path));
            }
            if names.is_unit {
                // Whoever runs in it may have made what is below.
                break;
            }
        }
        Self::User(process.facts.uid)
    }
}

impl ProcessIdentity {
    /// Returns processes with the largest of each owner first, then the second of each, and so on.
    pub fn in_turns<'a>(processes: impl IntoIterator<Item = &'a Self>) -> Vec<&'a Self> {
        let mut processes: Vec<&Self> = processes.into_iter().collect();
        processes.sort_by_key(|one| Reverse(one.size));
        let mut before: HashMap<ProcessOwner<'_>, usize> = HashMap::new();
        let ranked = processes.into_iter().map(|one| {
            let rank = before.entry(ProcessOwner::of(one)).or_default();
            *rank += 1;
            (*rank, one)
        });
        let mut ranked: Vec<_> = ranked.collect();
        // Those of one rank stay in the order of their size.
        ranked.sort_by_key(|(rank, _)| *rank);
        ranked.into_iter().map(|(_, one)| one).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Bytes;

    fn process(pid: u32, mib: u64, uid: u32, cgroup: &str) -> ProcessIdentity {
        let mut one = ProcessIdentity {
            pid,
            size: Bytes::from_mib(mib),
            cgroup: Some(cgroup.to_owned()),
            ..ProcessIdentity::default()
        };
        one.facts.uid = Some(uid);
        one
    }

    fn order(processes: &[ProcessIdentity]) -> Vec<u32> {
        let turns = ProcessIdentity::in_turns(processes);
        turns.iter().map(|one| one.pid).collect()
    }

    #[test]
    fn one_user_cannot_fill_the_first_places() {
        let processes = [
            process(1, 10, 0, "/system.slice/svc.service"),
            process(2, 900, 1000, "/"),
            process(3, 800, 1000, "/"),
            process(4, 700, 1000, "/"),
            process(5, 20, 33, "/system.slice/web.service"),
            process(6, 5, 0, "/system.slice/svc.service"),
        ];
        assert_eq!(order(&processes), [2, 5, 1, 3, 6, 4]);
    }

    #[test]
    fn a_container_and_the_slice_of_a_user_are_one_owner_each() {
        let id = "f".repeat(64);
        let docker = format!("/system.slice/docker-{id}.scope");
        let inner = format!("{docker}/docker-{}.scope", "e".repeat(64));
        let slice = "/user.slice/user-1000.slice/user@1000.service/app.slice/x.service";
        let podman = format!("/user.slice/user-1000.slice/libpod-{id}.scope");
        let processes = [
            process(1, 10, 0, "/system.slice/svc.service"),
            process(2, 900, 0, &docker),
            process(3, 800, 100_005, &docker),
            process(4, 700, 7, &inner),
            process(7, 650, 33, "/system.slice/web.service/user-7.slice"),
            process(8, 640, 33, "/system.slice/web.service/user-8.slice"),
            process(5, 600, 1000, slice),
            process(6, 500, 165_536, &podman),
        ];
        assert_eq!(order(&processes), [2, 7, 5, 1, 3, 8, 6, 4]);
    }
}
