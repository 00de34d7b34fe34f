//! Detects whether this process runs in a container, a sandbox or WSL.
//!
//! There the kernel's files show less than the machine: other processes are missing, cgroup paths start at the
//! container, and with lxcfs or gVisor even `/proc/meminfo` describes the container. The kernel's evidence decides: the
//! initial namespaces have fixed inode numbers since 3.8 (`PROC_PID_INIT_INO` and its siblings). Files that images
//! contain (`/.dockerenv`) prove nothing alone: a virtual machine made from an image has them too.
//!
//! Of PID 1's environment only the value of `container=` is read, and only that word is stored. Cost: a dozen small
//! reads, once.

use timeline::facts::Container;

use crate::kernel_file::Root;
use crate::mounts;
use crate::text;

/// Inode numbers of the initial namespaces that a container does not share, from `include/linux/proc_ns.h`.
const INITIAL: [(&str, u64); 5] = [
    ("ipc", 0xEFFF_FFFF),
    ("uts", 0xEFFF_FFFE),
    ("user", 0xEFFF_FFFD),
    ("pid", 0xEFFF_FFFC),
    ("cgroup", 0xEFFF_FFFB),
];

/// The `/proc/version` of gVisor releases that do not name themselves.
const GVISOR_BUILD: &[u8] = b"#1 SMP Sun Jan 10 15:06:54 PST 2016";

/// Searches for signs of a container around this process; `None` if there are none.
pub(crate) fn detect(root: &Root) -> Option<Container> {
    let mut container = Container::default();
    let mut sign = |words: &str| container.signs.push(words.to_owned());

    let is_private = |name| namespace_is_private(root, name);
    let namespaces = INITIAL.map(|(name, _)| is_private(name));
    // If the kernel says that all namespaces are shared with the machine, a file in the root directory proves nothing.
    let may_be_boxed = namespaces.contains(&Some(true)) || namespaces.iter().all(Option::is_none);
    if may_be_boxed {
        for (file, words) in [
            ("/.dockerenv", "docker (/.dockerenv)"),
            ("/run/.containerenv", "podman (/run/.containerenv)"),
        ] {
            if root.has(file) {
                sign(words);
            }
        }
    }
    if is_private("pid").unwrap_or_else(|| init_has_another_pid(root)) {
        sign("a private PID namespace");
    }
    if is_private("cgroup") == Some(true) {
        sign("a private control-group namespace");
    }
    if let Some(runtime) = runtime_in_cgroup(&read(root, "/proc/self/cgroup")) {
        sign(&format!("{runtime} in its cgroup"));
    }
    if let Some(manager) = container_variable(&read(root, "/proc/1/environ")) {
        sign(&format!("{manager} (container= of PID 1)"));
    }
    let version = read(root, "/proc/version").to_ascii_lowercase();
    let says = |word: &[u8]| memchr::memmem::find(&version, word).is_some();
    if says(b"-microsoft") {
        sign("WSL (/proc/version)");
    }
    let is_gvisor = says(b"gvisor") || says(&GVISOR_BUILD.to_ascii_lowercase());
    if is_gvisor {
        sign("gVisor (/proc/version)");
    }
    let mounts = read(root, "/proc/self/mounts");
    let has_lxcfs = mounts::mounts(&mounts)
        .any(|mount| &*mount.point == b"/proc/meminfo" && mount.kind.starts_with(b"fuse"));
    if has_lxcfs {
        sign("lxcfs on /proc/meminfo");
    }
    container.meminfo_is_own = is_gvisor || has_lxcfs;
    (!container.signs.is_empty()).then_some(container)
}

/// Returns the file's text; empty if it cannot be read, which is not a sign.
fn read(root: &Root, path: &str) -> Vec<u8> {
    root.read(path).unwrap_or_default()
}

/// Whether our namespace differs from the machine's; `None` if the source lacks it.
fn namespace_is_private(root: &Root, name: &str) -> Option<bool> {
    let link = std::fs::read_link(root.path(&format!("/proc/self/ns/{name}"))).ok()?;
    let inode = link.to_str()?.split_once('[')?.1.strip_suffix(']')?;
    let (_, initial) = INITIAL.iter().find(|(known, _)| *known == name)?;
    Some(text::number(inode.as_bytes())? != *initial)
}

/// Detects a container without namespace links: kernels before 4.15 write PID 1's number outside of the container to
/// `/proc/1/sched`, and under a `/proc` mounted outside our process has one number for each level.
fn init_has_another_pid(root: &Root) -> bool {
    let sched = read(root, "/proc/1/sched");
    let head = text::lines(&sched).next().map_or(&b""[..], |(_, line)| line);
    let outer = memchr::memrchr(b'(', head)
        .and_then(|at| head[at + 1..].split(|b| *b == b',').next())
        .and_then(text::number);
    let status = read(root, "/proc/self/status");
    let levels = text::lines(&status)
        .find_map(|(_, line)| line.strip_prefix(b"NSpid:"))
        .map(|pids| text::words(pids).count());
    outer.is_some_and(|pid| pid != 1) || levels.is_some_and(|levels| levels > 1)
}

/// Returns the container runtime of a process's cgroup. The runtime's own service (`docker.service`) does not count.
fn runtime_in_cgroup(cgroup: &[u8]) -> Option<&'static str> {
    const RUNTIMES: [(&str, &[u8]); 7] = [
        ("kubepods", b"/kubepods"),
        ("docker", b"/docker/"),
        ("docker", b"/docker-"),
        ("podman", b"/libpod-"),
        ("cri-o", b"/crio-"),
        ("lxc", b"/lxc/"),
        ("lxc", b"/lxc.payload"),
    ];
    RUNTIMES
        .iter()
        .find(|(_, part)| memchr::memmem::find(cgroup, part).is_some())
        .map(|(runtime, _)| *runtime)
}

