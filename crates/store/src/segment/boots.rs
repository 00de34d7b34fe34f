//! The column `boot_id`: the boot of each row, so that a table shows by itself which rows are of one boot.

use timeline::BootId;

use super::table::{ColumnChunk, OpenedTable};

/// The name of the column.
const BOOT_ID: &str = "boot_id";

/// The boot of each row, to be written.
pub(super) struct BootColumn {
    /// The distinct boots as texts; the first is empty: unknown.
    texts: Vec<String>,
    /// For each row, the index of its boot.
    rows: Vec<usize>,
}

impl BootColumn {
    pub(super) fn new(boots: impl Iterator<Item = Option<BootId>>) -> Self {
        let mut known: Vec<BootId> = Vec::new();
        let mut rows = Vec::new();
        for boot in boots {
            let Some(boot) = boot else {
                rows.push(0);
                continue;
            };
            // Rows are in order of time, so the boot is nearly always the last one.
            let place = known.iter().rposition(|other| *other == boot);
            rows.push(1 + place.unwrap_or(known.len()));
            if place.is_none() {
                known.push(boot);
            }
        }
        let texts = known.iter().map(BootId::to_string);
        let texts = std::iter::once(String::new()).chain(texts).collect();
        Self { texts, rows }
    }

    /// Returns the column; `None` where no boot is known.
    pub(super) fn column(&self) -> Option<ColumnChunk<'_>> {
        let texts = self.texts.iter().map(String::as_str).collect();
        let is_known = self.texts.len() > 1;
        is_known.then(|| {
            ColumnChunk::names(BOOT_ID, texts, |out| {
                self.rows.iter().for_each(|row| out(*row));
            })
        })
    }
}

/// Returns the boot of each row of a table; `None` where it is unknown, as in a table of an earlier memtide.
pub(super) fn read(file: &OpenedTable) -> Result<Vec<Option<BootId>>, String> {
    let part = file.part(0).map_err(|e| e.to_string())?;
    let names = file.columns();
    let Some(column) = names.iter().position(|name| name == BOOT_ID) else {
        return Ok(vec![None; part.rows]);
    };
    let mut boots = Vec::with_capacity(part.rows);
    for (text, rows) in part.words(column).map_err(|e| e.to_string())? {
        boots.resize(boots.len() + rows, BootId::from_text(&text));
    }
    Ok(boots)
}
