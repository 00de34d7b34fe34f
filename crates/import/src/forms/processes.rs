//! Tables of processes, as `ps`, `top` and `smem` print them.
//!
//! The command may contain blanks in any column: columns before it are counted from the left, those behind it from the
//! right. The start time of a process is unknown, so its key has 0 for it: in a timeline, one PID is one process.
//!
//! Sizes without a suffix are KiB, unless the heading names another unit: `RSS-MiB` of `xsos`.

use timeline::signals::{
    PROC_CPU, PROC_PARENT, PROC_PSS, PROC_RSS, PROC_SIZE, PROC_SWAP, PROC_THREADS,
};
use timeline::{Entity, Facts};
use units::{Bytes, Count, Micros};

use super::size_unit::SizeUnit;
use crate::builder::Snapshot;
use crate::text::figure::{self, PrintedFigure, raw};

/// Further rows are skipped: in a sorted table the largest come first.
const ROWS_MAX: usize = 2000;

/// What a column means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ProcessColumn {
    Pid,
    Resident,
    Size,
    Swapped,
    Proportional,
    Threads,
    Parent,
    /// The share of a CPU: in `top` of the interval before, in `ps` of the whole life.
    Cpu,
    Command,
    /// A time of several words: `Sat Nov 21 23:58:47 2026`.
    Started,
    /// Known and not used.
    Other,
}

/// The columns that are used, in capitals.
const COLUMNS: &[(&str, ProcessColumn)] = &[
    ("PID", ProcessColumn::Pid),
    ("RSS", ProcessColumn::Resident),
    ("RSZ", ProcessColumn::Resident),
    ("RES", ProcessColumn::Resident),
    ("VSZ", ProcessColumn::Size),
    ("VIRT", ProcessColumn::Size),
    ("VSIZE", ProcessColumn::Size),
    ("VSS", ProcessColumn::Size),
    ("SWAP", ProcessColumn::Swapped),
    ("PSS", ProcessColumn::Proportional),
    ("NLWP", ProcessColumn::Threads),
    ("THCNT", ProcessColumn::Threads),
    ("PPID", ProcessColumn::Parent),
    ("%CPU", ProcessColumn::Cpu),
    ("CPU%", ProcessColumn::Cpu),
    ("COMMAND", ProcessColumn::Command),
    ("CMD", ProcessColumn::Command),
    ("COMM", ProcessColumn::Command),
    ("ARGS", ProcessColumn::Command),
    ("CMDLINE", ProcessColumn::Command),
    ("STARTED", ProcessColumn::Started),
];

/// Other columns of such tables.
const OTHERS: &[&str] = &[
    "USER", "UID", "EUSER", "RUSER", "UNAME", "USERNAME", "GID", "GROUP", "TTY", "TT", "STAT", "S",
    "STATE", "START", "STIME", "TIME", "TIME+", "ELAPSED", "%MEM", "MEM%", "CPU", "MEM", "PR",
    "PRI", "NI", "SHR", "SHARED", "F", "C", "PSR", "WCHAN", "LWP", "TGID", "PGID", "SID", "PGRP",
    "SESS", "CLS", "RTPRIO", "SZ", "USS", "MINFL", "MAJFL", "MINFLT", "MAJFLT", "DATA", "CODE",
    "TRS", "DRS", "P", "UNIT", "CGROUP", "%VSZ", "VSZRW", "NFLT", "NDRT", "ADDR", "WCHAN", "LABEL",
    "SUID", "TRPUSER", "SIZE", "MAP", "MAPS", "SWAPPED", "OOM", "OOMSCORE", "OOMADJ", "ETIME",
];

/// The header of a table of processes.
#[derive(Debug)]
pub(super) struct ProcessHeader {
    columns: Vec<ProcessColumn>,
    /// What a size without a suffix counts.
    unit: SizeUnit,
}

impl ProcessHeader {
    /// Reads a header. All words must be known columns: at least one that names the process, and a size.
    pub(super) fn from_line(line: &str) -> Option<Self> {
        if line.len() > 500 {
            return None;
        }
        let mut unit = SizeUnit::KIB;
        let columns: Vec<ProcessColumn> = line
            // htop marks the column by which it sorts: `CPU%▽MEM%`.
            .split(|c: char| c.is_whitespace() || matches!(c, '▽' | '△' | '▼' | '▲'))
            .filter(|word| !word.is_empty())
            .map(|word| {
                let (word, own) = split_unit(word);
                unit = own.unwrap_or(unit);
                column(&word.to_ascii_uppercase())
            })
            .collect::<Option<_>>()?;
        let has = |wanted: &[ProcessColumn]| columns.iter().any(|c| wanted.contains(c));
        let once = columns.iter().filter(|c| **c == ProcessColumn::Command).count() <= 1;
        let is_one = once
            && has(&[ProcessColumn::Pid, ProcessColumn::Command])
            && has(&[
                ProcessColumn::Resident,
                ProcessColumn::Proportional,
                ProcessColumn::Swapped,
                // busybox prints the size of the address space only, some tables only what kswapd does.
                ProcessColumn::Size,
                ProcessColumn::Cpu,
            ]);
        is_one.then_some(Self { columns, unit })
    }

