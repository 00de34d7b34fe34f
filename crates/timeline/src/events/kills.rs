//! Who was killed, and when, by whoever knows it first-hand: the kernel's log, then a recorder's note of it, then counters,
//! which know it between two readings only. Each kill once.

use units::{Count, Span, WallClock};

use crate::cgroup;
use crate::event::{Event, EventKind};
use crate::facts::Facts;
use crate::kernel_report::ReportKind;
use crate::signals::{Entity, OOM_KILLS};
use crate::timeline::Timeline;

use super::counters::{self, Counted, CounterRise};
use super::kernel::{self, Written};
use super::{Dated, EventTime, Placed};

/// The log's clock and the samples' differ by this at most.
const SLACK: Span = Span::from_secs(2);

/// A process that the kernel killed for want of memory, or as many as a counter tells of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kill {
    /// When: the kernel log's time, or the first reading of a counter that shows it.
    pub at: EventTime,
    /// The last reading that does not show it, where only a counter tells; it happened between the two.
    pub since: Option<EventTime>,
    /// The control group whose limit was hit, or in which a counter counted it; `None` for a kill of the host, or where
    /// nothing tells.
    pub group: Option<String>,
    /// The control group that the process was in, where the kernel says so.
    pub victim_group: Option<String>,
    /// Its name; `None` where only a counter tells.
    pub process: Option<String>,
    /// Its PID; `None` where only a counter tells.
    pub pid: Option<u32>,
    /// How many kills: 1 where a process is named.
    pub count: u64,
}

/// Kills within a time before a timeline's end, those of before its first sample too, each once, in order of time. One that a
/// counter tells of counts where it may have been within that time, but for what [`kills_since_boot`] tells of. Where the timeline is a part of a source, reports and
/// notes of the whole source count, and counters of the part.
pub fn recent_kills(timeline: &Timeline, facts: &Facts, within: Span) -> Vec<Kill> {
    let last = timeline.len().checked_sub(1);
    let Some(end) = last.and_then(|last| EventTime::of_sample(timeline, last)) else {
        return Vec::new();
    };
    let reports = kernel::until_end(timeline);
    let mut noted = super::noted(timeline);
    kernel::merge(&reports, &mut kernel::told(&reports), &mut noted);
    let mut all = of(&reports, &noted);
    let (from, to) = (end.minus(within), end.plus(SLACK));
    let counted = untold(timeline, facts, all.clone());
    // Of what was counted since boot nobody knows how long ago it was, unless the machine was started within the time.
    let is_recent = |it: &Counted| {
        it.dated != Dated::SinceBoot || it.kill.since.is_some_and(|since| since.nanos >= from.nanos)
    };
    all.extend(counted.into_iter().filter(is_recent).map(|it| it.kill));
    all.retain(|kill| from.nanos <= kill.at.nanos && kill.at.nanos <= to.nanos);
    all.sort_by_key(|kill| kill.at);
    all
}

/// How many kills of this boot the host's counter had counted at the first sample of which nothing else tells: nobody knows
/// when they were.
pub fn kills_since_boot(timeline: &Timeline) -> u64 {
    let counted = timeline.at(OOM_KILLS, 0).map_or(0, Count::get);
    if counted == 0 {
        return 0;
    }
    let reports = kernel::until_end(timeline);
    let mut noted = super::noted(timeline);
    kernel::merge(&reports, &mut kernel::told(&reports), &mut noted);
    counted.saturating_sub(before_first(timeline, &of(&reports, &noted)))
}

/// Of kills with a time those between the boot and the first sample.
fn before_first(timeline: &Timeline, kills: &[Kill]) -> u64 {
    let (Some(first), Some(booted)) = (EventTime::of_sample(timeline, 0), boot(timeline)) else {
        return 0;
    };
    let booted = booted.minus(SLACK);
    let is_before = |kill: &&Kill| (booted.nanos..=first.nanos).contains(&kill.at.nanos);
    kills.iter().filter(is_before).map(|kill| kill.count).sum()
}

/// When the machine of the first sample was started.
fn boot(timeline: &Timeline) -> Option<EventTime> {
    let stamp = timeline.stamp(0)?;
    let first = EventTime::of_sample(timeline, 0)?;
    let booted = first.minus(stamp.boot);
    Some(EventTime {
        wall: stamp.wall.map(|wall: WallClock| wall.minus(stamp.boot)),
        ..booted
    })
}

