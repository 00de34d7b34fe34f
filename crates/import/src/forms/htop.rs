//! `htop`: the bars of memory and swap: `Mem[||||||3.81G/3.84G]`.
//!
//! "used" leaves out buffers and cache, so what is left is about what can be had; the bar does not show how much of it is
//! free.

use timeline::signals::{MEM_AVAILABLE, MEM_TOTAL, SWAP_FREE, SWAP_TOTAL};
use timeline::{Gauge, Signal};
use units::Bytes;

use super::Form;
use crate::block::{BlockReader, TextBlock};
use crate::builder::Snapshot;
use crate::text::figure::{MIB, PrintedFigure, raw};
use crate::text::line_scan::BlockStart;

pub(super) const FORM: Form = Form {
    name: "htop",
    begins: BlockStart::with(&["Mem[", "Mem ["]),
    read,
};

/// The bar of swap stands below that of memory, perhaps beside others.
const SWAP_LINES: usize = 4;

fn read(input: &mut BlockReader<'_>) -> Option<TextBlock> {
    let mut snapshot = Snapshot::default();
    let memory = bar(input.lines.first()?, &["Mem"])?;
    set(&mut snapshot, memory, MEM_TOTAL, MEM_AVAILABLE);
    let mut lines = 1;
    let near = input.lines.iter().enumerate().take(SWAP_LINES);
    if let Some((at, swap)) = near
        .filter_map(|(at, line)| Some((at, bar(line, &["Swp", "Swap"])?)))
        .next()
    {
        set(&mut snapshot, swap, SWAP_TOTAL, SWAP_FREE);
        lines = at + 1;
    }
    input.add(snapshot);
    Some(TextBlock {
        what: "htop: bars of memory and swap".to_owned(),
        lines,
        ..TextBlock::default()
    })
}

/// The used and the whole size in bytes, and by how much the printed figures may be off.
fn bar(line: &str, names: &[&str]) -> Option<(f64, f64, f64)> {
    let rest = names.iter().find_map(|name| {
        let (_, rest) = line.split_once(name)?;
        rest.trim_start().strip_prefix('[')
    })?;
    let (inner, _) = rest.split_once(']')?;
    let figures = inner.trim_start_matches(['|', '#', '*', ' ', '.', '-']);
    let (used, whole) = figures.split_once('/')?;
    let whole = PrintedFigure::binary(whole.trim())?;
    let mut used = PrintedFigure::binary(used.trim())?;
    // Old versions print the unit once: `3810/3840MB`.
    if !used.has_unit && whole.has_unit {
        let unit: String = whole_unit(figures);
        used = PrintedFigure::binary(&format!("{}{unit}", used.value))?;
    }
    let (used, whole) = (used.in_bytes(MIB), whole.in_bytes(MIB));
    (used.value <= whole.value).then_some((used.value, whole.value, used.doubt() + whole.doubt()))
}

/// The letters at the end of a text.
fn whole_unit(text: &str) -> String {
    let is_unit = |c: char| c.is_ascii_alphabetic();
    let unit: Vec<char> = text
        .trim()
        .chars()
        .rev()
        .take_while(|c| is_unit(*c))
        .collect();
    unit.into_iter().rev().collect()
}

fn set(
    snapshot: &mut Snapshot,
    (used, whole, doubt): (f64, f64, f64),
    total: Signal<Gauge<Bytes>>,
    left: Signal<Gauge<Bytes>>,
) {
    for (signal, bytes) in [(total, whole), (left, whole - used)] {
        if let Some(bytes) = raw(bytes) {
            snapshot.sample.host.set_raw(signal.id(), bytes);
            snapshot.set_error(signal.id(), doubt);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{paste, survives};

    #[test]
    fn bars_of_old_and_new_versions_are_read() {
        for (text, left, swap_left) in [
            (
                "  1 [||||||96.7%]\n  Mem[|||||||||3810/3840MB]\n  Swp[||||||3466/4096MB]\n",
                30,
                630,
            ),
            (
                "  Mem[|||||||||||3.81G/3.84G] Tasks: 134\n  Swp[|||      1.00G/2.00G] Load average: 2\n",
                30,
                1024,
            ),
            (
                "Mem[||        512M/2.00G]\nSwp[            0K/0K]\n",
                1536,
                0,
            ),
        ] {
            let timeline = paste(text).timeline;
            let mib = |signal| timeline.last(signal).map(|bytes: Bytes| bytes.get() >> 20);
            assert_eq!(
                (mib(MEM_AVAILABLE), mib(SWAP_FREE)),
                (Some(left), Some(swap_left)),
                "{text}"
            );
            survives(text);
        }
    }

    #[test]
    fn what_is_no_bar_is_not_read() {
        for text in ["Mem[0]", "Mem[||| 5G/4G]", "Mem[a/b]", "Mem[|||97%]"] {
            assert!(paste(text).timeline.is_empty(), "{text}");
        }
    }
}
