//! Cgroups: those near their limit as lines with the limit; if there is none, the memory of each as a stack.

use std::collections::HashSet;

use diagnose::Evidence;
use timeline::signals::{
    CGROUP_ANON, CGROUP_CURRENT, CGROUP_EVENTS_HIGH, CGROUP_EVENTS_MAX, CGROUP_EVENTS_OOM_KILL,
    CGROUP_FILE, CGROUP_HIGH, CGROUP_MAX,
};
use timeline::{Entity, EntitySeries, Gauge, Signal, cgroup};
use units::{Limit, Quantity};

use super::builder::{ChartBuilder, curve, level, signals};
use super::sums::EntitySums;
use crate::{Chart, ChartKind, ChartSeries, ChartUnit, Colour, Curve};

/// At most 8 cgroups are drawn.
const CGROUPS_MAX: usize = 8;
/// At most 3 limits are drawn; more lines could not be distinguished.
const LIMITS_MAX: usize = 3;
/// A cgroup that used this share of its limit is drawn with the limit; rules require 95 % and more.
const NEAR_LIMIT: f64 = 0.8;

/// Returns the chart of cgroups; `None` if no cgroup's memory is known.
pub(super) fn chart(cx: &Evidence<'_>) -> Option<Chart> {
    let known: Vec<&EntitySeries> = cx
        .timeline
        .entities(Entity::Cgroup)
        .filter(|group| cx.timeline.last_of(group, CGROUP_CURRENT).is_some())
        .collect();
    if known.is_empty() {
        return None;
    }
    let limited = near_a_limit(cx, &known);
    if limited.is_empty() { stack(cx, &known) } else { Some(lines(cx, &limited)) }
}

/// Chart of the memory of cgroups without children. A cgroup's figure includes its descendants, so only these can be
/// added up.
fn stack(cx: &Evidence<'_>, known: &[&EntitySeries]) -> Option<Chart> {
    let above: HashSet<&str> =
        known.iter().flat_map(|group| cgroup::ancestors(&group.key).skip(1)).collect();
    let leaves = known.iter().map(|group| group.key.as_str()).filter(|key| !above.contains(key));
    let sums = EntitySums {
        entity: Entity::Cgroup,
        signals: vec![(CGROUP_CURRENT.id(), 1)],
        name: |group| &group.key,
        only: Some(leaves.map(str::to_owned).collect()),
        apart: HashSet::new(),
    };
    let all = sums.largest(cx);
    let shown = all.len().min(CGROUPS_MAX);
    let names: Vec<String> = all[..shown].iter().map(|sum| sum.name.clone()).collect();
    let others = all.len() - shown;
    let rest = (others > 0).then(|| format!("others ({others})"));
    let labels = names.iter().cloned().chain(rest).enumerate();
    let series: Vec<_> = labels.map(|(n, label)| held(n, label)).collect();
    let count = series.len();
    let chart = builder(
        "Memory charged to groups, page cache included. A group that has others below it is left \
         out: it is their sum.",
        ChartKind::Stack,
    )
    .together(
        series,
        Box::new(move |part| {
            let mut curves = sums.curves(part, &names);
            curves.truncate(count);
            curves
        }),
    );
    (count > 0).then_some(chart)
}

/// Chart of cgroups and their limits.
fn lines(cx: &Evidence<'_>, limited: &[Limited]) -> Chart {
    let builder = builder(
        "Memory charged to the groups that came near their limit, page cache included, and the \
         nearest limits.",
        ChartKind::Lines,
    );
    let shown = limited.iter().take(CGROUPS_MAX).enumerate();
    let builder = shown.fold(builder, |builder, (n, group)| {
        let series = held(n, group.key.clone());
        let key = group.key.clone();
        builder.line(cx, series, move |cx| {
            let group = cx.timeline.entity(Entity::Cgroup, &key);
            let track = group.map(|group| cx.gauge_of(group, CGROUP_CURRENT));
            track.unwrap_or_else(|| Err(lacking())).map(|track| curve(&track))
        })
    });
    let near = limited.iter().take(LIMITS_MAX).enumerate();
    near.fold(builder, |builder, (n, group)| {
        let label = format!("{} of {}", group.knob, group.key);
        let signals = vec![group.limit.id()];
        let series = ChartSeries {
            group: Some(group.key.clone()),
            ..level(format!("limit-{n}"), label, Colour::Limit, signals)
        };
        let (key, limit) = (group.key.clone(), group.limit);
        builder.moving_limit(cx, series, move |cx| {
            let group = cx.timeline.entity(Entity::Cgroup, &key);
            group.map_or_else(|| Err(lacking()), |group| Ok(moving(cx, group, limit)))
        })
    })
    .done()
}