/// Kills that reports and notes tell of.
pub(super) fn of(reports: &[Written<'_>], noted: &[Placed]) -> Vec<Kill> {
    let of_kills = reports
        .iter()
        .filter(|it| it.report.kind == ReportKind::OomKill);
    let mut all: Vec<Kill> = of_kills.flat_map(named).collect();
    let noted = noted
        .iter()
        .filter(|note| note.kind() == EventKind::OomKill);
    all.extend(noted.map(of_note));
    all
}

fn named<'a>(written: &'a Written<'a>) -> impl Iterator<Item = Kill> + 'a {
    let group = written.report.group.as_ref();
    let path = |path: &String| (!path.is_empty()).then(|| path.clone());
    written.report.killed.iter().map(move |killed| Kill {
        at: written.at,
        since: None,
        group: group.and_then(|group| path(&group.path)),
        victim_group: group.and_then(|group| path(&group.victim_path)),
        process: Some(killed.name.clone()),
        pid: Some(killed.pid),
        count: 1,
    })
}

/// The subject of a note is `java (4242)`.
fn of_note(note: &Placed) -> Kill {
    let named = note.told.event.subject.strip_suffix(')');
    let named = named.and_then(|subject| subject.rsplit_once(" ("));
    let pid = named.and_then(|(_, pid)| pid.parse().ok());
    Kill {
        at: note.at,
        since: None,
        group: None,
        victim_group: None,
        process: named.map(|(name, _)| name.to_owned()),
        pid,
        count: 1,
    }
}

/// Kills that counters show and nobody else tells of; `told`: those that somebody does.
pub(super) fn untold(timeline: &Timeline, facts: &Facts, told: Vec<Kill>) -> Vec<Counted> {
    let before = before_first(timeline, &told);
    let since_boot = timeline.at(OOM_KILLS, 0).map_or(0, Count::get);
    let mut all = Vec::new();
    all.extend(counted_since_boot(
        timeline,
        since_boot.saturating_sub(before),
    ));
    let mut told = told;
    let (groups, host) = counters::kills(timeline, facts);
    for (group, rise) in groups {
        let taken = take(timeline, &mut told, rise, |kill, tier| {
            is_of(timeline, facts, kill, &group, tier)
        });
        all.extend(counted(timeline, rise, taken, Some(group)));
    }
    for rise in host {
        let taken = take(timeline, &mut told, rise, |_, _| true);
        all.extend(counted(timeline, rise, taken, None));
    }
    all
}

fn counted(
    timeline: &Timeline,
    rise: CounterRise,
    taken: u64,
    group: Option<String>,
) -> Option<Counted> {
    let count = rise.by.checked_sub(taken).filter(|count| *count > 0)?;
    Some(Counted {
        kill: Kill {
            at: EventTime::of_sample(timeline, rise.to)?,
            since: EventTime::of_sample(timeline, rise.from),
            group,
            victim_group: None,
            process: None,
            pid: None,
            count,
        },
        stamp: timeline.stamp(rise.to)?,
        dated: Dated::Since(timeline.stamp(rise.from)?),
    })
}

fn counted_since_boot(timeline: &Timeline, count: u64) -> Option<Counted> {
    (count > 0).then_some(())?;
    Some(Counted {
        kill: Kill {
            at: EventTime::of_sample(timeline, 0)?,
            since: boot(timeline),
            group: None,
            victim_group: None,
            process: None,
            pid: None,
            count,
        },
        stamp: timeline.stamp(0)?,
        dated: Dated::SinceBoot,
    })
}

/// How sure it is that a group's counter counted a kill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tier {
    /// The kernel names the group.
    Named,
    /// It names none, or one that nobody knows: paths in a container are not the host's.
    Possible,
}

fn is_of(timeline: &Timeline, facts: &Facts, kill: &Kill, group: &str, tier: Tier) -> bool {
    let paths = || [&kill.victim_group, &kill.group].into_iter().flatten();
    match tier {
        Tier::Named => paths().any(|path| match cgroup::counts_below(facts) {
            true => cgroup::ancestors(path).any(|above| above == group),
            false => path == group,
        }),
        Tier::Possible => {
            let is_known = |path: &String| timeline.entity(Entity::Cgroup, path).is_some();
            !paths().any(is_known)
        }
    }
}

/// Takes as many of those told as lie within a rise and are not more than it, those first that are surely of it; gives how
/// many.
fn take(
    timeline: &Timeline,
    told: &mut Vec<Kill>,
    rise: CounterRise,
    is_of: impl Fn(&Kill, Tier) -> bool,
) -> u64 {
    let ends =
        [rise.from, rise.to].map(|at| EventTime::of_sample(timeline, at).unwrap_or_default());
    let (from, to) = (ends[0].minus(SLACK).nanos, ends[1].plus(SLACK).nanos);
    let mut taken = 0;
    for tier in [Tier::Named, Tier::Possible] {
        told.retain(|kill| {
            let is_it =
                taken < rise.by && (from..=to).contains(&kill.at.nanos) && is_of(kill, tier);
            taken += u64::from(is_it);
            !is_it
        });
    }
    taken
}

impl Counted {
    /// The kill as an event.
    pub(super) fn event(&self, timeline: &Timeline) -> Option<Placed> {
        let what = match self.kill.count {
            1 => "OOM kill".to_owned(),
            n => format!("{} OOM kills", Count::new(n)),
        };
        let group = self.kill.group.clone().unwrap_or_default();
        let text = match (self.dated, group.as_str()) {
            (Dated::SinceBoot, _) => format!("{what} since boot, by the host's counter"),
            (_, "") => format!("{what}, by the host's counter"),
            (_, group) => format!("{what} in {group}"),
        };
        let at = match self.dated {
            // It comes before all that is known to be later.
            Dated::SinceBoot => boot(timeline)?,
            _ => self.kill.at,
        };
        let event = Event {
            stamp: self.stamp,
            kind: EventKind::OomKill,
            subject: group,
            text,
            report: String::new(),
        };
        Some(Placed::dated(at, event, self.dated))
    }
}
