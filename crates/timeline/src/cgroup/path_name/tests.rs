use proptest::prelude::*;

use super::*;

/// What a path names: unit, user, container and pod, each as text; empty where it has none.
fn names(path: &str) -> [String; 4] {
    let name = GroupName::of(path);
    let container = name.container.map(|it| {
        let runtime = it.what.runtime.map_or("?", ContainerRuntime::name);
        format!("{runtime} {}", it.what.short_id())
    });
    let pod = name.pod.map(|it| {
        let qos = it.what.qos.map_or("no class".to_owned(), |qos| qos.to_string());
        format!("{} {qos}", it.what.uid())
    });
    [
        name.unit_name().unwrap_or_default().into_owned(),
        name.user.map_or_else(String::new, |user| user.what.to_string()),
        container.unwrap_or_default(),
        pod.unwrap_or_default(),
    ]
}

#[track_caller]
fn check(path: &str, [unit, user, container, pod]: [&str; 4]) {
    let expected = [unit, user, container, pod].map(str::to_owned);
    assert_eq!(names(path), expected, "{path}");
}

#[test]
fn units_and_users_of_systemd() {
    for (path, unit, user) in [
        ("/", "", ""),
        ("/init.scope", "init.scope", ""),
        ("/system.slice", "", ""),
        ("/system.slice/ssh.service", "ssh.service", ""),
        ("/system.slice/system-getty.slice/getty@tty1.service", "getty@tty1.service", ""),
        (
            "/system.slice/system-postgresql.slice/postgresql@15-main.service",
            "postgresql@15-main.service",
            "",
        ),
        (
            r"/system.slice/system-systemd\x2dfsck.slice/systemd-fsck@dev-disk-by\x2duuid-57.service",
            "systemd-fsck@dev-disk-by-uuid-57.service",
            "",
        ),
        (
            r"/machine.slice/machine-qemu\x2d1\x2ddebian11.scope/libvirt/emulator",
            "machine-qemu-1-debian11.scope",
            "",
        ),
        ("/user.slice/user-1000.slice/session-3.scope", "session-3.scope", "1000"),
        ("/user.slice/user-1000.slice/user@1000.service/init.scope", "user@1000.service", "1000"),
        (
            r"/user.slice/user-1000.slice/user@1000.service/app.slice/app-gnome-org.gnome.Terminal\x2d2.scope",
            "app-gnome-org.gnome.Terminal-2.scope",
            "1000",
        ),
        ("/user.slice/user-1000.slice", "", "1000"),
    ] {
        check(path, [unit, user, "", ""]);
    }
}

#[test]
fn containers_of_docker_containerd_podman_and_lxc() {
    const A: &str = "a59e4e7d3090c04c6ce5a4b7a8bc85228eb9b96ac00b1284643a8c7c11dda661";
    const P: &str = "b6e375cfe46efa5cd90d095603dec2de888c28b203285819233040b5cf1212ac";
    let docker = format!("docker-{A}.scope");
    let podman = format!("libpod-{P}.scope");
    for (path, unit, user, container) in [
        (format!("/docker/{A}"), "", "", "docker a59e4e7d3090"),
        (format!("/system.slice/{docker}"), &*docker, "", "docker a59e4e7d3090"),
        (
            format!("/system.slice/{docker}/system.slice/nginx.service"),
            &docker,
            "",
            "docker a59e4e7d3090",
        ),
        (
            format!("/user.slice/user-1000.slice/user@1000.service/user.slice/{docker}"),
            &docker,
            "1000",
            "docker a59e4e7d3090",
        ),
        (format!("/ecs/0f1e2d3c4b5a49588776655443322110/{A}"), "", "", "? a59e4e7d3090"),
        (format!("/default/{A}"), "", "", "containerd a59e4e7d3090"),
        (
            format!("/system.slice/nerdctl-{A}.scope"),
            &format!("nerdctl-{A}.scope"),
            "",
            "containerd a59e4e7d3090",
        ),
        (format!("/machine.slice/{podman}/container"), &podman, "", "podman b6e375cfe46e"),
        (format!("/libpod_parent/libpod-{P}"), "", "", "podman b6e375cfe46e"),
        (
            format!("/user.slice/user-1000.slice/user@1000.service/user.slice/{podman}/container"),
            &podman,
            "1000",
            "podman b6e375cfe46e",
        ),
        // The program that watches a container is none.
        (
            format!("/machine.slice/libpod-conmon-{P}.scope"),
            &format!("libpod-conmon-{P}.scope"),
            "",
            "",
        ),
        ("/lxc/web1".to_owned(), "", "", "lxc web1"),
        ("/lxc.payload.web1/system.slice/a.service".to_owned(), "", "", "lxc web1"),
        ("/lxc.payload/ct200/init.scope".to_owned(), "", "", "lxc ct200"),
        ("/lxc.monitor.web1".to_owned(), "", "", ""),
    ] {
        check(&path, [unit, user, container, ""]);
    }
    let pod = format!("/machine.slice/machine-libpod_pod_{A}.slice/{podman}/container");
    check(&pod, [&podman, "", "podman b6e375cfe46e", &format!("{A} no class")]);
}

