//! What a cgroup's path names: a unit of systemd, a user, a container, a pod. Uses the path alone.
//!
//! Knows the paths of systemd, Docker, containerd, nerdctl, Podman, CRI-O, LXC and Kubernetes, of the cgroup drivers
//! `systemd` and `cgroupfs`, which are the same on cgroup v1 and v2. Paths are untrusted text: what has no such form
//! has no name. Cost: a pass over the path; only [`GroupName::unit_name`] and [`PodPart::uid`] allocate.

use std::borrow::Cow;
use std::fmt;

/// The program that made a container's cgroup.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ContainerRuntime {
    /// Docker, with either cgroup driver.
    Docker,
    /// containerd, for Kubernetes or nerdctl.
    Containerd,
    Podman,
    CriO,
    /// LXC, also of Incus, LXD and Proxmox.
    Lxc,
}

impl ContainerRuntime {
    /// Prefixes of names of cgroups: `docker-ID.scope` of the systemd driver, `crio-ID` of the cgroupfs driver.
    const PREFIXES: [(&str, Self); 5] = [
        ("docker-", Self::Docker),
        ("cri-containerd-", Self::Containerd),
        ("nerdctl-", Self::Containerd),
        ("libpod-", Self::Podman),
        ("crio-", Self::CriO),
    ];

    /// Its name: `docker`, `cri-o`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Docker => "docker",
            Self::Containerd => "containerd",
            Self::Podman => "podman",
            Self::CriO => "cri-o",
            Self::Lxc => "lxc",
        }
    }
}

/// The quality of service that Kubernetes gives a pod, from its requests and limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum QosClass {
    /// Every container's limits equal its requests.
    Guaranteed,
    /// Some requests or limits.
    Burstable,
    /// None: killed first.
    BestEffort,
}

impl fmt::Display for QosClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Guaranteed => "guaranteed",
            Self::Burstable => "burstable",
            Self::BestEffort => "best effort",
        })
    }
}

/// A container as a part of a path names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContainerPart<'a> {
    /// `None` where the cgroup has the id alone, as with the cgroupfs driver below a pod.
    pub runtime: Option<ContainerRuntime>,
    /// Its id of 64 hexadecimal digits; of LXC its name.
    pub id: &'a str,
}

impl ContainerPart<'_> {
    /// Digits of an id that `docker ps` and `crictl ps` show, at most.
    const SHORT: usize = 12;

    /// Returns the part of its id that people use: twelve digits, or the name of LXC.
    pub fn short_id(&self) -> &str {
        match self.runtime {
            Some(ContainerRuntime::Lxc) => self.id,
            _ => self.id.get(..Self::SHORT).unwrap_or(self.id),
        }
    }
}

/// A pod as a part of a path names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PodPart<'a> {
    written: &'a str,
    /// `None` for a pod of Podman, which has no classes.
    pub qos: Option<QosClass>,
}

impl PodPart<'_> {
    /// Returns its UID as Kubernetes writes it: systemd takes no `-` within a name, so the kubelet writes `_` there.
    pub fn uid(&self) -> Cow<'_, str> {
        if self.written.contains('_') {
            self.written.replace('_', "-").into()
        } else {
            self.written.into()
        }
    }
}

/// What one part of a path names.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PathPart<'a> {
    /// Whether it is a service or scope of systemd; a container's scope is both.
    pub is_unit: bool,
    /// The user of a slice `user-UID.slice`.
    pub uid: Option<u32>,
    pub container: Option<ContainerPart<'a>>,
    pub pod: Option<PodPart<'a>>,
}

impl<'a> PathPart<'a> {
    /// Returns what `part` names in a path in which `above` precedes it.
    pub fn of(part: &'a str, above: &str) -> Self {
        if let Some(both) = Self::with_colons(part) {
            return both;
        }
        let parent = above.rsplit('/').next().unwrap_or_default();
        Self {
            is_unit: is_unit(part),
            uid: uid_of_slice(part),
            container: container(part, parent),
            pod: pod_of_slice(part).or_else(|| pod_of_directory(part, parent)),
        }
    }

    /// Whether it names a unit, a container or a pod.
    pub fn is_service(&self) -> bool {
        self.is_unit || self.container.is_some() || self.pod.is_some()
    }

