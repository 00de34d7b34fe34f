//! The memory box of `btop`: total, available, cached, free, and swap, each with its unit; sizes are binary.

use timeline::SignalId;
use timeline::signals::{
    MEM_AVAILABLE, MEM_CACHED, MEM_FREE, MEM_TOTAL, SWAP_FREE, SWAP_TOTAL, SWAP_USED,
};

use super::Form;
use crate::block::{BlockReader, TextBlock};
use crate::builder::Snapshot;
use crate::text::figure::PrintedFigure;
use crate::text::line_scan::BlockStart;

pub(super) const FORM: Form = Form { name: "btop", begins: BlockStart::with(&["mem┌"]), read };

/// At most 60 lines of the box: graphs lie between the figures.
const LINES_MAX: usize = 60;

fn read(input: &mut BlockReader<'_>) -> Option<TextBlock> {
    let first = input.lines.first()?.trim_start();
    if !first.starts_with('╭') || !first.contains("mem┌") {
        return None;
    }
    let mut snapshot = Snapshot::default();
    let mut lines = 1;
    let mut in_swap = false;
    for line in input.lines.iter().skip(1).take(LINES_MAX) {
        let Some(inside) = line.trim_start().strip_prefix(['│', '├']) else {
            lines += usize::from(line.trim_start().starts_with('╰'));
            break;
        };
        lines += 1;
        let cell = inside.split(['│', '├', '┤']).next().unwrap_or_default();
        let cell = cell.replace('─', " ");
        let words: Vec<&str> = cell.split_whitespace().collect();
        let [name, figure, unit] = words.as_slice() else {
            continue;
        };
        in_swap |= *name == "Swap:";
        let figure = PrintedFigure::binary(&format!("{figure}{unit}"));
        if let (Some(signal), Some(figure)) = (signal(name, in_swap), figure) {
            // Decimals are truncated, not rounded (seen: 22.48 GiB as 22.4): a whole step.
            let figure = PrintedFigure { error: 2.0 * figure.error, ..figure };
            snapshot.set_size(signal, figure, 1.0);
        }
    }
    snapshot.host(MEM_TOTAL.id())?;
    input.add(snapshot);
    Some(TextBlock { what: "btop".to_owned(), unit: "as printed", lines, ..TextBlock::default() })
}

/// What a name in the box means, before and behind the total of swap.
fn signal(name: &str, in_swap: bool) -> Option<SignalId> {
    Some(match (name, in_swap) {
        ("Total:", false) => MEM_TOTAL.id(),
        ("Available:", false) => MEM_AVAILABLE.id(),
        ("Cached:", false) => MEM_CACHED.id(),
        ("Free:", false) => MEM_FREE.id(),
        ("Swap:", _) => SWAP_TOTAL.id(),
        ("Used:", true) => SWAP_USED.id(),
        ("Free:", true) => SWAP_FREE.id(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{are_within_rounding, paste, survives};
    use units::Bytes;

    const SCREEN: &str = "\
╭─┐²mem┌────────────────────┬─┐disks┌────────────────┐io┌─╮╭─┐⁴proc┌┐filter┌────╮
│ Total:           23.5 GiB ├─────────────────────────────┤│    Pid: Program:   │
├─Used:────────────1.06─GiB─┤                             ││   14818 chromium   │
│   5%                      │                             ││   15794 chromium   │
├─Available:───────22.4─GiB─┤                             ││   14878 chromium   │
├─Cached:──────────9.98─GiB─┤                             ││   15875 python3    │
├─Free:────────────12.3─GiB─┤                             ││   14920 chromium   │
│ Swap:            2.00 GiB │                             ││                    │
│ Used:             512 MiB │                             ││                    │
╰───────────────────────────┴─────────────────────────────╯╰────────────────────╯
";

    /// `/proc/meminfo`, read right after the screen.
    #[test]
    fn figures_are_the_kernels_within_their_rounding() {
        let opened = paste(SCREEN);
        let timeline = &opened.timeline;
        let sizes = [
            (MEM_TOTAL, 24_684_084),
            (MEM_AVAILABLE, 23_571_428),
            (MEM_CACHED, 10_467_204),
            (MEM_FREE, 12_931_264),
        ];
        are_within_rounding(timeline, &sizes);
        assert_eq!(timeline.last(SWAP_TOTAL), Some(Bytes::from_gib(2)));
        assert_eq!(timeline.last(SWAP_USED), Some(Bytes::from_mib(512)));
        assert_eq!(opened.origin.inputs[0].last_line, 10);
        survives(SCREEN);
    }
}
