//! A timeline as samples again, one after the other.

use super::Timeline;
use super::read_set::ReadSet;
use super::readings::Readings;
use crate::sample::Sample;
use crate::signals::{Entity, SignalId};

impl Timeline {
    /// The samples as they were appended, except for unknown fields.
    pub fn samples(&self) -> Samples<'_> {
        self.samples_from(0)
    }

    /// The sample with this index. Those of a range are cheaper from [`samples`](Self::samples).
    pub fn sample(&self, index: usize) -> Option<Sample> {
        self.samples_from(index).next()
    }

    fn samples_from(&self, index: usize) -> Samples<'_> {
        Samples { timeline: self, index, places: RunPlaces::default() }
    }
}

/// Iterates over the samples of a timeline.
#[derive(Debug)]
pub struct Samples<'a> {
    timeline: &'a Timeline,
    /// The next sample.
    index: usize,
    places: RunPlaces,
}

impl Iterator for Samples<'_> {
    type Item = Sample;

    fn next(&mut self) -> Option<Sample> {
        let (timeline, index) = (self.timeline, self.index);
        let mut sample = Sample::default();
        sample.stamp = timeline.stamp(index)?;
        self.index += 1;
        self.places.next = 0;
        let reads = timeline.reads(Entity::Host);
        for (signal, raw) in self.places.readings(&timeline.host, index, reads) {
            sample.host.set_raw(signal, raw);
        }
        for entity in Entity::ALL {
            if timeline.table_reads(entity).is_partial(index) {
                sample.table_mut(entity).set_partial();
            }
        }
        for ((entity, key), series) in &timeline.entities {
            let reads = timeline.reads(*entity);
            let mut readings = self.places.readings(&series.columns, index, reads).peekable();
            if readings.peek().is_none() {
                continue;
            }
            let row = sample.table_mut(*entity).add();
            row.key.clone_from(key);
            row.label.clone_from(&series.label);
            row.group.clone_from(&series.group);
            for (signal, raw) in readings {
                row.row.set_raw(signal, raw);
            }
        }
        Some(sample)
    }
}

/// How many runs begin up to the current sample, for each long column in the order in which they are read. A search for
/// them at each sample would load other cache lines each time.
#[derive(Debug, Default)]
struct RunPlaces {
    places: Vec<u32>,
    /// The place of the column that is read next.
    next: usize,
}

impl RunPlaces {
    /// A shorter column is searched as fast, and the places take little memory beside the runs.
    const RUNS_MIN: usize = 16;

    /// The readings at a sample; all must be taken.
    fn readings<'a>(
        &'a mut self,
        readings: &'a Readings,
        index: usize,
        reads: &'a ReadSet,
    ) -> impl Iterator<Item = (SignalId, u64)> + 'a {
        let columns = readings.iter();
        columns.filter_map(move |(signal, column)| {
            let value = if column.runs().len() < Self::RUNS_MIN {
                column.get(index, reads)
            } else {
                column.get_near(index, reads, self.place())
            };
            Some((signal, value?))
        })
    }

    fn place(&mut self) -> &mut u32 {
        if self.next == self.places.len() {
            self.places.push(0);
        }
        self.next += 1;
        &mut self.places[self.next - 1]
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::option::of;
    use proptest::prelude::*;
    use units::{Bytes, Span};

    use super::*;
    use crate::signals::{CGROUP_CURRENT, MEM_FREE};

    proptest! {
        /// Walking from sample to sample finds what a search finds, also in a part and where a group has no reading.
        #[test]
        fn samples_in_a_row_are_those_that_are_searched(
            readings in vec((0u64..3, of(0u64..3)), 40..90),
            part in (0usize..20, 0usize..20),
        ) {
            let mut timeline = Timeline::default();
            for (second, (free, group)) in readings.iter().enumerate() {
                let mut sample = Sample::at(Span::from_secs(second as u64));
                sample.host.set(MEM_FREE, Bytes::new(*free));
                if let Some(current) = group {
                    let row = sample.table_mut(Entity::Cgroup).entry("/db");
                    row.row.set(CGROUP_CURRENT, Bytes::new(*current));
                }
                timeline.push(&sample).unwrap();
            }
            let text = |sample: &Sample| format!("{sample:?}");
            for timeline in [&timeline, &timeline.part(part.0, readings.len() - part.1)] {
                let walked: Vec<_> = timeline.samples().map(|sample| text(&sample)).collect();
                let searched = (0..timeline.len()).map(|at| text(&timeline.sample(at).unwrap()));
                prop_assert_eq!(walked, searched.collect::<Vec<_>>());
            }
        }
    }
}
