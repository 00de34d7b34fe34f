//! What can be set in a scenario.

use std::collections::BTreeMap;

/// Numbers by the names of settings.
pub type ScenarioSettings = BTreeMap<String, f64>;

/// A number that the user or an arm can set.
#[derive(Debug)]
pub struct ScenarioSetting {
    /// Its name: `swappiness`.
    pub name: &'static str,
    /// What holds where nobody sets it.
    pub default: f64,
    /// The least and the most that is sensible.
    pub range: (f64, f64),
    /// What it is.
    pub about: &'static str,
}

impl ScenarioSetting {
    /// The memory controller of v1 in some arms of a scenario.
    pub(crate) const CGROUP_V1: Self = Self {
        name: "cgroup_v1",
        default: 0.0,
        range: (0.0, 1.0),
        about: "whether the machine has the memory controller of cgroup v1; else that of v2",
    };
}
