//! Control groups as rules see them: which ones a source has, what happened in one itself rather than below it, what
//! its limit was, and the commands that change it.

use timeline::cgroup::{self, ancestors, parent};
use timeline::{Counter, Entity, EntitySeries, Gauge, Kind, Signal, Track, facts::CgroupMode};
use units::{Bytes, Count, Limit, PerSecond};

use crate::evidence::Evidence;
use crate::fix::{Fix, whole_mib};
use crate::missing::{Missing, Need};

/// The groups that report `signal`.
///
/// # Errors
/// [`Missing`] where none does.
pub(crate) fn with<'a, K: Kind>(
    cx: &Evidence<'a>,
    signal: Signal<K>,
) -> Result<Vec<&'a EntitySeries>, Missing> {
    let groups: Vec<_> = cx
        .timeline
        .entities(Entity::Cgroup)
        .filter(|group| cx.timeline.last_of(group, signal).is_some())
        .collect();
    if groups.is_empty() {
        let def = signal.def();
        let mut missing = Missing::signal(def, cx.timeline.absent.get(def.file));
        // Without any group at all it is the files that are missing, not a field of a newer kernel.
        if cx.timeline.entities(Entity::Cgroup).next().is_none()
            && matches!(missing.need, Need::Field { .. })
        {
            missing.need = Need::File(def.file);
        }
        return Err(missing);
    }
    Ok(groups)
}

/// Events of the group itself: where its counter includes those of its descendants, theirs are taken off. What
/// happened in a child that is gone by the next sample stays with the parent.
pub(crate) fn own_events(
    cx: &Evidence<'_>,
    group: &EntitySeries,
    signal: Signal<Counter<Count>>,
) -> Option<Track<PerSecond<Count>>> {
    let mut own = cx.timeline.rate_of(group, signal)?;
    let none = own.max().is_none_or(|(peak, _)| peak.get() <= 0.0);
    if none || !cgroup::counts_below(cx.facts) {
        return Some(own);
    }
    for child in cx.timeline.entities(Entity::Cgroup) {
        if parent(&child.key) == Some(group.key.as_str())
            && let Some(theirs) = cx.timeline.rate_of(child, signal)
        {
            own = own.minus(&theirs).or_else(&own);
        }
    }
    Some(own)
}

/// The group and those above it that the source has, from the inside out.
pub(crate) fn upwards<'a>(
    cx: &Evidence<'a>,
    group: &'a EntitySeries,
) -> impl Iterator<Item = &'a EntitySeries> + use<'a> {
    let timeline = cx.timeline;
    ancestors(&group.key).filter_map(move |key| timeline.entity(Entity::Cgroup, key))
}

/// The tightest value that the group's own limit had; `None` where it never had one.
pub(crate) fn limit(
    cx: &Evidence<'_>,
    group: &EntitySeries,
    signal: Signal<Gauge<Limit>>,
) -> Option<Bytes> {
    cx.timeline
        .gauge_of(group, signal)?
        .min()?
        .0
        .limited()
        .filter(|limit| *limit > Bytes::ZERO)
}

/// A limit that an administrator can change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Knob {
    /// The group is slowed down above it.
    High,
    /// The group is killed above it.
    Max,
}

impl Knob {
    const fn property(self) -> &'static str {
        match self {
            Self::High => "MemoryHigh",
            Self::Max => "MemoryMax",
        }
    }

    const fn file(self) -> &'static str {
        match self {
            Self::High => "memory.high",
            Self::Max => "memory.max",
        }
    }
}

/// Commands that set a group's limit to what is named, and back to what it was.
pub(crate) fn set_limit(
    cx: &Evidence<'_>,
    group: &EntitySeries,
    knob: Knob,
    (size, old): (Bytes, Option<Bytes>),
) -> Fix {
    let is_v1 = cx.facts.cgroup_mode == Some(CgroupMode::V1);
    set_limit_of(&group.key, is_v1, knob, (size, old))
}

