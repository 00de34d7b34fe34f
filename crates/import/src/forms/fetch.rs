//! `neofetch` and its relatives: `Memory: 7634MiB / 7889MiB (96%)`, where "used" leaves out the cache; `inxi` (`Memory: 15.52 GiB
//! used: 14.81 GiB (95.4%)`) and the System Monitor of GNOME (`Memory: 14.8 GiB (95.4%) of 15.5 GiB`) do the same.
//!
//! Summaries in which "used" may include the cache (Proxmox' page, hosting panels, plugins of monitors with their
//! `|used=15247MB;13000;15000`) or that print shares alone (the greeting of Ubuntu) are recognised and not used.

use timeline::signals::{MEM_AVAILABLE, MEM_TOTAL};

use super::Form;
use crate::block::{BlockReader, TextBlock};
use crate::builder::Snapshot;
use crate::text::figure::{KIB, PrintedFigure, raw};
use crate::text::line_scan::BlockStart;

pub(super) const FORM: Form = Form {
    name: "memory summary",
    begins: BlockStart::with(&["Memory", "emory usage", "RAM", "Swap", "MEMORY", "sable", "|mem"]),
    read,
};

fn read(input: &mut BlockReader<'_>) -> Option<TextBlock> {
    let (what, lines, snapshot) = fetch(input.lines.first()?)?;
    if snapshot.has_readings() {
        input.add(snapshot);
    }
    Some(TextBlock { what: what.to_owned(), lines, ..TextBlock::default() })
}

/// `Memory: 7634MiB / 7889MiB (96%)`, and what is only recognised.
fn fetch(line: &str) -> Option<(&'static str, usize, Snapshot)> {
    let text = line.trim();
    let is_summary =
        ["Memory usage:", "Memory Usage:", "RAM usage"].iter().any(|label| text.contains(label));
    if (is_summary && text.contains('%')) || is_of_plugin(text) || is_share_of_total(text) {
        let what = "a summary of memory: its used may include the cache, not used";
        return Some((what, 1, Snapshot::default()));
    }
    let (used, whole) = used_of_whole(text)?;
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

/// What is used, of how much.
fn used_of_whole(text: &str) -> Option<(PrintedFigure, PrintedFigure)> {
    // inxi prints it behind other items.
    if let Some((before, used)) = text.split_once(" used: ") {
        let (label, whole) = ["Memory: ", "RAM: "]
            .iter()
            .find_map(|label| before.rsplit_once(label))
            .filter(|(front, _)| front.is_empty() || front.ends_with(' '))
            .map(|(_, rest)| {
                rest.split_once(": ").map_or(("", rest), |(label, size)| (label, size))
            })?;
        // `total: 16 GiB available: 15.5 GiB`: the latter is what the kernel was given.
        let whole = whole.rsplit_once("available: ").map_or(whole, |(_, size)| size);
        let is_known = matches!(label, "" | "total" | "available");
        return is_known.then(|| Some((size_in(used)?, size_in(whole)?)))?;
    }
    let rest = ["Memory:", "Memory ", "RAM:"].iter().find_map(|label| text.strip_prefix(label))?;
    let (used, whole) = rest.split_once('/').or_else(|| {
        let (used, whole) = rest.split_once(" of ")?;
        used.contains('%').then_some((used, whole))
    })?;
    Some((size_in(used)?, size_in(whole)?))
}

/// `RAM | 70% (5490/7747 MB)`, `Swap at 93% (7667/8191 MB)`.
fn is_share_of_total(line: &str) -> bool {
    let is_memory = ["RAM", "Memory", "Swap"].iter().any(|word| line.contains(word));
    let inside = line.split_once("% (").and_then(|(_, rest)| rest.split_once(')'));
    let figures = inside.and_then(|(inside, _)| inside.split_once('/'));
    is_memory
        && figures.is_some_and(|(used, whole)| {
            used.trim().parse::<f64>().is_ok() && whole.starts_with(|c: char| c.is_ascii_digit())
        })
}

/// A line of a plugin for Nagios and its kin: a state, and figures behind a bar, `|used=15247MB;13000;15000;0;15769`.
fn is_of_plugin(line: &str) -> bool {
    let Some((text, figures)) = line.split_once('|') else {
        return false;
    };
    let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
    let is_figure = figures.split_once('=').is_some_and(|(name, value)| {
        name.trim().len() < 40 && value.starts_with(|c: char| c.is_ascii_digit())
    });
    let is_memory = || {
        let lower = line.to_ascii_lowercase();
        ["mem", "swap", "ram", "usable"].iter().any(|word| lower.contains(word))
    };
    is_figure && has(&["OK", "WARNING", "CRITICAL", "UNKNOWN"]) && is_memory()
}

/// The first size of a text: `7634MiB`, `7.46 GiB (97%)`.
fn size_in(text: &str) -> Option<PrintedFigure> {
    let words: Vec<&str> = text.split_whitespace().take(2).collect();
    PrintedFigure::with_unit(words.first()?).or_else(|| PrintedFigure::with_unit(&words.concat()))
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
            ("RAM: 7.0GiB/7.5GiB - 93%\n", 7680, 512),
            ("Memory: 7.0 GiB (93.3%) of 7.5 GiB\n", 7680, 512),
            (
                "Info: Processes: 312 Uptime: 2h Memory: 7.50 GiB used: 7.00 GiB (93%) Shell: Bash\n",
                7680,
                512,
            ),
            ("  Memory: total: 8 GiB available: 7.50 GiB used: 7.00 GiB (93%)\n", 7680, 512),
        ] {
            let timeline = paste(text).timeline;
            let mib = |signal| timeline.last(signal).map(|bytes: Bytes| bytes.get() >> 20);
            assert_eq!((mib(MEM_TOTAL), mib(MEM_AVAILABLE)), (Some(total), Some(left)), "{text}");
            survives(text);
        }
    }

    #[test]
    fn summaries_that_may_count_the_cache_are_recognised_only() {
        for text in [
            "RAM usage   96.23% (30.12 GiB of 31.30 GiB)\n",
            "  System load:  0.5   Memory usage: 96%   Swap usage: 100%\n",
            "| RAM | 70% (5490/7747 MB) |\n",
            "MEMORY WARNING: 92.3% used (14.2GiB of 15.4GiB)|used=15247MB;13000;15000;0;15769\n",
            "OK - 70.7% usable (232.4 MB free of 1828.1 MB) |memory_total=1871928c\n",
        ] {
            let opened = paste(text);
            assert!(opened.timeline.is_empty(), "{text}");
            assert_eq!(opened.origin.inputs.len(), 1, "{text}");
        }
        assert!(paste("Memory: it is full / empty\n").origin.inputs.is_empty());
    }
}
