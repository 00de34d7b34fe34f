//! Screening: roll-ups decide which minutes of a long range are read sample by sample.
//!
//! The caller decides in which minutes a condition could hold. Those are read in full, with a minute on each side; if
//! they exceed the memory limit, only the worst ones are.

use timeline::signals::{
    CGROUP_EVENTS_OOM_KILL, OOM_KILLS, PSI_IO_FULL, PSI_IO_SOME, PSI_MEMORY_FULL, PSI_MEMORY_SOME,
};
use timeline::{Entity, RollUp, RollUps, SignalId};
use units::WallClock;

use crate::head;

/// Decides from roll-ups in which minutes a condition could hold. A minute without an answer is suspicious.
pub struct RollUpScreen<'a> {
    /// The signals of which it needs roll-ups.
    pub signals: &'a [SignalId],
    /// Returns for each minute whether a condition could hold. Called once for each part of a recording, in order.
    pub could_hold: &'a mut dyn FnMut(&RollUps) -> Vec<bool>,
}

/// The result of screening.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Screened {
    /// How many minutes were screened.
    pub minutes: usize,
    /// How many minutes were suspicious: a condition could hold in them.
    pub suspicious: usize,
    /// How many minutes were read sample by sample, including the neighbours of suspicious ones.
    pub opened: usize,
    /// How many suspicious minutes were not, to limit memory.
    pub unopened: usize,
}

/// The most samples of opened minutes: two hours at one sample a second, worst minutes first. With the week around
/// them, 200 busy host signals and the entities, a load stays below 256 MiB (`cargo bench --bench read`).
pub(super) const SAMPLES_MAX: usize = 2 * 3_600;

/// How a minute is read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Take {
    /// From its roll-up: the last reading of each signal, at its last sample.
    #[default]
    RollUp,
    /// Its last sample, and the last one in which each table was read: used before a minute that is read in full. A
    /// roll-up does not show when processes were read, and a rate from it to the next sample would cover a wrong time.
    Last,
    /// Every sample.
    All,
}

/// The harm in a minute: OOM kills, microseconds of memory pressure, microseconds of I/O pressure.
type MinuteHarm = (u64, u64, u64);

/// The signals that decide how bad a minute was.
pub(super) const HARMS: [SignalId; 6] = [
    OOM_KILLS.id(),
    CGROUP_EVENTS_OOM_KILL.id(),
    PSI_MEMORY_SOME.id(),
    PSI_MEMORY_FULL.id(),
    PSI_IO_SOME.id(),
    PSI_IO_FULL.id(),
];

/// The minutes of a recording, part after part, and which of them are suspicious.
#[derive(Debug, Default)]
pub(super) struct Survey {
    /// How many minutes of each part were screened.
    parts: Vec<usize>,
    /// How many samples per minute each part has.
    samples: Vec<usize>,
    /// The number of each suspicious minute, and how bad it was.
    suspicious: Vec<(usize, MinuteHarm)>,
    minutes: usize,
}

/// How each minute of a recording is read.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// The minutes of each part; empty if all of it is read from roll-ups.
    parts: Vec<Vec<Take>>,
    pub(super) screened: Screened,
}

impl Survey {
    /// Adds a part with this many `samples` per minute.
    pub(super) fn add(
        &mut self,
        rolled: &RollUps,
        samples: usize,
        window: head::Window,
        screen: &mut RollUpScreen<'_>,
    ) {
        let answer = if rolled.is_empty() { Vec::new() } else { (screen.could_hold)(rolled) };
        let mut harm = None;
        for (at, minute) in rolled.minutes().iter().enumerate() {
            let is_suspicious = answer.get(at).copied().unwrap_or(true);
            if is_suspicious && touches(window, minute.start(), minute.end.wall) {
                let harm = harm.get_or_insert_with(|| harms(rolled));
                self.suspicious.push((self.minutes + at, harm[at]));
            }
        }
        self.minutes += rolled.len();
        self.parts.push(rolled.len());
        self.samples.push(samples);
    }

    /// Adds a part that is not screened.
    pub(super) fn pass(&mut self) {
        self.parts.push(0);
        self.samples.push(0);
    }

    /// Chooses which minutes are read in full: the worst if all would exceed `most` samples.
    pub(super) fn plan(mut self, most: usize) -> Plan {
        let mut take = vec![Take::RollUp; self.minutes];
        let cost: Vec<usize> = (self.parts.iter().zip(&self.samples))
            .flat_map(|(minutes, samples)| std::iter::repeat_n(*samples, *minutes))
            .collect();
        // Of equally bad minutes the later one is read: recent problems matter most.
        self.suspicious.sort_by_key(|(at, harm)| std::cmp::Reverse((*harm, *at)));
        let mut left = most;
        for (at, _) in &self.suspicious {
            let with_margin = at.saturating_sub(1)..(at + 2).min(take.len());
            let more = with_margin.clone().filter(|minute| take[*minute] != Take::All);
            let more: usize = more.map(|minute| cost[minute]).sum();
            if let Some(rest) = left.checked_sub(more) {
                left = rest;
                take[with_margin].fill(Take::All);
            }
        }
        for at in 1..take.len() {
            if take[at] == Take::All && take[at - 1] == Take::RollUp {
                take[at - 1] = Take::Last;
            }
        }
        let is_opened = |at: &usize| take[*at] == Take::All;
        let unopened = self.suspicious.iter().filter(|(at, _)| !is_opened(at));
        let screened = Screened {
            minutes: take.len(),
            suspicious: self.suspicious.len(),
            opened: (0..take.len()).filter(is_opened).count(),
            unopened: unopened.count(),
        };
        Plan { parts: cut(&take, &self.parts), screened }
    }
}

