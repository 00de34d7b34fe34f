//! Changes of a cgroup's limit, through systemd where it owns the cgroup. What a story advises is for its own moment;
//! `judge/incidents/limits_now.rs` compares it with the end of the source.

use timeline::cgroup::{ContainerRuntime, GroupName, ROOT};
use timeline::signals::CGROUP_MAX;
use timeline::{Entity, EntitySeries, facts::CgroupMode};
use units::{Bytes, BytesPerSecond, Limit, Quantity as _, Ratio, Span};

use super::in_whole_mib;
use crate::evidence::Evidence;
use crate::finding::{Fix, LimitChange, LimitFile, ShellCommand, SmallLimit};
use crate::measures::cgroups::{is_plain, limit, unit_of, upwards};

/// Returns the limit at which the kernel kills, on this host.
pub(crate) fn kills_at(cx: &Evidence<'_>) -> LimitFile {
    match cx.facts.cgroup_mode {
        Some(CgroupMode::V1) => LimitFile::MaxV1,
        _ => LimitFile::Max,
    }
}

/// Raises a cgroup's limit that was too small; undo restores what the source last showed.
pub(crate) fn raise_limit(
    cx: &Evidence<'_>,
    group: &EntitySeries,
    file: LimitFile,
    too_small: Bytes,
) -> Fix {
    raise_limit_to(cx, group, file, too_small, more(too_small))
}

/// The same to this size.
pub(crate) fn raise_limit_to(
    cx: &Evidence<'_>,
    group: &EntitySeries,
    file: LimitFile,
    too_small: Bytes,
    to: Bytes,
) -> Fix {
    let fix = set_limit(cx, group, file, to);
    Fix { raises: Some(SmallLimit { cgroup: group.key.clone(), file, size: too_small }), ..fix }
}

/// The same for a cgroup known by its path; undo restores the limit that was too small.
pub(crate) fn raise_limit_of(path: &str, file: LimitFile, too_small: Bytes, to: Bytes) -> Fix {
    let fix = set_limit_of(path, file, to, Some(Limit::Bytes(too_small)));
    Fix { raises: Some(SmallLimit { cgroup: path.to_owned(), file, size: too_small }), ..fix }
}

/// Sets a limit, also as a bound below which a cgroup has to stay; undo restores what the source last showed.
pub(crate) fn set_limit(
    cx: &Evidence<'_>,
    group: &EntitySeries,
    file: LimitFile,
    to: Bytes,
) -> Fix {
    let from = cx.timeline.last_of(group, file.signal());
    set_limit_of(&group.key, file, to, from)
}

/// The same for a cgroup known by its path; there is no undo if `from` is unknown. A cgroup's name is untrusted text:
/// one that a shell or systemctl could take for something else gets into no command. Limits are whole MiB, as people set
/// them.
pub(crate) fn set_limit_of(path: &str, file: LimitFile, to: Bytes, from: Option<Limit>) -> Fix {
    // What is written to the files of a container is undone when it is started again, and its runtime does not know it.
    if let Some(elsewhere) = set_elsewhere(path).filter(|_| file != LimitFile::High) {
        return elsewhere;
    }
    let unit = unit_of(path).filter(|_| file.property().is_some());
    let Some(plain) = plain_path(path, unit).filter(|path| !path.is_empty()) else {
        return Fix::default();
    };
    Fix::default().limit(LimitChange {
        cgroup: format!("/{plain}"),
        unit: unit.map(str::to_owned),
        file,
        from,
        to: in_whole_mib(to),
    })
}

