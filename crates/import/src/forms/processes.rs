//! Tables of processes, as `ps`, `top` and `smem` print them: columns by the words of the header, rows by position.
//!
//! The command may hold blanks wherever it stands: columns before it are counted from the left, those behind it from the
//! right. A text does not tell when a process began, so its key has the start 0: two tables of one timeline take a PID
//! for the same process.

use timeline::signals::{PROC_PARENT, PROC_PSS, PROC_RSS, PROC_SIZE, PROC_SWAP, PROC_THREADS};
use timeline::{Entity, Facts};
use units::{Bytes, Count};

use crate::figure::{self, Figure, raw};
use crate::looks::Look;

use super::fill::{self, KIB};

/// Rows beyond these are passed over: the largest come first where somebody sorted them.
const MOST_ROWS: usize = 2000;

/// What a column of such a table is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Column {
    Pid,
    Resident,
    Size,
    Swapped,
    Proportional,
    Threads,
    Parent,
    Command,
    /// A time of several words: `Sat Nov 21 23:58:47 2026`.
    Started,
    /// Known, and not read.
    Other,
}

/// The columns, by name in capitals.
const COLUMNS: &[(&str, Column)] = &[
    ("PID", Column::Pid),
    ("RSS", Column::Resident),
    ("RSZ", Column::Resident),
    ("RES", Column::Resident),
    ("VSZ", Column::Size),
    ("VIRT", Column::Size),
    ("VSIZE", Column::Size),
    ("SWAP", Column::Swapped),
    ("PSS", Column::Proportional),
    ("NLWP", Column::Threads),
    ("THCNT", Column::Threads),
    ("PPID", Column::Parent),
    ("COMMAND", Column::Command),
    ("CMD", Column::Command),
    ("COMM", Column::Command),
    ("ARGS", Column::Command),
    ("STARTED", Column::Started),
];

/// Columns that such tables have besides.
const OTHERS: &[&str] = &[
    "USER", "UID", "EUSER", "RUSER", "UNAME", "USERNAME", "GID", "GROUP", "TTY", "TT", "STAT", "S",
    "STATE", "START", "STIME", "TIME", "TIME+", "ELAPSED", "%CPU", "%MEM", "CPU", "MEM", "PR",
    "PRI", "NI", "SHR", "SHARED", "F", "C", "PSR", "WCHAN", "LWP", "TGID", "PGID", "SID", "PGRP",
    "SESS", "CLS", "RTPRIO", "SZ", "USS", "MINFL", "MAJFL", "MINFLT", "MAJFLT", "DATA", "CODE",
    "TRS", "DRS", "P", "UNIT", "CGROUP", "%VSZ", "VSZRW", "NFLT", "NDRT", "ADDR", "WCHAN", "LABEL",
    "SUID", "TRPUSER", "SIZE", "MAP", "MAPS", "SWAPPED", "OOM", "OOMSCORE", "OOMADJ", "ETIME",
];

/// The header of a table of processes.
#[derive(Debug)]
pub(super) struct Header(Vec<Column>);

impl Header {
    /// Reads a header: all of its words are columns of such tables, one of them names the process, one a size.
    pub(super) fn of(line: &str) -> Option<Self> {
        if line.len() > 500 {
            return None;
        }
        let columns: Vec<Column> = line
            .split_whitespace()
            .map(|word| column(&word.to_ascii_uppercase()))
            .collect::<Option<_>>()?;
        let has = |wanted: &[Column]| columns.iter().any(|c| wanted.contains(c));
        let once = columns.iter().filter(|c| **c == Column::Command).count() <= 1;
        let is_one = once
            && has(&[Column::Pid, Column::Command])
            && has(&[Column::Resident, Column::Proportional, Column::Swapped]);
        is_one.then_some(Self(columns))
    }

    /// Reads a row into the look. `false`: the line is no row of this table.
    pub(super) fn row(&self, line: &str, at: usize, look: &mut Look, facts: &mut Facts) -> bool {
        let Some(row) = self.cells(line) else {
            return false;
        };
        let table = look.sample.table_mut(Entity::Process);
        if table.rows().len() >= MOST_ROWS {
            return true;
        }
        let into = table.add();
        // Without PIDs rows are told apart by their place, so that none is taken for another.
        into.key = match row.pid {
            Some(pid) => format!("{pid}@0"),
            None => format!("0@{at}"),
        };
        into.label = program(row.command).to_owned();
        if into.label.is_empty() {
            into.label = into.key.clone();
        }
        for (column, figure) in row.figures {
            let bytes = figure.in_bytes(KIB).value;
            let readings = &mut into.row;
            match (column, raw(bytes).map(Bytes::new)) {
                (Column::Resident, _) => {
                    if let Some(pages) = figure::pages(bytes, facts) {
                        readings.set(PROC_RSS, pages);
                    }
                }
                (Column::Size, Some(bytes)) => readings.set(PROC_SIZE, bytes),
                (Column::Swapped, Some(bytes)) => readings.set(PROC_SWAP, bytes),
                (Column::Proportional, Some(bytes)) => readings.set(PROC_PSS, bytes),
                (Column::Threads, _) => set_count(readings, PROC_THREADS, figure),
                (Column::Parent, _) => set_count(readings, PROC_PARENT, figure),
                _ => {}
            }
        }
        true
    }

