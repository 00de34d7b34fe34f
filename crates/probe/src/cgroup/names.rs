//! The names by which people call the containers, pods and users in paths of cgroups: read from state files of container
//! runtimes, of the kubelet and from `/etc/passwd`. Asks no daemon.
//!
//! Files of root name cgroups that root made; files in a user's home name those below that user's slice, and no other: a
//! user, and whoever runs in a container, may give a cgroup any id. Meant for one answer, or for cgroups that are new to a
//! recorder, never for every sample. What this user may not read, or what is gone, has no name: most of these files are for
//! root only. Bounds: 4,096 containers, 256 of a user, 8 MiB for a file of root and 512 KiB for one of a user,
//! [`NAMES_TIME_MAX`] in all. Cost: two files of a few KiB for each container, and lists of directories.

mod container_runtimes;
mod containerd;
mod docker;
mod home;
mod kubelet;
mod users;
mod wanted;

use std::time::Duration;

use timeline::cgroup::GroupNames;

use crate::kernel_file::Root;
use crate::search_time::SearchTime;
use wanted::WantedNames;

/// A person waits for the answer.
pub const NAMES_TIME_MAX: Duration = Duration::from_millis(200);

/// Reads the names of containers and pods in these paths of cgroups and names of services, in files below `root`, and those
/// of all users of the host.
pub fn read<'a>(root: &Root, groups: impl Iterator<Item = &'a str>) -> GroupNames {
    read_wanted(root, &WantedNames::of(root, groups))
}

/// As [`read`], without users that no path names: for what is kept.
pub fn read_of<'a>(root: &Root, groups: impl Iterator<Item = &'a str>) -> GroupNames {
    let wanted = WantedNames::of(root, groups);
    let mut names = read_wanted(root, &wanted);
    names.users.retain(|uid, _| wanted.users.contains(uid));
    names
}

