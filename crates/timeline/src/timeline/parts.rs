//! Parts of a timeline: its segments (two pastes, two kernel reports), or a range of samples.

use std::collections::BTreeMap;
use std::sync::Arc;

use units::Span;

use super::read_set::SamplesRead;
use super::readings::Readings;
use super::{EntitySeries, OutOfOrder, Timeline};
use crate::sample::{BootId, Stamp};
use crate::signals::Entity;

impl Timeline {
    /// Whether it has at most one segment.
    pub fn is_one_segment(&self) -> bool {
        self.clock.segment_starts().next().is_none()
    }

    /// Its segments, each as a timeline on the same clock. The order of segments in time is unknown.
    pub fn segments(&self) -> Vec<Self> {
        let mut starts = vec![0];
        starts.extend(self.clock.segment_starts());
        let ends = starts.iter().skip(1).copied().chain([self.len()]);
        starts.iter().copied().zip(ends).map(|(first, end)| self.part(first, end)).collect()
    }

    /// The samples from `first` to before `end`, as a timeline of its own on the same clock. It is cheap: columns are
    /// cut when they are first read.
    pub fn part(&self, first: usize, end: usize) -> Self {
        let reads = self.reads.each_ref().map(|reads| reads.cut(first, end));
        let all = reads.each_ref().map(|reads| Arc::new(reads.all.clone()));
        let within =
            |readings: &Readings, entity: Entity| readings.part(first, end, &all[entity as usize]);
        let part = |series: &EntitySeries| {
            let columns = within(&series.columns, series.entity)?;
            Some(series.with(columns))
        };
        let entities =
            self.entities.iter().filter_map(|(key, series)| Some((key.clone(), part(series)?)));
        Self {
            clock: self.clock.part(first, end),
            host: within(&self.host, Entity::Host).unwrap_or_default(),
            entities: entities.collect(),
            evicted: self.evicted.part(part),
            reads: reads.each_ref().map(SamplesRead::clone),
            budget: self.budget,
            left_out: self.left_out,
            absent: self.absent.clone(),
            unknown: self.unknown.clone(),
            log: self.log.of_part(),
            origin: self.origin + first,
            is_sharing: true,
            rounded: self.rounded.clone(),
        }
    }

    /// Copies the columns that it shares with the timeline it was cut from: before a change, because later cuts must
    /// stay the same, and where it outlives that timeline, which it would keep in memory.
    pub(super) fn take_over(&mut self) {
        if !std::mem::take(&mut self.is_sharing) {
            return;
        }
        self.host.own();
        let entities = self.entities.values_mut();
        for series in entities.chain(self.evicted.sums.all_mut()) {
            series.columns.own();
        }
    }

    /// Appends a later timeline of the same host: samples, kernel reports, and absent files. A report that both have
    /// is stored once.
    ///
    /// # Errors
    /// [`OutOfOrder`] where it does not follow the last sample; the samples before the offending one are appended.
    pub fn append(&mut self, later: &Self) -> Result<(), OutOfOrder> {
        let thinning = self.clock.resolution;
        for known in later.earlier_reports() {
            self.report_by_time(known.stamp, known.report.clone(), known.text.clone());
        }
        for (index, sample) in later.samples().enumerate() {
            self.clock.resolution = later.resolution_at(index);
            let pushed = self.push(&sample);
            self.clock.resolution = thinning;
            pushed?;
            let reports = later.reports().filter(|r| later.sample_of(r) == Some(index));
            for reported in reports {
                let last = self.len().saturating_sub(1);
                let (report, text) = (reported.report.clone(), reported.text.clone());
                self.report_when(last, reported.stamp, report, text);
            }
        }
        self.absent.clone_from(&later.absent);
        let unknown = later.unknown.iter().map(|(key, value)| (key.clone(), *value));
        self.unknown.extend(unknown);
        Ok(())
    }

    /// Makes a part a source of its own: its clock begins with it, and reports and events outside of it are dropped.
    #[must_use]
    pub fn alone(mut self) -> Self {
        self.take_over();
        let first = self.clock.restart();
        let origin = self.origin;
        let own = self.reports().cloned().map(|mut reported| {
            reported.sample -= origin;
            reported.at = reported.at - first;
            reported
        });
        let own: Vec<_> = own.collect();
        let is_own = self.is_within();
        let noted = self.log.recorder_events.iter();
        let its = noted.filter(|event| is_own(event.stamp));
        self.set_recorder_events(its.cloned().collect());
        self.log.reports = Arc::new(own);
        self.log.earlier = Arc::default();
        self.origin = 0;
        self
    }