/// The same for a group that is known by its path. Names that a shell would not take as they are, are in no command: a
/// group's name is untrusted text.
pub(crate) fn set_limit_of(
    path: &str,
    is_v1: bool,
    knob: Knob,
    (size, old): (Bytes, Option<Bytes>),
) -> Fix {
    if let Some(unit) = unit_of(path).filter(|_| !is_v1) {
        return set_property(unit, knob, size, old);
    }
    let path = path.trim_matches('/');
    if !is_plain(path) {
        return Fix::default();
    }
    let file = match is_v1 {
        true => format!("/sys/fs/cgroup/memory/{path}/memory.limit_in_bytes"),
        false => format!("/sys/fs/cgroup/{path}/{}", knob.file()),
    };
    let none = if is_v1 { "-1" } else { "max" };
    let old = old.map_or_else(|| none.to_owned(), |old| old.get().to_string());
    Fix::default()
        .now(format!("echo {}M > {file}", whole_mib(size)))
        .undo(format!("echo {old} > {file}"))
}

/// Commands that set a unit's limit; a scope does not outlive what runs in it, so nothing of it is kept.
pub(crate) fn set_property(unit: &str, knob: Knob, size: Bytes, old: Option<Bytes>) -> Fix {
    let (property, mib) = (knob.property(), whole_mib(size));
    let old = old.map_or_else(|| "infinity".to_owned(), |old| old.get().to_string());
    let keep = match unit.ends_with(".scope") {
        true => String::new(),
        false => format!("systemctl set-property {unit} {property}={mib}M"),
    };
    Fix::default()
        .now(format!(
            "systemctl set-property --runtime {unit} {property}={mib}M"
        ))
        .keep(keep)
        .undo(format!(
            "systemctl set-property --runtime {unit} {property}={old}"
        ))
}

/// A quarter more than a limit that was too small: a beginning, not a measurement.
pub(crate) fn more(size: Bytes) -> Bytes {
    Bytes::new(size.get().saturating_add(size.get() / 4))
}

/// The unit of the host's systemd that a group is, where a shell takes its name as it is; what a user's own systemd made is
/// none.
pub(crate) fn unit_of(path: &str) -> Option<&str> {
    let (above, unit) = path.rsplit_once('/').unwrap_or(("", path));
    let is_unit = [".service", ".scope", ".slice"]
        .iter()
        .any(|kind| unit.len() > kind.len() && unit.ends_with(kind));
    (is_unit && is_plain(unit) && !above.contains("/user@")).then_some(unit)
}

fn is_plain(name: &str) -> bool {
    !name.is_empty()
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "_.@:-/".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_set_through_systemd_where_a_unit_has_the_group_and_never_by_a_name_that_a_shell_would_run()
     {
        let size = (Bytes::from_mib(100), Some(Bytes::from_mib(80)));
        let set = |path: &str| set_limit_of(path, false, Knob::Max, size);
        let unit = set("/system.slice/web.service");
        assert_eq!(
            unit.persistent,
            "systemctl set-property web.service MemoryMax=100M"
        );
        assert!(unit.undo.ends_with("MemoryMax=83886080"), "{}", unit.undo);
        assert_eq!(set("/system.slice/run-7.scope").persistent, "");
        assert_eq!(
            set("/pods/web").now,
            "echo 100M > /sys/fs/cgroup/pods/web/memory.max"
        );
        // What a user's own systemd made, the system's does not know.
        let of_a_user = set("/user.slice/user-7.slice/user@7.service/app.slice/a.service");
        assert!(of_a_user.now.starts_with("echo "), "{}", of_a_user.now);
        assert_eq!(set("/a; rm -rf x.service"), Fix::default());
    }

    #[test]
    fn a_quarter_more_has_no_bound() {
        assert_eq!(more(Bytes::from_mib(100)), Bytes::from_mib(125));
        assert_eq!(more(Bytes::new(u64::MAX)), Bytes::new(u64::MAX));
    }
}
