//! Summaries of memory in screens of monitors: `glances`, `btop`, and `neofetch` and its relatives.
//!
//! All three mean by "used" what programs use, without the cache; by "free" glances means what is available. Summaries in
//! which "used" may include the cache (Proxmox' page, hosting panels) or that print shares alone (the greeting of Ubuntu)
//! are recognised and not used.

use timeline::signals::{MEM_AVAILABLE, MEM_CACHED, MEM_FREE, MEM_TOTAL, SWAP_FREE, SWAP_TOTAL};
use timeline::{Gauge, Signal};
use units::Bytes;

use super::Form;
use crate::block::{BlockReader, TextBlock};
use crate::builder::Snapshot;
use crate::text::figure::{KIB, PrintedFigure, raw};
use crate::text::line_scan::BlockStart;

pub(super) const FORM: Form = Form {
    name: "monitor",
    begins: BlockStart::with(&["MEM", "Total:", "Memory", "emory usage", "RAM usage"]),
    read,
};

type BytesSignal = Signal<Gauge<Bytes>>;

fn read(input: &mut BlockReader<'_>) -> Option<TextBlock> {
    let (what, lines, snapshot) = glances(input.lines)
        .or_else(|| btop(input.lines))
        .or_else(|| fetch(input.lines.first()?))?;
    if snapshot.has_readings() {
        input.add(snapshot);
    }
    Some(TextBlock {
        what: what.to_owned(),
        lines,
        ..TextBlock::default()
    })
}

/// `MEM -  92.3%  SWAP - 10.0%` above rows of `total`, `used` and `free`, with other columns beside them.
fn glances(lines: &[&str]) -> Option<(&'static str, usize, Snapshot)> {
    let first = lines.first()?;
    let share = first
        .split_once("MEM")?
        .1
        .trim_start_matches([' ', '-', '[']);
    share
        .starts_with(|c: char| c.is_ascii_digit())
        .then_some(())?;
    first.contains('%').then_some(())?;
    let has_swap = first.contains("SWAP");
    let row = |at: usize, name: &str| {
        let words: Vec<&str> = lines.get(at)?.split_whitespace().collect();
        let found = words
            .windows(2)
            .filter(|pair| pair[0].trim_end_matches(':') == name);
        let sizes: Vec<PrintedFigure> = found.filter_map(|pair| size(pair[1])).collect();
        (!sizes.is_empty()).then_some(sizes)
    };
    let (total, free) = (row(1, "total")?, row(3, "free")?);
    let mut snapshot = Snapshot::default();
    let mut set = |signal: BytesSignal, figure: Option<&PrintedFigure>| {
        if let Some(figure) = figure {
            snapshot.set_size(signal.id(), *figure, KIB);
        }
    };
    set(MEM_TOTAL, total.first());
    set(MEM_AVAILABLE, free.first());
    if has_swap {
        set(SWAP_TOTAL, total.get(1));
        set(SWAP_FREE, free.get(1));
    }
    Some(("glances", 4, snapshot))
}

/// The box of memory: `Total:`, `Used:`, `Available:`, `Cached:`, `Free:`, each with its size at the end of the line or below.
fn btop(lines: &[&str]) -> Option<(&'static str, usize, Snapshot)> {
    const LABELS: [(&str, Option<BytesSignal>); 5] = [
        ("Total:", Some(MEM_TOTAL)),
        ("Used:", None),
        ("Available:", Some(MEM_AVAILABLE)),
        ("Cached:", Some(MEM_CACHED)),
        ("Free:", Some(MEM_FREE)),
    ];
    const LINES: usize = 20;
    let mut snapshot = Snapshot::default();
    let (mut seen, mut lines_taken) = (0, 0);
    let mut wanted: Option<Option<BytesSignal>> = None;
    for (at, line) in lines.iter().enumerate().take(LINES) {
        let text = line.trim_matches(|c: char| c.is_whitespace() || "│┃|".contains(c));
        let label = LABELS.iter().find(|(label, _)| text.starts_with(label));
        if at == 0 && label.is_none_or(|(label, _)| *label != "Total:") {
            return None;
        }
        if let Some((_, signal)) = label {
            wanted = Some(*signal);
        }
        let words: Vec<&str> = text.split_whitespace().collect();
        let end = words.len().checked_sub(2).and_then(|at| words.get(at..));
        let figure = end.and_then(|two| size(&two.concat()));
        if let (Some(signal), Some(figure)) = (wanted, figure) {
            if let Some(signal) = signal {
                snapshot.set_size(signal.id(), figure, KIB);
            }
            wanted = None;
            seen += 1;
            lines_taken = at + 1;
        }
    }
    (seen >= 3 && snapshot.host(MEM_AVAILABLE.id()).is_some()).then_some((
        "btop: the box of memory",
        lines_taken,
        snapshot,
    ))
}