fn read_wanted(root: &Root, wanted: &WantedNames) -> GroupNames {
    let time = SearchTime::starts(NAMES_TIME_MAX);
    let mut names = GroupNames::default();
    let homes = users::read(root, &mut names);
    kubelet::read(root, wanted, &mut names);
    container_runtimes::read(root, wanted, &homes, time, &mut names);
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

    /// The tests' own user is al: what a home has must be its user's.
    fn own_uid() -> u32 {
        rustix::process::geteuid().as_raw()
    }

    fn passwd() -> String {
        format!("root:x:7:0::/:/bin/sh\nal:x:{}:1000:Al:/home/al:/bin/bash\n", own_uid())
    }

    /// A cgroup that al's systemd made.
    fn of_al(rest: &str) -> String {
        let uid = own_uid();
        format!("/user.slice/user-{uid}.slice/user@{uid}.service/{rest}")
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
        check(&[(&path, &config)], &group, "shop-cache-1 (docker a59e4e7d3090)");
        check(&[(&path, "{\"Name\":")], &group, "docker a59e4e7d3090");
        check(&[], &group, "docker a59e4e7d3090");
        let passwd = ("/etc/passwd", &*passwd());
        let rootless = of_al(&format!("user.slice/docker-{A}.scope"));
        let path = format!("/home/al/.local/share/docker/containers/{A}/config.v2.json");
        check(
            &[passwd, (&path, &config)],
            &rootless,
            "shop-cache-1 (docker a59e4e7d3090) of user al",
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
        check(&[(&place("k8s.io", A), sandbox)], &group, "shop/cart-0: pause");
        let nerdctl = r#"{"annotations":{"nerdctl/name":"web","nerdctl/namespace":"default"}}"#;
        let group = format!("/system.slice/nerdctl-{B}.scope");
        check(&[(&place("default", B), nerdctl)], &group, "web (containerd b6e375cfe46e)");
    }

    #[test]
    fn a_users_home_names_no_container_of_root() {
        let passwd = ("/etc/passwd", &*passwd());
        let of_root = format!("/var/lib/docker/containers/{A}/config.v2.json");
        let root = (of_root.as_str(), r#"{"Name":"/payments"}"#);
        let list = format!(r#"[{{"id":"{A}","names":["evil"]}},{{"id":"{B}","names":["own"]}}]"#);
        let home = (
            "/home/al/.local/share/containers/storage/overlay-containers/containers.json",
            list.as_str(),
        );
        let group = format!("/docker/{A}");
        // The user has a slice, and a cgroup with the id of root's container.
        let copy = of_al(&format!("docker-{A}.scope"));
        let own = of_al(&format!("libpod-{B}.scope"));
        for groups in [[&group, &copy, &own], [&copy, &own, &group]] {
            let groups = groups.map(String::as_str);
            let found = names(&[passwd, root, home], &groups);
            let called = |group: &str| found.innermost(group).unwrap();
            assert_eq!(called(&group), "payments (docker a59e4e7d3090)");
            assert_eq!(called(&copy), "evil (docker a59e4e7d3090) of user al");
            assert_eq!(called(&own), "own (podman b6e375cfe46e) of user al");
            let found = names(&[passwd, home], &groups);
            assert_eq!(found.innermost(&group).unwrap(), "docker a59e4e7d3090");
        }
    }

    #[test]
    fn nobody_but_root_gives_a_cgroup_a_name_of_roots_files() {
        let directory = tempfile::tempdir().unwrap();
        let root = Root::at(directory.path());
        let hierarchy = directory.path().join("sys/fs/cgroup/memory");
        for (id, name) in [(A, "payments"), (B, "web")] {
            let path = format!("/var/lib/docker/containers/{id}/config.v2.json");
            write(directory.path(), &path, &format!(r#"{{"Name":"/{name}"}}"#));
        }
        let pods = format!("/var/log/pods/shop_cart-0_{UID}/x");
        write(directory.path(), &pods, "");
        let forged = [
            of_al(&format!("docker-{A}.scope")),
            format!("/user.slice/user-1999.slice/docker-{A}.scope"),
            of_al(&format!("kubepods-pod{}.slice", UID.replace('-', "_"))),
            // In a container, and in one of the tests' user.
            format!("/docker/{B}/docker/{A}"),
            format!("/system.slice/docker-{B}.scope/kubepods/pod{UID}"),
        ];
        let own = format!("/docker/{A}");
        for group in forged.iter().chain([&own]) {
            fs::create_dir_all(hierarchy.join(group.trim_start_matches('/'))).unwrap();
        }
        fs::write(hierarchy.join("memory.usage_in_bytes"), "0\n").unwrap();
        let groups = forged.iter().chain([&own]).map(String::as_str);
        let found = read(&root, groups);
        assert_eq!(found.innermost(&own).unwrap(), "payments (docker a59e4e7d3090)");
        for group in &forged {
            let called = found.innermost(group).unwrap();
            assert!(!called.contains("payments") && !called.contains("shop"), "{called}");
        }
        // A cgroup that was made in a directory of another user.
        let delegated = format!("/batch/docker-{B}.scope");
        let above = hierarchy.join("batch");
        fs::create_dir_all(&above).unwrap();
        let called = |groups: &[&str]| read(&root, groups.iter().copied()).innermost(&delegated);
        assert_eq!(called(&[&delegated]).unwrap(), "web (docker b6e375cfe46e)");
        if std::os::unix::fs::chown(&above, Some(4711), None).is_ok() {
            assert_eq!(called(&[&delegated]).unwrap(), "docker b6e375cfe46e");
        }
    }

    #[test]
    fn only_a_users_own_regular_file_is_read_and_nothing_is_followed() {
        let list = format!(r#"[{{"id":"{B}","names":["web"]}}]"#);
        let group = of_al(&format!("libpod-{B}.scope"));
        let state = "home/al/.local/share/containers/storage/overlay-containers";
        let named = |make: &dyn Fn(&Path)| {
            let directory = tempfile::tempdir().unwrap();
            let root = directory.path();
            write(root, "/etc/passwd", &passwd());
            write(root, &format!("/elsewhere/{state}/containers.json"), &list);
            fs::create_dir_all(root.join("home/al")).unwrap();
            make(root);
            let found = read(&Root::at(root), [&*group].into_iter());
            found.innermost(&group).unwrap()
        };
        let link = |at: &'static str, to: &'static str| {
            move |root: &Path| {
                let at = root.join(at);
                fs::create_dir_all(at.parent().unwrap()).unwrap();
                std::os::unix::fs::symlink(root.join(to), at).unwrap();
            }
        };
        let unnamed = "podman b6e375cfe46e of user al";
        let file = "home/al/.local/share/containers/storage/overlay-containers/containers.json";
        let plain = |root: &Path| write(root, &format!("/{file}"), &list);
        assert_eq!(named(&plain), "web (podman b6e375cfe46e) of user al");
        let elsewhere =
            "elsewhere/home/al/.local/share/containers/storage/overlay-containers/containers.json";
        assert_eq!(named(&link(file, elsewhere)), unnamed);
        assert_eq!(named(&link(file, "/dev/null")), unnamed);
        assert_eq!(named(&link("home/al/.local", "elsewhere/home/al/.local")), unnamed);
        let pipe = |root: &Path| {
            let at = root.join(file);
            fs::create_dir_all(at.parent().unwrap()).unwrap();
            let (kind, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR);
            rustix::fs::mknodat(rustix::fs::CWD, &at, kind, mode, 0).unwrap();
        };
        assert_eq!(named(&pipe), unnamed);
        let long = |root: &Path| {
            plain(root);
            let file = fs::File::options().write(true).open(root.join(file)).unwrap();
            file.set_len(10 << 30).unwrap();
        };
        assert_eq!(named(&long), unnamed);
        if own_uid() == 0 {
            let foreign = |root: &Path| {
                plain(root);
                std::os::unix::fs::chown(root.join(file), Some(4711), None).unwrap();
            };
            assert_eq!(named(&foreign), unnamed);
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
        let group =
            format!("/kubepods.slice/kubepods-pod{}.slice/crio-{A}.scope", UID.replace('-', "_"));
        check(&[(place, &list)], &group, "shop/cart-0: app");
        // Containers that go with the next boot are in a list of their own.
        let place = "/var/lib/containers/storage/overlay-containers/volatile-containers.json";
        let group = format!("/machine.slice/libpod-{B}.scope/container");
        check(&[(place, &list)], &group, "web (podman b6e375cfe46e)");
        let rootless = of_al(&format!("user.slice/libpod-{B}.scope/container"));
        let place = "/home/al/.local/share/containers/storage/overlay-containers/containers.json";
        let passwd = ("/etc/passwd", &*passwd());
        check(&[passwd, (place, &list)], &rootless, "web (podman b6e375cfe46e) of user al");
    }

    #[test]
    fn the_kubelets_directories_name_pods_and_containers() {
        let log = format!("/var/log/pods/shop_cart-0_{UID}/app/0.log");
        let pod = format!("/kubepods/burstable/pod{UID}");
        check(&[(&log, "")], &pod, "shop/cart-0");
        let container = format!("{pod}/{A}");
        check(&[(&log, "")], &container, "shop/cart-0: container a59e4e7d3090");
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
        assert_eq!((all.containers.len(), all.pods.len(), all.users.len()), (1, 1, 2));
        let kept = read_of(&root, groups.into_iter());
        assert_eq!(kept.count(), 3);
        assert!(groups.iter().all(|group| kept.has_all_of(group)), "{kept:?}");
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
