//! Captures spliced, cut, thinned and overlaid: timelines of hours, made in memory. What does not change costs one run.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::LazyLock;

use timeline::{Entity, Facts, Run, Sample, SignalId, Timeline};
use units::{Span, WallClock};

use crate::cases::{self, Case};

/// A labelled capture of the corpus.
pub(super) struct Capture {
    pub(super) name: String,
    pub(super) timeline: &'static Timeline,
    pub(super) facts: &'static Facts,
    pub(super) want: Vec<String>,
    pub(super) forbid: Vec<String>,
    /// Nothing may be warned of.
    pub(super) calm: bool,
}

impl Capture {
    fn new(case: &'static Case) -> Self {
        let (opened, labels) = (&case.judged().source, case.file.labels.as_ref().unwrap());
        Self {
            name: case.id.clone(),
            timeline: &opened.timeline,
            facts: &opened.facts,
            calm: labels.calm,
            want: labels.must_find.clone(),
            forbid: labels.must_not_find.clone(),
        }
    }

    /// The kernel's version, and its MemTotal in bytes.
    pub(super) fn host(&self) -> (timeline::facts::KernelVersion, u64) {
        let ram = self.timeline.last(timeline::signals::MEM_TOTAL).unwrap();
        (self.facts.kernel().unwrap(), ram.get())
    }
}

/// All captures of the corpus, by name.
pub(super) static CORPUS: LazyLock<Vec<Capture>> =
    LazyLock::new(|| cases::captures().map(Capture::new).collect());

pub(super) fn named(name: &str) -> &'static Capture {
    let found = CORPUS.iter().find(|capture| capture.name == name);
    found.unwrap_or_else(|| panic!("no capture {name}"))
}

/// The first capture of each thing that is labelled.
pub(super) fn one_of_each() -> Vec<&'static Capture> {
    let mut known = BTreeSet::new();
    let first = |capture: &&Capture| known.insert(capture.want.clone());
    CORPUS.iter().filter(first).collect()
}

/// A counter of the host or of an entity.
type Place = (Entity, String, SignalId);

/// A timeline in the making: a sample a second, on a wall clock.
#[derive(Default)]
pub(super) struct Tape {
    pub(super) timeline: Timeline,
    /// Where each counter stands.
    counters: BTreeMap<Place, u64>,
}

/// The wall clock at the beginning of a tape, in seconds since 1970: a full hour.
const BEGIN: u64 = 1_750_003_200;
/// The boot clock there.
const BOOT: Span = Span::from_secs(1000);

impl Tape {
    /// A capture with so many seconds of calm on both sides.
    pub(super) fn diluted(capture: &Capture, calm: usize) -> Self {
        Self::within(capture, calm, &[])
    }

    /// A capture between so many seconds in which nothing changes but what these counters rise by in a second.
    pub(super) fn within(capture: &Capture, seconds: usize, rises: &[(SignalId, u64)]) -> Self {
        let mut tape = Self::default();
        let (from, end) = (&capture.timeline, capture.timeline.len());
        tape.rest(from, 0, seconds, rises);
        tape.play(from, 0..end);
        tape.rest(from, end - 1, seconds, rises);
        tape
    }

    /// A capture of which one sample in so many was taken. Tables that were read in between are read with the next one.
    pub(super) fn thinned(capture: &Capture, every: usize) -> Self {
        let from = &capture.timeline;
        let mut tape = Self::default();
        for index in (0..from.len()).step_by(every) {
            let mut sample = from.sample(index).unwrap();
            sample.stamp = stamp(BOOT.plus(from.times()[index]));
            let left_out = (index + 1).saturating_sub(every)..index;
            for entity in Entity::ALL.into_iter().skip(1) {
                let read = from.read_before(entity, index);
                if let Some(read) = read.filter(|read| left_out.contains(read)) {
                    copy_rows(from, entity, read, &mut sample);
                }
            }
            tape.timeline.push(&sample).unwrap();
            let reports = from.reports().filter(|reported| {
                let at = from.sample_of(reported);
                at.is_some_and(|at| at == index || left_out.contains(&at))
            });
            for reported in reports {
                let (report, text) = (reported.report.clone(), reported.text.clone());
                tape.timeline.report(report, text);
            }
        }
        tape
    }