/// `Memory: 7634MiB / 7889MiB (96%)`, and what is only recognised.
fn fetch(line: &str) -> Option<(&'static str, usize, Snapshot)> {
    let text = line.trim();
    if ["Memory usage:", "Memory Usage:", "RAM usage"]
        .iter()
        .any(|label| text.contains(label))
        && text.contains('%')
    {
        let what = "a summary of memory: its used may include the cache, not used";
        return Some((what, 1, Snapshot::default()));
    }
    let rest = text
        .strip_prefix("Memory:")
        .or_else(|| text.strip_prefix("Memory "))?;
    let (used, whole) = rest.split_once('/')?;
    let (used, whole) = (size_in(used)?, size_in(whole)?);
    let bytes = |figure: PrintedFigure| figure.in_bytes(KIB);
    let (used, whole) = (bytes(used), bytes(whole));
    let left = raw(whole.value - used.value).filter(|_| used.value <= whole.value)?;
    let mut snapshot = Snapshot::default();
    for (signal, bytes) in [(MEM_TOTAL, raw(whole.value)?), (MEM_AVAILABLE, left)] {
        snapshot.sample.host.set_raw(signal.id(), bytes);
        snapshot.set_error(signal.id(), used.doubt() + whole.doubt());
    }
    Some(("neofetch or the like", 1, snapshot))
}

/// A size with its unit.
fn size(word: &str) -> Option<PrintedFigure> {
    PrintedFigure::binary(word).filter(|figure| figure.has_unit)
}

/// The first size of a text: `7634MiB`, `7.46 GiB (97%)`.
fn size_in(text: &str) -> Option<PrintedFigure> {
    let words: Vec<&str> = text.split_whitespace().take(2).collect();
    size(words.first()?).or_else(|| size(&words.concat()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{paste, survives};

    #[test]
    fn summaries_without_the_cache_are_read() {
        for (text, total, left) in [
            (
                "MEM     -  92.3%   SWAP -  10.0%\ntotal   7.50G      total  2.00G\nused    7.00G      used   205M\nfree     512M      free   1.80G\n",
                7680,
                512,
            ),
            (
                "CPU -  16.8%  MEM -   43.9%   SWAP -   9.1%\nuser:  12.1%  total:  7.50G   total:  2.00G\nsystem: 3.1%  used:   3.50G   used:   187M\nidle:  80.0%  free:   4.00G   free:   1.82G\n",
                7680,
                4096,
            ),
            (
                "│ Total:            7.50 GiB │\n│ Used:            7.00 GiB │\n│ Available:       0.50 GiB │\n│ Cached:          0.25 GiB │\n",
                7680,
                512,
            ),
            ("Memory: 7168MiB / 7680MiB (93%)\n", 7680, 512),
            ("Memory: 7.00 GiB / 7.50 GiB (93%)\n", 7680, 512),
        ] {
            let timeline = paste(text).timeline;
            let mib = |signal| timeline.last(signal).map(|bytes: Bytes| bytes.get() >> 20);
            assert_eq!(
                (mib(MEM_TOTAL), mib(MEM_AVAILABLE)),
                (Some(total), Some(left)),
                "{text}"
            );
            survives(text);
        }
    }

    #[test]
    fn summaries_that_may_count_the_cache_are_recognised_only() {
        for text in [
            "RAM usage   96.23% (30.12 GiB of 31.30 GiB)\n",
            "  System load:  0.5   Memory usage: 96%   Swap usage: 100%\n",
        ] {
            let opened = paste(text);
            assert!(opened.timeline.is_empty(), "{text}");
            assert_eq!(opened.origin.inputs.len(), 1, "{text}");
        }
        assert!(
            paste("Memory: it is full / empty\n")
                .origin
                .inputs
                .is_empty()
        );
    }
}
