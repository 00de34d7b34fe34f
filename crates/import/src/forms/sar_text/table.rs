//! The columns of a table of sar, and its rows.

use crate::sar::columns::{self, COLUMNS, ColumnIndex, SarMeaning};
use crate::text::figure::{KIB, PrintedFigure};

/// The headings of a table.
#[derive(Debug, Clone, Default)]
pub(super) struct SarTable {
    /// All headings: distinguishes tables.
    pub(super) name: String,
    columns: Vec<Option<ColumnIndex>>,
    /// Index of the word with the name of the CPU or disk.
    entity: Option<usize>,
}

/// Headings of names of entities.
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
/// Headings of pidstat, which prints some of the same columns per process.
const PROCESSES: &[&str] = &["PID", "UID", "TGID", "TID", "USER", "Command"];

impl SarTable {
    /// Reads headings; `None` if the words are not headings of sar.
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

    /// Reads a row; `None` if the words are no row of this table. A truncated row has fewer words, and its last one
    /// may be truncated, too.
    pub(super) fn row<'w>(&self, words: &[&'w str]) -> Option<SarRow<'w>> {
        let figures = words.iter().zip(&self.columns).enumerate();
        let is_figure = |(at, word): (usize, &&str)| Some(at) != self.entity && is_figure(word);
        if words.len() > self.width() || !words.iter().enumerate().any(is_figure) {
            return None;
        }
        let is_truncated = words.len() < self.width();
        let whole = words.len() - usize::from(is_truncated);
        let value = |(_, (word, column)): (usize, (&&str, &Option<ColumnIndex>))| {
            let column = (*column)?;
            Some((column, in_unit_of(column, figure(word)?)?))
        };
        Some(SarRow {
            name: self.entity.and_then(|at| words.get(at)).copied().unwrap_or_default(),
            figures: figures.take(whole).filter_map(value).collect(),
        })
    }
}

#[derive(Debug, PartialEq)]
pub(super) struct SarRow<'w> {
    /// The CPU or disk; empty in tables of the host.
    pub(super) name: &'w str,
    /// The figures that are read.
    pub(super) figures: Vec<(ColumnIndex, f64)>,
}

fn is_heading(word: &&str) -> bool {
    columns::by_heading(word).is_some()
        || ENTITIES.contains(word)
        || word.ends_with("/s")
        || (word.starts_with('%') && word.len() > 1)
        || matches!(*word, "totsck" | "tcp6sck" | "manufact" | "MHz" | "irq/s")
}

/// Whether a word is a figure, also one that is missing or negative.
fn is_figure(word: &str) -> bool {
    figure(word).is_some()
        || matches!(word, "nan" | "-nan" | "-")
        || word.starts_with("-0")
        || figure(word.trim_start_matches('-')).is_some()
}

fn figure(word: &str) -> Option<PrintedFigure> {
    PrintedFigure::binary(word.strip_suffix('%').unwrap_or(word))
}

/// The value in the unit that sar prints without `--human`.
fn in_unit_of(column: ColumnIndex, figure: PrintedFigure) -> Option<f64> {
    if !figure.has_unit {
        return Some(figure.value);
    }
    match COLUMNS[column].meaning {
        SarMeaning::Level(_, scale) | SarMeaning::PerSecond(_, scale) if scale >= 512.0 => {
            Some(figure.value / scale)
        }
        SarMeaning::SwapUsed | SarMeaning::MemUsed => Some(figure.value / KIB),
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
        let table = SarTable::read(&words(headings)).unwrap();
        let row = words(row);
        let row = table.row(&row)?;
        Some(row.figures.iter().map(|(_, value)| *value).collect())
    }

    #[test]
    fn figures_are_assigned_to_columns() {
        let headings = "kbmemfree kbmemused %memused kbbuffers";
        assert_eq!(values(headings, "7 8 53,33 9"), Some(vec![7.0, 8.0, 53.33, 9.0]));
        assert_eq!(values(headings, "7 8 5"), Some(vec![7.0, 8.0]), "truncated");
        assert_eq!(values(headings, "7 8 53.33 9 10"), None, "another table");
        assert_eq!(values(headings, "LINUX RESTART"), None);
        assert_eq!(values(headings, "1.0M 8 53.3% 9"), Some(vec![1024.0, 8.0, 53.3, 9.0]));
    }

    #[test]
    fn rows_of_disks_and_cpus_have_names() {
        for (headings, line, name) in [
            ("DEV tps rkB/s", "sda 1.0 2.0", "sda"),
            ("tps rkB/s DEV", "1.0 2.0 nvme0n1", "nvme0n1"),
            ("CPU %user %idle", "all 1.0 99.0", "all"),
            ("CPU %user %idle", "3 1.0 99.0", "3"),
        ] {
            let table = SarTable::read(&words(headings)).unwrap();
            assert_eq!(table.row(&words(line)).unwrap().name, name);
        }
    }

    #[test]
    fn tables_of_processes_are_rejected() {
        assert!(SarTable::read(&words("UID PID minflt/s majflt/s VSZ RSS %MEM Command")).is_none());
        assert!(SarTable::read(&words("total used free")).is_none());
        assert!(SarTable::read(&words("all 1.0 2.0")).is_none());
    }
}
