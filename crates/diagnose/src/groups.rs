//! Control groups as rules see them: which ones a source has, what happened in one itself rather than below it, what
//! its limit was, and the commands that change it.

use timeline::cgroup::{self, ancestors, parent};
use timeline::{Counter, Entity, EntitySeries, Gauge, Kind, Signal, Track, facts::CgroupMode};
use units::{Bytes, Count, Limit, PerSecond};

use crate::evidence::Evidence;
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

/// Commands that set a group's limit: for now, and for good.
pub(crate) fn set_limit(cx: &Evidence<'_>, group: &EntitySeries, knob: Knob) -> (String, String) {
    let is_v1 = cx.facts.cgroup_mode == Some(CgroupMode::V1);
    set_limit_of(&group.key, is_v1, knob)
}

/// The same for a group that is known by its path. Names that a shell would not take as they are, are left for the
/// reader to fill in: a group's name is untrusted text.
pub(crate) fn set_limit_of(path: &str, is_v1: bool, knob: Knob) -> (String, String) {
    let property = knob.property();
    let plain = |name: &str| {
        !name.is_empty()
            && name
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "_.@:-/".contains(c))
    };
    let unit = path.rsplit('/').next().unwrap_or_default();
    let is_unit = [".service", ".scope", ".slice"]
        .iter()
        .any(|kind| unit.ends_with(kind));
    if is_unit && plain(unit) {
        return (
            format!("systemctl set-property --runtime {unit} {property}=SIZE"),
            format!("systemctl set-property {unit} {property}=SIZE"),
        );
    }
    let for_good = format!("what made the group (container, pod or unit file): {property}=SIZE");
    if !plain(path) {
        return (String::new(), for_good);
    }
    let path = path.trim_matches('/');
    let now = if is_v1 {
        format!("echo SIZE > /sys/fs/cgroup/memory/{path}/memory.limit_in_bytes")
    } else {
        format!("echo SIZE > /sys/fs/cgroup/{path}/{}", knob.file())
    };
    (now, for_good)
}
