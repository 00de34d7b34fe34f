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
        let cgroup = self.cgroup.clone().map(GroupSelector::Cgroup);
        let unit = self.unit.clone().map(GroupSelector::Unit);
        let container = self.container.clone().map(GroupSelector::Container);
        let pod = self.pod.clone().map(GroupSelector::Pod);
        cgroup.or(unit).or(container).or(pod)
    }
}
