//! Names of containers in the state files of Docker, containerd, Podman and CRI-O.
//!
//! Those of a container that root runs are in files of root. A container below a user's slice has its names in that user's
//! home, and a file there names no other: users write them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use checked_open::LastLink;
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use timeline::cgroup::{ContainerNames, GroupNames, NAME_LEN_MAX, PodNames};
use timeline::start_of;

use super::containerd::{self, OciBundle};
use super::docker::{self, DockerConfig};
use super::home::HomeDirectory;
use super::wanted::{Wanted, WantedNames};
use crate::file_places::MountPlaces;
use crate::kernel_file::Root;
use crate::search_time::SearchTime;

/// The lists of the storage that Podman and CRI-O share.
const LISTS: [&str; 2] =
    ["overlay-containers/containers.json", "overlay-containers/volatile-containers.json"];
/// containerd has a namespace for each of its users: Kubernetes, Docker, nerdctl.
const NAMESPACES_MAX: usize = 16;
/// The container of a pod that keeps its namespaces, as Kubernetes calls it.
pub(super) const PAUSE: &str = "pause";

/// Where somebody's container runtimes keep their state.
struct StatePlaces<'a> {
    /// The storage of Podman and CRI-O.
    storage: &'a str,
    /// The configurations of Docker's containers.
    docker: &'a str,
    /// The directories of containerd's namespaces.
    namespaces: Vec<String>,
    /// Reads a file of at most so many bytes.
    read: &'a dyn Fn(&str) -> Option<Vec<u8>>,
}

/// A longer file of root is not read.
const OF_ROOT_BYTES_MAX: u64 = 8 << 20;
/// A longer file of a user is not read: while it is parsed it takes up to 25 times as much. A list of a thousand containers takes
/// about 1 MiB.
const OF_USER_BYTES_MAX: u64 = 512 << 10;

impl StatePlaces<'_> {
    fn read(&self, wanted: &Wanted, time: SearchTime, names: &mut GroupNames) {
        for list in LISTS {
            self.list(&format!("{}/{list}", self.storage), wanted, names);
        }
        for (id, groups) in &wanted.by_id {
            if time.is_over() {
                return;
            }
            if groups.iter().all(|group| names.containers.contains_key(group)) {
                continue;
            }
            let config = docker::config_path(self.docker, id);
            let of_docker = || self.json(&config).and_then(DockerConfig::names);
            let of_containerd = || {
                self.namespaces.iter().find_map(|namespace| {
                    self.json(&containerd::bundle_path(namespace, id)).and_then(OciBundle::names)
                })
            };
            if let Some(found) = of_docker().or_else(of_containerd) {
                add(names, groups, found);
            }
        }
    }

    /// The list of containers/storage: Podman's names as given, CRI-O's as `k8s_CONTAINER_POD_NAMESPACE_UID_ATTEMPT`.
    fn list(&self, path: &str, wanted: &Wanted, names: &mut GroupNames) {
        let entries: Vec<StoredEntry> = self.json(path).unwrap_or_default();
        for entry in entries {
            let StoredEntry::Container(entry) = entry else {
                continue;
            };
            let groups = wanted.by_id.get(&entry.id);
            if let Some((groups, name)) = groups.zip(entry.names.into_iter().next()) {
                let found = of_kubernetes(&name).unwrap_or(ContainerNames { name, pod: None });
                add(names, groups, found);
            }
        }
    }

    /// Of a file nothing is kept beside the fields of `T`.
    fn json<T: DeserializeOwned>(&self, path: &str) -> Option<T> {
        serde_json::from_slice(&(self.read)(path)?).ok()
    }
}

/// Reads the names of these containers; of users without root those below their `homes`.
pub(super) fn read(
    root: &Root,
    wanted: &WantedNames,
    homes: &BTreeMap<u32, String>,
    time: SearchTime,
    names: &mut GroupNames,
) {
    if !wanted.of_root.by_id.is_empty() {
        let mut namespaces = root.names(containerd::TASKS);
        namespaces.truncate(NAMESPACES_MAX);
        let places = StatePlaces {
            storage: "/var/lib/containers/storage",
            docker: "/var/lib/docker/containers",
            namespaces,
            read: &|path| of_root(&root.path(path)),
        };
        places.read(&wanted.of_root, time, names);
    }
    if wanted.of_users.is_empty() {
        return;
    }
    let mounts = MountPlaces::own(root);
    for (user, wanted) in &wanted.of_users {
        let home = homes.get(user);
        let home = home.and_then(|path| HomeDirectory::look_up(root, &mounts, path, *user));
        if let Some(home) = home.filter(|_| !time.is_over()) {
            let places = StatePlaces {
                storage: ".local/share/containers/storage",
                docker: ".local/share/docker/containers",
                namespaces: Vec::new(),
                read: &|path| home.read(path, OF_USER_BYTES_MAX),
            };
            places.read(wanted, time, names);
        }
    }
}

fn of_root(path: &Path) -> Option<Vec<u8>> {
    let mut options = File::options();
    let file = checked_open::open_regular(options.read(true), path, LastLink::Followed).ok()?;
    if file.metadata().ok()?.len() > OF_ROOT_BYTES_MAX {
        return None;
    }
    let mut text = Vec::new();
    file.take(OF_ROOT_BYTES_MAX).read_to_end(&mut text).ok()?;
    Some(text)
}

fn add(names: &mut GroupNames, groups: &BTreeSet<String>, found: ContainerNames) {
    let short = |text: String| start_of(&text, NAME_LEN_MAX).to_owned();
    let pod =
        found.pod.map(|pod| PodNames { namespace: short(pod.namespace), name: short(pod.name) });
    let name = short(found.name);
    let found = ContainerNames { name, pod };
    let each = groups.iter().map(|group| (group.clone(), found.clone()));
    names.containers.extend(each);
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

pub(super) fn pod(namespace: Option<String>, name: Option<String>) -> Option<PodNames> {
    let (namespace, name) = (given(namespace)?, given(name)?);
    Some(PodNames { namespace, name })
}

pub(super) fn given(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.is_empty())
}

fn of_kubernetes(name: &str) -> Option<ContainerNames> {
    let mut parts = name.strip_prefix("k8s_")?.split('_');
    let (container, pod, namespace) = (parts.next()?, parts.next()?, parts.next()?);
    Some(ContainerNames {
        name: container.replace("POD", PAUSE),
        pod: Some(PodNames { namespace: namespace.to_owned(), name: pod.to_owned() }),
    })
}
