//! The lines in which `earlyoom` logs what it measures: `mem avail: 4105 of 7836 MiB (52 %), swap free: 2048 of 2048 MiB`.
//! One line a second, or as `-r` says; there is no clock in them.

use timeline::signals::{MEM_AVAILABLE, MEM_TOTAL, SWAP_FREE, SWAP_TOTAL};

use super::Form;
use crate::block::{BlockReader, TextBlock};
use crate::builder::Snapshot;
use crate::text::figure::{MIB, PrintedFigure};
use crate::text::line_scan::BlockStart;

pub(super) const FORM: Form = Form {
    name: "earlyoom",
    begins: BlockStart::with(&["mem avail:"]),
    read,
};

/// At most 10,000 lines in a row.
const LINES_MAX: usize = 10_000;

fn read(input: &mut BlockReader<'_>) -> Option<TextBlock> {
    let mut lines = 0;
    for line in input.lines.iter().take(LINES_MAX) {
        let Some(snapshot) = snapshot(line) else {
            break;
        };
        input.add(snapshot);
        lines += 1;
    }
    (lines > 0).then_some(TextBlock {
        what: "earlyoom: available memory and free swap".to_owned(),
        lines,
        unit: "MiB",
        ..TextBlock::default()
    })
}

fn snapshot(line: &str) -> Option<Snapshot> {
    let (_, memory) = line.split_once("mem avail:")?;
    let (memory, swap) = memory.split_once("swap free:").unwrap_or((memory, ""));
    let mut snapshot = Snapshot::default();
    for (text, left, total) in [
        (memory, MEM_AVAILABLE, MEM_TOTAL),
        (swap, SWAP_FREE, SWAP_TOTAL),
    ] {
        let Some((free, whole)) = text.split_once(" of ") else {
            continue;
        };
        // A line that is cut has lost the unit, and perhaps digits.
        let (whole, _) = whole.split_once(" MiB")?;
        let figure =
            |word: &str| PrintedFigure::binary(word.trim()).filter(|figure| !figure.has_unit);
        let (free, whole) = (figure(free)?, figure(whole)?);
        if free.value > whole.value {
            return None;
        }
        for (signal, figure) in [(left, free), (total, whole)] {
            snapshot.set_size(signal.id(), figure, MIB);
            snapshot.set_error(signal.id(), MIB);
        }
    }
    snapshot.host(MEM_TOTAL.id()).is_some().then_some(snapshot)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{paste, survives};
    use units::Bytes;

    #[test]
    fn each_line_is_a_reading() {
        let text = "mem avail: 4105 of 7836 MiB (52 %), swap free: 2048 of 2048 MiB (100 %)\nmem avail:    4 of 7836 MiB ( 0 %), swap free: 1357 of 2048 MiB (66 %)\n";
        let timeline = paste(text).timeline;
        assert_eq!(timeline.len(), 2);
        assert_eq!(timeline.last(MEM_AVAILABLE), Some(Bytes::from_mib(4)));
        assert_eq!(timeline.last(SWAP_FREE), Some(Bytes::from_mib(1357)));
        survives(text);
    }
}
