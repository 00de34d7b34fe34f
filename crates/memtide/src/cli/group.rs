//! The cgroup that a command is asked about.

use answers::GroupSelector;
use clap::Args;
use clap::builder::NonEmptyStringValueParser;

use super::completed;

/// At most one cgroup, by what people call it.
#[derive(Debug, Args)]
#[group(id = "about", multiple = false)]
pub(crate) struct GroupArgs {
    /// Only about this cgroup and the limits around it: its path, as in /proc/PID/cgroup or below /sys/fs/cgroup
    #[arg(long, value_name = "PATH", add = completed::cgroups())]
    cgroup: Option<String>,

    /// The same for a unit of systemd
    #[arg(long, value_name = "UNIT", add = completed::units())]
    unit: Option<String>,

    /// The same for a container: its name, or the first digits of its id
    #[arg(long, value_name = "NAME", add = completed::containers())]
    container: Option<String>,

    /// The same for a pod: NAMESPACE/NAME, its name, or the first digits of its UID
    #[arg(long, value_name = "NAME", add = completed::pods())]
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
#[group(id = "followed", multiple = false, conflicts_with_all = ["no_cgroups", "from"])]
pub(crate) struct FollowedArgs {
    /// Sample this cgroup, its parents and up to 32 children every second; waits for it to appear. Its path is as in
    /// /proc/PID/cgroup or below /sys/fs/cgroup
    #[arg(long, value_name = "PATH", value_parser = cgroup_below_the_root, add = completed::cgroups())]
    cgroup: Option<String>,

    /// The same for a unit of systemd
    #[arg(long, value_name = "UNIT", value_parser = NonEmptyStringValueParser::new(), add = completed::units())]
    unit: Option<String>,

    /// The same for a container: its name, or the first digits of its id
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new(), add = completed::containers())]
    container: Option<String>,

    /// The same for a pod: NAMESPACE/NAME, its name, or the first digits of its UID
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new(), add = completed::pods())]
    pod: Option<String>,
}

/// Checks the path of a cgroup: the root is read with the host.
fn cgroup_below_the_root(path: &str) -> Result<String, String> {
    let is_odd = |part: &str| matches!(part, "" | "." | "..");
    let below = path.trim_matches('/');
    if below.split('/').any(is_odd) {
        return Err(
            "expected the path of a cgroup below the root, as /system.slice/web.service".to_owned()
        );
    }
    Ok(path.to_owned())
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
    let kinds: [fn(String) -> GroupSelector; 4] =
        [GroupSelector::Cgroup, GroupSelector::Unit, GroupSelector::Container, GroupSelector::Pod];
    let mut typed = kinds.into_iter().zip(typed);
    typed.find_map(|(kind, typed)| Some(kind(typed.clone()?)))
}
