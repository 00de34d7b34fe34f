//! What format 1 has instead of words at its rows: a row group for each kind of entity, and in the metadata which of its
//! rows are whose.

use serde::Deserialize;
use timeline::Entity;

use super::index;
use super::read::{Kind, Names, Series, metadata};
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

/// What the file has of each kind of entity; `None` where it is of a later format.
pub(super) fn kinds(file: &Opened) -> Result<Option<Vec<Kind>>, String> {
    if file.metadata(DIRECTORY).is_none() {
        return Ok(None);
    }
    let directories: Vec<Directory> = metadata(file, DIRECTORY)?;
    let parts = directories.into_iter().enumerate();
    let kinds = parts.filter_map(|(part, directory)| directory.kind(part));
    Ok(Some(kinds.collect()))
}

impl Directory {
    fn kind(self, part: usize) -> Option<Kind> {
        let entity = Entity::ALL
            .into_iter()
            .find(|it| it.name() == self.entity)?;
        let signals = self.signals.iter().map(|name| names::signal(name));
        let signals: Vec<_> = signals
            .map(|signal| signal.filter(|signal| signal.def().entity == entity))
            .collect();
        let mut kind = Kind::new(entity);
        let mut from = 0;
        for (key, signal, rows) in self.series {
            let rows = from..from + index(rows);
            from = rows.end;
            let of = index(key);
            if let Some(signal) = signals.get(index(signal)).copied().flatten() {
                kind.series.push(Series { of, signal, rows });
            }
        }
        (kind.part, kind.names) = (part, self.keys);
        Some(kind)
    }
}
