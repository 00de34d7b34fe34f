//! Roll-ups become readings of one sample a minute.

use timeline::{Entity, Run, SignalId, Stamp, Timeline};
use units::WallClock;

use super::{Before, DIRECTORY, Directory, FIRST, LAST, TOLD, Told, VALUE, index};
use crate::segment::host::{Taken, span};
use crate::segment::names;
use crate::segment::picks::Picks;
use crate::segment::runs::Joined;
use crate::segment::table::{Cells, Opened};

/// The roll-ups of a segment, opened.
pub(crate) struct Minutes {
    file: Opened,
    taken: Vec<Taken>,
    directories: Vec<Directory>,
}

/// Buffers for columns, kept from segment to segment.
#[derive(Default)]
pub(crate) struct Buffers {
    first: Vec<i32>,
    last: Vec<i32>,
    value: Cells,
    joined: Joined,
    runs: Vec<(SignalId, Run)>,
}

impl Minutes {
    /// Opens a file.
    pub(crate) fn open(file: Opened) -> Result<Self, String> {
        let told: Vec<Told> = metadata(&file, TOLD)?;
        let directories = metadata(&file, DIRECTORY)?;
        let taken = told.into_iter().map(|told| Taken {
            stamp: Stamp {
                boot: span(told.0),
                awake: told.1.map(span),
                wall: told.2.map(WallClock::from_unix_nanos),
            },
            is_unrelated: told.3 != 0,
            read: told.4,
        });
        Ok(Self {
            taken: taken.collect(),
            directories,
            file,
        })
    }

    /// What its metadata says of the segment.
    pub(crate) fn file(&self) -> &Opened {
        &self.file
    }

    /// The last sample of each minute.
    pub(crate) fn taken(&self) -> &[Taken] {
        &self.taken
    }

    /// How the segment ended: its last sample, and what its counters were at last.
    pub(crate) fn end(&self) -> Before {
        let mut before = Before::after(self.taken.last().copied());
        let mut buffers = Buffers::default();
        for (part, directory) in self.directories.iter().enumerate() {
            let entity = Entity::ALL
                .into_iter()
                .find(|it| it.name() == directory.entity);
            let (Some(entity), Ok(())) = (entity, self.columns(part, &mut buffers)) else {
                continue;
            };
            let mut end = 0;
            for (key, signal, rows) in &directory.series {
                end += index(*rows);
                let key = directory
                    .keys
                    .get(index(*key))
                    .map(|names| names.0.as_str());
                let signal = directory.signals.get(index(*signal));
                let signal = signal.and_then(|name| names::signal(name));
                let last = end
                    .checked_sub(1)
                    .and_then(|last| buffers.value.values.get(last));
                if let (Some(key), Some(signal), Some(last)) = (key, signal, last) {
                    before.note(entity, key, signal, last.cast_unsigned());
                }
            }
        }
        before
    }

    /// Appends the readings of a kind of entity to a timeline.
    pub(crate) fn read(
        &self,
        entity: Entity,
        picks: &Picks,
        timeline: &mut Timeline,
        buffers: &mut Buffers,
    ) -> Result<(), String> {
        let is_it = |directory: &Directory| directory.entity == entity.name();
        let Some(part) = self.directories.iter().position(is_it) else {
            return Ok(());
        };
        self.columns(part, buffers)?;
        let directory = &self.directories[part];
        let signal =
            |name: &String| names::signal(name).filter(|signal| signal.def().entity == entity);
        let signals: Vec<Option<SignalId>> = directory.signals.iter().map(signal).collect();
        let mut from = 0;
        let mut series = directory.series.as_slice();
        while let Some((key, _, _)) = series.first() {
            let its = series.iter().take_while(|(other, _, _)| other == key);
            let (its, rest) = series.split_at(its.count());
            series = rest;
            buffers.runs.clear();
            for (_, signal, rows) in its {
                let rows = from..from + index(*rows);
                from = rows.end;
                if let Some(signal) = signals.get(index(*signal)).copied().flatten() {
                    buffers.join(signal, rows, picks)?;
                }
            }
            let whose = directory.keys.get(index(*key));
            let (key, label, group) = whose.ok_or("its metadata lacks a key")?;
            if buffers.runs.is_empty() {
                continue;
            }
            if entity == Entity::Host {
                for signal in buffers.runs.chunk_by(|a, b| a.0 == b.0) {
                    timeline.fill_host(signal[0].0, signal.iter().map(|(_, run)| *run));
                }
            } else {
                timeline.fill(entity, key, label, group, buffers.runs.drain(..));
            }
        }
        Ok(())
    }

    fn columns(&self, part: usize, buffers: &mut Buffers) -> Result<(), String> {
        let names = self.file.columns();
        let column = |name: &str| {
            let found = names.iter().position(|found| found == name);
            found.ok_or_else(|| format!("it has no column `{name}`"))
        };
        let text = |error: parquet::errors::ParquetError| error.to_string();
        let part = self.file.part(part).map_err(text)?;
        part.ordinals(column(FIRST)?, &mut buffers.first)
            .map_err(text)?;
        part.ordinals(column(LAST)?, &mut buffers.last)
            .map_err(text)?;
        part.numbers(column(VALUE)?, &mut buffers.value)
            .map_err(text)
    }
}

impl Buffers {
    fn join(
        &mut self,
        signal: SignalId,
        rows: std::ops::Range<usize>,
        picks: &Picks,
    ) -> Result<(), String> {
        let column =
            |column: Option<_>| column.ok_or("its rows are not those that its metadata tells");
        let firsts = column(self.first.get(rows.clone()))?;
        let lasts = column(self.last.get(rows.clone()))?;
        let values = self.value.values.get(rows);
        let values = values.ok_or("its rows are not those that its metadata tells")?;
        for ((first, last), value) in firsts.iter().zip(lasts).zip(values) {
            if let Some(ranks) = picks.within(*first, *last) {
                self.joined.push(ranks, *value);
            }
        }
        let runs = self.joined.drain(picks).map(|run| (signal, run));
        self.runs.extend(runs);
        Ok(())
    }
}

fn metadata<T: serde::de::DeserializeOwned>(file: &Opened, key: &str) -> Result<T, String> {
    let text = file.metadata(key);
    let text = text.ok_or_else(|| format!("it has no metadata `{key}`"))?;
    serde_json::from_str(text).map_err(|error| format!("metadata `{key}`: {error}"))
}