    /// Whether a stamp is between the first and the last sample: of the same boot by the boot clock, else by the wall
    /// clock. A stamp without either has an unknown time, and is.
    fn is_within(&self) -> impl Fn(Stamp) -> bool + use<> {
        let walls = || self.clock.stamps.iter().filter_map(|stamp| stamp.wall);
        let (from, to) = (walls().min(), walls().max());
        let mut boots: BTreeMap<BootId, (Span, Span)> = BTreeMap::new();
        for stamp in &self.clock.stamps {
            let Some(id) = stamp.boot_id else { continue };
            let (_, last) = boots.entry(id).or_insert((stamp.boot, stamp.boot));
            *last = stamp.boot.max(*last);
        }
        let has_others = self.clock.stamps.iter().any(|stamp| stamp.boot_id.is_none());
        move |stamp| match stamp.boot_id {
            Some(id) if boots.contains_key(&id) => {
                let (first, last) = boots[&id];
                first <= stamp.boot && stamp.boot <= last
            }
            Some(_) if !has_others => false,
            _ => stamp.wall.is_none_or(|wall| from <= Some(wall) && Some(wall) <= to),
        }
    }

    /// Index of this timeline's first sample in the timeline that it was cut from.
    pub fn origin(&self) -> usize {
        self.origin
    }
}

