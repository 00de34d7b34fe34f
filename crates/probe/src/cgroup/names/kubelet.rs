//! Names of pods and containers in the directories of the kubelet: names of Kubernetes have no `_`, which separates them.

use timeline::cgroup::{ContainerNames, GroupNames, PodNames};

use super::wanted::WantedNames;
use crate::kernel_file::Root;

/// A directory for each pod, `NAMESPACE_NAME_UID`.
const LOGS_OF_PODS: &str = "/var/log/pods";
/// A link for each container, `POD_NAMESPACE_CONTAINER-ID.log`.
const LOGS_OF_CONTAINERS: &str = "/var/log/containers";

/// Reads the names of pods and of containers on this node.
pub(super) fn read(root: &Root, wanted: &WantedNames, names: &mut GroupNames) {
    if wanted.pods.by_id.is_empty() {
        return;
    }
    for entry in root.names(LOGS_OF_PODS) {
        let named = pod(&entry).and_then(|(uid, pod)| Some((wanted.pods.by_id.get(uid)?, pod)));
        if let Some((groups, pod)) = named {
            let each = groups.iter().map(|group| (group.clone(), pod.clone()));
            names.pods.extend(each);
        }
    }
    for entry in root.names(LOGS_OF_CONTAINERS) {
        let named =
            container(&entry).and_then(|(id, named)| Some((wanted.of_root.by_id.get(id)?, named)));
        if let Some((groups, named)) = named {
            let each = groups.iter().map(|group| (group.clone(), named.clone()));
            names.containers.extend(each);
        }
    }
}

fn pod(entry: &str) -> Option<(&str, PodNames)> {
    let mut parts = entry.splitn(3, '_');
    let (namespace, name, uid) = (parts.next()?, parts.next()?, parts.next()?);
    let pod = PodNames { namespace: namespace.to_owned(), name: name.to_owned() };
    Some((uid, pod))
}

fn container(entry: &str) -> Option<(&str, ContainerNames)> {
    let (named, id) = entry.strip_suffix(".log")?.rsplit_once('-')?;
    let mut parts = named.splitn(3, '_');
    let (pod, namespace, name) = (parts.next()?, parts.next()?, parts.next()?);
    let names = ContainerNames {
        name: name.to_owned(),
        pod: Some(PodNames { namespace: namespace.to_owned(), name: pod.to_owned() }),
    };
    Some((id, names))
}
