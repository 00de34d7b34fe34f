//! Names of containers in the state files of Docker, containerd, Podman and CRI-O.
//!
//! Those of a container that root runs are in files of root. A container below a user's slice has its names in that user's
//! home, and a file there names no other: users write them.

use std::io::Read as _;

use rustix::fs::{Mode, OFlags, open};
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use timeline::cgroup::{ContainerNames, GroupNames, NAME_LEN_MAX, PodNames};
use timeline::start_of;

use super::WantedContainers;
use crate::inventory::SearchTime;
use crate::kernel_file::Root;

/// The bundles of containerd's tasks, by namespace and id.
const CONTAINERD: &str = "/run/containerd/io.containerd.runtime.v2.task";
/// The lists of the storage that Podman and CRI-O share.
const LISTS: [&str; 2] = [
    "overlay-containers/containers.json",
    "overlay-containers/volatile-containers.json",
];
/// containerd has a namespace for each of its users: Kubernetes, Docker, nerdctl.
const NAMESPACES_MAX: usize = 16;
/// The container of a pod that keeps its namespaces, as Kubernetes calls it.
const PAUSE: &str = "pause";

/// Where somebody's container runtimes keep their state.
struct StatePlaces {
    /// The storage of Podman and CRI-O.
    storage: String,
    /// The configurations of Docker's containers.
    docker: String,
    /// The directories of containerd's namespaces.
    namespaces: Vec<String>,
    /// A longer file is not read. A list of a thousand containers takes about 1 MiB.
    file_size_max: u64,
}

impl StatePlaces {
    fn of_root(root: &Root) -> Self {
        let mut namespaces = root.names(CONTAINERD);
        namespaces.truncate(NAMESPACES_MAX);
        Self {
            storage: "/var/lib/containers/storage".to_owned(),
            docker: "/var/lib/docker/containers".to_owned(),
            namespaces,
            file_size_max: 8 << 20,
        }
    }

    fn of_home(home: &str) -> Self {
        Self {
            storage: format!("{home}/.local/share/containers/storage"),
            docker: format!("{home}/.local/share/docker/containers"),
            namespaces: Vec::new(),
            file_size_max: 1 << 20,
        }
    }

    fn read(&self, root: &Root, ids: &[&str], time: SearchTime, names: &mut GroupNames) {
        for list in LISTS {
            self.list(root, &format!("{}/{list}", self.storage), ids, names);
        }
        for id in ids {
            if time.is_over() {
                return;
            }
            if names.containers.contains_key(*id) {
                continue;
            }
            let config = format!("{}/{id}/config.v2.json", self.docker);
            let of_docker = || self.json(root, &config).and_then(DockerConfig::names);
            let of_containerd = || {
                self.namespaces.iter().find_map(|namespace| {
                    let bundle = format!("{CONTAINERD}/{namespace}/{id}/config.json");
                    self.json(root, &bundle).and_then(OciBundle::names)
                })
            };
            if let Some(found) = of_docker().or_else(of_containerd) {
                add(names, id, found);
            }
        }
    }

    /// The list of containers/storage: Podman's names as given, CRI-O's as `k8s_CONTAINER_POD_NAMESPACE_UID_ATTEMPT`.
    fn list(&self, root: &Root, path: &str, ids: &[&str], names: &mut GroupNames) {
        let entries: Vec<StoredEntry> = self.json(root, path).unwrap_or_default();
        for entry in entries {
            let StoredEntry::Container(entry) = entry else {
                continue;
            };
            let is_wanted = ids.binary_search(&entry.id.as_str()).is_ok();
            if let Some(name) = entry.names.into_iter().next().filter(|_| is_wanted) {
                let found = of_kubernetes(&name).unwrap_or(ContainerNames { name, pod: None });
                add(names, &entry.id, found);
            }
        }
    }

    /// Reads a file that may lie in a user's home: one that is no regular file could block the reader. Of what it has beside
    /// the fields of `T` nothing is kept.
    fn json<T: DeserializeOwned>(&self, root: &Root, path: &str) -> Option<T> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = std::fs::File::from(open(root.path(path), flags, Mode::empty()).ok()?);
        let meta = file.metadata().ok()?;
        if !meta.is_file() || meta.len() > self.file_size_max {
            return None;
        }
        let mut text = Vec::new();
        file.take(self.file_size_max).read_to_end(&mut text).ok()?;
        serde_json::from_slice(&text).ok()
    }
}