/// Cuts a list into parts of these lengths; parts without a minute to read in full are empty.
fn cut(take: &[Take], lengths: &[usize]) -> Vec<Vec<Take>> {
    let mut rest = take;
    let part = |length: &usize| {
        let (part, after) = rest.split_at(*length);
        rest = after;
        if part.iter().all(|take| *take == Take::RollUp) { Vec::new() } else { part.to_vec() }
    };
    lengths.iter().map(part).collect()
}

impl Plan {
    /// Returns how the minutes of a part are read; empty if all of it is read from roll-ups.
    pub(super) fn part(&self, number: usize) -> &[Take] {
        self.parts.get(number).map_or(&[], Vec::as_slice)
    }

    /// Returns the share of a part's minutes that is read sample by sample.
    pub(super) fn share(&self, number: usize) -> f64 {
        let part = self.part(number);
        let all = part.iter().filter(|take| **take == Take::All).count();
        #[allow(clippy::cast_precision_loss)] // a share of minutes
        let share = all as f64 / part.len().max(1) as f64;
        share
    }
}

/// Whether a time range overlaps a window.
fn touches((since, until): head::Window, start: Option<WallClock>, end: Option<WallClock>) -> bool {
    let Some((start, end)) = start.zip(end) else {
        return since.is_none() && until.is_none();
    };
    since.is_none_or(|since| since <= end) && until.is_none_or(|until| start <= until)
}

/// Returns how bad each minute was.
fn harms(rolled: &RollUps) -> Vec<MinuteHarm> {
    let sum = |at: usize, signals: &[SignalId]| {
        let of = |signal: &SignalId| {
            let host = rolled.host(*signal)?;
            host[at].and_then(RollUp::increase)
        };
        signals.iter().filter_map(of).fold(0, u64::saturating_add)
    };
    let killed_in_groups = |at: usize| {
        let groups = rolled.entities(Entity::Cgroup).iter();
        let kills = groups.filter_map(|group| {
            group.get(CGROUP_EVENTS_OOM_KILL.id())?[at].and_then(RollUp::increase)
        });
        // Ancestors of a cgroup also count its kills, so the maximum is used.
        kills.max().unwrap_or(0)
    };
    let harm = |at: usize| {
        let kills = sum(at, &[OOM_KILLS.id()]).max(killed_in_groups(at));
        let memory = sum(at, &[PSI_MEMORY_SOME.id(), PSI_MEMORY_FULL.id()]);
        let io = sum(at, &[PSI_IO_SOME.id(), PSI_IO_FULL.id()]);
        (kills, memory, io)
    };
    (0..rolled.len()).map(harm).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn survey(parts: &[usize], suspicious: &[(usize, MinuteHarm)]) -> Survey {
        Survey {
            parts: parts.to_vec(),
            samples: vec![60; parts.len()],
            suspicious: suspicious.to_vec(),
            minutes: parts.iter().sum(),
        }
    }

    fn drawn(plan: &Plan, parts: usize) -> String {
        let draw = |take: &Take| match take {
            Take::RollUp => '.',
            Take::Last => 'l',
            Take::All => 'A',
        };
        let part = |number| plan.part(number).iter().map(draw).collect::<String>();
        (0..parts).map(part).collect::<Vec<_>>().join("|")
    }

    #[test]
    fn a_minute_on_each_side_is_opened_too_also_in_the_next_part() {
        assert_eq!(drawn(&survey(&[5, 2], &[]).plan(SAMPLES_MAX), 2), "|");
        let at = |at| (at, (0, 1, 0));
        let plan = survey(&[5, 5, 2], &[at(5), at(11)]).plan(SAMPLES_MAX);
        assert_eq!(drawn(&plan, 3), "...lA|AA..l|AA");
        assert_eq!(plan.screened, Screened { minutes: 12, suspicious: 2, opened: 5, unopened: 0 });
        let plan = survey(&[5, 5], &[at(6)]).plan(SAMPLES_MAX);
        assert_eq!(drawn(&plan, 2), "....l|AAA..");
    }

    #[test]
    fn where_there_are_too_many_kills_come_first_then_pressure_then_the_latest() {
        let suspicious = [(1, (0, 5, 0)), (5, (0, 0, 9)), (9, (1, 0, 0)), (13, (0, 0, 9))];
        for (most, expected, unopened) in [
            (0, "", 4),
            (3, ".......lAAA....", 3),
            (6, "AAA....lAAA....", 2),
            (9, "AAA....lAAAlAAA", 1),
            (8, "AAA....lAAA....", 2),
            (12, "AAAlAAAlAAAlAAA", 0),
        ] {
            let plan = survey(&[15], &suspicious).plan(most * 60);
            assert_eq!(drawn(&plan, 1), expected, "{most}");
            assert_eq!(plan.screened.unopened, unopened);
        }
    }
}
