//! OOM kills, each listed once, from the source that knows most: the kernel's log, then a recorder's event, then
//! counters, which only show that a kill occurred between two readings.

use std::collections::{BTreeSet, HashMap};

use units::{Count, Span, WallClock};

use crate::cgroup;
use crate::event::{Event, EventKind};
use crate::facts::Facts;
use crate::kernel_report::ReportKind;
use crate::signals::{Entity, OOM_KILLS};
use crate::timeline::Timeline;

use super::counters::{self, CountedKills, CounterRise};
use super::kernel::{self, WrittenReport};
use super::{Dated, EventTime, PlacedEvent};

/// The most by which the log's clock and the samples' differ.
const SLACK: Span = Span::from_secs(2);

/// An OOM kill, or several that only a counter shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kill {
    /// The time: that of the kernel log, or that of the first reading of the counter that shows it.
    pub at: EventTime,
    /// The last reading before the kill, where only a counter shows it; the kill occurred between the two.
    pub since: Option<EventTime>,
    /// The cgroup that hit its limit, or that counted the kill; `None` for a kill of the host, and where unknown.
    pub group: Option<String>,
    /// The cgroup of the process, where the kernel reports it.
    pub victim_group: Option<String>,
    /// The name of the process; `None` where only a counter shows the kill.
    pub process: Option<String>,
    /// The PID of the process; `None` where only a counter shows the kill.
    pub pid: Option<u32>,
    /// The number of kills; 1 where a process is named.
    pub count: u64,
}

/// Returns the kills in the time `within` before a timeline's end, including those before its first sample, each once,
/// in order of time. A kill that only a counter shows is included if it may have occurred in that time; kills of
/// [`kills_since_boot`] are not. For a part of a source, reports and recorder events of the whole source count, and
/// counters of the part.
pub fn recent_kills(timeline: &Timeline, facts: &Facts, within: Span) -> Vec<Kill> {
    let last = timeline.len().checked_sub(1);
    let Some(end) = last.and_then(|last| EventTime::at_sample(timeline, last)) else {
        return Vec::new();
    };
    let reports = kernel::until_end(timeline);
    let mut noted = super::noted(timeline);
    kernel::merge(&reports, &mut kernel::events(&reports), &mut noted);
    let mut all = from_reports(&reports, &noted);
    let (from, to) = (end.minus(within), end.plus(SLACK));
    let counted = only_counted(timeline, facts, all.clone());
    // The time of kills since boot is unknown, unless the machine booted within that time.
    let is_recent = |kills: &CountedKills| {
        let since = kills.kill.since;
        kills.dated != Dated::SinceBoot || since.is_some_and(|since| since.nanos >= from.nanos)
    };
    all.extend(counted.into_iter().filter(is_recent).map(|kills| kills.kill));
    all.retain(|kill| from.nanos <= kill.at.nanos && kill.at.nanos <= to.nanos);
    all.sort_by_key(|kill| kill.at);
    all
}

/// The number of kills of this boot that the host's counter shows at the first sample, without those that a report or
/// a recorder event shows. Their times are unknown.
pub fn kills_since_boot(timeline: &Timeline) -> u64 {
    let counted = timeline.at(OOM_KILLS, 0).map_or(0, Count::get);
    if counted == 0 {
        return 0;
    }
    let reports = kernel::until_end(timeline);
    let mut noted = super::noted(timeline);
    kernel::merge(&reports, &mut kernel::events(&reports), &mut noted);
    counted.saturating_sub(before_first(timeline, &from_reports(&reports, &noted)))
}

/// The number of kills with a known time between boot and the first sample.
fn before_first(timeline: &Timeline, kills: &[Kill]) -> u64 {
    let (Some(first), Some(booted)) = (EventTime::at_sample(timeline, 0), boot(timeline)) else {
        return 0;
    };
    let booted = booted.minus(SLACK);
    let is_before = |kill: &&Kill| (booted.nanos..=first.nanos).contains(&kill.at.nanos);
    kills.iter().filter(is_before).map(|kill| kill.count).sum()
}

/// The time at which the machine of the first sample booted.
fn boot(timeline: &Timeline) -> Option<EventTime> {
    let stamp = timeline.stamp(0)?;
    let first = EventTime::at_sample(timeline, 0)?;
    let booted = first.minus(stamp.boot);
    Some(EventTime { wall: stamp.wall.map(|wall: WallClock| wall.minus(stamp.boot)), ..booted })
}