impl EntitySeries {
    /// The same entity with these readings.
    pub(super) fn with(&self, columns: Readings) -> Self {
        Self {
            entity: self.entity,
            key: self.key.clone(),
            label: self.label.clone(),
            group: self.group.clone(),
            columns,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::option::of;
    use proptest::prelude::*;

    use crate::signals::{CGROUP_CURRENT, CGROUP_PSI_MEMORY_SOME, MEM_FREE};
    use crate::{Entity, EntitySeries, KernelReport, Sample, Timeline};
    use units::{Bytes, Micros, Span};

    /// Readings of the host and of two cgroups; a cgroup's may be absent.
    type Reading = (u64, [Option<u64>; 2]);

    fn push(timeline: &mut Timeline, readings: &[Reading]) {
        for (free, groups) in readings {
            let last = timeline.clock.stamps.last().map_or(Span::ZERO, |last| last.boot);
            let mut sample = Sample::at(last.plus(Span::from_secs(1)));
            sample.host.set(MEM_FREE, Bytes::new(*free));
            for (key, current) in ["/db", "/web"].into_iter().zip(groups) {
                let Some(current) = *current else {
                    continue;
                };
                let row = sample.table_mut(Entity::Cgroup).entry(key);
                row.row.set(CGROUP_CURRENT, Bytes::new(current));
                if current > 0 {
                    row.row.set(CGROUP_PSI_MEMORY_SOME, Micros::new(current));
                }
            }
            timeline.push(&sample).unwrap();
        }
    }

    fn watched(readings: &[Reading]) -> Timeline {
        let mut timeline = Timeline::default();
        push(&mut timeline, readings);
        timeline
    }

    /// All answers of a timeline, signal by signal.
    fn answers(timeline: &Timeline) -> String {
        let of = |group: Option<&EntitySeries>| {
            let group_signals = [CGROUP_CURRENT.id(), CGROUP_PSI_MEMORY_SOME.id()];
            let signals = group.map_or(vec![MEM_FREE.id()], |_| group_signals.to_vec());
            let tracks = |signal| {
                let levels = timeline.levels(group, signal);
                [levels, timeline.increases(group, signal)]
                    .map(|track| Some(track?.values().to_vec()))
            };
            signals.into_iter().map(tracks).collect::<Vec<_>>()
        };
        let latest = |group: &EntitySeries| {
            let all = 0..timeline.len();
            let latest = all.map(|index| timeline.latest_of(group, CGROUP_CURRENT, index));
            let last = timeline.last_of(group, CGROUP_PSI_MEMORY_SOME);
            (group.key.clone(), last, latest.collect::<Vec<_>>())
        };
        let groups = || timeline.entities(Entity::Cgroup);
        let asked: Vec<_> = groups().map(|group| (of(Some(group)), latest(group))).collect();
        let host = (of(None), timeline.last(MEM_FREE));
        let runs: Vec<Vec<_>> = groups().map(|group| group.runs().collect()).collect();
        let host_runs: Vec<_> = timeline.host_runs().collect();
        let all = 0..=timeline.len();
        let reads = |index| {
            let before = timeline.read_before(Entity::Cgroup, index);
            (before, timeline.read_after(Entity::Cgroup, index))
        };
        let samples: Vec<_> = all.map(|index| (reads(index), timeline.sample(index))).collect();
        let times = (timeline.times(), timeline.breaks());
        format!("{asked:?} {host:?} {runs:?} {host_runs:?} {samples:?} {times:?}")
    }

    /// A part that shares no columns.
    fn cut(timeline: &Timeline, (first, end): (usize, usize)) -> Timeline {
        let mut part = timeline.part(first, end);
        part.take_over();
        part
    }

    /// A range of `samples` samples, from any two numbers.
    fn some_of(samples: usize, (a, b): (usize, usize)) -> (usize, usize) {
        let first = a % samples;
        (first, first + 1 + b % (samples - first))
    }

    proptest! {
        /// Lazily cut columns equal those that are cut at once, also in parts of parts, and stay the same when the
        /// part or its source is appended to.
        #[test]
        fn a_part_answers_as_if_it_had_been_cut_at_once(
            readings in vec((0u64..3, [of(0u64..3), of(0u64..3)]), 1..30),
            more in vec((0u64..3, [of(0u64..3), of(0u64..3)]), 1..5),
            outer in any::<(usize, usize)>(),
            inner in any::<(usize, usize)>(),
        ) {
            let mut whole = watched(&readings);
            let before = answers(&whole);
            let (first, end) = some_of(whole.len(), outer);
            let part = whole.part(first, end);
            prop_assert_eq!(answers(&part), answers(&cut(&whole, (first, end))));
            for (at, key) in ["/db", "/web"].into_iter().enumerate() {
                let read: Vec<_> = readings[first..end].iter().map(|(_, groups)| groups[at]).collect();
                let group = part.entity(Entity::Cgroup, key);
                prop_assert_eq!(group.is_some(), read.iter().any(Option::is_some));
                for (index, current) in read.into_iter().enumerate() {
                    let found = group.and_then(|group| part.at_of(group, CGROUP_CURRENT, index));
                    prop_assert_eq!(found, current.map(Bytes::new));
                }
            }
            let (from, to) = some_of(part.len(), inner);
            let within = answers(&whole.part(first + from, first + to));
            prop_assert_eq!(answers(&part.part(from, to)), within.clone());
            prop_assert_eq!(answers(&whole.part(first, end).part(from, to)), within.clone());
            prop_assert_eq!(answers(&cut(&whole, (first, end)).part(from, to)), within);

            let goes_on = |mut part: Timeline| {
                push(&mut part, &more);
                part.mark_read(Entity::Cgroup, part.len() - 1);
                (answers(&part), answers(&part.part(from, part.len())))
            };
            let expected = goes_on(cut(&whole, (first, end)));
            prop_assert_eq!(goes_on(whole.part(first, end)), expected);
            let mut ahead = whole.part(first, end);
            ahead.mark_read(Entity::Cgroup, ahead.len() - 1);
            let mut expected = cut(&whole, (first, end));
            expected.mark_read(Entity::Cgroup, expected.len() - 1);
            prop_assert_eq!(answers(&ahead.part(from, to)), answers(&expected.part(from, to)));

            prop_assert_eq!(answers(&whole), before, "the source stays what it is");
            let part_answers = answers(&part);
            let unasked = whole.part(first, end);
            push(&mut whole, &more);
            prop_assert_eq!(answers(&part), part_answers.clone(),
                "and so does a part of a source that goes on");
            prop_assert_eq!(answers(&unasked), part_answers);
        }
    }

    #[test]
    fn a_part_alone_has_its_own_clock_and_its_own_reports() {
        let mut timeline = Timeline::default();
        for i in 0..10u64 {
            let mut sample = Sample::at(Span::from_secs(i * 10));
            sample.host.set(MEM_FREE, Bytes::new(i));
            timeline.push(&sample).unwrap();
        }
        for index in [2, 5, 9] {
            timeline.report_at(index, KernelReport::default(), None);
        }
        let part = timeline.part(4, 8).alone();
        assert_eq!(part.times()[0], Span::ZERO);
        assert_eq!(part.duration(), Span::from_secs(30));
        let at: Vec<_> = part.all_reports().iter().map(|r| (r.sample, r.at)).collect();
        assert_eq!(at, [(1, Span::from_secs(10))]);
        assert_eq!(part.at(MEM_FREE, 1), Some(Bytes::new(5)));
    }
}
