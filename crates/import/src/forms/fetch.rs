//! `neofetch` and its relatives: `Memory: 7634MiB / 7889MiB (96%)`, where "used" leaves out the cache.
//!
//! Summaries in which "used" may include the cache (Proxmox' page, hosting panels) or that print shares alone (the greeting of
//! Ubuntu) are recognised and not used.

use timeline::signals::{MEM_AVAILABLE, MEM_TOTAL};

use super::Form;
use crate::block::{BlockReader, TextBlock};
use crate::builder::Snapshot;
use crate::text::figure::{KIB, PrintedFigure, raw};
use crate::text::line_scan::BlockStart;

pub(super) const FORM: Form = Form {
    name: "memory summary",
    begins: BlockStart::with(&["Memory", "emory usage", "RAM usage"]),
    read,
};

fn read(input: &mut BlockReader<'_>) -> Option<TextBlock> {
    let (what, lines, snapshot) = fetch(input.lines.first()?)?;
    if snapshot.has_readings() {
        input.add(snapshot);
    }
    Some(TextBlock {
        what: what.to_owned(),
        lines,
        ..TextBlock::default()
    })
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
    use units::Bytes;

    #[test]
    fn summaries_without_the_cache_are_read() {
        for (text, total, left) in [
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
