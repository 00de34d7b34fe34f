//! Commands that change a cgroup's limit, through systemd where it owns the cgroup.

use timeline::cgroup::{ContainerRuntime, GroupName, ROOT};
use timeline::signals::{CGROUP_HIGH, CGROUP_MAX};
use timeline::{EntitySeries, Gauge, Signal, facts::CgroupMode};
use units::{Bytes, Limit};

use super::whole_mib;
use crate::evidence::Evidence;
use crate::finding::Fix;
use crate::measures::cgroups::{is_plain, unit_of};

/// A limit that an administrator can change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Knob {
    /// The kernel slows the cgroup down above it.
    High,
    /// The kernel kills in the cgroup above it.
    Max,
    /// The same on cgroup v1.
    MaxV1,
}

impl Knob {
    /// Returns the limit at which the kernel kills, on this host.
    pub(crate) fn kills_at(cx: &Evidence<'_>) -> Self {
        match cx.facts.cgroup_mode {
            Some(CgroupMode::V1) => Self::MaxV1,
            _ => Self::Max,
        }
    }

    pub(crate) const fn signal(self) -> Signal<Gauge<Limit>> {
        match self {
            Self::High => CGROUP_HIGH,
            Self::Max | Self::MaxV1 => CGROUP_MAX,
        }
    }

    /// Returns systemd's name for it. Cgroups of v1 are written to by hand.
    const fn property(self) -> Option<&'static str> {
        match self {
            Self::High => Some("MemoryHigh"),
            Self::Max => Some("MemoryMax"),
            Self::MaxV1 => None,
        }
    }

    /// Returns the name of the kernel's file.
    pub(crate) const fn file_name(self) -> &'static str {
        match self {
            Self::High => "memory.high",
            Self::Max => "memory.max",
            Self::MaxV1 => "memory.limit_in_bytes",
        }
    }

    fn file(self, path: &str) -> String {
        let controller = match self {
            Self::High | Self::Max => "",
            Self::MaxV1 => "memory/",
        };
        format!("/sys/fs/cgroup/{controller}{path}/{}", self.file_name())
    }

    /// Formats a limit for the kernel's file.
    fn written(self, limit: Limit) -> String {
        match (limit, self) {
            (Limit::Bytes(size), _) => size.get().to_string(),
            (Limit::Unlimited, Self::MaxV1) => "-1".to_owned(),
            (Limit::Unlimited, _) => "max".to_owned(),
        }
    }
}

/// Returns commands that set a cgroup's limit, and undo it to what the source last showed.
pub(crate) fn set_limit(cx: &Evidence<'_>, group: &EntitySeries, knob: Knob, to: Bytes) -> Fix {
    let from = cx.timeline.last_of(group, knob.signal());
    set_limit_of(&group.key, knob, to, from)
}

/// The same for a cgroup known by its path; there is no undo if `from` is unknown. A cgroup's name is untrusted text:
/// one that a shell or systemctl could take for something else gets into no command.
pub(crate) fn set_limit_of(path: &str, knob: Knob, to: Bytes, from: Option<Limit>) -> Fix {
    // What is written to the files of a container is undone when it is started again, and its runtime does not know it.
    if let Some(elsewhere) = set_elsewhere(path).filter(|_| knob != Knob::High) {
        return elsewhere;
    }
    if let Some((unit, property)) = unit_of(path).zip(knob.property()) {
        return set_property(unit, property, to, from);
    }
    let Some(path) = plain_path(path).filter(|path| !path.is_empty()) else {
        return Fix::default();
    };
    let file = knob.file(path);
    let undo = from.map(|from| format!("echo {} > {file}", knob.written(from)));
    Fix::default().now(format!("echo {}M > {file}", whole_mib(to))).undo(undo.unwrap_or_default())
}

/// Returns commands that set a unit's limit. A scope does not outlive the processes in it, so its limit is not made
/// permanent.
fn set_property(unit: &str, property: &str, to: Bytes, from: Option<Limit>) -> Fix {
    let is_scope = unit.ends_with(".scope");
    // A name that systemd escaped has backslashes; it never has a quote.
    let unit = if unit.contains('\\') { format!("'{unit}'") } else { unit.to_owned() };
    let mib = whole_mib(to);
    let keep = if is_scope {
        String::new()
    } else {
        format!("systemctl set-property {unit} {property}={mib}M")
    };
    let from = from.map(|from| match from {
        Limit::Bytes(size) => size.get().to_string(),
        Limit::Unlimited => "infinity".to_owned(),
    });
    let undo =
        from.map(|from| format!("systemctl set-property --runtime {unit} {property}={from}"));
    Fix::default()
        .now(format!("systemctl set-property --runtime {unit} {property}={mib}M"))
        .keep(keep)
        .undo(undo.unwrap_or_default())
}

/// Says where the memory limit of a container is set, which its runtime or Kubernetes does.
pub(crate) fn set_elsewhere(path: &str) -> Option<Fix> {
    set_by(path).map(|place| Fix::say(format!("The limit is set in {place}.")))
}

