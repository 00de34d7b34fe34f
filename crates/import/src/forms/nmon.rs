//! Files of `nmon`: rows of memory (`MEM,T0001,…`) with their heading, and the times of the rows (`ZZZZ,T0001,…`). Sizes
//! are MiB with one decimal.

use std::collections::BTreeMap;

use timeline::signals::{
    MEM_ACTIVE, MEM_BUFFERS, MEM_CACHED, MEM_FREE, MEM_INACTIVE, MEM_SWAP_CACHED, MEM_TOTAL,
    SWAP_FREE, SWAP_TOTAL,
};
use timeline::{Gauge, Signal};
use units::Bytes;

use super::Form;
use crate::block::{BlockReader, TextBlock};
use crate::builder::{Link, Snapshot, SnapshotTime};
use crate::text::figure::{MIB, PrintedFigure};
use crate::text::line_scan::BlockStart;
use crate::text::times::PrintedTime;

pub(super) const FORM: Form = Form {
    name: "nmon",
    begins: BlockStart::with(&["MEM,Memory", "AAA,progname,nmon"]),
    read,
};

/// The columns that are used.
const COLUMNS: &[(&str, Signal<Gauge<Bytes>>)] = &[
    ("memtotal", MEM_TOTAL),
    ("memfree", MEM_FREE),
    ("swaptotal", SWAP_TOTAL),
    ("swapfree", SWAP_FREE),
    ("cached", MEM_CACHED),
    ("active", MEM_ACTIVE),
    ("buffers", MEM_BUFFERS),
    ("swapcached", MEM_SWAP_CACHED),
    ("inactive", MEM_INACTIVE),
];
/// The rounding of a size.
const ROUNDING: f64 = 0.05 * MIB;
/// The rows begin behind the settings of the host.
const HEAD_LINES_MAX: usize = 5000;
/// A file of a day with a row each second.
const ROWS_MAX: usize = 86_400;

fn read(input: &mut BlockReader<'_>) -> Option<TextBlock> {
    if !FORM.begins.is_in(input.lines.first()?) {
        return None;
    }
    let mut names: Vec<&str> = Vec::new();
    let mut rows: Vec<(&str, Vec<&str>)> = Vec::new();
    let mut times: BTreeMap<&str, PrintedTime> = BTreeMap::new();
    let mut lines = 0;
    for (at, line) in input.lines.iter().enumerate() {
        if rows.is_empty() && at > HEAD_LINES_MAX {
            break;
        }
        let Some(cells) = cells(line) else {
            // A file of nmon has rows only; a quoted part ends here.
            if line.is_empty() {
                continue;
            }
            break;
        };
        match cells.as_slice() {
            ["MEM", tag, ..] if tag.starts_with('T') && rows.len() < ROWS_MAX => {
                rows.push((tag, cells));
            }
            ["MEM", tag, ..] if tag.starts_with('T') => {}
            ["AAA", "progname", ..] if at > 0 => break,
            // Another file, or the heading again.
            ["MEM", ..] | ["AAA", "progname", ..] if at > 0 && !names.is_empty() => break,
            ["MEM", ..] => names = cells,
            ["ZZZZ", tag, clock, date, ..] => {
                times.extend(time(clock, date).map(|time| (*tag, time)));
            }
            _ => {}
        }
        lines = at + 1;
    }
    if names.is_empty() || rows.is_empty() {
        return None;
    }
    // A row that is cut has lost digits.
    rows.retain(|(_, cells)| cells.len() >= names.len());
    let count = rows.len();
    for (tag, cells) in rows {
        let mut snapshot = snapshot(&names, &cells);
        let wall = times.get(tag).and_then(|time| time.wall());
        snapshot.when = wall.map_or(SnapshotTime::Unknown, SnapshotTime::At);
        snapshot.link = Link::Follows;
        input.add(snapshot);
    }
    Some(TextBlock {
        what: format!("nmon, {count} rows of memory"),
        lines,
        unit: "MiB",
        ..TextBlock::default()
    })
}

/// The cells of a row: a name in capitals and more, behind the marks of a comment.
fn cells(line: &str) -> Option<Vec<&str>> {
    let row = line.trim().trim_start_matches(['*', '#', '/', ' ']);
    let cells: Vec<&str> = row.split(',').map(str::trim).collect();
    let is_name = |name: &str| {
        let is_letter = |b: u8| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_';
        (2..=16).contains(&name.len()) && name.bytes().all(is_letter)
    };
    (cells.len() >= 2 && is_name(cells[0])).then_some(cells)
}

/// `23:58:47` and `21-NOV-2026`.
fn time(clock: &str, date: &str) -> Option<PrintedTime> {
    const MONTHS: &str = "JANFEBMARAPRMAYJUNJULAUGSEPOCTNOVDEC";
    let mut parts = date.split('-');
    let (day, month, year) = (parts.next()?, parts.next()?, parts.next()?);
    let month = MONTHS.find(month).filter(|_| month.len() == 3)? / 3 + 1;
    PrintedTime::whole(&format!("{year}-{month:02}-{day:0>2} {clock}"))
}

fn snapshot(names: &[&str], cells: &[&str]) -> Snapshot {
    let mut snapshot = Snapshot::default();
    for (name, signal) in COLUMNS {
        let at = names.iter().position(|known| known == name);
        // -1 and -0.0 mean that the kernel has no such figure.
        let cell = at
            .and_then(|at| cells.get(at))
            .filter(|cell| !cell.starts_with('-'));
        if let Some(figure) = cell.and_then(|cell| PrintedFigure::binary(cell)) {
            snapshot.set_size(signal.id(), figure, MIB);
            snapshot.set_error(signal.id(), ROUNDING);
        }
    }
    snapshot
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{paste, survives};

    const TEXT: &str = "AAA,progname,nmon\nMEM,Memory MB host1,memtotal,hightotal,lowtotal,swaptotal,memfree,highfree,lowfree,swapfree,memshared,cached,active,bigfree,buffers,swapcached,inactive\nZZZZ,T0001,23:58:47,21-NOV-2026\nMEM,T0001,7821.4,0.0,7821.4,8189.4,1232.6,0.0,1232.6,8189.1,-0.0,2421.6,3081.7,-1.0,153.9,0.0,1645.1\nZZZZ,T0002,23:59:47,21-NOV-2026\nMEM,T0002,7821.4,0.0,7821.4,8189.4,932.6,0.0,932.6,8189.1,-0.0,2421.6,3081.7,-1.0,153.9,0.0,1645.1\n";

    #[test]
    fn rows_are_read_by_their_heading_and_at_their_times() {
        let timeline = paste(TEXT).timeline;
        assert_eq!(timeline.len(), 2);
        assert_eq!(timeline.duration(), units::Span::from_secs(60));
        let mib = |signal| timeline.last(signal).map(|bytes: Bytes| bytes.get() >> 20);
        assert_eq!((mib(MEM_TOTAL), mib(MEM_FREE)), (Some(7821), Some(932)));
        survives(TEXT);
    }

    #[test]
    fn a_part_in_a_comment_is_read() {
        let text: String = TEXT
            .lines()
            .skip(1)
            .map(|line| format!("\t * {line}\n"))
            .collect();
        assert_eq!(paste(&format!("/**\n{text} */\n")).timeline.len(), 2);
    }
}
