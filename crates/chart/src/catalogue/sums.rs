//! Memory of many entities, added up by name. Processes come and go by the thousand, and none needs a curve of its own:
//! each run of equal readings is two changes of a sum, so the cost grows with the number of runs, not of samples.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};

use diagnose::Evidence;
use timeline::{Entity, EntitySeries, SignalId};

use crate::Curve;

/// Entities to add up, and the name to add them up by.
#[derive(Debug, Clone)]
pub(super) struct EntitySums {
    pub(super) entity: Entity,
    /// Signals, each with the bytes in one of its units.
    pub(super) signals: Vec<(SignalId, u64)>,
    pub(super) name: fn(&EntitySeries) -> &str,
    /// Only these names count; all names if it is `None`.
    pub(super) only: Option<HashSet<String>>,
    /// Names that are not added up: each of their processes is a sum of its own.
    pub(super) apart: HashSet<String>,
}

/// The sum of one name over a whole source, in bytes.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct EntitySum {
    pub(super) name: String,
    pub(super) most: f64,
    pub(super) first: f64,
    pub(super) last: f64,
}

/// The change of a sum at a sample. Wider than any sum of readings, even hostile ones.
type SumChange = (usize, i128);

impl EntitySums {
    /// Returns the sums of all names that ever had memory, the largest first.
    pub(super) fn largest(&self, cx: &Evidence<'_>) -> Vec<EntitySum> {
        let mut groups: BTreeMap<Cow<'_, str>, Vec<&EntitySeries>> = BTreeMap::new();
        for series in self.counted(cx) {
            groups.entry(self.area_of(series)).or_default().push(series);
        }
        let reads = self.reads(cx);
        let ends = (reads.first().copied(), reads.last().copied());
        let mut ledger = ChangeLedger::of(cx.timeline.len());
        let sums = groups.into_iter().map(|(name, all)| {
            for series in all {
                self.each_change(series, |change| ledger.take(change));
            }
            ledger.sum(&name, ends)
        });
        let mut sums: Vec<EntitySum> = sums.filter(|sum| sum.most > 0.0).collect();
        sums.sort_by(|a, b| b.most.total_cmp(&a.most).then_with(|| a.name.cmp(&b.name)));
        sums
    }

    /// Returns the curves of these names, followed by that of all others.
    pub(super) fn curves(&self, cx: &Evidence<'_>, names: &[String]) -> Vec<Curve> {
        let places: HashMap<&str, usize> =
            names.iter().enumerate().map(|(place, name)| (name.as_str(), place)).collect();
        let speakers = self.speakers(cx);
        if speakers.iter().all(Option::is_none) {
            return vec![Curve::new(); names.len() + 1];
        }
        // The change of each sum at each sample.
        let mut changes = vec![vec![0; speakers.len() + 1]; names.len() + 1];
        for series in self.counted(cx) {
            let place = places.get(&*self.area_of(series)).copied();
            let changes = &mut changes[place.unwrap_or(names.len())];
            self.each_change(series, |(at, by)| changes[at] += by);
        }
        let curves = changes.iter().map(|changes| curve(changes, &speakers));
        curves.collect()
    }

