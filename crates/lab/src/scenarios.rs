//! All scenarios, a file each.

mod cgroup_oom;
mod idle;
mod node_reclaim;
mod read_cache;
mod swapdemo;
mod write_plateau;

use crate::scenario::Scenario;

/// All scenarios.
pub const ALL: &[&Scenario] = &[
    &write_plateau::SCENARIO,
    &read_cache::SCENARIO,
    &swapdemo::SCENARIO,
    &node_reclaim::SCENARIO,
    &cgroup_oom::SCENARIO,
    &idle::SCENARIO,
];

/// The scenario of this name.
pub fn by_name(name: &str) -> Option<&'static Scenario> {
    ALL.iter().copied().find(|scenario| scenario.name == name)
}

/// Modules of all scenarios; a kernel that has one built in needs no file of it.
pub(crate) const MODULES: &[&str] = &["virtio_pci", "virtio_blk", "virtio_console", "ext4"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_every_scenario_has_an_arm() {
        for scenario in ALL {
            assert_eq!(
                ALL.iter()
                    .filter(|other| other.name == scenario.name)
                    .count(),
                1
            );
            assert!(!scenario.arms.is_empty(), "{}", scenario.name);
            assert!(scenario.shows.ends_with('.'), "{}", scenario.name);
        }
    }

    #[test]
    fn findings_that_arms_name_are_rules() {
        for arm in ALL.iter().flat_map(|scenario| scenario.arms) {
            for id in arm
                .finds
                .iter()
                .flat_map(|ids| ids.split('|'))
                .chain(arm.may_find.iter().copied())
            {
                assert!(
                    report::model::RuleEntry::by_id(id).is_some(),
                    "{id} is no rule"
                );
            }
        }
    }
}