/// Lets the kernel kill in a cgroup of v1 in which it may not, which wakes the tasks that wait there for memory. In words
/// for the root of a container, as its path on the host is unknown, and for a name that a shell could misread.
pub(crate) fn let_kernel_kill(group: &EntitySeries) -> Fix {
    let Some(plain) = plain_path(&group.key, None).filter(|path| !path.is_empty()) else {
        return Fix::say("Write 0 into its memory.oom_control.");
    };
    let file = format!("/sys/fs/cgroup/memory/{plain}/memory.oom_control");
    Fix::default().command(ShellCommand {
        now: format!("echo 0 > {file}"),
        undo: format!("echo 1 > {file}"),
        ..ShellCommand::default()
    })
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

/// What the host keeps for others of what it has available: an engineering choice.
const KEPT: Ratio = Ratio::from_percent(50.0);

/// A larger step surprises whoever set the limit: an engineering choice.
const TIMES_MAX: u64 = 4;

/// Returns the largest limit of a cgroup for which there is room: half of the least that the host had `available` beyond
/// the one that is too small, and no more than the limits around the cgroup. `None` if that is unknown.
pub(crate) fn room_for(
    cx: &Evidence<'_>,
    group: &EntitySeries,
    too_small: Bytes,
    available: Option<Bytes>,
) -> Option<Bytes> {
    let room = too_small + available?.share(KEPT);
    let around = upwards(cx, group).skip(1).filter_map(|above| limit(cx, above, CGROUP_MAX));
    Some(around.fold(room, Bytes::min))
}

/// Returns a limit below which the need of a cgroup shows; `None` where there is no room for even [`more`]. At a limit that
/// is too small a need cannot be measured: a loop over files fits as a whole or is read from the disk as before, and a
/// throttled program does not get to what it wants. Takes the room that there is, no more than [`TIMES_MAX`] times the
/// limit.
pub(crate) fn limit_to_measure(
    cx: &Evidence<'_>,
    group: &EntitySeries,
    too_small: Bytes,
    available: Option<Bytes>,
) -> Option<Bytes> {
    let room = room_for(cx, group, too_small, available)?;
    let to = room.min(Bytes::new(too_small.get().saturating_mul(TIMES_MAX)));
    (to >= more(too_small)).then_some(in_whole_mib(to))
}

/// What there is to say where [`larger_limit`] knows none.
pub(crate) const NO_ROOM: &str = "There is no room for a larger limit, below those around it and in what the \
     host has available: make its programs smaller (heap, workers), or make room first.";

/// What there is to do where a cgroup is full of data that is not written to the disk yet.
pub(crate) fn write_otherwise(is_v1: bool) -> Fix {
    const V1: &str = "Or move it to cgroup v2, which throttles the writers of a cgroup before it is \
                      full. ";
    let or_v2 = if is_v1 { V1 } else { "" };
    Fix::say(format!(
        "Let the program write around the page cache (O_DIRECT), or call sync_file_range or \
         fdatasync as it goes. {or_v2}A larger limit is full later, and no limit makes the disk \
         faster."
    ))
}

/// How to raise a limit below which a kill happened.
pub(crate) fn raise_words(limit: Bytes, to: Bytes) -> String {
    format!(
        "Raise the limit to {to}: the kill shows that {limit} is too little, not what is enough. After \
         a time of usual load set it a little above the most that it used. Or make its programs \
         smaller (heap, workers)."
    )
}

/// memory.high as a share of the limit, to throttle before a kill: an engineering choice.
const BEFORE_LIMIT: Ratio = Ratio::from_percent(90.0);

/// The memory.high for a limit that was raised to `limit`.
pub(crate) fn high_below(limit: Bytes) -> Bytes {
    limit.share(BEFORE_LIMIT)
}

/// Returns a limit to try: [`limit_to_measure`], and a quarter more where the room is unknown. `None` where there is no room
/// for that.
pub(crate) fn larger_limit(
    cx: &Evidence<'_>,
    group: &EntitySeries,
    too_small: Bytes,
    available: Option<Bytes>,
) -> Option<Bytes> {
    match room_for(cx, group, too_small, available) {
        Some(_) => limit_to_measure(cx, group, too_small, available),
        None => Some(more(too_small)),
    }
}

/// The same for a cgroup known by its path, which the source may not have.
pub(crate) fn larger_limit_of(
    cx: &Evidence<'_>,
    path: &str,
    too_small: Bytes,
    available: Option<Bytes>,
) -> Option<Bytes> {
    match cx.timeline.entity(Entity::Cgroup, path) {
        Some(group) => larger_limit(cx, group, too_small, available),
        None => Some(more(too_small)),
    }
}

/// How long so much more memory lasts at a rate.
pub(crate) fn lasts(more: Bytes, rate: BytesPerSecond) -> Span {
    let seconds = more.as_f64() / rate.get();
    Span::from_secs_f64(if seconds.is_finite() { seconds } else { 0.0 })
}

/// What there is to say first of a larger limit where memory grew at a rate: how long it lasts, and what to look for then.
pub(crate) fn lasts_words(too_small: Bytes, to: Bytes, rate: BytesPerSecond) -> String {
    let lasts = lasts(to.saturating_sub(too_small), rate);
    format!(
        "A limit of {to} lasts {lasts} more at {rate}. See whether the program stands then, as one \
         that has loaded its data does, or grows on: that is a leak, or a cache or a queue without \
         a bound, and any limit only delays the kill."
    )
}

/// Returns a path below the root of the hierarchy that does not lead out of it, and that a shell takes unchanged: only a
/// unit, which is named within quotes, may have backslashes.
fn plain_path<'a>(path: &'a str, unit: Option<&str>) -> Option<&'a str> {
    let path = path.trim_matches('/');
    let is_safe = |part: &str| is_plain(part) && (unit.is_some() || !part.contains('\\'));
    path.split('/').all(is_safe).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::FixChange;

    fn set(path: &str) -> Fix {
        let from = Some(Limit::Bytes(Bytes::from_mib(80)));
        set_limit_of(path, LimitFile::Max, Bytes::new(100_000_001), from)
    }

    fn limit(path: &str) -> LimitChange {
        let fix = set(path);
        let [FixChange::Limit(limit)] = &fix.changes[..] else { panic!("{fix:?}") };
        limit.clone()
    }

    #[test]
    fn a_unit_of_the_host_is_changed_by_its_name_in_whole_mib() {
        let expected = LimitChange {
            cgroup: "/system.slice/web.service".to_owned(),
            unit: Some("web.service".to_owned()),
            file: LimitFile::Max,
            from: Some(Limit::Bytes(Bytes::from_mib(80))),
            to: Bytes::from_mib(96),
        };
        assert_eq!(limit("/system.slice/web.service"), expected);
        let machine = "/machine.slice/machine-qemu\\x2d1\\x2dvm.scope";
        assert_eq!(limit(machine).unit.as_deref(), Some("machine-qemu\\x2d1\\x2dvm.scope"));
        // Systemd sets no limit of v1.
        let fix = set_limit_of("/system.slice/a.service", LimitFile::MaxV1, Bytes::ZERO, None);
        let [FixChange::Limit(limit)] = &fix.changes[..] else { panic!("{fix:?}") };
        assert_eq!(limit.unit, None);
        assert_eq!(
            limit.path(),
            "/sys/fs/cgroup/memory/system.slice/a.service/memory.limit_in_bytes"
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
            assert_eq!(unit_of(path), None, "{path}");
            assert_eq!((limit(path).unit, limit(path).cgroup.as_str()), (None, path));
            assert_eq!(limit(path).path(), format!("/sys/fs/cgroup{path}/memory.max"));
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
        assert_eq!(root.changes, []);
        assert!(root.what.contains("docker run --memory"), "{}", root.what);
        assert_eq!(set(""), Fix::default());
    }

    #[test]
    fn a_quarter_more_has_no_bound() {
        assert_eq!(more(Bytes::from_mib(100)), Bytes::from_mib(125));
        assert_eq!(more(Bytes::new(u64::MAX)), Bytes::new(u64::MAX));
    }
}
