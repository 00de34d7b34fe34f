//! The service that a process belongs to, read from its cgroups in `/proc/PID/cgroup`.
//!
//! A line is `HIERARCHY:CONTROLLERS:PATH`; the unified hierarchy is number 0 without controllers. The service is the
//! innermost part of a path that has a meaning for a person: a systemd unit (`ssh.service`, `session-3.scope`), a
//! container, or a pod. Its name is the unique one of that cgroup: the part, or the path where others than the host's systemd
//! make cgroups. A process in none of these has an empty service. Paths are relative to the reader's cgroup namespace.

use timeline::cgroup::{PathPart, unique_name};
use timeline::facts::CgroupMode;

use crate::text;

/// Appends the name of the service to `name`, if there is one.
pub(crate) fn push_name(text: &[u8], name: &mut String) {
    // On a host that runs both versions, systemd's own hierarchy has the units, and the others may be flat.
    let of = |wanted: fn(&[u8]) -> bool| {
        lines(text)
            .filter(|(controllers, _)| wanted(controllers))
            .find_map(|(_, path)| innermost(path))
    };
    let found = of(|controllers| controllers.is_empty() || controllers == b"name=systemd")
        .or_else(|| of(|_| true));
    if let Some(found) = found {
        text::push_lossy(name, found);
    }
}

/// Returns the path in the hierarchy that manages memory.
pub(crate) fn memory_path(text: &[u8], mode: CgroupMode) -> Option<&[u8]> {
    match mode {
        CgroupMode::V1 => path_of_controller(text, b"memory"),
        CgroupMode::V2 => {
            lines(text).find(|(controllers, _)| controllers.is_empty()).map(|(_, path)| path)
        }
    }
}

/// Returns the path in the v1 hierarchy with this controller.
pub(crate) fn path_of_controller<'a>(text: &'a [u8], controller: &[u8]) -> Option<&'a [u8]> {
    let mut own = lines(text)
        .filter(|(controllers, _)| controllers.split(|b| *b == b',').any(|c| c == controller));
    own.next().map(|(_, path)| path)
}

/// Returns controllers and path of each line.
fn lines(text: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    text::lines(text).filter_map(|(_, line)| {
        let mut parts = line.splitn(3, |b| *b == b':');
        let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        // The suffix of a cgroup that was removed while its last process ends.
        Some((controllers, path.strip_suffix(b" (deleted)").unwrap_or(path)))
    })
}

/// Returns the unique name of the innermost service in a path.
fn innermost(path: &[u8]) -> Option<&[u8]> {
    let mut init = None;
    let mut inner = path;
    while let Some(slash) = memchr::memrchr(b'/', inner) {
        let (outer, part) = (&inner[..slash], &inner[slash + 1..]);
        // Every systemd, also a user's or a container's, has an `init.scope`: the part around it is more informative.
        if part == b"init.scope" {
            init = Some(inner);
        } else if is_service(part, outer) {
            return Some(unique(inner));
        }
        inner = outer;
    }
    init.map(unique)
}

fn unique(path: &[u8]) -> &[u8] {
    std::str::from_utf8(path).map_or(path, |path| unique_name(path).as_bytes())
}

fn is_service(part: &[u8], outer: &[u8]) -> bool {
    let texts = std::str::from_utf8(part).ok().zip(std::str::from_utf8(outer).ok());
    texts.map_or_else(
        || part.ends_with(b".service") || part.ends_with(b".scope"),
        |(part, outer)| PathPart::of(part, outer).is_service(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ID: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    fn name(text: &str) -> String {
        let mut name = String::new();
        push_name(text.as_bytes(), &mut name);
        name
    }

    #[test]
    fn the_innermost_known_part_is_the_service() {
        let uid = "b7e34a5c-0f5e-4c9a-9a2e-2d1f0e3c4b5a";
        let of_al = "/user.slice/user-1000.slice/user@1000.service/app.slice/app-firefox-12.scope";
        let docker_in_docker = format!("/system.slice/docker-{ID}.scope/docker/{ID}");
        for (path, expected) in [
            ("/system.slice/ssh.service", "ssh.service"),
            ("/user.slice/user-1000.slice/session-3.scope", "session-3.scope"),
            (of_al, of_al),
            (&docker_in_docker, &docker_in_docker),
            ("/user.slice/user-1000.slice/user@1000.service/init.scope", "user@1000.service"),
            ("/init.scope", "init.scope"),
            (&format!("/system.slice/docker-{ID}.scope"), &format!("docker-{ID}.scope")),
            (&format!("/docker/{ID}"), &format!("/docker/{ID}")),
            (
                &format!("/kubepods/burstable/pod{uid}/{ID}"),
                &format!("/kubepods/burstable/pod{uid}/{ID}"),
            ),
            (&format!("/kubepods/burstable/pod{uid}"), &format!("/kubepods/burstable/pod{uid}")),
            (
                "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podb7e34a5c_0f5e_4c9a_9a2e_2d1f0e3c4b5a.slice",
                "kubepods-burstable-podb7e34a5c_0f5e_4c9a_9a2e_2d1f0e3c4b5a.slice",
            ),
            ("/lxc/web1", "/lxc/web1"),
            (
                "/lxc.payload.web1/system.slice/nginx.service",
                "/lxc.payload.web1/system.slice/nginx.service",
            ),
            ("/lxc.payload.web1/init.scope", "lxc.payload.web1"),
            ("/system.slice/old.service (deleted)", "old.service"),
            ("/", ""),
            ("/app", ""),
            ("/system.slice", ""),
            ("/podman", ""),
            ("/a:b.service", "a:b.service"),
        ] {
            assert_eq!(name(&format!("0::{path}\n")), expected, "{path}");
        }
    }

    #[test]
    fn on_v1_the_units_are_in_systemds_hierarchy() {
        let text = "12:memory:/flat\n9:pids:/user.slice/x.scope\n1:name=systemd:/system.slice/cron.service\n0::/\n";
        assert_eq!(name(text), "cron.service");
        let text = format!("4:memory:/docker/{ID}\n1:cpu:/\n");
        assert_eq!(name(&text), format!("/docker/{ID}"), "no systemd at all");
        assert_eq!(name("nonsense\n1:\n"), "");
    }

    #[test]
    fn the_memory_hierarchy_has_its_own_path() {
        let text = b"9:name=systemd:/\n4:cpu,memory:/a/b\n0::/c\n";
        assert_eq!(memory_path(text, CgroupMode::V1), Some(&b"/a/b"[..]));
        assert_eq!(memory_path(text, CgroupMode::V2), Some(&b"/c"[..]));
        assert_eq!(memory_path(b"0::/c\n", CgroupMode::V1), None);
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text: Vec<u8>, paths in "([0-9]?:?[a-z,]{0,3}:?(/[a-z.-]{0,9}){0,4}\n?){0,5}") {
            let mut name = String::new();
            push_name(&text, &mut name);
            push_name(paths.as_bytes(), &mut name);
            memory_path(&text, CgroupMode::V1);
        }
    }
}
