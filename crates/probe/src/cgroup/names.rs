//! What people call the containers, pods and users in paths of cgroups: read from state files of container runtimes, of
//! the kubelet and from `/etc/passwd`. Asks no daemon.
//!
//! Meant for one answer, or for cgroups that are new to a recorder, never for every sample. What this user may not read, or
//! what is gone, has no name: most of these files are for root only. Bounds: 4,096 containers, 8 MiB for a file of root and
//! 1 MiB for one of a user, [`NAMES_TIME_MAX`] in all. Cost: two files of a few KiB for each container, and lists of
//! directories.

mod container_runtimes;
mod kubelet;
mod users;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use timeline::cgroup::{GroupName, GroupNames, PathPart};

use crate::inventory::SearchTime;
use crate::kernel_file::Root;

/// A person waits for the answer.
pub const NAMES_TIME_MAX: Duration = Duration::from_millis(200);

/// At most so many containers are searched for.
const CONTAINERS_MAX: usize = 4_096;
/// At most so many pods are searched for.
const PODS_MAX: usize = 4_096;

/// Containers by their ids, with who runs them.
type WantedContainers = BTreeMap<String, ContainerOwner>;

/// Who runs a container, as far as the path of its cgroup says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct ContainerOwner {
    /// Whether the whole path is known, not only its last part.
    is_known: bool,
    /// The user who has the slice that it is in; `None` for root.
    user: Option<u32>,
}

impl ContainerOwner {
    /// Of two cgroups with one id the one of root counts: a user may give a cgroup any name.
    fn or(self, other: Self) -> Self {
        match (self.is_known, other.is_known) {
            (false, true) => other,
            (true, true) if other.user.is_none() => other,
            _ => self,
        }
    }
}

/// What is searched for.
#[derive(Debug, Default)]
struct WantedNames {
    containers: WantedContainers,
    /// Users with slices of their own, who may run containers without root.
    users: BTreeSet<u32>,
    /// UIDs of pods.
    pods: BTreeSet<String>,
}

impl WantedNames {
    fn of<'a>(groups: impl Iterator<Item = &'a str>) -> Self {
        let mut wanted = Self::default();
        for group in groups {
            let name = GroupName::of(group);
            let part = PathPart::of(group, "");
            let owner = ContainerOwner {
                is_known: group.starts_with('/'),
                user: name.user.as_ref().map(|user| user.what),
            };
            let containers = [name.container.map(|it| it.what), part.container];
            for container in containers.into_iter().flatten() {
                wanted.container(container.id, owner);
            }
            let pods = [name.pod.map(|it| it.what), part.pod];
            for pod in pods.into_iter().flatten() {
                if wanted.pods.len() < PODS_MAX {
                    wanted.pods.insert(pod.uid().into_owned());
                }
            }
            wanted.users.extend(name.user.map(|user| user.what));
        }
        wanted
    }

    fn container(&mut self, id: &str, owner: ContainerOwner) {
        if let Some(known) = self.containers.get_mut(id) {
            *known = known.or(owner);
        } else if self.containers.len() < CONTAINERS_MAX {
            self.containers.insert(id.to_owned(), owner);
        }
    }
}

/// Reads the names of containers, pods and users in these paths of cgroups and names of services, in files below `root`;
/// also of all other users of the host.
pub fn read<'a>(root: &Root, groups: impl Iterator<Item = &'a str>) -> GroupNames {
    read_wanted(root, &WantedNames::of(groups))
}

/// As [`read`], without those that no path names: for what is kept.
pub fn read_of<'a>(root: &Root, groups: impl Iterator<Item = &'a str>) -> GroupNames {
    let wanted = WantedNames::of(groups);
    let mut names = read_wanted(root, &wanted);
    names
        .containers
        .retain(|id, _| wanted.containers.contains_key(id));
    names.pods.retain(|uid, _| wanted.pods.contains(uid));
    names.users.retain(|uid, _| wanted.users.contains(uid));
    names
}

