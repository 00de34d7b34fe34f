//! Which processes and services grow, how, and when do they reach their limit?

use diagnose::Evidence;
use diagnose::growth::{
    Growth, GrowthOwner, GrowthOwnerKind, is_listed, judge, owners, owners_such,
};
use report::model::growth::GrowthReport;
use timeline::{EntitySeries, Source};

/// Returns the growth of every owner of memory in a source, the most urgent first; of those that ended, of the ones that
/// grew until then. With a service, a process or a PID, of that one alone, whatever became of it, and of its processes.
/// `None`: the source has no such one.
pub fn growth(source: &Source, service: Option<&str>) -> Option<GrowthReport> {
    // Nothing grows between readings in an unknown order.
    let last = source.timeline.segments().pop();
    let cx = Evidence::new(last.as_ref().unwrap_or(&source.timeline), &source.facts);
    let mut owners = match service {
        Some(name) => owners_such(&cx, |kind, entity| is_named(kind, entity, name)),
        None => owners(&cx),
    };
    let is_unit = |owner: &GrowthOwner<'_>| owner.kind != GrowthOwnerKind::Process;
    // The unit says the same as the sum of its processes.
    if service.is_some() && owners.iter().any(is_unit) {
        owners.retain(is_unit);
    }
    if service.is_some() && owners.is_empty() {
        return None;
    }
    let judged = owners.iter().map(|owner| (owner, judge(&cx, owner)));
    let is_meant = |(owner, growth): &(&GrowthOwner<'_>, Growth)| {
        service.is_some() || is_listed(owner, growth)
    };
    Some(GrowthReport::new(source, &judged.filter(is_meant).collect::<Vec<_>>()))
}

/// Returns whether an owner has this name: its own, its PID, its unit's with or without an ending, or its whole cgroup.
fn is_named(kind: GrowthOwnerKind, entity: &EntitySeries, name: &str) -> bool {
    let unit = |one: &str| {
        let part = one.rsplit('/').next().unwrap_or_default();
        [one, part].contains(&name) || part.strip_suffix(".service") == Some(name)
    };
    match kind {
        GrowthOwnerKind::Process => {
            unit(&entity.label) || entity.pid() == name || unit(&entity.group)
        }
        GrowthOwnerKind::Cgroup => unit(&entity.key),
        GrowthOwnerKind::Service => unit(&entity.label) || unit(&entity.key),
    }
}
