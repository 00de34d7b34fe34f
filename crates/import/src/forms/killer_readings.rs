//! What killers in user space print of memory: earlyoom (`mem avail: 4105 of 7836 MiB (52 %), swap free: 2048 of 2048
//! MiB`), nohang (`MemAvail: 1631 M, 82.0 % | SwapFree: 456 M, 62.2 %`), one line a reading and without a clock of their
//! own, and `oomctl` of systemd-oomd.

use timeline::Entity;
use timeline::signals::{CGROUP_CURRENT, MEM_AVAILABLE, MEM_TOTAL, SWAP_FREE, SWAP_TOTAL};
use units::Bytes;

use super::Form;
use crate::block::{BlockReader, TextBlock};
use crate::builder::Snapshot;
use crate::text::figure::{MIB, PrintedFigure, raw};
use crate::text::line_scan::BlockStart;

pub(super) const FORM: Form = Form {
    name: "killer readings",
    begins: BlockStart::with(&["mem avail:", "MemAvail:", "System Context:"]),
    read,
};

/// At most 10,000 lines in a row.
const LINES_MAX: usize = 10_000;

fn read(input: &mut BlockReader<'_>) -> Option<TextBlock> {
    if let Some((lines, snapshot)) = oomctl(input.lines) {
        input.add(snapshot);
        return Some(TextBlock {
            what: "oomctl: memory, swap and cgroups of systemd-oomd".to_owned(),
            lines,
            unit: "as printed",
            ..TextBlock::default()
        });
    }
    let mut lines = 0;
    for line in input.lines.iter().take(LINES_MAX) {
        let Some(snapshot) = of_earlyoom(line).or_else(|| of_nohang(line)) else {
            break;
        };
        input.add(snapshot);
        lines += 1;
    }
    (lines > 0).then_some(TextBlock {
        what: "a killer in user space: available memory and free swap".to_owned(),
        lines,
        unit: "MiB",
        ..TextBlock::default()
    })
}

