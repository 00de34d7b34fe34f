//! Names of containers in the state files of Docker, containerd, Podman and CRI-O.

use std::collections::BTreeSet;
use std::io::Read as _;

use rustix::fs::{Mode, OFlags, open};
use serde_json::Value;
use timeline::cgroup::{ContainerNames, GroupNames, PodNames};

use crate::inventory::SearchTime;
use crate::kernel_file::Root;

/// The configurations of Docker's containers.
const DOCKER: &str = "/var/lib/docker/containers";
/// The bundles of containerd's tasks, by namespace and id.
const CONTAINERD: &str = "/run/containerd/io.containerd.runtime.v2.task";
/// The storage that Podman and CRI-O share, and its lists.
const STORAGE: &str = "/var/lib/containers/storage";
const LISTS: [&str; 2] = [
    "overlay-containers/containers.json",
    "overlay-containers/volatile-containers.json",
];
/// A list of a thousand containers takes about 1 MiB.
const FILE_SIZE_MAX: u64 = 16 << 20;
/// containerd has a namespace for each of its users: Kubernetes, Docker, nerdctl.
const NAMESPACES_MAX: usize = 16;
/// The container of a pod that keeps its namespaces, as Kubernetes calls it.
const PAUSE: &str = "pause";

/// Reads the names of these containers; those of users without root are below their `homes`.
pub(super) fn read(
    root: &Root,
    wanted: &BTreeSet<String>,
    homes: &[String],
    time: SearchTime,
    names: &mut GroupNames,
) {
    let places = |of_root: &str, of_users: &str| -> Vec<String> {
        let homes = homes.iter().map(|home| format!("{home}/{of_users}"));
        std::iter::once(of_root.to_owned()).chain(homes).collect()
    };
    for storage in places(STORAGE, ".local/share/containers/storage") {
        for list in LISTS {
            from_list(root, &format!("{storage}/{list}"), wanted, names);
        }
    }
    let mut namespaces = root.names(CONTAINERD);
    namespaces.truncate(NAMESPACES_MAX);
    let dockers = places(DOCKER, ".local/share/docker/containers");
    for id in wanted {
        if time.is_over() {
            return;
        }
        if names.containers.contains_key(id) {
            continue;
        }
        let of_docker = dockers
            .iter()
            .find_map(|place| docker(&json(root, &format!("{place}/{id}/config.v2.json"))?));
        let of_containerd = || {
            namespaces.iter().find_map(|namespace| {
                let bundle = format!("{CONTAINERD}/{namespace}/{id}/config.json");
                containerd(&json(root, &bundle)?)
            })
        };
        if let Some(found) = of_docker.or_else(of_containerd) {
            names.containers.insert(id.clone(), found);
        }
    }
}

/// Reads a file that may lie in a user's home: one that is no regular file could block the reader.
fn json(root: &Root, path: &str) -> Option<Value> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = std::fs::File::from(open(root.path(path), flags, Mode::empty()).ok()?);
    let mut text = Vec::new();
    let is_regular = file.metadata().is_ok_and(|meta| meta.is_file());
    let read = is_regular.then(|| file.take(FILE_SIZE_MAX).read_to_end(&mut text))?;
    serde_json::from_slice(&text).ok().filter(|_| read.is_ok())
}

fn text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key)?.as_str().filter(|text| !text.is_empty())
}

/// `config.v2.json`: the name begins with `/`; where Kubernetes uses Docker, labels have its names.
fn docker(config: &Value) -> Option<ContainerNames> {
    let labels = config.pointer("/Config/Labels").unwrap_or(&Value::Null);
    let of_kubernetes = || {
        Some(ContainerNames {
            name: text(labels, "io.kubernetes.container.name")?.replace("POD", PAUSE),
            pod: Some(PodNames {
                namespace: text(labels, "io.kubernetes.pod.namespace")?.to_owned(),
                name: text(labels, "io.kubernetes.pod.name")?.to_owned(),
            }),
        })
    };
    of_kubernetes().or_else(|| {
        let name = text(config, "Name")?.trim_start_matches('/').to_owned();
        Some(ContainerNames { name, pod: None })
    })
}

/// `config.json` of an OCI bundle: annotations of the CRI plug-in, or of nerdctl.
fn containerd(bundle: &Value) -> Option<ContainerNames> {
    let annotations = bundle.get("annotations")?;
    let pod = || {
        Some(PodNames {
            namespace: text(annotations, "io.kubernetes.cri.sandbox-namespace")?.to_owned(),
            name: text(annotations, "io.kubernetes.cri.sandbox-name")?.to_owned(),
        })
    };
    let is_sandbox = text(annotations, "io.kubernetes.cri.container-type") == Some("sandbox");
    let name = match text(annotations, "io.kubernetes.cri.container-name") {
        Some(name) => name,
        None if is_sandbox => PAUSE,
        None => text(annotations, "nerdctl/name")?,
    };
    Some(ContainerNames {
        name: name.to_owned(),
        pod: pod(),
    })
}

/// The list of containers/storage: Podman's names as given, CRI-O's as `k8s_CONTAINER_POD_NAMESPACE_UID_ATTEMPT`.
fn from_list(root: &Root, path: &str, wanted: &BTreeSet<String>, names: &mut GroupNames) {
    let list = json(root, path);
    let entries = list.as_ref().and_then(Value::as_array);
    for entry in entries.into_iter().flatten() {
        let Some(id) = text(entry, "id").filter(|id| wanted.contains(*id)) else {
            continue;
        };
        let Some(name) = entry.pointer("/names/0").and_then(Value::as_str) else {
            continue;
        };
        let found = of_kubernetes(name).unwrap_or_else(|| ContainerNames {
            name: name.to_owned(),
            pod: None,
        });
        names.containers.insert(id.to_owned(), found);
    }
}

fn of_kubernetes(name: &str) -> Option<ContainerNames> {
    let mut parts = name.strip_prefix("k8s_")?.split('_');
    let (container, pod, namespace) = (parts.next()?, parts.next()?, parts.next()?);
    Some(ContainerNames {
        name: container.replace("POD", PAUSE),
        pod: Some(PodNames {
            namespace: namespace.to_owned(),
            name: pod.to_owned(),
        }),
    })
}