    fn cells<'l>(&self, line: &'l str) -> Option<Row<'l>> {
        let columns = &self.0;
        let command = columns.iter().position(|c| *c == Column::Command);
        let left = &columns[..command.unwrap_or(columns.len())];
        let right = &columns[command.map_or(columns.len(), |at| at + 1)..];
        let mut row = Row::default();
        let mut rest = line.trim();
        for column in left {
            let words = match column {
                Column::Started if rest.starts_with(is_weekday) => 5,
                _ => 1,
            };
            for _ in 0..words {
                let (word, after) = rest.split_once(' ').unwrap_or((rest, ""));
                row.cell(*column, word)?;
                rest = after.trim_start();
            }
        }
        for column in right.iter().rev() {
            let (before, word) = rest.rsplit_once(' ').unwrap_or(("", rest));
            row.cell(*column, word)?;
            rest = before.trim_end();
        }
        row.command = rest;
        // A cut-off line ends in the middle of its columns; one of another text goes on behind them.
        (rest.is_empty() != command.is_some()).then_some(row)
    }
}

/// A row's cells that are read.
#[derive(Debug, Default)]
struct Row<'l> {
    pid: Option<u32>,
    command: &'l str,
    figures: Vec<(Column, Figure)>,
}

impl Row<'_> {
    fn cell(&mut self, column: Column, word: &str) -> Option<()> {
        match column {
            _ if word.is_empty() => None,
            Column::Pid => {
                self.pid = Some(word.parse().ok()?);
                Some(())
            }
            Column::Other | Column::Started | Column::Command => Some(()),
            // `-` stands for what the process does not have.
            _ if word == "-" => Some(()),
            _ => {
                self.figures.push((column, fill::figure(word)?));
                Some(())
            }
        }
    }
}

fn column(word: &str) -> Option<Column> {
    let known = COLUMNS.iter().find(|(name, _)| *name == word);
    known
        .map(|(_, column)| *column)
        .or_else(|| OTHERS.contains(&word).then_some(Column::Other))
}

fn is_weekday(c: char) -> bool {
    "MTWFS".contains(c)
}

fn set_count(
    row: &mut timeline::Row,
    signal: timeline::Signal<timeline::Gauge<Count>>,
    figure: Figure,
) {
    if let Some(count) = raw(figure.value).filter(|_| !figure.has_unit) {
        row.set(signal, Count::new(count));
    }
}

/// The program's name: `/usr/sbin/mysqld --defaults-file=…` is mysqld, `[kworker/0:1]` is kworker/0:1.
fn program(command: &str) -> &str {
    // `ps f` draws the tree before the command.
    let command = command.trim_start_matches(['\\', '_', '|', '`', '-', ' ']);
    if let Some(thread) = command.strip_prefix('[') {
        return thread.split(']').next().unwrap_or(thread);
    }
    let path = command.split(' ').next().unwrap_or(command);
    let name = path.rsplit('/').next().unwrap_or(path);
    match name.trim_end_matches(':') {
        "" => path,
        name => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_have_short_names() {
        for (command, name) in [
            ("/usr/sbin/mysqld --datadir=/var/lib", "mysqld"),
            ("[kworker/0:1-events]", "kworker/0:1-events"),
            ("postgres: writer process", "postgres"),
            ("-bash", "bash"),
            (" \\_ java -Xmx4g", "java"),
            ("nginx", "nginx"),
            ("/", "/"),
            ("", ""),
        ] {
            assert_eq!(program(command), name, "{command}");
        }
    }

    #[test]
    fn a_header_names_a_process_and_a_size() {
        for line in [
            "USER         PID %CPU %MEM    VSZ   RSS TTY      STAT START   TIME COMMAND",
            "    PID   RSS COMMAND",
            "  PID USER     Command                         Swap      USS      PSS      RSS",
            "  PID USER      PR  NI    VIRT    RES    SHR S  %CPU %MEM     TIME+ COMMAND",
        ] {
            assert!(Header::of(line).is_some(), "{line}");
        }
        for line in [
            "PID COMMAND",
            "UID PID minflt/s majflt/s VSZ RSS %MEM Command",
            "11:22:33 UID PID VSZ RSS %MEM Command",
            "RSS feeds are nice",
            "",
        ] {
            assert!(Header::of(line).is_none(), "{line}");
        }
    }
}