    /// The name of the unit of sizes without a suffix.
    pub(super) fn unit_name(&self) -> &'static str {
        self.unit.name
    }

    /// Adds a row to the snapshot. Returns whether the line is one.
    pub(super) fn read_row(
        &self,
        line: &str,
        at: usize,
        snapshot: &mut Snapshot,
        facts: &mut Facts,
    ) -> bool {
        let Some(row) = self.cells(line) else {
            return false;
        };
        let table = snapshot.sample.table_mut(Entity::Process);
        if table.rows().len() >= ROWS_MAX {
            return true;
        }
        let into = table.add();
        // Without PIDs each row is a process of its own.
        into.key = match row.pid {
            Some(pid) => format!("{pid}@0"),
            None => format!("0@{at}"),
        };
        into.label = program(row.command).to_owned();
        if into.label.is_empty() {
            into.label = into.key.clone();
        }
        for (column, figure) in row.figures {
            let bytes = figure.in_bytes(self.unit.bytes).value;
            let readings = &mut into.row;
            match (column, raw(bytes).map(Bytes::new)) {
                (ProcessColumn::Resident, _) => {
                    if let Some(pages) = figure::pages(bytes, facts) {
                        readings.set(PROC_RSS, pages);
                    }
                }
                (ProcessColumn::Size, Some(bytes)) => readings.set(PROC_SIZE, bytes),
                (ProcessColumn::Swapped, Some(bytes)) => readings.set(PROC_SWAP, bytes),
                (ProcessColumn::Proportional, Some(bytes)) => readings.set(PROC_PSS, bytes),
                (ProcessColumn::Threads, _) => set_count(readings, PROC_THREADS, figure),
                (ProcessColumn::Cpu, _) => {
                    // 1 % of a CPU is 10,000 µs in a second.
                    if let Some(micros) = raw(figure.value * 1e4) {
                        readings.set(PROC_CPU, Micros::new(micros));
                    }
                }
                (ProcessColumn::Parent, _) => set_count(readings, PROC_PARENT, figure),
                _ => {}
            }
        }
        true
    }

    fn cells<'l>(&self, line: &'l str) -> Option<ProcessRow<'l>> {
        let columns = &self.columns;
        let command = columns.iter().position(|c| *c == ProcessColumn::Command);
        let left = &columns[..command.unwrap_or(columns.len())];
        let right = &columns[command.map_or(columns.len(), |at| at + 1)..];
        let mut row = ProcessRow::default();
        let mut rest = line.trim();
        for column in left {
            let words = match column {
                ProcessColumn::Started if rest.starts_with(is_weekday) => 5,
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
        // A truncated line ends within its columns; a line of another text has more words.
        (rest.is_empty() != command.is_some()).then_some(row)
    }
}

/// The cells of a row that are used.
#[derive(Debug, Default)]
struct ProcessRow<'l> {
    pid: Option<u32>,
    command: &'l str,
    figures: Vec<(ProcessColumn, PrintedFigure)>,
}

impl ProcessRow<'_> {
    fn cell(&mut self, column: ProcessColumn, word: &str) -> Option<()> {
        match column {
            _ if word.is_empty() => None,
            ProcessColumn::Pid => {
                self.pid = Some(word.parse().ok()?);
                Some(())
            }
            ProcessColumn::Other | ProcessColumn::Started | ProcessColumn::Command => Some(()),
            // `-` means that it does not apply.
            _ if word == "-" => Some(()),
            // A column of other words than numbers is not read, and the row is one all the same.
            ProcessColumn::Cpu => {
                // busybox prints `72%`.
                let word = word.trim_end_matches('%');
                let figure = PrintedFigure::binary(word).filter(|figure| !figure.has_unit);
                self.figures.extend(figure.map(|figure| (column, figure)));
                Some(())
            }
            _ => {
                self.figures.push((column, PrintedFigure::binary(word)?));
                Some(())
            }
        }
    }
}

/// Separates a unit from the name of a column: `RSS-MiB`.
fn split_unit(word: &str) -> (&str, Option<SizeUnit>) {
    match word.rsplit_once('-') {
        Some((name, unit)) if SizeUnit::named(unit).is_some() => (name, SizeUnit::named(unit)),
        _ => (word, None),
    }
}

fn column(word: &str) -> Option<ProcessColumn> {
    COLUMNS
        .iter()
        .find(|(name, _)| *name == word)
        .map(|(_, column)| *column)
        .or_else(|| OTHERS.contains(&word).then_some(ProcessColumn::Other))
}

fn is_weekday(c: char) -> bool {
    "MTWFS".contains(c)
}

fn set_count(
    row: &mut timeline::Row,
    signal: timeline::Signal<timeline::Gauge<Count>>,
    figure: PrintedFigure,
) {
    if let Some(count) = raw(figure.value).filter(|_| !figure.has_unit) {
        row.set(signal, Count::new(count));
    }
}

/// The name of the program: `/usr/sbin/mysqld --defaults-file=…` is mysqld, `[kworker/0:1]` is kworker/0:1.
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
    fn the_name_of_the_program_is_taken_from_the_command() {
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
    fn a_header_has_a_process_and_a_size() {
        for line in [
            "USER         PID %CPU %MEM    VSZ   RSS TTY      STAT START   TIME COMMAND",
            "    PID   RSS COMMAND",
            "  PID USER     Command                         Swap      USS      PSS      RSS",
            "  PID USER      PR  NI    VIRT    RES    SHR S  %CPU %MEM     TIME+ COMMAND",
        ] {
            assert!(ProcessHeader::from_line(line).is_some(), "{line}");
        }
        for line in [
            "PID COMMAND",
            "%CPU of a COMMAND",
            "UID PID minflt/s majflt/s VSZ RSS %MEM Command",
            "11:22:33 UID PID VSZ RSS %MEM Command",
            "RSS feeds are nice",
            "",
        ] {
            assert!(ProcessHeader::from_line(line).is_none(), "{line}");
        }
    }
}
