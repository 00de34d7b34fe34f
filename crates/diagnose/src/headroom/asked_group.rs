//! The cgroup that a question is about.

use timeline::cgroup::ancestors;

use super::chain::{self, GroupShort};
use super::{Short, Unknown};
use crate::evidence::Evidence;

/// The cgroup that was asked about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskedGroup {
    /// Its path.
    pub path: String,
    /// What a sentence calls it.
    pub called: String,
    /// When it, or a cgroup around it, was short of memory at its limit.
    pub short: Vec<Short>,
    /// When a cgroup within it was, at a limit of its own.
    pub short_within: Vec<Short>,
    /// What goes on at the end, where it fills its limit, or that of a cgroup around it, without anything added.
    pub fills: Option<String>,
    /// Whether a limit around it is below the host's RAM, or may be.
    pub is_limited: bool,
}

impl AskedGroup {
    pub(super) fn new(
        cx: &Evidence<'_>,
        path: &str,
        shortages: &[GroupShort],
        is_limited: bool,
    ) -> Self {
        let is_around = |short: &&GroupShort| ancestors(path).any(|above| above == short.path);
        let felt = shortages.iter().filter(|short| !short.is_harmless);
        let (around, within): (Vec<_>, Vec<_>) = felt.partition(is_around);
        let times = |all: Vec<&GroupShort>| all.iter().flat_map(|one| one.times.clone()).collect();
        Self {
            path: path.to_owned(),
            called: cx.facts.names.called(path).into_owned(),
            short: times(around),
            short_within: times(within),
            fills: chain::filling(cx, path),
            is_limited,
        }
    }

    /// Whether it was short already, or is about to be: then nothing more fits.
    pub fn takes_no_more(&self) -> bool {
        !self.short.is_empty() || self.fills.is_some()
    }

    pub(super) fn no_sample(&self) -> Unknown {
        Unknown {
            what: "cgroup",
            text: format!("the source has no figures of {} and its limits", self.called),
        }
    }
}
