//! All scenarios, a file each.

mod afterwards;
mod backup_job;
mod busy;
mod cache_full;
mod cgroup_dirty;
mod cgroup_high;
mod cgroup_oom;
mod cgroup_starved;
mod container_starved;
mod containers;
pub mod fixes;
mod fork_cow;
mod fragmentation;
mod global_oom;
mod hogs;
mod hugepages_idle;
mod idle;
mod jobs;
mod leak;
mod many_cgroups;
mod neighbours;
mod node_reclaim;
mod overcommit;
mod page_tables;
mod read_cache;
mod recorder;
mod rereader;
mod settings;
mod slab_dentries;
mod swap_cold;
mod swapdemo;
mod thp_bloat;
mod tmpfs;
mod write_plateau;

use crate::LabError;
use crate::scenario::Scenario;

/// All scenarios: the articles' first, then other pathologies, then controls.
pub const ALL: &[&Scenario] = &[
    &hogs::SCENARIO,
    &write_plateau::SCENARIO,
    &read_cache::SCENARIO,
    &backup_job::SCENARIO,
    &swapdemo::SCENARIO,
    &node_reclaim::SCENARIO,
    &thp_bloat::SCENARIO,
    &cgroup_high::SCENARIO,
    &cgroup_oom::SCENARIO,
    &cgroup_starved::SCENARIO,
    &cgroup_dirty::SCENARIO,
    &container_starved::SCENARIO,
    &containers::SCENARIO,
    &global_oom::SCENARIO,
    &fork_cow::SCENARIO,
    &slab_dentries::SCENARIO,
    &tmpfs::SCENARIO,
    &page_tables::SCENARIO,
    &hugepages_idle::SCENARIO,
    &overcommit::SCENARIO,
    &settings::SCENARIO,
    &jobs::SCENARIO,
    &leak::SCENARIO,
    &fragmentation::SCENARIO,
    &idle::SCENARIO,
    &cache_full::SCENARIO,
    &swap_cold::SCENARIO,
    &busy::SCENARIO,
    &neighbours::SCENARIO,
    &recorder::SCENARIO,
    &many_cgroups::SCENARIO,
    &fixes::SCENARIO,
];

/// The scenario of this name.
///
/// # Errors
/// [`LabError::NoScenario`] with the names that there are.
pub fn named(name: &str) -> Result<&'static Scenario, LabError> {
    by_name(name).ok_or_else(|| LabError::NoScenario {
        name: name.to_owned(),
        known: ALL.iter().map(|known| known.name).collect(),
    })
}

/// The scenario of this name, if there is one.
pub fn by_name(name: &str) -> Option<&'static Scenario> {
    ALL.iter().copied().find(|scenario| scenario.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_every_scenario_has_an_arm() {
        for scenario in ALL {
            assert_eq!(ALL.iter().filter(|other| other.name == scenario.name).count(), 1);
            assert!(!scenario.arms.is_empty(), "{}", scenario.name);
            assert!(scenario.shows.ends_with('.'), "{}", scenario.name);
        }
    }

    #[test]
    fn findings_that_arms_name_are_rules() {
        for arm in ALL.iter().flat_map(|scenario| scenario.arms) {
            for id in
                arm.finds.iter().flat_map(|ids| ids.split('|')).chain(arm.may_find.iter().copied())
            {
                assert!(report::model::RuleEntry::by_id(id).is_some(), "{id} is no rule");
            }
        }
    }

    #[test]
    fn findings_that_follow_from_settings_are_rules() {
        for scenario in ALL.iter().filter(|scenario| scenario.expects.is_some()) {
            for seed in 1..=100 {
                let settings = [("seed".to_owned(), f64::from(seed))].into();
                let labels = scenario.expected(&scenario.arms[0], &settings);
                let may_find = labels.may_find.unwrap();
                let ids = labels.must_find.iter().chain(&may_find);
                for id in ids.flat_map(|ids| ids.split('|')) {
                    assert!(report::model::RuleEntry::by_id(id).is_some(), "{id} is no rule");
                }
            }
        }
    }

    #[test]
    fn variants_are_within_the_ranges_of_settings() {
        for scenario in ALL {
            let of_arms = scenario.arms.iter().map(|arm| arm.settings);
            for (name, value) in of_arms.chain(scenario.variants.iter().copied()).flatten() {
                let setting = scenario.settings.iter().find(|known| known.name == *name);
                let (min, max) = setting.unwrap_or_else(|| panic!("{name}")).range;
                assert!((min..=max).contains(value), "{} {name}", scenario.name);
            }
        }
    }
}
