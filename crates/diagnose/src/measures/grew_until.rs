//! What grew in a line until the kernel killed in a cgroup: a process of it, else the anonymous memory of all.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use timeline::cgroup::unique_name;
use timeline::signals::{CGROUP_MAX, PROC_RSS_ANON};
use timeline::{Entity, EntitySeries, Track};
use units::{Bytes, BytesPerSecond, Quantity as _, Ratio, Span};

use crate::evidence::Evidence;
use crate::measures::readings::{held_by_cgroup, held_by_process};
use crate::measures::rise::Rise;
use crate::measures::steady_growth::SteadyGrowth;
use crate::oom;
use crate::remedy;
use crate::trigger::{Occurrence, Reading};

/// A program that loads its data takes memory in a line too, for seconds: an engineering choice.
pub(crate) const LASTS_MIN: Span = Span::from_secs(30);
/// What grew by less than this part of the limit did not fill it: an engineering choice.
pub(crate) const OF_LIMIT: Ratio = Ratio::from_percent(10.0);
/// Who dies gives its memory back: the first reading below this part of those before it is one after the kill.
const AFTER_KILL: f64 = 0.5;
/// So many readings back it is compared with.
const BEFORE_KILL: usize = 5;

/// A process makes up a growth from this part of it on: an engineering choice.
const MAKES_UP: f64 = 0.8;
/// Its last reading is of the last half of that.
const LAST_HALF: f64 = 0.5;

/// Memory that grew in a line until a kill.
#[derive(Debug)]
pub(crate) struct GrewUntil<'a> {
    /// The process that grew; `None` where no single process did, but all of the cgroup together.
    pub(crate) process: Option<&'a EntitySeries>,
    pub(crate) growth: SteadyGrowth,
    /// Whether the figures are those of the cgroup.
    pub(crate) is_of_group: bool,
}

impl<'a> GrewUntil<'a> {
    /// Returns what grew in the cgroup at its limit until the first kill of an occurrence; `None` if nothing did.
    pub(crate) fn in_group(cx: &Evidence<'a>, kill: &Occurrence) -> Option<Self> {
        let group = cx.timeline.entity(Entity::Cgroup, kill.key.as_deref()?)?;
        let limit = cx.timeline.latest_of(group, CGROUP_MAX, kill.first)?.limited()?;
        // What a process had after the kill is of one that lives on; of the victim there is no reading.
        let end = first_kill_ends(cx, kill);
        let filled = |growth: &SteadyGrowth| {
            let last = cx.time(growth.last).unwrap_or_default();
            let stood = cx.time(kill.first).unwrap_or_default().saturating_sub(last);
            growth.lasted() >= LASTS_MIN
                && growth.to.saturating_sub(growth.from) >= limit.share(OF_LIMIT)
                && stood <= growth.lasted().times(Rise::STANDS)
        };
        let of = |entity: &EntitySeries, size: Reading<Bytes>, end: usize| {
            let size = size.track_of(cx, entity).ok()?;
            SteadyGrowth::until_its_end(cx, &until_kill(cx, &size, end)).filter(&filled)
        };
        let members = Members::of(cx, group, kill);
        let grown = members
            .all(cx)
            .filter(|process| may_grow(cx, process))
            .filter_map(|one| {
                Some(Self {
                    process: Some(one),
                    growth: of(one, held_by_process(), end)?,
                    is_of_group: false,
                })
            })
            .max_by_key(|one| one.growth.to.saturating_sub(one.growth.from));
        grown.or_else(|| {
            let growth = of(group, held_by_cgroup(), kill.first)?;
            let all = held_by_cgroup().track_of(cx, group).ok()?;
            let process = members.all(cx).find(|one| makes_up(cx, one, &all, &growth));
            Some(Self { process, growth, is_of_group: true })
        })
    }

    /// The sample from which it grew: how far back a story must see.
    pub(crate) fn begins(cx: &Evidence<'_>, kill: &Occurrence) -> Option<usize> {
        Some(GrewUntil::in_group(cx, kill)?.growth.first)
    }

    /// `python3 (29508)`; `the programs of the cgroup` where none of them grew alone.
    pub(crate) fn who(&self) -> String {
        match self.process {
            Some(process) => match process.pid() {
                "0" | "" => process.label.clone(),
                pid => format!("{} ({pid})", process.label),
            },
            None => "the programs of the cgroup".to_owned(),
        }
    }

    /// The mean rate.
    pub(crate) fn rate(&self) -> BytesPerSecond {
        self.growth.rate().unwrap_or(BytesPerSecond::new(0.0))
    }

    /// How long this much more memory lasts at the rate.
    pub(crate) fn lasts(&self, more: Bytes) -> Span {
        remedy::lasts(more, self.rate())
    }