/// Where the memory limit of a container is set, by the name of its cgroup.
fn set_by(path: &str) -> Option<&'static str> {
    if path == ROOT {
        return Some(
            "what starts this container: docker run --memory, the pod's resources.limits.memory",
        );
    }
    let name = GroupName::of(path);
    let container = name.container.filter(|container| container.path == path);
    let pod = name.pod.filter(|pod| pod.path == path || container.is_some());
    if pod.is_some_and(|pod| pod.what.qos.is_some()) {
        return Some("the pod's resources.limits.memory");
    }
    Some(match container?.what.runtime? {
        ContainerRuntime::Docker => "docker update --memory and --memory-swap, or its compose file",
        ContainerRuntime::Podman => "podman update --memory, or its unit or compose file",
        ContainerRuntime::Lxc => {
            "the container's memory (pct set --memory, lxc config set limits.memory)"
        }
        ContainerRuntime::Containerd | ContainerRuntime::CriO => return None,
    })
}

/// Returns a limit a quarter larger than one that was too small: a starting point, not a measurement.
pub(crate) fn more(size: Bytes) -> Bytes {
    Bytes::new(size.get().saturating_add(size.get() / 4))
}

/// Returns a path below the root of the hierarchy that a shell takes unchanged and that does not lead out of the
/// hierarchy.
fn plain_path(path: &str) -> Option<&str> {
    let path = path.trim_matches('/');
    path.split('/').all(|part| is_plain(part) && !part.contains('\\')).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(path: &str) -> Fix {
        let from = Some(Limit::Bytes(Bytes::from_mib(80)));
        set_limit_of(path, Knob::Max, Bytes::from_mib(100), from)
    }

    #[test]
    fn a_unit_of_the_host_is_changed_through_systemd_and_a_scope_is_not_kept() {
        let unit = set("/system.slice/web.service");
        assert_eq!(
            [unit.now, unit.persistent, unit.undo],
            [
                "systemctl set-property --runtime web.service MemoryMax=100M",
                "systemctl set-property web.service MemoryMax=100M",
                "systemctl set-property --runtime web.service MemoryMax=83886080",
            ]
        );
        assert_eq!(set("/system.slice/run-7.scope").persistent, "");
        assert_eq!(
            set("/machine.slice/machine-qemu\\x2d1\\x2dvm.scope").now,
            "systemctl set-property --runtime 'machine-qemu\\x2d1\\x2dvm.scope' MemoryMax=100M"
        );
    }

    #[test]
    fn a_unit_of_another_systemd_is_changed_by_its_path_and_never_the_hosts_unit_of_that_name() {
        for path in [
            "/pods/web",
            "/user.slice/user-7.slice/user@7.service/app.slice/a.service",
            "/user.slice/user-7.slice/sshd.service",
            "/docker/0123abc/system.slice/nginx.service",
            "/lxc/web/system.slice/nginx.service",
            "/machine.slice/machine-a.scope/payload/system.slice/sshd.service",
            "/system.slice/docker-0a.scope/init.scope",
            "/system.slice/docker-0a.scope/system.slice/nginx.service",
            "/init.scope",
            "/nginx.service",
            "/system.slice",
        ] {
            let fix = set(path);
            assert_eq!(unit_of(path), None, "{path}");
            assert_eq!(
                [fix.now, fix.persistent, fix.undo],
                [
                    format!("echo 100M > /sys/fs/cgroup{path}/memory.max"),
                    String::new(),
                    format!("echo 83886080 > /sys/fs/cgroup{path}/memory.max"),
                ]
            );
        }
    }

    #[test]
    fn a_name_that_could_be_taken_for_something_else_is_in_no_command() {
        for name in [
            "-Hroot@evil.example.com.service",
            "-Mcontainer.service",
            "--help.service",
            "-n.service",
            "-.slice",
            "-.service",
            ".service",
            "a; reboot.service",
            "$(reboot).service",
            "`reboot`.service",
            "a'b.service",
            "a\"b.service",
            "a\nreboot.service",
            "a\u{202e}b.service",
            "*.service",
            "~.service",
            "a=b.service",
            "..",
            ".",
        ] {
            for path in [
                format!("/system.slice/{name}"),
                format!("/{name}/web.service"),
                format!("/a/{name}/b"),
            ] {
                assert_eq!(unit_of(&path), None, "{path:?}");
                assert_eq!(set(&path), Fix::default(), "{path:?}");
            }
        }
        assert_eq!(set("/../../../home/x"), Fix::default());
        // The root is that of a container, which may not write its own limit.
        let root = set("/");
        assert_eq!((root.now.as_str(), root.undo.as_str()), ("", ""));
        assert!(root.what.contains("docker run --memory"), "{}", root.what);
        assert_eq!(set(""), Fix::default());
    }

    #[test]
    fn what_was_is_restored_and_what_is_not_known_is_not() {
        let undo = |path, knob, from| set_limit_of(path, knob, Bytes::from_mib(100), from).undo;
        let unlimited = Some(Limit::Unlimited);
        assert_eq!(
            undo("/system.slice/a.service", Knob::High, unlimited),
            "systemctl set-property --runtime a.service MemoryHigh=infinity"
        );
        assert_eq!(undo("/a", Knob::High, unlimited), "echo max > /sys/fs/cgroup/a/memory.high");
        assert_eq!(
            undo("/system.slice/a.service", Knob::MaxV1, unlimited),
            "echo -1 > /sys/fs/cgroup/memory/system.slice/a.service/memory.limit_in_bytes"
        );
        for path in ["/system.slice/a.service", "/a"] {
            assert_eq!(undo(path, Knob::High, None), "", "{path}");
        }
    }

    #[test]
    fn a_quarter_more_has_no_bound() {
        assert_eq!(more(Bytes::from_mib(100)), Bytes::from_mib(125));
        assert_eq!(more(Bytes::new(u64::MAX)), Bytes::new(u64::MAX));
    }
}
