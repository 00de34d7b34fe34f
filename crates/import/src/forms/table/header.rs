//! The header of a table, and the separator of its cells.

use super::names::{self, ColumnMeaning, TableColumn};
use super::row_time::TimeColumn;

/// The separator of cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Separator {
    Comma,
    Semicolon,
    Bar,
    Blanks,
}

impl Separator {
    fn recognise(header: &str) -> Self {
        if header.contains('|') {
            Self::Bar
        } else if header.contains(';') {
            Self::Semicolon
        } else if header.contains(',') {
            Self::Comma
        } else {
            Self::Blanks
        }
    }

    /// The cells of a line.
    pub(super) fn cells(self, line: &str) -> Vec<&str> {
        fn trim(cell: &str) -> &str {
            cell.trim_matches([' ', '"', '\'', '`', '*'])
        }
        match self {
            Self::Comma => line.split(',').map(trim).collect(),
            Self::Semicolon => line.split(';').map(trim).collect(),
            Self::Bar => line.trim().trim_matches('|').split('|').map(trim).collect(),
            Self::Blanks => line.split_whitespace().collect(),
        }
    }
}

/// The header of a table.
#[derive(Debug)]
pub(super) struct TableHeader {
    pub(super) separator: Separator,
    pub(super) columns: Vec<TableColumn>,
    /// The meaning of the first column, if it has times.
    pub(super) clock: Option<TimeColumn>,
    /// Whether date and time are two columns.
    pub(super) has_date: bool,
    /// Whether `memtide export` wrote it: names and units of the catalogue.
    is_exported: bool,
    line: String,
}

impl TableHeader {
    /// At most 4,000 bytes of a header.
    const HEADER_BYTES_MAX: usize = 4000;

    /// Reads a header; `None` if none of its words clearly means memory. `has_unit`: the heading above has a unit.
    pub(super) fn from_line(line: &str, has_unit: bool) -> Option<Self> {
        // A sentence has words of memory, too.
        let is_sentence = line.ends_with(['.', '?', '!']);
        if line.is_empty() || is_sentence || line.len() > Self::HEADER_BYTES_MAX {
            return None;
        }
        let plain = line.trim_start_matches(['#', ' ']);
        let plain = plain.strip_prefix("columns:").unwrap_or(plain);
        let separator = Separator::recognise(plain);
        let heads = joined(separator.cells(plain), separator);
        let is_head = |head: &String| {
            head.is_empty()
                || (head.len() <= 80 && head.contains(|c: char| c.is_ascii_alphabetic()))
        };
        if !heads.iter().all(is_head) || heads.iter().any(|head| names::is_part(head)) {
            return None;
        }
        let clock = heads.first().and_then(|head| TimeColumn::from_head(head));
        let has_date = clock == Some(TimeColumn::Time)
            && heads[0].eq_ignore_ascii_case("date")
            && heads
                .get(1)
                .is_some_and(|head| TimeColumn::from_head(head) == Some(TimeColumn::Time));
        let is_exported = matches!(heads.as_slice(), [time, elapsed, ..] if time == "time" && elapsed == "elapsed_s");
        let times = usize::from(clock.is_some()) + usize::from(has_date || is_exported);
        let columns: Vec<TableColumn> = heads
            .iter()
            .enumerate()
            .map(|(i, head)| {
                if i < times {
                    TableColumn::unused(head)
                } else if is_exported {
                    TableColumn::from_catalogue(head)
                } else {
                    TableColumn::from_head(head)
                }
            })
            .collect();
        let known = || columns.iter().filter(|column| column.is_known());
        let is_table = known().any(|column| column.is_sure)
            || (known().next().is_some() && (has_unit || clock.is_some()));
        is_table.then(|| Self {
            separator,
            columns,
            clock,
            has_date,
            is_exported,
            line: line.to_owned(),
        })
    }

    /// Whether rows are of several hosts.
    pub(super) fn has_keys(&self) -> bool {
        let mut columns = self.columns.iter();
        columns.any(|column| column.meaning == ColumnMeaning::Key)
    }

    /// Whether a line repeats the header, or is a rule below it.
    pub(super) fn is_repeated(&self, line: &str) -> bool {
        let is_rule = line.len() > 2 && line.bytes().all(|b| b" |-+:=".contains(&b));
        is_rule || line == self.line
    }

    /// The time and the cells of a row; `None` if they do not fit the columns.
    pub(super) fn cells<'l>(&self, line: &'l str) -> Option<(Option<String>, Vec<&'l str>)> {
        let cells = self.separator.cells(line);
        let n = self.columns.len();
        if self.has_date && cells.len() == n {
            return Some((Some(format!("{} {}", cells[0], cells[1])), cells));
        }
        if self.is_exported && cells.len() == n && cells[0].is_empty() {
            return Some((Some(cells[1].to_owned()), cells));
        }
        if cells.len() == n {
            let time = self.clock.map(|_| cells[0].to_owned());
            return Some((time, cells));
        }
        // One column for date and time, separated by a blank.
        if self.clock == Some(TimeColumn::Time)
            && self.separator == Separator::Blanks
            && cells.len() == n + 1
        {
            let time = format!("{} {}", cells[0], cells[1]);
            return Some((Some(time), cells[1..].to_vec()));
        }
        None
    }
}

/// Joins a separate unit to its head: `MemFree (kB)`.
fn joined(cells: Vec<&str>, separator: Separator) -> Vec<String> {
    let mut heads: Vec<String> = Vec::with_capacity(cells.len());
    for cell in cells {
        let is_unit = separator == Separator::Blanks && cell.starts_with(['(', '[']);
        match heads.last_mut().filter(|_| is_unit) {
            Some(head) => head.push_str(cell),
            None => heads.push(cell.to_owned()),
        }
    }
    heads
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_has_a_name_that_means_memory() {
        for (line, has_unit, is_header) in [
            ("uptime_min Slab SReclaimable SUnreclaim", false, true),
            ("mem_avail", true, true),
            ("time,MemFree,SwapFree", false, true),
            ("# columns: t free", false, true),
            ("| date | MemAvailable (kB) |", false, true),
            ("free", true, true),
            ("free", false, false),
            ("time load", false, false),
            ("Filesystem 1K-blocks Used Available Use% Mounted on", false, false),
            ("NAME READY UP-TO-DATE AVAILABLE AGE", false, false),
            ("TYPE TOTAL ACTIVE SIZE RECLAIMABLE", false, false),
            ("node used_MiB used_%", false, false),
            ("# Time UID PID minflt/s majflt/s VSZ RSS %MEM Command", false, false),
            ("1 2 MemFree", false, false),
            ("", true, false),
        ] {
            assert_eq!(TableHeader::from_line(line, has_unit).is_some(), is_header, "{line}");
        }
    }

    #[test]
    fn a_row_has_a_cell_for_each_column() {
        let header = TableHeader::from_line("time MemFree", false).unwrap();
        assert!(header.cells("23:58:47 12").is_some());
        let (time, cells) = header.cells("2026-11-21 23:58:47 12").unwrap();
        assert_eq!((time.as_deref(), cells[1]), (Some("2026-11-21 23:58:47"), "12"));
        assert!(header.cells("12").is_none() && header.cells("1 2 3 4").is_none());
        let header = TableHeader::from_line("| MemFree (kB) | x |", false).unwrap();
        assert!(header.is_repeated("|---|:--|"));
        assert_eq!(header.cells("| 12 | y |").unwrap().1, ["12", "y"]);
    }
}
