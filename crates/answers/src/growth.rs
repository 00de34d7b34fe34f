//! Which processes and services grow, how, and when do they reach their limit?

use diagnose::Evidence;
use diagnose::growth::{Growth, GrowthOwner, GrowthOwnerKind, owners};
use report::model::growth::GrowthReport;
use timeline::Source;

/// Returns the growth of every owner of memory in a source, the most urgent first; with a service, of that one alone and
/// of its processes. `None`: the source has no such service.
pub fn growth(source: &Source, service: Option<&str>) -> Option<GrowthReport> {
    let cx = Evidence::new(&source.timeline, &source.facts);
    let mut owners = owners(&cx);
    if let Some(name) = service {
        owners.retain(|owner| is_named(owner, name));
        let is_unit = |owner: &GrowthOwner<'_>| owner.kind != GrowthOwnerKind::Process;
        // The unit says the same as the sum of its processes.
        if owners.iter().any(is_unit) {
            owners.retain(is_unit);
        }
        if owners.is_empty() {
            return None;
        }
    }
    let judged = owners.iter().map(|owner| (owner, Growth::of(&owner.series)));
    Some(GrowthReport::new(source, &judged.collect::<Vec<_>>()))
}

/// Returns whether an owner has this name: its own, its unit's with or without an ending, or its whole cgroup.
fn is_named(owner: &GrowthOwner<'_>, name: &str) -> bool {
    let unit = |one: &str| {
        let part = one.rsplit('/').next().unwrap_or_default();
        [one, part].contains(&name) || part.strip_suffix(".service") == Some(name)
    };
    unit(owner.name()) || owner.entity.key == name || unit(&owner.entity.group)
}
