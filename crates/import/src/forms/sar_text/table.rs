//! A table of sar in the reading: which word of a row is which column.

use crate::figure::{Base, Figure};
use crate::sar::columns::{self, COLUMNS, ColumnIndex, Meaning};

/// What the words of a row are.
#[derive(Debug, Clone, Default)]
pub(super) struct Table {
    /// The headings, to tell a table that goes on from another one.
    pub(super) name: String,
    columns: Vec<Option<ColumnIndex>>,
    /// Which word names the CPU or disk.
    entity: Option<usize>,
}

/// Headings of what a row is about.
const ENTITIES: &[&str] = &[
    "CPU",
    "DEV",
    "IFACE",
    "INTR",
    "TTY",
    "FAN",
    "TEMP",
    "IN",
    "BUS",
    "FILESYSTEM",
    "MOUNTPOINT",
    "FCHOST",
    "BAT",
    "DEVICE",
    "cpu",
];
/// Headings of pidstat, which prints some of the same columns for each process.
const PROCESSES: &[&str] = &["PID", "UID", "TGID", "TID", "USER", "Command"];

impl Table {
    /// Reads headings; `None` where the words are none, or no table of sar.
    pub(super) fn read(words: &[&str]) -> Option<Self> {
        let is_number = |word: &&str| figure(word).is_some();
        if words.is_empty() || words.iter().any(is_number) {
            return None;
        }
        if words.iter().any(|word| PROCESSES.contains(word)) || !words.iter().any(is_heading) {
            return None;
        }
        Some(Self {
            name: words.join(" "),
            columns: words.iter().map(|word| columns::by_heading(word)).collect(),
            entity: words.iter().position(|word| ENTITIES.contains(word)),
        })
    }

    /// How many of its columns are read.
    pub(super) fn known(&self) -> usize {
        self.columns.iter().flatten().count()
    }

    /// How many words a row has.
    pub(super) fn width(&self) -> usize {
        self.columns.len()
    }

    /// The figures of a row: column and value, with the name of the row. `None` where the words are no row of it. A row
    /// that was cut has fewer words, and of its last one perhaps only a part.
    pub(super) fn row<'w>(&self, words: &[&'w str]) -> Option<Row<'w>> {
        let figures = words.iter().zip(&self.columns).enumerate();
        let is_figure = |(at, word): (usize, &&str)| Some(at) != self.entity && is_figure(word);
        if words.len() > self.width() || !words.iter().enumerate().any(is_figure) {
            return None;
        }
        let whole = match words.len() < self.width() {
            true => words.len() - 1,
            false => words.len(),
        };
        let value = |(_, (word, column)): (usize, (&&str, &Option<ColumnIndex>))| {
            let column = (*column)?;
            Some((column, in_unit_of(column, figure(word)?)?))
        };
        Some(Row {
            name: self
                .entity
                .and_then(|at| words.get(at))
                .copied()
                .unwrap_or_default(),
            figures: figures.take(whole).filter_map(value).collect(),
        })
    }
}

/// A row.
#[derive(Debug, PartialEq)]
pub(super) struct Row<'w> {
    /// The CPU or disk; empty in tables of the host.
    pub(super) name: &'w str,
    /// What is read of it.
    pub(super) figures: Vec<(ColumnIndex, f64)>,
}

fn is_heading(word: &&str) -> bool {
    columns::by_heading(word).is_some()
        || ENTITIES.contains(word)
        || word.ends_with("/s")
        || (word.starts_with('%') && word.len() > 1)
        || matches!(*word, "totsck" | "tcp6sck" | "manufact" | "MHz" | "irq/s")
}

/// Whether a word stands where figures do, also one that says nothing or is below zero.
fn is_figure(word: &str) -> bool {
    figure(word).is_some()
        || matches!(word, "nan" | "-nan" | "-")
        || word.starts_with("-0")
        || figure(word.trim_start_matches('-')).is_some()
}

fn figure(word: &str) -> Option<Figure> {
    Figure::parse(word.strip_suffix('%').unwrap_or(word), Base::Binary)
}

/// The value as sar prints it without `--human`.
fn in_unit_of(column: ColumnIndex, figure: Figure) -> Option<f64> {
    if !figure.has_unit {
        return Some(figure.value);
    }
    match COLUMNS[column].meaning {
        Meaning::Level(_, scale) | Meaning::PerSecond(_, scale) if scale >= 512.0 => {
            Some(figure.value / scale)
        }
        Meaning::SwapUsed | Meaning::MemUsed => Some(figure.value / 1024.0),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<&str> {
        text.split_whitespace().collect()
    }

    fn values(headings: &str, row: &str) -> Option<Vec<f64>> {
        let table = Table::read(&words(headings)).unwrap();
        let row = words(row);
        let row = table.row(&row)?;
        Some(row.figures.iter().map(|(_, value)| *value).collect())
    }

    #[test]
    fn words_find_their_columns() {
        let headings = "kbmemfree kbmemused %memused kbbuffers";
        assert_eq!(
            values(headings, "7 8 53,33 9"),
            Some(vec![7.0, 8.0, 53.33, 9.0])
        );
        assert_eq!(values(headings, "7 8 5"), Some(vec![7.0, 8.0]), "cut");
        assert_eq!(values(headings, "7 8 53.33 9 10"), None, "another table");
        assert_eq!(values(headings, "LINUX RESTART"), None);
        assert_eq!(
            values(headings, "1.0M 8 53.3% 9"),
            Some(vec![1024.0, 8.0, 53.3, 9.0])
        );
    }

    #[test]
    fn rows_of_disks_and_cpus_have_names() {
        for (headings, line, name) in [
            ("DEV tps rkB/s", "sda 1.0 2.0", "sda"),
            ("tps rkB/s DEV", "1.0 2.0 nvme0n1", "nvme0n1"),
            ("CPU %user %idle", "all 1.0 99.0", "all"),
            ("CPU %user %idle", "3 1.0 99.0", "3"),
        ] {
            let table = Table::read(&words(headings)).unwrap();
            assert_eq!(table.row(&words(line)).unwrap().name, name);
        }
    }

    #[test]
    fn tables_of_processes_are_not_sars() {
        assert!(Table::read(&words("UID PID minflt/s majflt/s VSZ RSS %MEM Command")).is_none());
        assert!(Table::read(&words("total used free")).is_none());
        assert!(Table::read(&words("all 1.0 2.0")).is_none());
    }
}
