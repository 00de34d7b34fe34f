//! `atop`: the lines of memory, swap and paging of a screen: `MEM | tot 1.9G | free 101.7M | cache 244.2M |`, with bars
//! between the fields, blanks only, or a field on a line of its own.
//!
//! "cache" is the page cache without buffers, "slab" all of slab. Counts of paging are of the interval that the head
//! names, and are not used: without the sample before it they have no beginning.

use timeline::signals::{
    COMMIT_LIMIT, COMMITTED_AS, MEM_BUFFERS, MEM_CACHED, MEM_DIRTY, MEM_FREE, MEM_PAGE_TABLES,
    MEM_SHMEM, MEM_SLAB, MEM_SLAB_RECLAIMABLE, MEM_TOTAL, SWAP_FREE, SWAP_TOTAL,
};
use timeline::{Gauge, Signal};
use units::Bytes;

use super::Form;
use crate::block::{BlockReader, TextBlock};
use crate::builder::{Snapshot, SnapshotTime};
use crate::text::figure::{MIB, PrintedFigure};
use crate::text::line_scan::BlockStart;
use crate::text::times::PrintedTime;

pub(super) const FORM: Form = Form {
    name: "atop",
    begins: BlockStart::with(&["ATOP - ", "MEM |", "MEM  |", "mem |"]),
    read,
};

/// A screen has some 20 lines above its processes.
const LINES_MAX: usize = 40;

/// The fields of the line of memory.
const MEM: &[(&str, Signal<Gauge<Bytes>>)] = &[
    ("tot", MEM_TOTAL),
    ("free", MEM_FREE),
    ("cache", MEM_CACHED),
    ("buff", MEM_BUFFERS),
    ("dirty", MEM_DIRTY),
    ("slab", MEM_SLAB),
    ("slrec", MEM_SLAB_RECLAIMABLE),
    ("shmem", MEM_SHMEM),
    ("pgtab", MEM_PAGE_TABLES),
];
/// The fields of the line of swap.
const SWAP: &[(&str, Signal<Gauge<Bytes>>)] = &[
    ("tot", SWAP_TOTAL),
    ("free", SWAP_FREE),
    ("vmcom", COMMITTED_AS),
    ("vmlim", COMMIT_LIMIT),
];

fn read(input: &mut BlockReader<'_>) -> Option<TextBlock> {
    let mut snapshot = Snapshot::default();
    let first = input.lines.first()?;
    let head = head(first);
    if head.is_none() && label(first).is_none_or(|(label, _)| !label.eq_ignore_ascii_case("mem")) {
        return None;
    }
    let mut lines = usize::from(head.is_some());
    let mut current = "";
    for (at, line) in input.lines.iter().enumerate().take(LINES_MAX).skip(lines) {
        let Some((found, fields)) = label(line) else {
            break;
        };
        if !found.is_empty() {
            current = found;
        }
        let table = match current.to_ascii_lowercase().as_str() {
            "mem" => MEM,
            "swp" | "swap" => SWAP,
            _ => &[],
        };
        // The line of another screen.
        let is_again = found.eq_ignore_ascii_case("mem") && snapshot.host(MEM_TOTAL.id()).is_some();
        if is_again {
            break;
        }
        for (signal, figure) in sizes(fields, table) {
            snapshot.set_size(signal.id(), figure, MIB);
        }
        lines = at + 1;
    }
    snapshot
        .host(MEM_TOTAL.id())
        .or(snapshot.host(MEM_FREE.id()))?;
    snapshot.when = head
        .flatten()
        .and_then(PrintedTime::wall)
        .map_or(SnapshotTime::Unknown, SnapshotTime::At);
    input.add(snapshot);
    Some(TextBlock {
        what: "atop".to_owned(),
        lines,
        ..TextBlock::default()
    })
}

/// The time in `ATOP - host   2016/12/11  18:41:27   -----   10s elapsed`; the inner `None` where it is not understood.
#[allow(clippy::option_option)] // a head, and perhaps its time
fn head(line: &str) -> Option<Option<PrintedTime>> {
    let (_, rest) = line.split_once("ATOP - ")?;
    let words: Vec<&str> = rest.split_whitespace().skip(1).take(2).collect();
    let text = words.join(" ").replace('/', "-");
    Some(PrintedTime::whole(&text))
}

/// The label of a line, and its fields; an empty label goes on with the line before.
fn label(line: &str) -> Option<(&str, &str)> {
    let (label, fields) = line.trim_start().split_once('|')?;
    let label = label.trim();
    let is_label = label.len() <= 4 && label.bytes().all(|b| b.is_ascii_alphanumeric());
    is_label.then_some((label, fields))
}

/// The sizes of a line: name and figure in turn, between bars or blanks.
fn sizes<'a>(
    fields: &'a str,
    table: &'a [(&'static str, Signal<Gauge<Bytes>>)],
) -> impl Iterator<Item = (Signal<Gauge<Bytes>>, PrintedFigure)> + 'a {
    let words: Vec<&str> = fields
        .split(|c: char| c == '|' || c.is_whitespace())
        .filter(|word| !word.is_empty())
        .collect();
    let pairs: Vec<_> = words
        .windows(2)
        .filter_map(|pair| {
            let (_, signal) = table.iter().find(|(name, _)| *name == pair[0])?;
            let figure = PrintedFigure::binary(pair[1]).filter(|figure| figure.has_unit)?;
            Some((*signal, figure))
        })
        .collect();
    pairs.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{paste, survives};

    const SCREEN: &str =
        "ATOP - host1           2026/11/21  23:58:47    -----------      10s elapsed
PRC | sys    1.13s | user   0.43s | #proc     75 | #zombie    0 | #exit   5383 |
MEM | tot   992.8M | free  211.5M | cache 470.0M | buff   87.2M | slab  164.7M |
SWP | tot     0.0M | free    0.0M |              | vmcom 207.6M | vmlim 496.4M |
PAG | scan 0 | steal 0 | | stall 0 | | swin 3 | | swout 0 |
";

    #[test]
    fn the_lines_of_memory_and_swap_are_read() {
        let timeline = paste(SCREEN).timeline;
        let mib = |signal| timeline.last(signal).map(|bytes: Bytes| bytes.get() >> 20);
        assert_eq!(mib(MEM_TOTAL), Some(992));
        assert_eq!(mib(MEM_CACHED), Some(470));
        assert_eq!(mib(MEM_SLAB), Some(164));
        assert_eq!(mib(SWAP_TOTAL), Some(0));
        assert!(timeline.stamp(0).unwrap().wall.is_some());
        survives(SCREEN);
    }

    #[test]
    fn fields_without_bars_and_on_further_lines_are_read() {
        let text = "MEM | tot 67.5G  free 676.3M\n    | cache 45.2G\nswap| tot 7.4G   free 7.4G\n";
        let timeline = paste(text).timeline;
        let gib = |signal| timeline.last(signal).map(|bytes: Bytes| bytes.get() >> 30);
        assert_eq!((gib(MEM_TOTAL), gib(MEM_CACHED)), (Some(67), Some(45)));
        assert_eq!(gib(SWAP_TOTAL), Some(7));
        assert!(paste("MEM | what | is | this\n").timeline.is_empty());
    }
}
