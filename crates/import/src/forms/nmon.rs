//! Files of `nmon`: `MEM,…` by the names in its heading, in MiB; the times stand in `ZZZZ,…`. -1 and -0 mean that a
//! figure is not known.

use timeline::SignalId;
use timeline::signals::{
    MEM_ACTIVE, MEM_BUFFERS, MEM_CACHED, MEM_FREE, MEM_INACTIVE, MEM_SWAP_CACHED, MEM_TOTAL,
    SWAP_FREE, SWAP_TOTAL,
};
use units::WallClock;

use super::Form;
use crate::block::{BlockReader, TextBlock};
use crate::builder::{Snapshot, SnapshotTime};
use crate::text::figure::{MIB, PrintedFigure};
use crate::text::line_scan::BlockStart;

pub(super) const FORM: Form =
    Form { name: "nmon", begins: BlockStart::with(&["MEM,Memory MB"]), read };

/// Columns of MEM. `memshared` was another figure in old kernels.
const COLUMNS: [(&str, SignalId); 9] = [
    ("memtotal", MEM_TOTAL.id()),
    ("memfree", MEM_FREE.id()),
    ("swaptotal", SWAP_TOTAL.id()),
    ("swapfree", SWAP_FREE.id()),
    ("cached", MEM_CACHED.id()),
    ("active", MEM_ACTIVE.id()),
    ("buffers", MEM_BUFFERS.id()),
    ("swapcached", MEM_SWAP_CACHED.id()),
    ("inactive", MEM_INACTIVE.id()),
];
fn read(input: &mut BlockReader<'_>) -> Option<TextBlock> {
    let heading = plain(input.lines.first()?).strip_prefix("MEM,Memory MB")?;
    let columns: Vec<Option<SignalId>> = heading.split(',').skip(1).map(column).collect();
    let mut block =
        TextBlock { what: "nmon".to_owned(), unit: "MiB", lines: 1, ..TextBlock::default() };
    let mut when = SnapshotTime::Unknown;
    for (at, line) in input.lines.iter().enumerate().skip(1) {
        let line = plain(line);
        let mut cells = line.split(',');
        let Some(label) = cells.next().filter(|_| is_record(line)) else {
            break;
        };
        match label {
            "ZZZZ" => when = clock(cells.skip(1)).map_or(SnapshotTime::Unknown, SnapshotTime::At),
            "MEM" if !input.builder.is_past_counting() => {
                let mut snapshot = Snapshot { when, ..Snapshot::default() };
                for (signal, cell) in columns.iter().zip(cells.skip(1)) {
                    if let (Some(signal), Some(figure)) = (signal, PrintedFigure::binary(cell)) {
                        snapshot.set_size(*signal, figure, MIB);
                    }
                }
                if snapshot.has_readings() {
                    input.add(snapshot);
                }
            }
            _ => {}
        }
        block.lines = at + 1;
    }
    (input.added > 0).then_some(block)
}

/// The line without the stars of a comment.
fn plain(line: &str) -> &str {
    line.trim_start_matches([' ', '*', '/'])
}

fn column(name: &str) -> Option<SignalId> {
    let name = name.trim();
    let found = COLUMNS.iter().find(|(known, _)| *known == name);
    found.map(|(_, signal)| *signal)
}

/// A label in capitals and a comma.
fn is_record(line: &str) -> bool {
    line.split_once(',').is_some_and(|(label, _)| {
        label.starts_with(|c: char| c.is_ascii_uppercase())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    })
}

/// `16:47:09,26-NOV-2026`.
fn clock<'l>(mut cells: impl Iterator<Item = &'l str>) -> Option<WallClock> {
    const MONTHS: &str = "JANFEBMARAPRMAYJUNJULAUGSEPOCTNOVDEC";
    let (time, date) = (cells.next()?, cells.next()?);
    let mut parts = date.trim().split('-');
    let (day, month, year) = (parts.next()?, parts.next()?, parts.next()?);
    let at = MONTHS.find(month).filter(|at| month.len() == 3 && at % 3 == 0)?;
    crate::text::prompt::time(&format!("{year}-{:02}-{day} {time}", at / 3 + 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{paste, survives};
    use units::{Bytes, Span};

    const FILE: &str = "\
MEM,Memory MB vm,memtotal,hightotal,lowtotal,swaptotal,memfree,highfree,lowfree,swapfree,memshared,cached,active,bigfree,buffers,swapcached,inactive
NET,Network I/O vm,lo-read-KB/s,eth0-read-KB/s
ZZZZ,T0001,16:47:09,26-NOV-2026
CPU001,T0001,1.0,2.0
MEM,T0001,24105.6,-0.0,-0.0,0.0,12649.1,-0.0,-0.0,0.0,58.8,10258.5,2967.2,-1.0,37.7,0.0,7661.1
ZZZZ,T0002,16:47:10,26-NOV-2026
MEM,T0002,24105.6,-0.0,-0.0,0.0,12648.0,-0.0,-0.0,0.0,58.5,10258.0,2967.2,-1.0,37.8,0.0,7670.5
";

    #[test]
    fn rows_have_the_times_before_them() {
        let timeline = paste(FILE).timeline;
        assert_eq!(timeline.len(), 2);
        assert_eq!(timeline.duration(), Span::from_secs(1));
        assert_eq!(timeline.last(MEM_FREE), Some(Bytes::from_mib(12_648)));
        assert_eq!(timeline.last(MEM_CACHED), Some(Bytes::from_mib(10_258)));
        assert!(timeline.rounding_error(MEM_FREE.id()).is_some());
        survives(FILE);
    }

    #[test]
    fn lines_in_a_comment_are_read() {
        let text: String = FILE.lines().map(|line| format!("\t * {line}\n")).collect();
        assert_eq!(paste(&text).timeline.last(MEM_FREE), Some(Bytes::from_mib(12_648)));
    }
}
