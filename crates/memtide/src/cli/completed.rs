//! Values that a shell completes: names of the catalogues and of what runs on this host.
//!
//! The shell asks memtide itself at each press of Tab (`memtide completions`), so that cgroups and containers are those of now.
//! Cost: a listing of the cgroups of this host; 10 ms for a thousand.

use std::collections::BTreeSet;
use std::ffi::OsStr;

use answers::GroupSelector;
use clap_complete::engine::{ArgValueCandidates, ArgValueCompleter, CompletionCandidate};
use lab::{Scenario, scenarios};
use probe::Root;

/// Ids of rules.
pub(super) fn rules() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let all = diagnose::rules::ALL.iter();
        all.map(|rule| CompletionCandidate::new(rule.id)).collect()
    })
}

/// Names of signals; of several that are separated by commas, the last.
pub(super) fn signals() -> ArgValueCompleter {
    ArgValueCompleter::new(|typed: &OsStr| {
        let Some(typed) = typed.to_str() else {
            return Vec::new();
        };
        let (before, last) = typed.split_at(typed.rfind(',').map_or(0, |comma| comma + 1));
        let names = timeline::signals::ALL.iter().map(|signal| signal.name);
        let begun = names.filter(|name| name.starts_with(last));
        begun.map(|name| CompletionCandidate::new(format!("{before}{name}"))).collect()
    })
}

/// Scenarios of the lab, each with what it shows.
pub(super) fn lab_scenarios() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let candidate = |scenario: &&Scenario| {
            CompletionCandidate::new(scenario.name).help(Some(scenario.shows.into()))
        };
        scenarios::ALL.iter().map(candidate).collect()
    })
}

/// The arms of the scenarios that the command line names; of all where it names none.
pub(super) fn lab_arms() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let arms = named_scenarios().into_iter().flat_map(|scenario| scenario.arms);
        let names: BTreeSet<&str> = arms.map(|arm| arm.name).collect();
        names.into_iter().map(CompletionCandidate::new).collect()
    })
}

/// The settings of the same, as `KEY=`.
pub(super) fn lab_settings() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let settings = named_scenarios().into_iter().flat_map(|scenario| scenario.settings);
        let candidate = |setting: &lab::ScenarioSetting| {
            CompletionCandidate::new(format!("{}=", setting.name)).help(Some(setting.about.into()))
        };
        settings.map(candidate).collect()
    })
}

fn named_scenarios() -> Vec<&'static Scenario> {
    let words: Vec<String> = std::env::args().collect();
    let is_named = |scenario: &&&Scenario| words.iter().any(|word| word == scenario.name);
    let named: Vec<&Scenario> = scenarios::ALL.iter().filter(is_named).copied().collect();
    if named.is_empty() { scenarios::ALL.to_vec() } else { named }
}

/// Versions of kernels that the lab can boot. Files are completed by the shell where none begins so.
pub(super) fn lab_kernels() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let kernels = lab::Kernel::all().into_iter();
        kernels.map(|kernel| CompletionCandidate::new(kernel.version)).collect()
    })
}

/// Paths of this host's cgroups.
pub(super) fn cgroups() -> ArgValueCandidates {
    ArgValueCandidates::new(|| called(&GroupSelector::Cgroup(String::new())))
}

/// Units of this host that have a cgroup.
pub(super) fn units() -> ArgValueCandidates {
    ArgValueCandidates::new(|| called(&GroupSelector::Unit(String::new())))
}

/// Containers of this host.
pub(super) fn containers() -> ArgValueCandidates {
    ArgValueCandidates::new(|| called(&GroupSelector::Container(String::new())))
}

/// Pods of this host.
pub(super) fn pods() -> ArgValueCandidates {
    ArgValueCandidates::new(|| called(&GroupSelector::Pod(String::new())))
}

fn called(kind: &GroupSelector) -> Vec<CompletionCandidate> {
    let names = answers::group_names_of_this_host(&Root::default(), kind);
    names.into_iter().map(CompletionCandidate::new).collect()
}