/// Reads the names of these containers; those of users without root are below their `homes`.
pub(super) fn read(
    root: &Root,
    wanted: &WantedContainers,
    homes: &[(u32, String)],
    time: SearchTime,
    names: &mut GroupNames,
) {
    let of = |user: Option<u32>| -> Vec<&str> {
        let ids = wanted.iter().filter(|(_, owner)| owner.user == user);
        ids.map(|(id, _)| id.as_str()).collect()
    };
    StatePlaces::of_root(root).read(root, &of(None), time, names);
    for (user, home) in homes {
        if time.is_over() {
            return;
        }
        StatePlaces::of_home(home).read(root, &of(Some(*user)), time, names);
    }
}

fn add(names: &mut GroupNames, id: &str, found: ContainerNames) {
    let short = |text: String| start_of(&text, NAME_LEN_MAX).to_owned();
    let pod = found.pod.map(|pod| PodNames {
        namespace: short(pod.namespace),
        name: short(pod.name),
    });
    let name = short(found.name);
    let found = ContainerNames { name, pod };
    names.containers.insert(id.to_owned(), found);
}

/// An entry of a list of containers/storage.
#[derive(Deserialize)]
#[serde(untagged)]
enum StoredEntry {
    Container(StoredContainer),
    Other(IgnoredAny),
}

#[derive(Deserialize)]
struct StoredContainer {
    id: String,
    names: Vec<String>,
}

/// `config.v2.json` of Docker.
#[derive(Deserialize)]
struct DockerConfig {
    /// It begins with `/`.
    #[serde(rename = "Name")]
    name: Option<String>,
    #[serde(rename = "Config")]
    config: Option<DockerLabelled>,
}

#[derive(Deserialize)]
struct DockerLabelled {
    #[serde(rename = "Labels")]
    labels: Option<DockerLabels>,
}

/// Where Kubernetes uses Docker, labels have its names.
#[derive(Deserialize)]
struct DockerLabels {
    #[serde(rename = "io.kubernetes.container.name")]
    container: Option<String>,
    #[serde(rename = "io.kubernetes.pod.namespace")]
    namespace: Option<String>,
    #[serde(rename = "io.kubernetes.pod.name")]
    pod: Option<String>,
}

impl DockerConfig {
    fn names(self) -> Option<ContainerNames> {
        let labels = self.config.and_then(|config| config.labels);
        let of_kubernetes = labels.and_then(|labels| {
            Some(ContainerNames {
                name: labels.container?.replace("POD", PAUSE),
                pod: pod(labels.namespace, labels.pod),
            })
            .filter(|names| names.pod.is_some())
        });
        of_kubernetes.or_else(|| {
            let name = given(self.name)?.trim_start_matches('/').to_owned();
            Some(ContainerNames { name, pod: None })
        })
    }
}

/// `config.json` of an OCI bundle.
#[derive(Deserialize)]
struct OciBundle {
    annotations: Option<OciAnnotations>,
}

/// Annotations of the CRI plug-in, or of nerdctl.
#[derive(Deserialize)]
struct OciAnnotations {
    #[serde(rename = "io.kubernetes.cri.container-name")]
    container: Option<String>,
    #[serde(rename = "io.kubernetes.cri.container-type")]
    kind: Option<String>,
    #[serde(rename = "io.kubernetes.cri.sandbox-namespace")]
    namespace: Option<String>,
    #[serde(rename = "io.kubernetes.cri.sandbox-name")]
    pod: Option<String>,
    #[serde(rename = "nerdctl/name")]
    of_nerdctl: Option<String>,
}

impl OciBundle {
    fn names(self) -> Option<ContainerNames> {
        let annotations = self.annotations?;
        let is_sandbox = annotations.kind.as_deref() == Some("sandbox");
        let name = given(annotations.container)
            .or_else(|| is_sandbox.then(|| PAUSE.to_owned()))
            .or_else(|| given(annotations.of_nerdctl))?;
        let pod = pod(annotations.namespace, annotations.pod);
        Some(ContainerNames { name, pod })
    }
}

fn pod(namespace: Option<String>, name: Option<String>) -> Option<PodNames> {
    let (namespace, name) = (given(namespace)?, given(name)?);
    Some(PodNames { namespace, name })
}

fn given(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.is_empty())
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