    /// `kubepods-burstable-podUID.slice:cri-containerd:ID`: a path for systemd in the hands of a runtime that makes
    /// directories, as containerd does without `SystemdCgroup = true`.
    fn with_colons(part: &'a str) -> Option<Self> {
        let mut three = part.splitn(3, ':');
        let (slice, runtime, id) = (three.next()?, three.next()?, three.next()?);
        let known = ContainerRuntime::PREFIXES
            .iter()
            .find(|(prefix, _)| prefix.strip_suffix('-') == Some(runtime))?;
        Some(Self {
            container: is_id(id).then_some(ContainerPart { runtime: Some(known.1), id }),
            pod: pod_of_slice(slice),
            ..Self::default()
        })
    }
}

/// One of the names in a path, and how far the path leads to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Named<'a, T> {
    /// The path up to it and with it.
    pub path: &'a str,
    /// Whether it lies in a container: who runs there may make cgroups by any name.
    pub is_in_container: bool,
    /// What it names.
    pub what: T,
}

impl<'a, T> Named<'a, T> {
    const fn new(path: &'a str, is_in_container: bool, what: T) -> Self {
        Self { path, is_in_container, what }
    }
}

/// Returns the shortest name that only this cgroup can have: its last part where systemd of the host makes all cgroups, and
/// gives a name once; elsewhere its path. A user makes cgroups below the user's slice, and whoever runs in a container or a
/// unit may make them there, by the name of any other.
pub fn unique_name(path: &str) -> &str {
    let Some((above, part)) = path.rsplit_once('/') else {
        return path;
    };
    let is_of_systemd = |part: &str| part.ends_with(".slice") && uid_of_slice(part).is_none();
    let is_unique = above.split('/').skip(1).all(is_of_systemd) || is_of_login(part, above);
    if is_unique { part } else { path }
}

/// Whether the host's systemd made it directly in a user's slice: a session, or the user's own systemd.
fn is_of_login(part: &str, above: &str) -> bool {
    let mut slices = above.split('/').skip(1);
    let is_scope = part.starts_with("session-") && part.ends_with(".scope");
    let is_manager = part.starts_with("user@") && part.ends_with(".service");
    (is_scope || is_manager)
        && slices.next() == Some("user.slice")
        && slices.next().and_then(uid_of_slice).is_some()
        && slices.next().is_none()
}

/// Whether a cgroup is the one of this unique name, or lies in it.
pub fn is_within(path: &str, unique: &str) -> bool {
    super::ancestors(path).any(|above| unique_name(above) == unique)
}

/// All names in a path. Of units the one of the host's systemd, or of a user's below it; of users the outermost; of
/// containers and pods the innermost, as a container may run others.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GroupName<'a> {
    /// The unit, as the cgroup has it.
    pub unit: Option<Named<'a, &'a str>>,
    /// The user of these sessions and services.
    pub user: Option<Named<'a, u32>>,
    pub container: Option<Named<'a, ContainerPart<'a>>>,
    pub pod: Option<Named<'a, PodPart<'a>>>,
}

impl<'a> GroupName<'a> {
    /// Returns the names in a cgroup's path.
    pub fn of(path: &'a str) -> Self {
        let mut found = Self::default();
        let mut in_slices = true;
        for (at, _) in path.match_indices('/') {
            let below = path.get(at + 1..).unwrap_or_default();
            let part = below.split('/').next().unwrap_or_default();
            let above = path.get(..at).unwrap_or_default();
            let path = path.get(..at + 1 + part.len()).unwrap_or_default();
            let names = PathPart::of(part, above);
            let is_in_container = found.container.is_some();
            // A user's systemd runs as a unit of the host's, and its own units are what people ask for. Those of a
            // systemd in a container are not: the host may have others of that name.
            if names.is_unit && in_slices && !is_init_of(found.unit, part) {
                found.unit = Some(Named::new(path, is_in_container, part));
            }
            let is_manager = part.starts_with("user@") && names.is_unit;
            in_slices &= part.is_empty() || part.ends_with(".slice") || is_manager;
            let user = names.uid.filter(|_| in_slices);
            found.user = found.user.or_else(|| Some(Named::new(path, is_in_container, user?)));
            let inner = names.container;
            let container = inner.map(|it| Named::new(path, is_in_container, it));
            found.container = container.or(found.container);
            let pod = names.pod.map(|it| Named::new(path, is_in_container, it));
            found.pod = pod.or(found.pod);
        }
        found
    }

    /// Returns the unit's name as people write it: without systemd's escapes.
    pub fn unit_name(&self) -> Option<Cow<'a, str>> {
        self.unit.map(|unit| unescaped(unit.what))
    }
}