#[test]
fn pods_of_kubernetes_with_both_drivers() {
    let id = "3350ade4226f0adcd9e4e9545d7c2a16a5aa362d12315f2a88e2024cea1246cf";
    let short = "3350ade4226f";
    let in_pod = |path: &str, unit: &str, container: &str, pod: &str| {
        check(path, [unit, "", container, pod]);
    };
    let uid = "b312a30a_d345_42c8_a659_32a04d5fd529";
    let dashed = uid.replace('_', "-");
    for (slices, class) in [
        (format!("kubepods-burstable.slice/kubepods-burstable-pod{uid}.slice"), "burstable"),
        (format!("kubepods-besteffort.slice/kubepods-besteffort-pod{uid}.slice"), "best effort"),
        (format!("kubepods-pod{uid}.slice"), "guaranteed"),
    ] {
        for (prefix, runtime) in
            [("crio", "cri-o"), ("cri-containerd", "containerd"), ("docker", "docker")]
        {
            let scope = format!("{prefix}-{id}.scope");
            let path = format!("/kubepods.slice/{slices}/{scope}");
            in_pod(&path, &scope, &format!("{runtime} {short}"), &format!("{dashed} {class}"));
        }
    }
    for (above, class) in [
        ("/kubepods/burstable", "burstable"),
        ("/kubepods/besteffort", "best effort"),
        ("/kubepods", "guaranteed"),
        ("/kubelet/kubepods/burstable", "burstable"),
    ] {
        let path = format!("{above}/pod{dashed}/{id}");
        in_pod(&path, "", &format!("? {short}"), &format!("{dashed} {class}"));
        let path = format!("{above}/pod{dashed}/crio-{id}");
        in_pod(&path, "", &format!("cri-o {short}"), &format!("{dashed} {class}"));
    }
    // A pod from a file on the node has a hash instead of a UUID.
    in_pod(
        "/kubepods/burstable/pod2f5f4a5e0d6c4b3a29181706f5e4d3c2",
        "",
        "",
        "2f5f4a5e0d6c4b3a29181706f5e4d3c2 burstable",
    );
    // containerd without `SystemdCgroup = true`.
    in_pod(
        "/system.slice/containerd.service/kubepods-besteffort-pod214f3ba8_4b69_4bdb_a7d5_5ecc73f04ae9.slice:cri-containerd:d4e8e05a546c86b6443f101966c618e47753ed01fa9929cae00d3b692f7a9f80",
        "containerd.service",
        "containerd d4e8e05a546c",
        "214f3ba8-4b69-4bdb-a7d5-5ecc73f04ae9 best effort",
    );
    // A node of kind is a container: its containers and pods are the inner ones.
    in_pod(
        "/system.slice/docker-3350ade4226f0adcd9e4e9545d7c2a16a5aa362d12315f2a88e2024cea1246cf.scope/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-besteffort.slice/kubelet-kubepods-besteffort-podb6a16766_05ee_446a_8ee5_ff96a817f47c.slice/cri-containerd-679f3691f7f1b20198548be43b86f265f9fff9be0ac4c973638f5ee89decbca9.scope",
        "docker-3350ade4226f0adcd9e4e9545d7c2a16a5aa362d12315f2a88e2024cea1246cf.scope",
        "containerd 679f3691f7f1",
        "b6a16766-05ee-446a-8ee5-ff96a817f47c best effort",
    );
    let conmon = format!("crio-conmon-{id}.scope");
    in_pod(
        &format!(
            "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod{uid}.slice/{conmon}"
        ),
        &conmon,
        "",
        &format!("{dashed} best effort"),
    );
}