fn read_wanted(root: &Root, wanted: &WantedNames) -> GroupNames {
    let time = SearchTime::starts(NAMES_TIME_MAX);
    let mut names = GroupNames::default();
    let homes = users::read(root, &mut names);
    if !wanted.pods.is_empty() {
        kubelet::read(root, &mut names);
    }
    if !wanted.containers.is_empty() {
        let homes = homes
            .into_iter()
            .filter(|(uid, _)| wanted.users.contains(uid));
        let homes: Vec<(u32, String)> = homes.collect();
        container_runtimes::read(root, &wanted.containers, &homes, time, &mut names);
    }
    names
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use proptest::prelude::*;

    use super::*;

    const A: &str = "a59e4e7d3090c04c6ce5a4b7a8bc85228eb9b96ac00b1284643a8c7c11dda661";
    const B: &str = "b6e375cfe46efa5cd90d095603dec2de888c28b203285819233040b5cf1212ac";
    const UID: &str = "b312a30a-d345-42c8-a659-32a04d5fd529";

    fn names(files: &[(&str, &str)], groups: &[&str]) -> GroupNames {
        let directory = tempfile::tempdir().unwrap();
        for (path, text) in files {
            write(directory.path(), path, text);
        }
        read(&Root::at(directory.path()), groups.iter().copied())
    }

    fn write(root: &Path, path: &str, text: &str) {
        let path = root.join(path.trim_start_matches('/'));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[track_caller]
    fn check(files: &[(&str, &str)], group: &str, expected: &str) {
        let found = names(files, &[group]).innermost(group);
        assert_eq!(found.as_deref(), Some(expected));
    }

    #[test]
    fn docker_names_a_container_in_its_configuration() {
        let group = format!("/system.slice/docker-{A}.scope");
        let config = format!(
            r#"{{"StreamConfig":{{}},"State":{{"Running":true,"Pid":4711}},"ID":"{A}","Config":{{"Hostname":"a59e4e7d3090","Image":"redis:7","Labels":{{"com.docker.compose.service":"cache"}}}},"Name":"/shop-cache-1"}}"#
        );
        let path = format!("/var/lib/docker/containers/{A}/config.v2.json");
        check(
            &[(&path, &config)],
            &group,
            "shop-cache-1 (docker a59e4e7d3090)",
        );
        check(&[(&path, "{\"Name\":")], &group, "docker a59e4e7d3090");
        check(&[], &group, "docker a59e4e7d3090");
        let passwd = (
            "/etc/passwd",
            "root:x:0:0::/root:/bin/sh\nal:x:1000:1000:Al:/home/al:/bin/bash\n",
        );
        let rootless =
            format!("/user.slice/user-1000.slice/user@1000.service/user.slice/docker-{A}.scope");
        let path = format!("/home/al/.local/share/docker/containers/{A}/config.v2.json");
        check(
            &[passwd, (&path, &config)],
            &rootless,
            "shop-cache-1 (docker a59e4e7d3090)",
        );
    }

    #[test]
    fn docker_below_kubernetes_has_the_pod_in_its_labels() {
        let group = format!(
            "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{}.slice/docker-{A}.scope",
            UID.replace('-', "_")
        );
        let config = r#"{"Config":{"Labels":{"io.kubernetes.container.name":"app","io.kubernetes.pod.name":"cart-0","io.kubernetes.pod.namespace":"shop"}},"Name":"/k8s_app_cart-0_shop_b312_0"}"#;
        let path = format!("/var/lib/docker/containers/{A}/config.v2.json");
        check(&[(&path, config)], &group, "shop/cart-0: app");
    }

    #[test]
    fn containerd_has_annotations_of_kubernetes_and_of_nerdctl() {
        let place = |namespace: &str, id: &str| {
            format!("/run/containerd/io.containerd.runtime.v2.task/{namespace}/{id}/config.json")
        };
        let config = r#"{"ociVersion":"1.0.2","annotations":{"io.kubernetes.cri.container-name":"app","io.kubernetes.cri.container-type":"container","io.kubernetes.cri.sandbox-name":"cart-0","io.kubernetes.cri.sandbox-namespace":"shop"}}"#;
        let group = format!("/kubepods/burstable/pod{UID}/{A}");
        check(&[(&place("k8s.io", A), config)], &group, "shop/cart-0: app");
        let sandbox = r#"{"annotations":{"io.kubernetes.cri.container-type":"sandbox","io.kubernetes.cri.sandbox-name":"cart-0","io.kubernetes.cri.sandbox-namespace":"shop"}}"#;
        check(
            &[(&place("k8s.io", A), sandbox)],
            &group,
            "shop/cart-0: pause",
        );
        let nerdctl = r#"{"annotations":{"nerdctl/name":"web","nerdctl/namespace":"default"}}"#;
        let group = format!("/system.slice/nerdctl-{B}.scope");
        check(
            &[(&place("default", B), nerdctl)],
            &group,
            "web (containerd b6e375cfe46e)",
        );
    }

    #[test]
    fn a_users_home_names_no_container_of_root() {
        let passwd = ("/etc/passwd", "al:x:1000:1000:Al:/home/al:/bin/bash\n");
        let of_root = format!("/var/lib/docker/containers/{A}/config.v2.json");
        let root = (of_root.as_str(), r#"{"Name":"/payments"}"#);
        let list = format!(r#"[{{"id":"{A}","names":["evil"]}},{{"id":"{B}","names":["own"]}}]"#);
        let home = (
            "/home/al/.local/share/containers/storage/overlay-containers/containers.json",
            list.as_str(),
        );
        let group = format!("/docker/{A}");
        // The user has a slice, and a cgroup with the id of root's container.
        let copy = format!("/user.slice/user-1000.slice/user@1000.service/docker-{A}.scope");
        let own = format!("/user.slice/user-1000.slice/user@1000.service/libpod-{B}.scope");
        for groups in [[&group, &copy, &own], [&copy, &own, &group]] {
            let groups = groups.map(String::as_str);
            let found = names(&[passwd, root, home], &groups);
            assert_eq!(found.containers[A].name, "payments");
            assert_eq!(found.containers[B].name, "own");
            let found = names(&[passwd, home], &groups);
            assert!(!found.containers.contains_key(A), "{found:?}");
        }
    }

    #[test]
    fn podman_and_cri_o_keep_a_list() {
        let list = format!(
            r#"[{{"id":"{A}","names":["k8s_app_cart-0_shop_{UID}_3"],"image":"x","metadata":"{{\"pod-name\":\"cart-0\"}}"}},{{"id":"{B}","names":["web"]}},{{"id":7}}]"#
        );
        let place = "/var/lib/containers/storage/overlay-containers/containers.json";
        let group = format!("/machine.slice/libpod-{B}.scope/container");
        check(&[(place, &list)], &group, "web (podman b6e375cfe46e)");
        let group = format!(
            "/kubepods.slice/kubepods-pod{}.slice/crio-{A}.scope",
            UID.replace('-', "_")
        );
        check(&[(place, &list)], &group, "shop/cart-0: app");
        // Containers that go with the next boot are in a list of their own.
        let place = "/var/lib/containers/storage/overlay-containers/volatile-containers.json";
        let group = format!("/machine.slice/libpod-{B}.scope/container");
        check(&[(place, &list)], &group, "web (podman b6e375cfe46e)");
        let rootless = format!(
            "/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-{B}.scope/container"
        );
        let place = "/home/al/.local/share/containers/storage/overlay-containers/containers.json";
        let passwd = ("/etc/passwd", "al:x:1000:1000:Al:/home/al:/bin/bash\n");
        check(
            &[passwd, (place, &list)],
            &rootless,
            "web (podman b6e375cfe46e)",
        );
    }

    #[test]
    fn the_kubelets_directories_name_pods_and_containers() {
        let log = format!("/var/log/pods/shop_cart-0_{UID}/app/0.log");
        let pod = format!("/kubepods/burstable/pod{UID}");
        check(&[(&log, "")], &pod, "shop/cart-0");
        let container = format!("{pod}/{A}");
        check(
            &[(&log, "")],
            &container,
            "shop/cart-0: container a59e4e7d3090",
        );
        let link = format!("/var/log/containers/cart-0_shop_app-{A}.log");
        check(&[(&log, ""), (&link, "")], &container, "shop/cart-0: app");
    }

    #[test]
    fn what_no_path_names_is_not_kept() {
        let directory = tempfile::tempdir().unwrap();
        let root = Root::at(directory.path());
        for path in [
            format!("/var/log/pods/shop_cart-0_{UID}/app/0.log"),
            "/var/log/pods/shop_other-0_c312a30a-d345-42c8-a659-32a04d5fd529/x".to_owned(),
            format!("/var/log/containers/cart-0_shop_app-{A}.log"),
            format!("/var/log/containers/other-0_shop_app-{B}.log"),
        ] {
            write(directory.path(), &path, "");
        }
        let passwd = "al:x:1000:1000:Al:/home/al:/bin/sh\nbo:x:1001:1001:Bo:/home/bo:/bin/sh\n";
        write(directory.path(), "/etc/passwd", passwd);
        let container = format!("/kubepods/burstable/pod{UID}/{A}");
        let groups = [&*container, "/user.slice/user-1000.slice"];
        let all = read(&root, groups.into_iter());
        assert_eq!(all.count(), 6);
        let kept = read_of(&root, groups.into_iter());
        assert_eq!(kept.count(), 3);
        assert!(
            groups.iter().all(|group| kept.has_all_of(group)),
            "{kept:?}"
        );
    }

    #[test]
    fn users_are_called_by_their_login_names() {
        let passwd = (
            "/etc/passwd",
            "root:x:0:0::/root:/bin/sh\nbroken\nal:x:1000:1000:Al:/home/al:/bin/bash\n",
        );
        check(&[passwd], "/user.slice/user-1000.slice", "al");
        check(&[], "/user.slice/user-1000.slice", "user 1000");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn no_file_makes_it_panic(text in "\\PC{0,60}", name in "[a-z_-]{0,20}") {
            let place = format!("/var/lib/docker/containers/{A}/config.v2.json");
            let list = "/var/lib/containers/storage/overlay-containers/containers.json";
            let log = format!("/var/log/pods/{name}/x");
            let link = format!("/var/log/containers/{name}.log");
            let task = format!("/run/containerd/io.containerd.runtime.v2.task/k/{A}/config.json");
            let files = [(&*place, &*text), (list, &text), (&log, &text), (&link, &text), (&task, &text), ("/etc/passwd", &text)];
            names(&files, &[&format!("/kubepods/burstable/pod{UID}/{A}")]);
        }
    }
}