fn of_earlyoom(line: &str) -> Option<Snapshot> {
    let (_, memory) = line.split_once("mem avail:")?;
    let (memory, swap) = memory.split_once("swap free:").unwrap_or((memory, ""));
    let mut snapshot = Snapshot::default();
    for (text, left, total) in [(memory, MEM_AVAILABLE, MEM_TOTAL), (swap, SWAP_FREE, SWAP_TOTAL)] {
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

/// Sizes in MiB; the whole is not printed, only the share.
fn of_nohang(line: &str) -> Option<Snapshot> {
    let mut snapshot = Snapshot::default();
    for (name, signal) in [("MemAvail:", MEM_AVAILABLE), ("SwapFree:", SWAP_FREE)] {
        let Some((_, rest)) = line.split_once(name) else {
            continue;
        };
        let (size, _) = rest.split_once(" M,")?;
        let figure = PrintedFigure::binary(size.trim()).filter(|figure| !figure.has_unit)?;
        snapshot.set_size(signal.id(), figure, MIB);
        snapshot.set_error(signal.id(), MIB);
    }
    snapshot.host(MEM_AVAILABLE.id()).is_some().then_some(snapshot)
}

/// `System Context:`, `Memory: Used: 23.2G Total: 23.4G`, the same of swap, and cgroups below. What is not used is available
/// (oomd-util.c, oomd_system_context_acquire).
fn oomctl(lines: &[&str]) -> Option<(usize, Snapshot)> {
    let mut snapshot = Snapshot::default();
    let mut last = 0;
    let mut path: Option<&str> = None;
    lines.first().filter(|line| line.trim() == "System Context:")?;
    for (at, line) in lines.iter().enumerate().take(LINES_MAX).skip(1) {
        let Some((name, value)) = line.trim().split_once(':') else {
            break;
        };
        let value = value.trim();
        match name {
            "Memory" | "Swap" => {
                let (left, total) = if name == "Memory" {
                    (MEM_AVAILABLE, MEM_TOTAL)
                } else {
                    (SWAP_FREE, SWAP_TOTAL)
                };
                let (used, whole) = value.strip_prefix("Used: ")?.split_once(" Total: ")?;
                let (used, whole) = (PrintedFigure::binary(used)?, PrintedFigure::binary(whole)?);
                snapshot.set_size(total.id(), whole, 1.0);
                let rest = PrintedFigure {
                    value: (whole.value - used.value).max(0.0),
                    error: used.doubt() + whole.doubt(),
                    has_unit: true,
                };
                snapshot.set_size(left.id(), rest, 1.0);
                snapshot.set_error(left.id(), rest.error);
            }
            "Path" => path = Some(value),
            "Current Memory Usage" => {
                if let (Some(path), Some(used)) = (path.take(), PrintedFigure::binary(value)) {
                    let group = snapshot.sample.table_mut(Entity::Cgroup).add();
                    group.key = path.to_owned();
                    group.label = path.to_owned();
                    if let Some(bytes) = raw(used.value).map(Bytes::new) {
                        group.row.set(CGROUP_CURRENT, bytes);
                    }
                }
            }
            _ if !is_of_oomctl(name) => break,
            _ => {}
        }
        last = at;
    }
    snapshot.host(MEM_TOTAL.id()).is_some().then_some((last + 1, snapshot))
}

/// Whether a line with this name is one of its cgroups.
fn is_of_oomctl(name: &str) -> bool {
    name.ends_with("CGroups")
        || [
            "Memory Pressure Limit",
            "Pressure",
            "Memory Min",
            "Memory Low",
            "Memory High",
            "Memory Max",
            "Swap Usage",
            "Pgscan",
            "Last Pgscan",
        ]
        .contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{paste, survives};
    use units::Bytes;

    #[test]
    fn zeros_are_no_ram() {
        let text = "System Context:\n        Memory: Used: 0B Total: 0B\n        Swap: Used: 0B Total: 0B\n        Path: /system.slice\n                Current Memory Usage: 1G\n";
        let opened = paste(text);
        assert_eq!(opened.timeline.last(MEM_TOTAL), None);
        assert_eq!(opened.timeline.entities(Entity::Cgroup).count(), 1);
        assert!(opened.problems[0].contains("0 B of RAM"), "{opened:?}");
        survives(text);
    }

    #[test]
    fn each_line_is_a_reading() {
        let text = "mem avail: 4105 of 7836 MiB (52 %), swap free: 2048 of 2048 MiB (100 %)\nmem avail:    4 of 7836 MiB ( 0 %), swap free: 1357 of 2048 MiB (66 %)\n";
        let timeline = paste(text).timeline;
        assert_eq!(timeline.len(), 2);
        assert_eq!(timeline.last(MEM_AVAILABLE), Some(Bytes::from_mib(4)));
        assert_eq!(timeline.last(SWAP_FREE), Some(Bytes::from_mib(1357)));
        survives(text);
        let nohang =
            "PSI mem some avg10:  78.67 | MemAvail: 1631 M, 82.0 % | SwapFree: 456 M,  62.2 %\n";
        let timeline = paste(nohang).timeline;
        assert_eq!(timeline.last(MEM_AVAILABLE), Some(Bytes::from_mib(1631)));
        survives(nohang);
    }

    #[test]
    fn the_state_of_systemd_oomd_is_a_reading() {
        let text = "Dry Run: no\nSystem Context:\n        Memory: Used: 23.2G Total: 23.4G\n        Swap: Used: 7.9G Total: 7.9G\nSwap Monitored CGroups:\nMemory Pressure Monitored CGroups:\n        Path: /user.slice/a.scope\n                Memory Pressure Limit: 50.00%\n                Pressure: Avg10: 0.00 Avg60: 0.00 Avg300: 0.00 Total: 2s\n                Current Memory Usage: 7.0M\n";
        let timeline = paste(text).timeline;
        assert_eq!(timeline.last(SWAP_FREE), Some(Bytes::ZERO));
        let available = timeline.last(MEM_AVAILABLE).unwrap();
        assert!(available < Bytes::from_gib(1), "{available}");
        let groups: Vec<_> = timeline.entities(Entity::Cgroup).collect();
        assert_eq!(groups.len(), 1);
        survives(text);
    }
}
