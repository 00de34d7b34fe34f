//! A container's name in the bundle of its containerd task: that of Kubernetes, or of nerdctl.

use serde::Deserialize;
use timeline::cgroup::ContainerNames;

use super::container_runtimes::{PAUSE, given, pod};

/// The bundles of tasks, by namespace and id.
pub(super) const TASKS: &str = "/run/containerd/io.containerd.runtime.v2.task";

/// The configuration in the bundle of a task.
pub(super) fn bundle_path(namespace: &str, id: &str) -> String {
    format!("{TASKS}/{namespace}/{id}/config.json")
}

/// `config.json` of an OCI bundle.
#[derive(Deserialize)]
pub(super) struct OciBundle {
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
    pub(super) fn names(self) -> Option<ContainerNames> {
        let annotations = self.annotations?;
        let is_sandbox = annotations.kind.as_deref() == Some("sandbox");
        let name = given(annotations.container)
            .or_else(|| is_sandbox.then(|| PAUSE.to_owned()))
            .or_else(|| given(annotations.of_nerdctl))?;
        let pod = pod(annotations.namespace, annotations.pod);
        Some(ContainerNames { name, pod })
    }
}