/// The kills of reports and recorder events.
pub(super) fn from_reports(reports: &[WrittenReport<'_>], noted: &[PlacedEvent]) -> Vec<Kill> {
    let mut all: Vec<Kill> = reports
        .iter()
        .filter(|written| written.report.kind == ReportKind::OomKill)
        .flat_map(named)
        .collect();
    all.extend(
        noted.iter().filter(|note| note.kind() == EventKind::OomKill).map(from_recorder_event),
    );
    all
}

fn named<'a>(written: &'a WrittenReport<'a>) -> impl Iterator<Item = Kill> + 'a {
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

/// Parses the subject of the event, which is `java (4242)`.
fn from_recorder_event(note: &PlacedEvent) -> Kill {
    let subject = note.dated_event.event.subject.strip_suffix(')');
    let named = subject.and_then(|subject| subject.rsplit_once(" ("));
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

/// The kills that only counters show; `known` are those of reports and recorder events.
pub(super) fn only_counted(
    timeline: &Timeline,
    facts: &Facts,
    known: Vec<Kill>,
) -> Vec<CountedKills> {
    let before = before_first(timeline, &known);
    let since_boot = timeline.at(OOM_KILLS, 0).map_or(0, Count::get);
    let mut all = Vec::new();
    all.extend(counted_since_boot(timeline, since_boot.saturating_sub(before)));
    let mut known = UncountedKills::new(timeline, facts, &known);
    let (groups, host) = counters::kills(timeline, facts);
    for (group, rise) in groups {
        let taken = known.take(timeline, rise, Some(&group));
        all.extend(counted(timeline, rise, taken, Some(group)));
    }
    for rise in host {
        let taken = known.take(timeline, rise, None);
        all.extend(counted(timeline, rise, taken, None));
    }
    all
}

fn counted(
    timeline: &Timeline,
    rise: CounterRise,
    taken: u64,
    group: Option<String>,
) -> Option<CountedKills> {
    let count = rise.by.checked_sub(taken).filter(|count| *count > 0)?;
    Some(CountedKills {
        kill: Kill {
            at: EventTime::at_sample(timeline, rise.to)?,
            since: EventTime::at_sample(timeline, rise.from),
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

fn counted_since_boot(timeline: &Timeline, count: u64) -> Option<CountedKills> {
    (count > 0).then_some(())?;
    Some(CountedKills {
        kill: Kill {
            at: EventTime::at_sample(timeline, 0)?,
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

/// Kills by their times in nanoseconds and their numbers.
type ByTime = BTreeSet<(i128, usize)>;

/// Kills of reports and recorder events that no counter was found to count yet.
struct UncountedKills<'a> {
    all: ByTime,
    /// By each cgroup with a counter that counts them, where the kernel names the cgroup.
    of_group: HashMap<&'a str, ByTime>,
    /// Those for which the kernel names no cgroup, or an unknown one: paths in a container are not the host's.
    of_any: ByTime,
    /// Whether a kill, by its number, was taken out; it may still be in other sets.
    is_taken: Vec<bool>,
}

impl<'a> UncountedKills<'a> {
    fn new(timeline: &Timeline, facts: &Facts, kills: &'a [Kill]) -> Self {
        let counts_below = cgroup::counts_below(facts);
        let mut known = Self {
            all: ByTime::new(),
            of_group: HashMap::new(),
            of_any: ByTime::new(),
            is_taken: vec![false; kills.len()],
        };
        for (number, kill) in kills.iter().enumerate() {
            let entry = (kill.at.nanos, number);
            known.all.insert(entry);
            let paths = || [&kill.victim_group, &kill.group].into_iter().flatten();
            let is_known = |path: &String| timeline.entity(Entity::Cgroup, path).is_some();
            if !paths().any(is_known) {
                known.of_any.insert(entry);
            }
            for path in paths() {
                let levels = if counts_below { usize::MAX } else { 1 };
                for group in cgroup::ancestors(path).take(levels) {
                    known.of_group.entry(group).or_default().insert(entry);
                }
            }
        }
        known
    }

    /// Takes out kills that a rise counted, at most as many as it counted, those with a named cgroup first. Returns how
    /// many. `group` is the cgroup of the counter; `None` for the host's.
    fn take(&mut self, timeline: &Timeline, rise: CounterRise, group: Option<&str>) -> u64 {
        let ends =
            [rise.from, rise.to].map(|at| EventTime::at_sample(timeline, at).unwrap_or_default());
        let within = (ends[0].minus(SLACK).nanos, 0)..=(ends[1].plus(SLACK).nanos, usize::MAX);
        let mut sets = match group {
            Some(group) => [self.of_group.get_mut(group), Some(&mut self.of_any)],
            None => [Some(&mut self.all), None],
        };
        let mut taken = 0;
        for set in sets.iter_mut().flatten() {
            while taken < rise.by
                && let Some(first) = set.range(within.clone()).next().copied()
            {
                set.remove(&first);
                let was_taken = std::mem::replace(&mut self.is_taken[first.1], true);
                taken += u64::from(!was_taken);
            }
        }
        taken
    }
}

impl CountedKills {
    /// The kills as an event.
    pub(super) fn event(&self, timeline: &Timeline) -> Option<PlacedEvent> {
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
            // This sorts before all events that are known to be later.
            Dated::SinceBoot => boot(timeline)?,
            _ => self.kill.at,
        };
        let event = Event {
            stamp: self.stamp,
            kind: EventKind::OomKill,
            subject: group.clone(),
            text,
            report: String::new(),
        };
        Some(PlacedEvent::new(at, event, self.dated).within(&group))
    }
}
