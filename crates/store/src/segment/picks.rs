//! The selected samples of a segment, and their indexes in the timeline that is loaded.

/// The selected samples of one table, with their indexes in the timeline.
#[derive(Debug, Default)]
pub(crate) struct SamplePicks {
    /// For each sample, the rank of the first selected one that is not before it.
    next: Vec<u32>,
    /// Indexes in the timeline, by rank.
    places: Vec<usize>,
    /// The ranks of those in which only some of the table's entities were read.
    partial: Vec<u32>,
}

impl SamplePicks {
    /// Builds the selection from the samples in order: each one's index in the timeline, or `None` if it is not
    /// selected.
    pub(crate) fn new(samples: impl IntoIterator<Item = Option<usize>>) -> Self {
        let mut picks = Self::default();
        for place in samples {
            picks.next.push(picks.rank());
            picks.places.extend(place);
        }
        picks.next.push(picks.rank());
        picks
    }

    /// Builds the selection as [`new`](Self::new), of samples that may have read only some of a table's entities.
    pub(crate) fn of_table(
        samples: Vec<Option<usize>>,
        is_partial: impl Fn(usize) -> bool,
    ) -> Self {
        let selected = (0..samples.len()).filter(|at| samples[*at].is_some());
        let partial = (0..).zip(selected).filter(|(_, at)| is_partial(*at));
        Self { partial: partial.map(|(rank, _)| rank).collect(), ..Self::new(samples) }
    }

    fn rank(&self) -> u32 {
        u32::try_from(self.places.len()).unwrap_or(u32::MAX)
    }

    /// Returns the number of samples, selected or not.
    pub(crate) fn samples(&self) -> usize {
        self.next.len().saturating_sub(1)
    }

    /// Returns the ranks of selected samples from one sample to another, both included; `None` if none is selected.
    pub(crate) fn within(&self, first: i32, last: i32) -> Option<(u32, u32)> {
        let first = self.next.get(usize::try_from(first).ok()?)?;
        let end = self.next.get(usize::try_from(last).ok()? + 1)?;
        (first < end).then(|| (*first, end - 1))
    }

    /// Returns the index in the timeline of a selected sample.
    pub(crate) fn place(&self, rank: u32) -> usize {
        let at = usize::try_from(rank).unwrap_or(usize::MAX);
        self.places.get(at).copied().unwrap_or_default()
    }

    /// Returns the index of the first sample if all are selected and consecutive.
    pub(crate) fn all_from(&self) -> Option<usize> {
        let first = *self.places.first()?;
        let is_all = self.next.len() == self.places.len() + 1;
        let last = first + self.places.len() - 1;
        (is_all && self.places.last() == Some(&last)).then_some(first)
    }

    /// Returns the indexes of all selected samples.
    pub(crate) fn places(&self) -> &[usize] {
        &self.places
    }

    /// Returns the indexes of all selected samples, and whether only some of the table's entities were read in each.
    pub(crate) fn reads(&self) -> impl Iterator<Item = (usize, bool)> + '_ {
        let ranks = (0..).zip(&self.places);
        ranks.map(|(rank, place)| (*place, self.partial.binary_search(&rank).is_ok()))
    }
}

#[cfg(test)]
mod tests {
    use super::SamplePicks;

    #[test]
    fn ranges_find_what_is_kept_in_them() {
        let picks = SamplePicks::new([None, Some(10), None, Some(11), None]);
        assert_eq!(picks.within(0, 0), None);
        assert_eq!(picks.within(0, 1), Some((0, 0)));
        assert_eq!(picks.within(1, 4), Some((0, 1)));
        assert_eq!(picks.within(4, 4), None);
        assert_eq!(picks.within(0, 9), None, "beyond the segment");
        assert_eq!(picks.place(1), 11);
        assert_eq!(picks.all_from(), None);
        assert_eq!(SamplePicks::new([Some(4), Some(5)]).all_from(), Some(4));
        assert_eq!(SamplePicks::new([Some(4), Some(6)]).all_from(), None);
    }
}
