//! The samples in which a table was read, as a bit set.

/// The samples in which a table was read: processes may be read less often than the host.
#[derive(Debug, Clone, Default)]
pub(super) struct ReadSet {
    bits: Vec<u64>,
    last: Option<usize>,
}

/// The samples in which a table was read.
#[derive(Debug, Clone, Default)]
pub(super) struct SamplesRead {
    /// In which any of its entities were read.
    pub(super) all: ReadSet,
    /// In which all of its entities were read: one without a reading was gone.
    pub(super) whole: ReadSet,
}

impl SamplesRead {
    /// Adds a sample, which is not before the last one added.
    pub(super) fn note(&mut self, index: usize, is_partial: bool) {
        self.all.note(index);
        if !is_partial {
            self.whole.note(index);
        }
    }

    /// Whether only some entities were read in a sample.
    pub(super) fn is_partial(&self, index: usize) -> bool {
        self.all.contains(index) && !self.whole.contains(index)
    }

    /// The reads within samples `first` to before `end`, counted from `first`.
    pub(super) fn cut(&self, first: usize, end: usize) -> Self {
        Self { all: self.all.cut(first, end), whole: self.whole.cut(first, end) }
    }
}

impl ReadSet {
    /// Adds a sample, which is not before the last one added.
    pub(super) fn note(&mut self, index: usize) {
        self.bits.resize((index / 64 + 1).max(self.bits.len()), 0);
        self.bits[index / 64] |= 1 << (index % 64);
        self.last = Some(index);
    }

    pub(super) fn contains(&self, index: usize) -> bool {
        let word = self.bits.get(index / 64).copied().unwrap_or(0);
        word >> (index % 64) & 1 == 1
    }

    /// The last sample before `index` in which the table was read.
    pub(super) fn before(&self, index: usize) -> Option<usize> {
        // Most tables are read in most samples.
        if let Some(before) = index.checked_sub(1).filter(|before| self.contains(*before)) {
            return Some(before);
        }
        // Where readings are appended: a table that was read long ago, or never, must not be searched for at each sample.
        if self.last.is_none_or(|last| last < index) {
            return self.last;
        }
        let bits = index % 64;
        let mut word = index / 64;
        let mut left = self.bits.get(word).copied().unwrap_or(0) & ((1 << bits) - 1);
        loop {
            if left != 0 {
                return Some(word * 64 + 63 - left.leading_zeros() as usize);
            }
            word = word.checked_sub(1)?;
            left = self.bits.get(word).copied().unwrap_or(0);
        }
    }

    /// The first sample from `index` on in which the table was read.
    pub(super) fn at_or_after(&self, index: usize) -> Option<usize> {
        if self.contains(index) {
            return Some(index);
        }
        let mut word = index / 64;
        let mut left = self.bits.get(word)? & (u64::MAX << (index % 64));
        while left == 0 {
            word += 1;
            left = *self.bits.get(word)?;
        }
        Some(word * 64 + left.trailing_zeros() as usize)
    }

    /// Whether the table was read in any sample from `first` to `last`, both included.
    pub(super) fn touches(&self, first: usize, last: usize) -> bool {
        // Most runs end with a reading.
        self.contains(last) || self.before(last + 1).is_some_and(|at| at >= first)
    }

    /// The last sample in which the table was read.
    pub(super) fn last(&self) -> Option<usize> {
        self.last
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        let end = self.last.map_or(0, |last| last + 1);
        (0..end).filter(|index| self.contains(*index))
    }

    /// The set within samples `first` to before `end`, counted from `first`.
    pub(super) fn cut(&self, first: usize, end: usize) -> Self {
        let mut cut = Self::default();
        let mut next = self.at_or_after(first);
        while let Some(index) = next.filter(|index| *index < end) {
            cut.note(index - first);
            next = self.at_or_after(index + 1);
        }
        cut
    }
}
