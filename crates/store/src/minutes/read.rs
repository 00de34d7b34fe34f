//! Roll-ups become readings of one sample a minute.

use std::collections::HashMap;
use std::ops::Range;

use timeline::{Entity, Run, SignalId, Stamp, Timeline};
use units::WallClock;

use super::{Before, FIRST, GROUP, KEY, LABEL, LAST, SIGNAL, TOLD, Told, VALUE, format_1};
use crate::segment::host::{Taken, span};
use crate::segment::names;
use crate::segment::picks::Picks;
use crate::segment::runs::Joined;
use crate::segment::table::{Cells, Opened, Part};

/// The roll-ups of a segment, opened.
pub(crate) struct Minutes {
    file: Opened,
    taken: Vec<Taken>,
    kinds: Vec<Kind>,
}

/// What the file has of a kind of entity.
pub(crate) struct Kind {
    pub(super) entity: Entity,
    /// The row group that has it.
    pub(super) part: usize,
    pub(super) names: Vec<Names>,
    /// Those of one entity beside each other.
    pub(super) series: Vec<Series>,
}

/// Key, label and group of an entity.
pub(super) type Names = (String, String, String);

/// One signal of one entity.
pub(super) struct Series {
    /// The number of its entity.
    pub(super) of: usize,
    pub(super) signal: SignalId,
    pub(super) rows: Range<usize>,
}

/// Buffers for columns, kept from segment to segment.
#[derive(Default)]
pub(crate) struct Buffers {
    /// The row group that they hold.
    part: Option<usize>,
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
        let taken = told.into_iter().map(|told| Taken {
            stamp: Stamp {
                boot: span(told.0),
                awake: told.1.map(span),
                wall: told.2.map(WallClock::from_unix_nanos),
            },
            is_unrelated: told.3 != 0,
            read: told.4,
        });
        let kinds = match format_1::kinds(&file)? {
            Some(kinds) => kinds,
            None => kinds_of(&file)?,
        };
        Ok(Self {
            taken: taken.collect(),
            kinds,
            file,
        })
    }

    /// The file, for what it says beside its table.
    pub(crate) fn file(&self) -> &Opened {
        &self.file
    }

    /// The last sample of each minute.
    pub(crate) fn taken(&self) -> &[Taken] {
        &self.taken
    }

    /// What it has of a kind of entity.
    pub(crate) fn kind(&self, entity: Entity) -> Option<&Kind> {
        self.kinds.iter().find(|kind| kind.entity == entity)
    }

    /// How the segment ended: its last sample, and what its counters were at last.
    pub(crate) fn end(&self) -> Before {
        let mut before = Before::after(self.taken.last().copied());
        let mut buffers = Buffers::default();
        for kind in &self.kinds {
            if self.columns(kind.part, &mut buffers).is_err() {
                continue;
            }
            for series in &kind.series {
                let last = series.rows.end.checked_sub(1);
                let last = last.and_then(|last| buffers.value.values.get(last));
                if let (Some((key, ..)), Some(last)) = (kind.names.get(series.of), last) {
                    before.note(kind.entity, key, series.signal, last.cast_unsigned());
                }
            }
        }
        before
    }

    /// Appends the readings of a kind of entity to a timeline. The buffers are of this file, or were cleared.
    pub(crate) fn read(
        &self,
        kind: &Kind,
        picks: &Picks,
        timeline: &mut Timeline,
        buffers: &mut Buffers,
    ) -> Result<(), String> {
        self.columns(kind.part, buffers)?;
        for its in kind.series.chunk_by(|a, b| a.of == b.of) {
            buffers.runs.clear();
            for series in its {
                buffers.join(series, picks)?;
            }
            let names = kind.names.get(its[0].of);
            let (key, label, group) = names.ok_or("its metadata lacks a key")?;
            if kind.entity == Entity::Host {
                for signal in buffers.runs.chunk_by(|a, b| a.0 == b.0) {
                    timeline.fill_host(signal[0].0, signal.iter().map(|(_, run)| *run));
                }
            } else if !buffers.runs.is_empty() {
                timeline.fill(kind.entity, key, label, group, buffers.runs.drain(..));
            }
        }
        Ok(())
    }

    fn columns(&self, part: usize, buffers: &mut Buffers) -> Result<(), String> {
        if buffers.part == Some(part) {
            return Ok(());
        }
        buffers.part = None;
        let column = |name: &str| column(&self.file, name);
        let read = self.file.part(part).map_err(text)?;
        read.ordinals(column(FIRST)?, &mut buffers.first)
            .map_err(text)?;
        read.ordinals(column(LAST)?, &mut buffers.last)
            .map_err(text)?;
        read.numbers(column(VALUE)?, &mut buffers.value)
            .map_err(text)?;
        buffers.part = Some(part);
        Ok(())
    }
}

