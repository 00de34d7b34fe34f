//! What one text, or one moment of a text, reports of a host.

use std::sync::Arc;

use timeline::{Entity, KernelReport, Row, Sample, SignalId};
use units::{PageSize, Span, WallClock};

use crate::text::figure::{PrintedFigure, raw};

/// What a block reports of one time.
#[derive(Debug, Default)]
pub(crate) struct Snapshot {
    /// Readings.
    pub(crate) sample: Sample,
    /// When it was taken.
    pub(crate) when: SnapshotTime,
    /// How it follows the snapshot before it.
    pub(crate) link: Link,
    /// Rounded or truncated gauges of the host, each with its largest error in the unit of the catalogue.
    pub(crate) error_at_most: Vec<(SignalId, u64)>,
    /// The kernel report that it was read from.
    pub(crate) report: Option<KernelReport>,
    /// The lines of the report.
    pub(crate) text: Option<Arc<str>>,
}

impl From<Sample> for Snapshot {
    /// At an unknown time.
    fn from(sample: Sample) -> Self {
        Self { sample, ..Self::default() }
    }
}

impl Snapshot {
    /// Sets a size of the host and its rounding. A figure without a suffix counts `unit` bytes.
    pub(crate) fn set_size(&mut self, signal: SignalId, figure: PrintedFigure, unit: f64) {
        let figure = figure.in_bytes(unit);
        let Some(bytes) = raw(figure.value) else {
            return;
        };
        self.sample.host.set_raw(signal, bytes);
        self.set_error(signal, figure.doubt());
    }

    /// Notes by how many bytes a reading may be off. Below 1 KiB it is as exact as the kernel's own figure.
    pub(crate) fn set_error(&mut self, signal: SignalId, bytes: f64) {
        let error = raw(bytes).filter(|error| *error > 1024);
        self.error_at_most.extend(error.map(|error| (signal, error)));
    }

    /// Converts counts of pages of one size to pages of another size.
    pub(crate) fn convert_pages(&mut self, from: PageSize, to: PageSize) {
        let convert = |row: &mut Row| {
            let are_pages = |(signal, _): &(SignalId, u64)| signal.def().unit == "pages";
            let readings: Vec<_> = row.iter().filter(are_pages).collect();
            for (signal, pages) in readings {
                let bytes = pages.saturating_mul(from.bytes().get());
                row.set_raw(signal, bytes / to.bytes().get());
            }
        };
        if from == to {
            return;
        }
        convert(&mut self.sample.host);
        for entity in Entity::ALL {
            for row in self.sample.table_mut(entity).rows_mut() {
                convert(&mut row.row);
            }
        }
    }

    /// Whether it has readings of the host or of a process, a node, a disk …
    pub(crate) fn has_readings(&self) -> bool {
        !self.sample.host.is_empty() || Entity::ALL.iter().any(|entity| self.has_rows(*entity))
    }

    /// Whether it has rows of this kind.
    pub(crate) fn has_rows(&self, entity: Entity) -> bool {
        !self.sample.table(entity).rows().is_empty()
    }

    /// The raw reading of a host signal.
    pub(crate) fn host(&self, signal: SignalId) -> Option<u64> {
        self.sample.host.iter().filter(|(id, _)| *id == signal).last().map(|(_, raw)| raw)
    }

    /// By how much a reading may be off, in the unit of the catalogue.
    pub(crate) fn error(&self, signal: SignalId) -> u64 {
        self.error_at_most
            .iter()
            .filter(|(id, _)| *id == signal)
            .map(|(_, error)| *error)
            .max()
            .unwrap_or(0)
    }
}

/// How a snapshot follows the one before it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Link {
    /// As its block and its time show.
    #[default]
    Follows,
    /// The host was restarted in between.
    Reboot,
    /// It does not: its counters start again.
    Apart,
}

/// When a snapshot was taken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum SnapshotTime {
    #[default]
    Unknown,
    /// On a wall clock. Its zone may be unknown; differences are right.
    At(WallClock),
    /// This long after the snapshot before it in the same block.
    After(Span),
}

/// The names of all signals in a sample, some more than once.
pub(crate) fn signals_in(sample: &Sample) -> impl Iterator<Item = &'static str> + '_ {
    let entities = Entity::ALL
        .into_iter()
        .flat_map(|entity| sample.table(entity).rows())
        .flat_map(|row| row.row.iter());
    sample.host.iter().chain(entities).map(|(id, _)| id.def().name)
}