    /// Two captures at once: counters are added, of what both have the levels are those of the first, and rows of either are
    /// there. The shorter one rests where it ends.
    pub(super) fn overlaid(host: &Capture, group: &Capture) -> Self {
        let mut tape = Self::default();
        for index in 0..host.timeline.len().max(group.timeline.len()) {
            let mut sample = at_or_last(host.timeline, index);
            sample.stamp = stamp(BOOT.plus(Span::from_secs(index as u64)));
            let (begin, now) = (group.timeline.sample(0), at_or_last(group.timeline, index));
            for entity in Entity::ALL.into_iter().skip(1) {
                let is_read = [host, group]
                    .map(|it| index < it.timeline.len() && it.timeline.was_read(entity, index));
                if is_read == [false, true] {
                    copy_rows(
                        host.timeline,
                        entity,
                        host.timeline
                            .read_before(entity, index.min(host.timeline.len() - 1))
                            .unwrap_or(0),
                        &mut sample,
                    );
                }
                for row in now.table(entity).rows() {
                    let known = begin.as_ref().and_then(|begin| {
                        let rows = begin.table(entity).rows();
                        rows.iter().find(|one| one.key == row.key)
                    });
                    let own = sample.table_mut(entity).entry(&row.key);
                    if own.row.is_empty() {
                        own.label.clone_from(&row.label);
                        own.group.clone_from(&row.group);
                        own.row.clone_from(&row.row);
                    } else if let Some(known) = known {
                        add(&mut own.row, &row.row, &known.row);
                    }
                }
            }
            add(&mut sample.host, &now.host, &begin.unwrap().host);
            tape.timeline.push(&sample).unwrap();
            for it in [host, group] {
                let own =
                    |reported: &&timeline::Reported| it.timeline.sample_of(reported) == Some(index);
                for reported in it.timeline.reports().filter(own) {
                    let (report, text) = (reported.report.clone(), reported.text.clone());
                    tape.timeline.report(report, text);
                }
            }
        }
        tape
    }

    /// A capture again and again, for so many seconds.
    pub(super) fn repeated(capture: &Capture, seconds: u64) -> Self {
        let mut tape = Self::default();
        tape.repeat(capture, seconds);
        tape
    }

    /// Appends a capture again and again, for so many seconds at least.
    pub(super) fn repeat(&mut self, capture: &Capture, seconds: u64) {
        let until = self.at().plus(Span::from_secs(seconds));
        while self.at() < until {
            self.play(capture.timeline, 0..capture.timeline.len());
        }
    }

    /// When the next sample is taken: a second after the last one, on the boot clock.
    fn next(&self) -> Span {
        let last = self.timeline.len().checked_sub(1);
        let last = last.and_then(|last| self.timeline.stamp(last));
        last.map_or(BOOT, |last| last.boot.plus(Span::from_secs(1)))
    }

    /// Where the next sample will lie on the timeline's clock.
    pub(super) fn at(&self) -> Span {
        self.next() - BOOT
    }

    /// Appends samples of a capture at their distances. Counters go on from where they stand.
    pub(super) fn play(&mut self, from: &Timeline, range: Range<usize>) {
        let begin = self.next();
        let start = from.times()[range.start];
        let mut offsets: BTreeMap<Place, i128> = BTreeMap::new();
        for index in range {
            let mut sample = from.sample(index).unwrap();
            let later = begin.plus(from.times()[index] - start);
            let moved = from.stamp(index).unwrap().boot;
            sample.stamp = stamp(later);
            self.rebase(&mut sample, &mut offsets);
            self.timeline.push(&sample).unwrap();
            let own = |reported: &&timeline::Reported| from.sample_of(reported) == Some(index);
            for reported in from.reports().filter(own) {
                let before = moved.saturating_sub(reported.stamp.boot);
                let written = stamp(later.saturating_sub(before));
                let last = self.timeline.len() - 1;
                let (report, text) = (reported.report.clone(), reported.text.clone());
                self.timeline.report_when(last, written, report, text);
            }
        }
    }

    /// Counters that the tape has already go on from where they stand.
    fn rebase(&mut self, sample: &mut Sample, offsets: &mut BTreeMap<Place, i128>) {
        let mut moved = |entity: Entity, key: &str, signal: SignalId, raw: u64| {
            if !signal.def().is_counter {
                return raw;
            }
            let place = (entity, key.to_owned(), signal);
            let known = self.counters.get(&place).copied();
            let offset = offsets
                .entry(place.clone())
                .or_insert_with(|| known.map_or(0, |known| i128::from(known) - i128::from(raw)));
            let value = u64::try_from(i128::from(raw) + *offset).unwrap_or(raw);
            self.counters.insert(place, value);
            value
        };
        for entity in Entity::ALL {
            for row in sample.table_mut(entity).rows_mut() {
                let readings: Vec<_> = row.row.iter().collect();
                row.row.clear();
                for (signal, raw) in readings {
                    row.row.set_raw(signal, moved(entity, &row.key, signal, raw));
                }
            }
        }
        let readings: Vec<_> = sample.host.iter().collect();
        sample.host.clear();
        for (signal, raw) in readings {
            sample.host.set_raw(signal, moved(Entity::Host, "", signal, raw));
        }
    }

    /// Appends so many seconds in which the host is as it was in a sample of a capture; tables are read as often as there.
    pub(super) fn rest(
        &mut self,
        from: &Timeline,
        index: usize,
        seconds: usize,
        rises: &[(SignalId, u64)],
    ) {
        if seconds == 0 {
            return;
        }
        let is_before = index == 0;
        let begin = self.timeline.len();
        let mut resting = resting(from, index);
        self.rebase(&mut resting, &mut BTreeMap::new());
        let mut reads: Vec<Vec<usize>> = vec![Vec::new(); Entity::ALL.len()];
        for second in 0..seconds {
            let at = begin + second;
            self.timeline.push_stamp(stamp(self.next())).unwrap();
            for entity in Entity::ALL.into_iter().skip(1) {
                let Some(every) = cadence(from, entity) else {
                    continue;
                };
                let distance = if is_before {
                    seconds - second + from.read_after(entity, 0).unwrap_or(0)
                } else {
                    second + 1 + index - from.read_before(entity, index).unwrap_or(index)
                };
                if distance % every == 0 {
                    self.timeline.mark_read(entity, at);
                    reads[entity as usize].push(at);
                }
            }
        }
        self.fill(&resting, begin, &reads, rises);
    }