#[test]
fn a_name_knows_how_far_the_path_leads_to_it() {
    let id = "3350ade4226f0adcd9e4e9545d7c2a16a5aa362d12315f2a88e2024cea1246cf";
    let pod = "/kubepods/burstable/pod2c48913c-b29f-11e7-9350-020968147796";
    let path = format!("{pod}/{id}/inner");
    let name = GroupName::of(&path);
    assert_eq!(name.pod.map(|it| it.path), Some(pod));
    assert_eq!(name.container.map(|it| it.path), path.strip_suffix("/inner"));
}

#[test]
fn a_cgroup_that_the_hosts_systemd_made_is_unique_by_its_last_part() {
    for path in [
        "/system.slice/ssh.service",
        "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod0.slice",
        "/user.slice/user-7.slice",
        "/user.slice/user-7.slice/user@7.service",
        "/user.slice/user-7.slice/session-3.scope",
        "/init.scope",
    ] {
        assert_eq!(Some(unique_name(path)), path.rsplit('/').next(), "{path}");
    }
    for path in [
        "/docker/a",
        "/user.slice/user-7.slice/ssh.service",
        "/user.slice/user-7.slice/user@7.service/app.slice/ssh.service",
        "/user.slice/user-7.slice/x.slice/session-3.scope",
        "/system.slice/a.service/system.slice/ssh.service",
        "/docker/a/user.slice/user-7.slice/session-3.scope",
    ] {
        assert_eq!(unique_name(path), path);
    }
    assert!(is_within("/system.slice/a.service/b", "a.service"));
    assert!(is_within("/docker/a/b", "/docker/a"));
    assert!(!is_within("/docker/a/system.slice/a.service", "a.service"));
}

#[test]
fn what_only_resembles_a_name_is_none() {
    for path in [
        "/docker",
        "/docker/buildx",
        "/kubepods",
        "/kubepods/burstable/podinfo",
        "/kubepods.slice/kubepods-burstable.slice",
        "/app/.service",
        "/user.slice/user-.slice",
        "relative/path",
        "",
    ] {
        check(path, [""; 4]);
    }
}

#[test]
fn escapes_of_systemd_are_undone_and_nothing_else() {
    for (escaped, plain) in [
        (r"a\x2db.service", "a-b.service"),
        (r"caf\xc3\xa9.service", "café.service"),
        (r"bad\xff.service", r"bad\xff.service"),
        (r"bell\x07.service", r"bell\x07.service"),
        (r"cut\x2", r"cut\x2"),
        (r"no\xzz", r"no\xzz"),
        ("plain", "plain"),
    ] {
        assert_eq!(unescaped(escaped), plain);
    }
}

proptest! {
    #[test]
    fn no_path_makes_it_panic(path in ".{0,80}", parts in "(/(pod|user-|docker-|\\\\x)?[a-f0-9é:_.\\\\-]{0,40}(.slice|.scope)?){0,5}") {
        for path in [&path, &parts] {
            let name = GroupName::of(path);
            name.unit_name();
            for named in [name.unit.map(|it| it.path), name.container.map(|it| it.path), name.pod.map(|it| it.path)] {
                prop_assert!(named.is_none_or(|named| path.starts_with(named)));
            }
        }
    }
}
