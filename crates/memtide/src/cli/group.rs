//! The cgroup that a command is asked about.

use answers::GroupSelector;
use clap::Args;

/// At most one cgroup, by what people call it.
#[derive(Debug, Args)]
#[group(id = "about", multiple = false)]
pub(crate) struct GroupArgs {
    /// Only about this cgroup and the limits around it: its path, as in /proc/PID/cgroup or below /sys/fs/cgroup
    #[arg(long, value_name = "PATH")]
    cgroup: Option<String>,

    /// The same for a unit of systemd
    #[arg(long, value_name = "UNIT")]
    unit: Option<String>,

    /// The same for a container: its name, or the first digits of its id
    #[arg(long, value_name = "NAME")]
    container: Option<String>,

    /// The same for a pod: NAMESPACE/NAME, its name, or the first digits of its UID
    #[arg(long, value_name = "NAME")]
    pod: Option<String>,
}

impl GroupArgs {
    /// Returns what was typed; `None` if nothing.
    pub(crate) fn selector(&self) -> Option<GroupSelector> {
        selector([&self.cgroup, &self.unit, &self.container, &self.pod])
    }
}

/// At most one cgroup, which a recorder reads with every sample.
#[derive(Debug, Args)]
#[group(id = "followed", multiple = false)]
pub(crate) struct FollowedArgs {
    /// Read this cgroup, those around it and those in it with every sample, however many others there are: its path
    #[arg(long, value_name = "PATH", conflicts_with = "no_cgroups")]
    cgroup: Option<String>,

    /// The same for a unit of systemd that runs now
    #[arg(long, value_name = "UNIT", conflicts_with = "no_cgroups")]
    unit: Option<String>,

    /// The same for a container that runs now
    #[arg(long, value_name = "NAME", conflicts_with = "no_cgroups")]
    container: Option<String>,

    /// The same for a pod that runs now
    #[arg(long, value_name = "NAME", conflicts_with = "no_cgroups")]
    pod: Option<String>,
}

impl FollowedArgs {
    /// Returns what was typed; `None` if nothing.
    pub(crate) fn selector(&self) -> Option<GroupSelector> {
        selector([&self.cgroup, &self.unit, &self.container, &self.pod])
    }

    /// Returns the option as it was typed: `--unit`, `web.service`.
    pub(crate) fn option(&self) -> Option<(&'static str, &str)> {
        let typed = [
            ("--cgroup", &self.cgroup),
            ("--unit", &self.unit),
            ("--container", &self.container),
            ("--pod", &self.pod),
        ];
        let mut typed = typed.into_iter();
        typed.find_map(|(name, value)| Some((name, value.as_deref()?)))
    }
}

/// Returns which of a path, a unit, a container and a pod was typed.
fn selector(typed: [&Option<String>; 4]) -> Option<GroupSelector> {
    let [cgroup, unit, container, pod] = typed.map(Clone::clone);
    let of_pod = || pod.map(GroupSelector::Pod);
    let of_container = || container.map(GroupSelector::Container).or_else(of_pod);
    let of_unit = || unit.map(GroupSelector::Unit).or_else(of_container);
    cgroup.map(GroupSelector::Cgroup).or_else(of_unit)
}