    fn fill(
        &mut self,
        resting: &Sample,
        begin: usize,
        reads: &[Vec<usize>],
        rises: &[(SignalId, u64)],
    ) {
        let last = self.timeline.len() - 1;
        for (signal, value) in resting.host.iter() {
            let rise = rises.iter().find(|(risen, _)| *risen == signal);
            let Some((_, by)) = rise else {
                let run = Run::new(begin, last, value);
                self.timeline.append_host_runs(signal, [run]);
                continue;
            };
            let run = |at| Run::at(at, value + by * (at - begin) as u64);
            let runs: Vec<Run> = (begin..=last).map(run).collect();
            self.timeline.append_host_runs(signal, runs);
            let place = (Entity::Host, String::new(), signal);
            self.counters.insert(place, value + by * (last - begin) as u64);
        }
        for entity in Entity::ALL.into_iter().skip(1) {
            let read = &reads[entity as usize];
            let Some((first, last)) = read.first().zip(read.last()) else {
                continue;
            };
            for row in resting.table(entity).rows() {
                let mut readings: Vec<_> = row.row.iter().collect();
                readings.sort_by_key(|(signal, _)| *signal);
                readings.dedup_by_key(|(signal, _)| *signal);
                let run = |(signal, value)| {
                    let (first, last) = (*first, *last);
                    (signal, [Run::new(first, last, value)])
                };
                let runs = readings.into_iter().map(run);
                self.timeline.append_runs(entity, &row.key, &row.label, &row.group, runs);
            }
        }
    }
}

fn stamp(boot: Span) -> timeline::Stamp {
    let nanos = (Span::from_secs(BEGIN).plus(boot) - BOOT).as_nanos();
    timeline::Stamp {
        boot,
        awake: Some(boot),
        wall: Some(WallClock::from_unix_nanos(i64::try_from(nanos).unwrap())),
        boot_id: None,
    }
}

/// Of how many samples one has a table, where it was read twice at least.
fn cadence(from: &Timeline, entity: Entity) -> Option<usize> {
    let read: Vec<usize> = (0..from.len()).filter(|at| from.was_read(entity, *at)).collect();
    let mut steps: Vec<usize> = read.windows(2).map(|pair| pair[1] - pair[0]).collect();
    stats::middle(&mut steps)
}

/// The host in a sample of a capture, with the rows of tables that are read more rarely; without what is read only once.
fn resting(from: &Timeline, index: usize) -> Sample {
    let mut resting = from.sample(index).unwrap();
    let second = from.sample(1.min(from.len() - 1)).unwrap();
    let often: BTreeSet<SignalId> = second.host.iter().map(|(signal, _)| signal).collect();
    let readings: Vec<_> = resting.host.iter().collect();
    resting.host.clear();
    for (signal, raw) in readings {
        if often.contains(&signal) {
            resting.host.set_raw(signal, raw);
        }
    }
    for entity in Entity::ALL.into_iter().skip(1) {
        let nearest =
            if index == 0 { from.read_after(entity, 0) } else { from.read_before(entity, index) };
        let Some(nearest) = nearest.filter(|nearest| *nearest != index) else {
            continue;
        };
        copy_rows(from, entity, nearest, &mut resting);
    }
    resting
}

/// A sample; behind the last one that, with the rows of tables that are read more rarely.
fn at_or_last(from: &Timeline, index: usize) -> Sample {
    if index < from.len() { from.sample(index).unwrap() } else { resting(from, from.len() - 1) }
}

/// Adds to counters what others rose by since they began.
fn add(to: &mut timeline::Row, now: &timeline::Row, begin: &timeline::Row) {
    let readings: Vec<_> = to.iter().collect();
    to.clear();
    for (signal, raw) in readings {
        let of = |row: &timeline::Row| row.iter().find(|(other, _)| *other == signal);
        let risen = match of(now).zip(of(begin)) {
            Some(((_, now), (_, begin))) if signal.def().is_counter => now.saturating_sub(begin),
            _ => 0,
        };
        to.set_raw(signal, raw + risen);
    }
}

fn copy_rows(from: &Timeline, entity: Entity, index: usize, into: &mut Sample) {
    let read = from.sample(index).unwrap();
    for row in read.table(entity).rows() {
        let own = into.table_mut(entity).entry(&row.key);
        own.label.clone_from(&row.label);
        own.group.clone_from(&row.group);
        own.row.clone_from(&row.row);
    }
}

/// The settings of a capture that begins so late on a tape.
pub(super) fn facts_from(facts: &Facts, at: Span) -> Facts {
    facts.clone().after(&Facts::default(), at)
}