    /// `from 27 MiB to 400 MiB in 195 s, 2 MiB/s`.
    pub(crate) fn course(&self) -> String {
        let SteadyGrowth { from, to, .. } = &self.growth;
        format!("from {from} to {to} in {}, {}", self.growth.lasted(), self.rate())
    }
}

/// Returns the least and the last size of a cgroup before the first kill of an occurrence, each with its sample; of equal
/// least ones the latest.
pub(crate) fn climb(
    cx: &Evidence<'_>,
    size: &Track<Bytes>,
    kill: &Occurrence,
) -> Option<((usize, Bytes), (usize, Bytes))> {
    let size = until_kill(cx, size, kill.first);
    let readings: Vec<(usize, Bytes)> = (0..size.values().len())
        .filter(|at| cx.timeline.was_read(Entity::Cgroup, *at))
        .filter_map(|at| Some((at, size.at(at)?)))
        .collect();
    let (last, earlier) = readings.split_last()?;
    let low = earlier.iter().min_by_key(|(at, bytes)| (*bytes, Reverse(*at)))?;
    Some((*low, *last))
}

/// The processes of a cgroup and of those below it.
struct Members<'a> {
    /// What its processes are listed under.
    names: BTreeSet<&'a str>,
    /// The victims that kernel reports name: their cgroup need not be known.
    killed: BTreeSet<u32>,
}

impl<'a> Members<'a> {
    fn of(cx: &Evidence<'a>, group: &'a EntitySeries, kill: &Occurrence) -> Self {
        let below = cx.timeline.cgroups_below(&group.key);
        let keys = std::iter::once(group).chain(below).map(|group| group.key.as_str());
        let names = keys.flat_map(|key| [key, unique_name(key)]).collect();
        let of_kill = |one: &oom::Explained<'_>| {
            (kill.first..=kill.last).contains(&one.index) && one.group() == Some(&group.key)
        };
        let reports = oom::reports(cx).into_iter().filter(of_kill);
        let killed = reports.flat_map(|one| one.report.killed.iter().map(|killed| killed.pid));
        Self { names, killed: killed.collect() }
    }

    fn all(&self, cx: &Evidence<'a>) -> impl Iterator<Item = &'a EntitySeries> {
        cx.timeline.entities(Entity::Process).filter(|process| {
            self.names.contains(process.group.as_str())
                || process.pid().parse().is_ok_and(|pid| self.killed.contains(&pid))
        })
    }
}

/// Whether one process makes up the growth of its cgroup: a recorder reads processes more rarely than cgroups, and too few
/// readings show no line of their own.
fn makes_up(
    cx: &Evidence<'_>,
    process: &EntitySeries,
    all: &Track<Bytes>,
    growth: &SteadyGrowth,
) -> bool {
    let readings = cx.timeline.readings_of(process, PROC_RSS_ANON);
    let within = readings.filter(|(at, _)| (growth.first..=growth.last).contains(at));
    let Some((at, size)) = within.last() else {
        return false;
    };
    let before = cx.timeline.latest_of(process, PROC_RSS_ANON, growth.first).unwrap_or_default();
    let by = |to: Bytes, from: Bytes| to.saturating_sub(from).as_f64();
    let grown = by(all.at(at).unwrap_or_default(), growth.from);
    let is_late = grown >= by(growth.to, growth.from) * LAST_HALF;
    is_late && by(size, before) >= grown * MAKES_UP
}

/// Whether the sizes of a process differ by as much as a rise: of most processes no track is made.
fn may_grow(cx: &Evidence<'_>, process: &EntitySeries) -> bool {
    let anon = cx.timeline.bounds_of(process, PROC_RSS_ANON);
    anon.is_none_or(|(least, largest)| largest.saturating_sub(least) >= Rise::NOISE)
}

/// The first reading of the cgroup after the first kill of an occurrence.
fn first_kill_ends(cx: &Evidence<'_>, kill: &Occurrence) -> usize {
    let next = cx.timeline.read_after(Entity::Cgroup, kill.first + 1);
    next.unwrap_or(kill.last).min(kill.last)
}

/// Returns a size up to a kill: without readings after `end`, and without those before it that show what was left.
fn until_kill(cx: &Evidence<'_>, size: &Track<Bytes>, end: usize) -> Track<Bytes> {
    let mut values: Vec<Option<f64>> = size.values().to_vec();
    values.iter_mut().skip(end + 1).for_each(|value| *value = None);
    let known: Vec<(usize, f64)> =
        values.iter().enumerate().filter_map(|(at, value)| Some((at, (*value)?))).collect();
    let late = &known[known.len().saturating_sub(BEFORE_KILL)..];
    let most = late.iter().map(|(_, value)| *value).fold(0.0, f64::max);
    let after = late.iter().rev().take_while(|(_, value)| *value < most * AFTER_KILL);
    for (at, _) in after {
        values[*at] = None;
    }
    cx.timeline.track(values)
}
