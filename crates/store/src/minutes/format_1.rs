//! What format 1 has instead of words at its rows: a row group for each kind of entity, and in the metadata which of its
//! rows are whose.

use serde::Deserialize;
use timeline::Entity;

use super::index;
use super::read::{Kind, Names, Series, Whose, metadata};
use crate::segment::names;
use crate::segment::table::Opened;

/// What a row group holds: rows are in the order of `series`, each of which is the number of a key, of a signal, and how
/// many rows follow of them.
#[derive(Debug, Deserialize)]
struct Directory {
    entity: String,
    /// Key, label and group of each entity.
    keys: Vec<Names>,
    signals: Vec<String>,
    series: Vec<(u32, u32, u32)>,
}

const DIRECTORY: &str = "memtide.series";

/// Whose the rows of a file are; `None` where it is of a later format.
pub(super) fn whose(file: &Opened) -> Result<Option<Whose>, String> {
    if file.metadata(DIRECTORY).is_none() {
        return Ok(None);
    }
    let directories: Vec<Directory> = metadata(file, DIRECTORY)?;
    let mut whose = Whose::default();
    for (part, directory) in directories.into_iter().enumerate() {
        whose.kinds.extend(directory.kind(part, whose.names.len()));
        whose.names.extend(directory.keys);
    }
    Ok(Some(whose))
}

impl Directory {
    /// What it says; the names of its keys begin at a place.
    fn kind(&self, part: usize, names_at: usize) -> Option<Kind> {
        let kind = Entity::ALL.into_iter().find(|it| it.name() == self.entity);
        let entity = kind?;
        let signals = self.signals.iter().map(|name| names::signal(name));
        let signals: Vec<_> = signals
            .map(|signal| signal.filter(|signal| signal.def().entity == entity))
            .collect();
        let mut series = Vec::new();
        let mut from = 0;
        for (key, signal, rows) in &self.series {
            let rows = from..from + index(*rows);
            from = rows.end;
            let of = names_at + index(*key);
            if let Some(signal) = signals.get(index(*signal)).copied().flatten() {
                series.push(Series::new(of, signal, rows));
            }
        }
        Some(Kind {
            entity,
            part,
            series,
        })
    }
}