/// Which rows are of which entity and signal, by the words in them.
fn kinds_of(file: &Opened) -> Result<Vec<Kind>, String> {
    let part = file.part(0).map_err(text)?;
    let words = |name: &str| part.words(column(file, name)?).map_err(text);
    let (signals, keys) = (words(SIGNAL)?, words(KEY)?);
    let mut kinds: Vec<Kind> = Vec::new();
    let mut firsts: Vec<usize> = Vec::new();
    let mut known: HashMap<(Entity, &str), usize> = HashMap::new();
    for (signal, key, rows) in both(&signals, &keys) {
        // A later memtide may have written signals that are not known here.
        let Some(signal) = names::signal(signal) else {
            continue;
        };
        let entity = signal.def().entity;
        let kind = match kinds.iter().position(|kind| kind.entity == entity) {
            Some(at) => &mut kinds[at],
            None => {
                kinds.push(Kind::new(entity));
                kinds.last_mut().ok_or("it has no rows")?
            }
        };
        let of = *known.entry((entity, key)).or_insert_with(|| {
            firsts.push(rows.start);
            kind.names
                .push((key.to_owned(), String::new(), String::new()));
            kind.names.len() - 1
        });
        kind.series.push(Series { of, signal, rows });
    }
    for kind in &mut kinds {
        kind.series.sort_by_key(|series| series.of);
    }
    name(&part, file, &firsts, &mut kinds)?;
    Ok(kinds)
}

/// A word, and how many rows are left of it.
type Left<'a> = Option<(&'a str, usize)>;

/// Rows of two columns that both stay as they are.
fn both<'a>(
    a: &'a [(String, usize)],
    b: &'a [(String, usize)],
) -> impl Iterator<Item = (&'a str, &'a str, Range<usize>)> {
    let (mut a, mut b) = (a.iter(), b.iter());
    let (mut of_a, mut of_b): (Left<'a>, Left<'a>) = (None, None);
    let mut at = 0;
    std::iter::from_fn(move || {
        let next = |it: &'a (String, usize)| (it.0.as_str(), it.1);
        let (word_a, left_a) = of_a.take().or_else(|| a.next().map(next))?;
        let (word_b, left_b) = of_b.take().or_else(|| b.next().map(next))?;
        let rows = left_a.min(left_b);
        of_a = Some((word_a, left_a - rows)).filter(|(_, left)| *left > 0);
        of_b = Some((word_b, left_b - rows)).filter(|(_, left)| *left > 0);
        at += rows;
        Some((word_a, word_b, at - rows..at))
    })
}

/// Gives entities the labels and groups of their first rows, which are in the order of kinds.
fn name(part: &Part<'_>, file: &Opened, rows: &[usize], kinds: &mut [Kind]) -> Result<(), String> {
    let words = |name: &str| part.words_at(column(file, name)?, rows).map_err(text);
    let words = words(LABEL)?.into_iter().zip(words(GROUP)?);
    let all = kinds.iter_mut().flat_map(|kind| kind.names.iter_mut());
    for (names, (label, group)) in all.zip(words) {
        (names.1, names.2) = (label, group);
    }
    Ok(())
}

impl Kind {
    pub(super) fn new(entity: Entity) -> Self {
        Self {
            entity,
            part: 0,
            names: Vec::new(),
            series: Vec::new(),
        }
    }
}

impl Buffers {
    /// Forgets what they hold: the next file is another.
    pub(crate) fn clear(&mut self) {
        self.part = None;
    }

    fn join(&mut self, series: &Series, picks: &Picks) -> Result<(), String> {
        let column =
            |column: Option<_>| column.ok_or("its rows are not those that its metadata tells");
        let rows = &series.rows;
        let firsts = column(self.first.get(rows.clone()))?;
        let lasts = column(self.last.get(rows.clone()))?;
        let values = self.value.values.get(rows.clone());
        let values = values.ok_or("its rows are not those that its metadata tells")?;
        for ((first, last), value) in firsts.iter().zip(lasts).zip(values) {
            if let Some(ranks) = picks.within(*first, *last) {
                self.joined.push(ranks, *value);
            }
        }
        let runs = self.joined.drain(picks).map(|run| (series.signal, run));
        self.runs.extend(runs);
        Ok(())
    }
}

fn column(file: &Opened, name: &str) -> Result<usize, String> {
    let found = file.columns().iter().position(|found| found == name);
    found.ok_or_else(|| format!("it has no column `{name}`"))
}

fn text(error: parquet::errors::ParquetError) -> String {
    error.to_string()
}

pub(super) fn metadata<T: serde::de::DeserializeOwned>(
    file: &Opened,
    key: &str,
) -> Result<T, String> {
    let text = file.metadata(key);
    let text = text.ok_or_else(|| format!("it has no metadata `{key}`"))?;
    serde_json::from_str(text).map_err(|error| format!("metadata `{key}`: {error}"))
}
