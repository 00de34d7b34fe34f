//! The cgroups of the host, without those below the slices of its users: what a container of the host is found by, however many
//! cgroups a user makes.

use std::collections::VecDeque;
use std::ops::ControlFlow;

use timeline::cgroup::{PathPart, ROOT};

use crate::cgroup::hierarchy::Hierarchy;
use crate::directory::Directory;
use crate::kernel_file::Root;

/// Lists the keys of this host's cgroups: at most `most`, those near the root first. Slices of users and what is in a container are
/// listed, what is below them is not.
///
/// Cost: 10 to 20 µs for each of them.
pub fn host_cgroup_keys(root: &Root, most: usize) -> Vec<String> {
    let Some(hierarchy) = Hierarchy::find(root) else {
        return Vec::new();
    };
    let Ok(mount) = Directory::open(&root.path(&hierarchy.point)) else {
        return Vec::new();
    };
    let mut keys = Vec::new();
    let mut waiting = VecDeque::from([String::new()]);
    while keys.len() < most
        && let Some(above) = waiting.pop_front()
    {
        let path = above.strip_prefix(ROOT).unwrap_or(".");
        // One that is gone has nothing in it.
        let _ = mount.each_directory(path.as_bytes(), |name| {
            if keys.len() >= most {
                return ControlFlow::Break(());
            }
            if let Ok(part) = std::str::from_utf8(name) {
                let key = format!("{above}{ROOT}{part}");
                let names = PathPart::of(part, &above);
                if names.uid.is_none() && names.container.is_none() {
                    waiting.push_back(key.clone());
                }
                keys.push(key);
            }
            ControlFlow::Continue(())
        });
    }
    keys
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn cgroups_of_users_and_in_containers_are_left_out_and_the_near_ones_come_first() {
        let directory = tempfile::tempdir().unwrap();
        let id = "a".repeat(64);
        let proc = directory.path().join("proc/self");
        fs::create_dir_all(&proc).unwrap();
        let mount = "25 1 0:22 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
        fs::write(proc.join("mountinfo"), mount).unwrap();
        let point = directory.path().join("sys/fs/cgroup");
        fs::create_dir_all(&point).unwrap();
        fs::write(point.join("cgroup.controllers"), "memory\n").unwrap();
        for group in [
            "user.slice/user-1000.slice/docker-x.scope",
            &format!("system.slice/docker-{id}.scope/below"),
        ] {
            fs::create_dir_all(point.join(group)).unwrap();
        }
        let mut keys = host_cgroup_keys(&Root::at(directory.path()), 100);
        keys.sort();
        assert_eq!(
            keys,
            [
                "/system.slice".to_owned(),
                format!("/system.slice/docker-{id}.scope"),
                "/user.slice".to_owned(),
                "/user.slice/user-1000.slice".to_owned(),
            ]
        );
        let few = host_cgroup_keys(&Root::at(directory.path()), 2);
        assert!(few.iter().all(|key| key.matches('/').count() == 1), "{few:?}");
    }
}