/// Whether this is the `init.scope` of a user's systemd, which is the user's manager itself.
fn is_init_of(outer: Option<Named<'_, &str>>, part: &str) -> bool {
    part == "init.scope" && outer.is_some()
}

/// Returns the name of a unit without systemd's escapes: `machine-qemu\x2d1.scope` is `machine-qemu-1.scope`. What is no
/// escape, or of no character that can be shown, stays.
pub fn unescaped(unit: &str) -> Cow<'_, str> {
    if !unit.contains("\\x") {
        return unit.into();
    }
    let mut bytes = Vec::with_capacity(unit.len());
    let mut rest = unit;
    while let Some((before, after)) = rest.split_once("\\x") {
        bytes.extend_from_slice(before.as_bytes());
        let byte = after.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match byte.filter(|byte| !byte.is_ascii_control()) {
            Some(byte) => {
                bytes.push(byte);
                rest = after.get(2..).unwrap_or_default();
            }
            None => {
                bytes.extend_from_slice(b"\\x");
                rest = after;
            }
        }
    }
    bytes.extend_from_slice(rest.as_bytes());
    String::from_utf8(bytes).map_or_else(|_| unit.into(), Cow::Owned)
}

fn is_unit(part: &str) -> bool {
    [".service", ".scope"].iter().any(|ending| part.len() > ending.len() && part.ends_with(ending))
}

fn uid_of_slice(part: &str) -> Option<u32> {
    let uid = part.strip_prefix("user-")?.strip_suffix(".slice")?;
    uid.parse().ok()
}

/// Docker, containerd, CRI-O and Podman give a container 64 hexadecimal digits.
fn is_id(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn container<'a>(part: &'a str, parent: &str) -> Option<ContainerPart<'a>> {
    let lxc = |id| ContainerPart { runtime: Some(ContainerRuntime::Lxc), id };
    if let Some(name) = part.strip_prefix("lxc.payload.") {
        return Some(lxc(name));
    }
    if matches!(parent, "lxc" | "lxc.payload") {
        return Some(lxc(part));
    }
    let bare = part.strip_suffix(".scope").unwrap_or(part);
    let prefixed = ContainerRuntime::PREFIXES.iter().find_map(|(prefix, runtime)| {
        let id = bare.strip_prefix(prefix)?;
        Some((Some(*runtime), id))
    });
    let runtime_of_parent = match parent {
        "docker" => Some(ContainerRuntime::Docker),
        // Namespaces of containerd.
        "default" | "k8s.io" => Some(ContainerRuntime::Containerd),
        "libpod_parent" => Some(ContainerRuntime::Podman),
        _ => None,
    };
    let (runtime, id) = prefixed.unwrap_or((runtime_of_parent, part));
    is_id(id).then_some(ContainerPart { runtime, id })
}

/// `kubepods-burstable-podUID.slice`, `kubelet-kubepods-podUID.slice`; `machine-libpod_pod_ID.slice` of Podman.
fn pod_of_slice(part: &str) -> Option<PodPart<'_>> {
    let name = part.strip_suffix(".slice")?;
    if let Some((_, id)) = name.split_once("-libpod_pod_") {
        return is_id(id).then_some(PodPart { written: id, qos: None });
    }
    let (class, uid) = name.rsplit_once("-pod")?;
    is_pod_uid(uid).then_some(PodPart { written: uid, qos: Some(qos(class)) })
}

/// `podUID` below `burstable`, `besteffort` or `kubepods`.
fn pod_of_directory<'a>(part: &'a str, parent: &str) -> Option<PodPart<'a>> {
    let uid = part.strip_prefix("pod")?;
    is_pod_uid(uid).then_some(PodPart { written: uid, qos: Some(qos(parent)) })
}

/// A UUID; of a pod from a file on the node, a hash of 32 digits.
fn is_pod_uid(text: &str) -> bool {
    let is_digit = |byte: u8| byte.is_ascii_hexdigit() || matches!(byte, b'-' | b'_');
    (32..=36).contains(&text.len()) && text.bytes().all(is_digit)
}

fn qos(class: &str) -> QosClass {
    if class.ends_with("burstable") {
        QosClass::Burstable
    } else if class.ends_with("besteffort") {
        QosClass::BestEffort
    } else {
        QosClass::Guaranteed
    }
}

#[cfg(test)]
mod tests;