/// Returns the value of `container=`, which systemd's container interface asks managers to set for PID 1.
fn container_variable(environ: &[u8]) -> Option<String> {
    let value =
        environ.split(|b| *b == 0).find_map(|variable| variable.strip_prefix(b"container="))?;
    let is_plain = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_');
    let is_name = !value.is_empty() && value.len() <= 32 && value.iter().all(is_plain);
    is_name.then(|| text::lossy(value).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    /// Detects in a root with these files, and with namespaces that are all initial except `private`.
    fn signs(files: &[(&str, &str)], namespaces: Option<&[&str]>) -> Option<Container> {
        let directory = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = directory.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        if let Some(private) = namespaces {
            let at = directory.path().join("proc/self/ns");
            fs::create_dir_all(&at).unwrap();
            for (name, initial) in INITIAL {
                let inode = if private.contains(&name) { 4_026_532_456 } else { initial };
                symlink(format!("{name}:[{inode}]"), at.join(name)).unwrap();
            }
        }
        detect(&Root::at(directory.path()))
    }

    fn words(files: &[(&str, &str)], namespaces: Option<&[&str]>) -> Vec<String> {
        signs(files, namespaces).map_or_else(Vec::new, |container| container.signs)
    }

    #[test]
    fn a_machine_has_no_signs() {
        assert_eq!(signs(&[], None), None);
        let machine = [
            (
                "proc/version",
                "Linux version 6.1.0-18-amd64 (debian-kernel@lists.debian.org) #1 SMP\n",
            ),
            ("proc/self/cgroup", "0::/system.slice/docker.service\n"),
            ("proc/1/environ", "HOME=/\0TERM=linux\0"),
            ("proc/1/sched", "systemd (1, #threads: 1)\n---\n"),
            ("proc/self/status", "Name:\tmemtide\nNSpid:\t812\n"),
        ];
        assert_eq!(signs(&machine, Some(&[])), None);
        assert_eq!(signs(&machine, None), None);
    }

    #[test]
    fn an_images_file_alone_is_no_container() {
        let file = [(".dockerenv", "")];
        assert_eq!(words(&file, Some(&[])), Vec::<String>::new(), "a machine made from an image");
        assert_eq!(words(&file, Some(&["uts"])), ["docker (/.dockerenv)"]);
        assert_eq!(words(&file, None), ["docker (/.dockerenv)"], "the kernel lacks it");
    }

    #[test]
    fn private_namespaces_give_a_container_away() {
        assert_eq!(
            words(&[("run/.containerenv", "")], Some(&["pid", "cgroup"])),
            [
                "podman (/run/.containerenv)",
                "a private PID namespace",
                "a private control-group namespace"
            ]
        );
        // A hardened service has its own host name but is not a container.
        assert_eq!(words(&[], Some(&["uts"])), Vec::<String>::new());
        assert_eq!(
            words(&[("proc/1/sched", "bash (2841, #threads: 1)\n")], None),
            ["a private PID namespace"]
        );
        assert_eq!(
            words(&[("proc/self/status", "NSpid:\t812\t7\n")], None),
            ["a private PID namespace"]
        );
    }

    #[test]
    fn the_control_group_names_the_runtime() {
        for (cgroup, runtime) in [
            ("4:memory:/docker/0123\n", "docker"),
            ("0::/kubepods.slice/kubepods-pod1.slice\n", "kubepods"),
            ("0::/machine.slice/libpod-12.scope\n", "podman"),
            ("0::/lxc.payload.web/init.scope\n", "lxc"),
        ] {
            let found = words(&[("proc/self/cgroup", cgroup)], Some(&[]));
            assert_eq!(found, [format!("{runtime} in its cgroup")]);
        }
    }

    #[test]
    fn lxcfs_and_gvisor_show_the_box_in_meminfo() {
        let mounts = "lxcfs /proc/meminfo fuse.lxcfs rw,nosuid,nodev,relatime 0 0\n";
        let lxc = signs(&[("proc/self/mounts", mounts)], None).unwrap();
        assert_eq!(lxc.signs, ["lxcfs on /proc/meminfo"]);
        assert!(lxc.meminfo_is_own);
        for version in [
            "Linux version 4.4.0 #1 SMP Sun Jan 10 15:06:54 PST 2016\n",
            "Linux version 4.19.0-gvisor #1 SMP\n",
        ] {
            let gvisor = signs(&[("proc/version", version)], None).unwrap();
            assert_eq!(gvisor.signs, ["gVisor (/proc/version)"]);
            assert!(gvisor.meminfo_is_own);
        }
        let wsl = [("proc/version", "Linux version 5.15.153.1-microsoft-standard-WSL2 (root@x)\n")];
        let wsl = signs(&wsl, Some(&["pid"])).unwrap();
        assert!(wsl.signs.contains(&"WSL (/proc/version)".to_owned()));
        assert!(!wsl.meminfo_is_own);
    }

    #[test]
    fn of_the_environment_only_the_managers_name_is_kept() {
        let environ = "SECRET=hunter2\0container=systemd-nspawn\0TOKEN=x\0";
        let found = words(&[("proc/1/environ", environ)], Some(&[]));
        assert_eq!(found, ["systemd-nspawn (container= of PID 1)"]);
        for odd in ["container=", "container=a b\u{1b}[2J", "not_container=x"] {
            assert_eq!(container_variable(odd.as_bytes()), None, "{odd}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text: Vec<u8>) {
            runtime_in_cgroup(&text);
            container_variable(&text);
        }
    }
}
