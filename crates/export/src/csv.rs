//! CSV (RFC 4180, lines end with LF): one row per sample, or per sample and entity. An empty field was not read.
//!
//! Columns have the names and units of the catalogue, as the tables of a recording, so that a query for one works on
//! the other: `memtide signals` lists the units. `time` is RFC 3339 in UTC, empty if the source has no wall clock;
//! `elapsed_s` counts from the first sample. No limit is written as `inf`.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io::{self, Write};

use jiff::Timestamp;
use timeline::plain::escape;
use timeline::{Entity, SignalId, Source, Stamp, Timeline};
use units::WallClock;

use crate::columns::{self, ColumnCursor, EntityColumns};
use crate::{Exported, Exporter, Picks};

/// One table as CSV.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, Copy)]
pub struct Csv {
    pub table: Entity,
}

impl Exporter for Csv {
    fn unit(&self) -> &'static str {
        "row"
    }

    fn export(
        &self,
        source: &Source,
        picks: &Picks,
        output: &mut dyn Write,
    ) -> io::Result<Exported> {
        let timeline = &source.timeline;
        let table = columns::table(timeline, self.table, picks);
        let signals: BTreeSet<SignalId> = table
            .iter()
            .flat_map(|series| series.columns.iter().map(|(signal, _)| *signal))
            .collect();
        let signals: Vec<SignalId> = signals.into_iter().collect();
        self.header(&signals, output)?;
        let mut rows: Vec<CsvRows<'_>> =
            table.iter().filter_map(|s| CsvRows::new(s, &signals)).collect();
        // Entities are checked from their first sample on only, as processes come and go.
        rows.sort_by_key(|rows| std::cmp::Reverse(rows.first));
        let mut there: Vec<CsvRows<'_>> = Vec::new();
        let mut written = 0;
        for index in 0..timeline.len() {
            let known = there.len();
            while let Some(new) = rows.pop_if(|next| next.first <= index) {
                there.push(new);
            }
            if there.len() > known {
                there.sort_by_key(|rows| rows.series.entity.map(|entity| entity.key.as_str()));
            }
            there.retain(|rows| rows.last >= index);
            if !timeline.was_read(self.table, index) {
                continue;
            }
            let start = start(timeline, index);
            for rows in &mut there {
                written += usize::from(rows.write(index, &start, output)?);
            }
        }
        Ok(Exported { written, left_out: Vec::new() })
    }
}

impl Csv {
    fn header(&self, signals: &[SignalId], output: &mut dyn Write) -> io::Result<()> {
        output.write_all(b"time,elapsed_s")?;
        if self.table != Entity::Host {
            output.write_all(b",key,label,group")?;
        }
        for signal in signals {
            write!(output, ",{}", signal.def().name)?;
        }
        output.write_all(b"\n")
    }
}

/// Returns the first fields of a sample's rows.
fn start(timeline: &Timeline, index: usize) -> String {
    let time = timeline.stamp(index).and_then(time).unwrap_or_default();
    let elapsed = timeline.times().get(index).copied().unwrap_or_default();
    format!("{time},{}", elapsed.as_secs_f64())
}

fn time(stamp: Stamp) -> Option<String> {
    rfc3339(stamp.wall?)
}

/// Returns `2026-11-22T03:30:00.25Z`; `None` for a time outside the calendar.
pub fn rfc3339(wall: WallClock) -> Option<String> {
    let at = Timestamp::from_nanosecond(i128::from(wall.unix_nanos())).ok()?;
    Some(at.to_string())
}

/// The rows of one entity, or of the host.
struct CsvRows<'a> {
    series: &'a EntityColumns<'a>,
    first: usize,
    last: usize,
    /// In the order of the header; `None` for signals that this entity never has.
    cells: Vec<Option<(SignalId, ColumnCursor<'a>)>>,
    /// Fields with its names, already quoted.
    names: String,
}

impl<'a> CsvRows<'a> {
    fn new(series: &'a EntityColumns<'a>, signals: &[SignalId]) -> Option<Self> {
        let (first, last) = series.span()?;
        let cell = |signal: &SignalId| {
            let (_, runs) = series.columns.iter().find(|(found, _)| found == signal)?;
            Some((*signal, ColumnCursor::new(runs)))
        };
        let names = series.entity.map_or_else(String::new, |entity| {
            let names = [&entity.key, &entity.label, &entity.group];
            names.map(|name| format!(",{}", field(name))).concat()
        });
        Some(Self { series, first, last, cells: signals.iter().map(cell).collect(), names })
    }

    /// Writes the row of a sample, if anything was read.
    fn write(&mut self, index: usize, start: &str, output: &mut dyn Write) -> io::Result<bool> {
        let mut line = String::new();
        let mut is_there = self.series.entity.is_none();
        for cell in &mut self.cells {
            line.push(',');
            let reading = cell.as_mut().and_then(|(signal, cursor)| {
                let raw = cursor.at(index)?;
                Some(number(*signal, raw))
            });
            is_there |= reading.is_some();
            line.push_str(&reading.unwrap_or_default());
        }
        if is_there {
            writeln!(output, "{start}{}{line}", self.names)?;
        }
        Ok(is_there)
    }
}

fn number(signal: SignalId, raw: u64) -> String {
    if timeline::metric::is_unlimited(signal, raw) { "inf".to_owned() } else { raw.to_string() }
}

/// Returns a text as a field, quoted if necessary. A user chooses the names of processes and cgroups: what is not plainly visible is
/// escaped ([`timeline::plain`]), and what a spreadsheet would take for a formula begins with `'`, also `-.slice`.
pub fn field(text: &str) -> Cow<'_, str> {
    let is_formula = text.trim_start().starts_with(['=', '+', '-', '@', '＝', '＋', '－', '＠']);
    let plain = match escape(text) {
        plain if is_formula => Cow::Owned(format!("'{plain}")),
        plain => plain,
    };
    if plain.contains(['"', ',']) {
        Cow::Owned(format!("\"{}\"", plain.replace('"', "\"\"")))
    } else {
        plain
    }
}

#[cfg(test)]
mod tests;
