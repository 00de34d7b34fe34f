//! Docker's own name of a container, in its `config.v2.json`.

use serde::Deserialize;
use timeline::cgroup::ContainerNames;

use super::container_runtimes::{PAUSE, given, pod};

/// The configuration of a container below the directory of all.
pub(super) fn config_path(containers: &str, id: &str) -> String {
    format!("{containers}/{id}/config.v2.json")
}

/// `config.v2.json` of Docker.
#[derive(Deserialize)]
pub(super) struct DockerConfig {
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
    pub(super) fn names(self) -> Option<ContainerNames> {
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
