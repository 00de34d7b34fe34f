//! The readings of the host or of an entity. A part of a timeline shares the columns of its source and cuts each on
//! first use: a rule reads a few columns, and a host has thousands.

use std::sync::{Arc, OnceLock};

use super::column::{ReadingColumn, ReadingColumns};
use super::read_set::ReadSet;
use crate::memory_budget::MemoryBudget;
use crate::signals::SignalId;

/// Columns that it owns, or a range of samples of a source's columns.
#[derive(Debug, Clone, Default)]
pub(super) struct Readings {
    columns: Arc<ReadingColumns>,
    excerpt: Option<Box<Excerpt>>,
}

/// The samples of the source that belong to a part.
#[derive(Debug, Clone)]
struct Excerpt {
    first: usize,
    end: usize,
    /// Those in which the table was read, counted from the first.
    reads: Arc<ReadSet>,
    /// The columns that were cut so far, by their indexes in the source. An entity that is not read allocates nothing.
    cut: OnceLock<Box<[OnceLock<ReadingColumn>]>>,
}

impl Readings {
    pub(super) fn get(&self, signal: SignalId) -> Option<&ReadingColumn> {
        self.column(self.columns.find(signal)?)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (SignalId, &ReadingColumn)> {
        let signals = self.columns.signals().enumerate();
        signals.filter_map(|(at, signal)| Some((signal, self.column(at)?)))
    }

    /// The column with an index in the source; `None` where the part has no reading of it.
    fn column(&self, at: usize) -> Option<&ReadingColumn> {
        let column = self.columns.column(at);
        let Some(excerpt) = &self.excerpt else {
            return Some(column);
        };
        let cut =
            excerpt.cut.get_or_init(|| self.columns.signals().map(|_| OnceLock::new()).collect());
        let cut = cut[at].get_or_init(|| column.cut(excerpt.first, excerpt.end, &excerpt.reads));
        (!cut.is_empty()).then_some(cut)
    }

    /// The reading of a signal at exactly this sample. `reads` are the samples in which the table was read. A part reads it
    /// in its source: one reading of each of a thousand processes is not worth a cut of a thousand columns.
    pub(super) fn at(&self, signal: SignalId, index: usize, reads: &ReadSet) -> Option<u64> {
        let column = self.columns.column(self.columns.find(signal)?);
        let Some(excerpt) = &self.excerpt else {
            return column.get(index, reads);
        };
        let run = column.over(excerpt.first.saturating_add(index))?;
        reads.contains(index).then_some(run.value)
    }

    /// The reading of a signal at a sample, or else the nearest earlier one, read as by [`at`](Self::at).
    pub(super) fn latest(&self, signal: SignalId, index: usize) -> Option<u64> {
        let column = self.columns.column(self.columns.find(signal)?);
        match &self.excerpt {
            Some(part) => column.latest_in((part.first, part.end), index, &part.reads),
            None => column.latest(index),
        }
    }

    /// The last reading of a signal, read as by [`at`](Self::at).
    pub(super) fn last(&self, signal: SignalId) -> Option<u64> {
        let column = self.columns.column(self.columns.find(signal)?);
        match &self.excerpt {
            Some(part) => column.latest_in((part.first, part.end), part.end, &part.reads),
            None => column.last(),
        }
    }

    /// The readings within samples `first` to before `end`, counted from `first`; `None` where there are none. `reads`
    /// are those of these samples in which the table was read.
    pub(super) fn part(&self, first: usize, end: usize, reads: &Arc<ReadSet>) -> Option<Self> {
        let before = self.excerpt.as_ref().map_or(0, |whole| whole.first);
        let (first, end) = (before + first, before + end);
        self.columns.has_any(first, end, reads).then(|| Self {
            columns: Arc::clone(&self.columns),
            excerpt: Some(Box::new(Excerpt {
                first,
                end,
                reads: Arc::clone(reads),
                cut: OnceLock::new(),
            })),
        })
    }

    /// The columns, mutable. Columns shared with another timeline are copied first.
    pub(super) fn own(&mut self) -> &mut ReadingColumns {
        if let Some(excerpt) = self.excerpt.take() {
            let cut = self.columns.cut(excerpt.first, excerpt.end, &excerpt.reads);
            self.columns = Arc::new(cut);
        }
        Arc::make_mut(&mut self.columns)
    }

    /// The last sample of all readings.
    pub(super) fn last_sample(&self) -> Option<usize> {
        self.ends().map(|(_, last)| last)
    }

    /// The number of samples from its first reading to its last.
    pub(super) fn seen(&self) -> usize {
        self.ends().map_or(0, |(first, last)| last + 1 - first)
    }

    /// The samples of its first and its last reading.
    pub(super) fn ends(&self) -> Option<(usize, usize)> {
        if self.excerpt.is_none() {
            return self.columns.within();
        }
        let ends = self.iter().filter_map(|(_, column)| column.ends());
        ends.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
    }

    /// The memory that they take.
    pub(super) fn size(&self) -> usize {
        MemoryBudget::of_readings(self.iter().count(), self.count_runs())
    }

    pub(super) fn count_runs(&self) -> usize {
        self.iter().map(|(_, column)| column.runs().len()).sum()
    }
}

impl From<ReadingColumns> for Readings {
    fn from(columns: ReadingColumns) -> Self {
        Self { columns: Arc::new(columns), excerpt: None }
    }
}
