//! Which samples of a segment are wanted, and where they lie in the timeline that is being made.

/// Samples of one table that are kept, and their places.
#[derive(Debug, Default)]
pub(crate) struct Picks {
    /// For each sample the rank of the first kept one that is not before it.
    next: Vec<u32>,
    /// Places in the timeline, by rank.
    places: Vec<usize>,
}

impl Picks {
    /// Of samples in order, those that are kept: for each its place in the timeline, or `None`.
    pub(crate) fn new(samples: impl IntoIterator<Item = Option<usize>>) -> Self {
        let mut picks = Self::default();
        for place in samples {
            picks.next.push(picks.rank());
            picks.places.extend(place);
        }
        picks.next.push(picks.rank());
        picks
    }

    fn rank(&self) -> u32 {
        u32::try_from(self.places.len()).unwrap_or(u32::MAX)
    }

    /// The ranks of kept samples from one sample to another, both included; `None` where none is kept.
    pub(crate) fn within(&self, first: i32, last: i32) -> Option<(u32, u32)> {
        let first = self.next.get(usize::try_from(first).ok()?)?;
        let end = self.next.get(usize::try_from(last).ok()? + 1)?;
        (first < end).then(|| (*first, end - 1))
    }

    /// The place in the timeline of a kept sample.
    pub(crate) fn place(&self, rank: u32) -> usize {
        let at = usize::try_from(rank).unwrap_or(usize::MAX);
        self.places.get(at).copied().unwrap_or_default()
    }

    /// The place of the first sample where all are kept and lie beside each other.
    pub(crate) fn all_from(&self) -> Option<usize> {
        let first = *self.places.first()?;
        let is_all = self.next.len() == self.places.len() + 1;
        let last = first + self.places.len() - 1;
        (is_all && self.places.last() == Some(&last)).then_some(first)
    }

    /// The places of all kept samples.
    pub(crate) fn places(&self) -> &[usize] {
        &self.places
    }
}

#[cfg(test)]
mod tests {
    use super::Picks;

    #[test]
    fn ranges_find_what_is_kept_in_them() {
        let picks = Picks::new([None, Some(10), None, Some(11), None]);
        assert_eq!(picks.within(0, 0), None);
        assert_eq!(picks.within(0, 1), Some((0, 0)));
        assert_eq!(picks.within(1, 4), Some((0, 1)));
        assert_eq!(picks.within(4, 4), None);
        assert_eq!(picks.within(0, 9), None, "beyond the segment");
        assert_eq!(picks.place(1), 11);
        assert_eq!(picks.all_from(), None);
        assert_eq!(Picks::new([Some(4), Some(5)]).all_from(), Some(4));
        assert_eq!(Picks::new([Some(4), Some(6)]).all_from(), None);
    }
}