/// Returns the series of a cgroup's memory.
fn held(n: usize, name: String) -> ChartSeries {
    let signals = signals![CGROUP_CURRENT];
    let series = ChartSeries {
        group: Some(name.clone()),
        ..level(format!("group-{n}"), name, Colour::Nth(n), signals)
    };
    series.related(signals![CGROUP_ANON, CGROUP_FILE])
}

fn builder(help: &'static str, kind: ChartKind) -> ChartBuilder {
    ChartBuilder::new("cgroups", "Cgroups", help, kind, ChartUnit::Bytes).of_entities()
}

pub(super) fn lacking() -> diagnose::Missing {
    let names = vec![CGROUP_CURRENT.def().name];
    diagnose::Missing::because(names, diagnose::Need::File(CGROUP_CURRENT.def().file))
}

/// A cgroup and the limit that it came near to.
struct Limited {
    key: String,
    limit: Signal<Gauge<Limit>>,
    knob: &'static str,
    /// The largest share of the limit that was used.
    used: f64,
}

/// Returns the cgroups that came near a limit of their own or were throttled by it, the nearest first.
fn near_a_limit(cx: &Evidence<'_>, known: &[&EntitySeries]) -> Vec<Limited> {
    let knobs = [(CGROUP_HIGH, "memory.high"), (CGROUP_MAX, "memory.max")];
    let nearest = |group: &EntitySeries| {
        let of = |(limit, knob)| {
            let used = used(cx, group, limit)?;
            Some(Limited { key: group.key.clone(), limit, knob, used })
        };
        knobs
            .into_iter()
            .filter_map(of)
            .max_by(|a, b| a.used.total_cmp(&b.used))
            .filter(|limited| limited.used >= NEAR_LIMIT || was_held_back(cx, group))
    };
    let mut limited: Vec<_> = known.iter().filter_map(|group| nearest(group)).collect();
    limited.sort_by(|a, b| b.used.total_cmp(&a.used).then_with(|| a.key.cmp(&b.key)));
    limited
}

/// Returns the largest share of a limit that was ever used; `None` if it limits nothing.
fn used(cx: &Evidence<'_>, group: &EntitySeries, limit: Signal<Gauge<Limit>>) -> Option<f64> {
    let limits = moving(cx, group, limit);
    let held = cx.timeline.gauge_of(group, CGROUP_CURRENT)?;
    let ram = cx.ram().ok().map(Quantity::as_f64);
    let both = held.values().iter().zip(&limits);
    let shares = both.filter_map(|(held, limit)| {
        let limit = limit.filter(|limit| *limit > 0.0 && ram.is_none_or(|ram| *limit < ram))?;
        Some((*held)? / limit)
    });
    shares.reduce(f64::max)
}

/// Returns a limit over time; `None` where it is unlimited.
pub(super) fn moving(
    cx: &Evidence<'_>,
    group: &EntitySeries,
    limit: Signal<Gauge<Limit>>,
) -> Curve {
    let track = cx.timeline.gauge_of(group, limit);
    let values = track.map_or_else(Vec::new, |track| track.values().to_vec());
    let finite = |value: Option<f64>| value.filter(|v| v.is_finite());
    values.into_iter().map(finite).collect()
}

/// Whether it hit its limit between samples, whatever its size at the samples.
fn was_held_back(cx: &Evidence<'_>, group: &EntitySeries) -> bool {
    [CGROUP_EVENTS_HIGH, CGROUP_EVENTS_MAX, CGROUP_EVENTS_OOM_KILL]
        .into_iter()
        .filter_map(|signal| cx.timeline.rate_of(group, signal)?.max())
        .any(|(peak, _)| peak.get() > 0.0)
}
