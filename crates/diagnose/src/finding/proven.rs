//! Fixes that the lab has proven: carried out in a virtual machine, they ended the finding, and nothing new was found.
//!
//! `memtide lab cure` shows it; docs/lab.md has all that it showed. Limits are not here: which size ends a finding differs by
//! load, and one that did proves nothing of another.

use super::{Fix, FixChange};

/// A fix that was carried out.
struct ProvenFix {
    rule: &'static str,
    /// What it changes: the setting, or `command`.
    change: &'static str,
    /// Kernels on which it ended the finding.
    kernels: &'static [&'static str],
}

/// November 2026, under emulation.
const ALL: &[ProvenFix] = &[
    proven("dirty-limit-too-big", "vm.dirty_background_bytes", &["6.1", "7.2"]),
    proven("hugetlb-unused", "vm.nr_hugepages", &["6.1", "7.2"]),
    proven("ksm-cost", "ksm.run", &["6.1", "7.2"]),
    proven("min-free-too-large", "vm.min_free_kbytes", &["6.1", "7.2"]),
    proven("no-swap-risk", "command", &["6.1", "7.2"]),
    proven("node-reclaim-on", "vm.zone_reclaim_mode", &["6.1", "7.2"]),
    proven("overcommit-limit", "vm.overcommit_memory", &["6.1", "7.2"]),
    proven("swappiness-misfit", "vm.swappiness", &["6.1"]),
];

const fn proven(
    rule: &'static str,
    change: &'static str,
    kernels: &'static [&'static str],
) -> ProvenFix {
    ProvenFix { rule, change, kernels }
}

impl Fix {
    /// The kernels on which this fix of a rule ended its finding; none where it is words, or was not tried.
    #[must_use]
    pub fn proven_on(&self, rule: &str) -> &'static [&'static str] {
        let changes = || self.changes.iter().map(FixChange::name);
        let is_it = |one: &&ProvenFix| one.rule == rule && changes().any(|name| name == one.change);
        ALL.iter().find(is_it).map_or(&[], |one| one.kernels)
    }
}

#[cfg(test)]
mod tests {
    use super::ALL;
    use crate::rules;

    #[test]
    fn proven_fixes_are_of_rules() {
        for one in ALL {
            assert!(rules::by_id(one.rule).is_some(), "{}", one.rule);
            assert!(!one.kernels.is_empty(), "{}", one.rule);
        }
    }
}