    /// Returns the name of the area in which an entity is drawn: of a process that stands alone, also its PID.
    pub(super) fn area_of<'a>(&self, series: &'a EntitySeries) -> Cow<'a, str> {
        if self.is_apart(series) {
            Cow::Owned(format!("{} ({})", series.label, series.pid()))
        } else {
            Cow::Borrowed((self.name)(series))
        }
    }

    fn is_apart(&self, series: &EntitySeries) -> bool {
        series.entity == Entity::Process && self.apart.contains((self.name)(series))
    }

    /// Returns the processes that stand alone.
    pub(super) fn standing_alone<'a>(
        &self,
        cx: &Evidence<'a>,
    ) -> impl Iterator<Item = &'a EntitySeries> {
        cx.timeline.entities(Entity::Process).filter(|process| self.is_apart(process))
    }

    fn counted<'a>(&self, cx: &Evidence<'a>) -> impl Iterator<Item = &'a EntitySeries> {
        let added_up = cx
            .timeline
            .entities(self.entity)
            // Without entities that have ended, a sum would seem to grow towards the end, where all are present.
            .chain(cx.timeline.evicted_sums(self.entity))
            .filter(|series| {
                let name = (self.name)(series);
                self.only.as_ref().is_none_or(|only| only.contains(name))
                    && !self.apart.contains(name)
            });
        added_up.chain(self.standing_alone(cx))
    }

    /// Passes on the changes of a sum that an entity causes.
    fn each_change(&self, series: &EntitySeries, mut take: impl FnMut(SumChange)) {
        for (signal, runs) in series.runs() {
            let Some((_, scale)) = self.signals.iter().find(|(known, _)| *known == signal) else {
                continue;
            };
            for run in runs {
                let bytes = i128::from(run.value) * i128::from(*scale);
                take((run.first(), bytes));
                take((run.last() + 1, -bytes));
            }
        }
    }

    /// Returns the sum of an entity's largest readings, which were perhaps at different times.
    #[allow(clippy::cast_precision_loss)] // compared only
    pub(super) fn peak_at_most(&self, series: &EntitySeries) -> f64 {
        let largest = series.runs().filter_map(|(signal, runs)| {
            let (_, scale) = self.signals.iter().find(|(known, _)| *known == signal)?;
            Some(runs.iter().map(|run| run.value).max()? as f64 * *scale as f64)
        });
        largest.sum()
    }

    /// Returns the samples in which these entities were read.
    fn reads(&self, cx: &Evidence<'_>) -> Vec<usize> {
        let samples = 0..cx.timeline.len();
        let was_read = |at: &usize| cx.timeline.was_read(self.entity, *at);
        samples.filter(was_read).collect()
    }

    /// Returns for each sample the reading that speaks for it: the last one, unless there is a break since. Readings
    /// are rare in long sources, and a later reading does not show what was there before it.
    fn speakers(&self, cx: &Evidence<'_>) -> Vec<Option<usize>> {
        let breaks = cx.timeline.breaks().iter();
        let breaks: Vec<usize> =
            breaks.filter(|gap| gap.kind.breaks_rates()).map(|gap| gap.before).collect();
        let breaks_until = |at: usize| breaks.partition_point(|gap| *gap <= at);
        let mut speakers = vec![None; cx.timeline.len()];
        let (mut before, mut usual) = (None::<usize>, 1);
        for at in self.reads(cx) {
            speakers[at] = Some(at);
            if let Some(before) = before.filter(|b| breaks_until(*b) == breaks_until(at)) {
                speakers[before + 1..at].fill(Some(before));
                usual = at - before;
            }
            before = Some(at);
        }
        // The last reading speaks for samples until the next one would have been due.
        if let Some(last) = before {
            let due = (last + usual).min(speakers.len());
            let unbroken = (last + 1..due).take_while(|at| breaks_until(*at) == breaks_until(last));
            unbroken.for_each(|at| speakers[at] = Some(last));
        }
        speakers
    }
}

/// The changes of one sum at a time. While they are few, they are sorted; otherwise they are added up in an array with
/// one place per sample, which the next sum uses again.
struct ChangeLedger {
    few: Vec<SumChange>,
    /// Empty while there are few changes.
    many: Vec<i128>,
    places: usize,
}

impl ChangeLedger {
    /// With fewer samples per change than this, sorting costs more than the array.
    const SPARSE: usize = 16;

    fn of(samples: usize) -> Self {
        Self { few: Vec::new(), many: Vec::new(), places: samples + 1 }
    }

    fn take(&mut self, (at, by): SumChange) {
        if !self.many.is_empty() {
            self.many[at] += by;
            return;
        }
        self.few.push((at, by));
        if self.few.len() * Self::SPARSE > self.places {
            self.many.resize(self.places, 0);
            self.few.drain(..).for_each(|(at, by)| self.many[at] += by);
        }
    }

    /// Returns the sum of all changes taken since the last one; `ends` are the first and the last sample that were
    /// read.
    fn sum(&mut self, name: &str, ends: (Option<usize>, Option<usize>)) -> EntitySum {
        let mut course = SumCourse::default();
        self.few.sort_unstable_by_key(|(at, _)| *at);
        // A value that changes is removed and added in one sample, and must not count twice.
        for same in self.few.chunk_by(|a, b| a.0 == b.0) {
            let by = same.iter().map(|(_, by)| by).sum();
            course.change(same[0].0, by, ends);
        }
        for (at, by) in self.many.iter().enumerate().filter(|(_, by)| **by != 0) {
            course.change(at, *by, ends);
        }
        self.few.clear();
        self.many.clear();
        EntitySum {
            name: name.to_owned(),
            most: float(course.most),
            first: float(course.first),
            last: float(course.last),
        }
    }
}

/// The course of a sum from sample to sample.
#[derive(Default)]
struct SumCourse {
    now: i128,
    most: i128,
    first: i128,
    last: i128,
}

impl SumCourse {
    fn change(&mut self, at: usize, by: i128, (first, last): (Option<usize>, Option<usize>)) {
        self.now += by;
        self.most = self.most.max(self.now);
        for (end, sum) in [(first, &mut self.first), (last, &mut self.last)] {
            if Some(at) <= end {
                *sum = self.now;
            }
        }
    }
}

/// Returns the sum at each sample, from the reading that speaks for it.
fn curve(changes: &[i128], speakers: &[Option<usize>]) -> Curve {
    let sums = changes.iter().scan(0, |sum: &mut i128, by| {
        *sum += by;
        Some(*sum)
    });
    let sums: Vec<f64> = sums.map(float).collect();
    let at = |speaker: &Option<usize>| speaker.map(|speaker| sums[speaker]);
    speakers.iter().map(at).collect()
}

#[allow(clippy::cast_precision_loss)] // drawn, and exact below 8 PiB
fn float(bytes: i128) -> f64 {
    bytes as f64
}
