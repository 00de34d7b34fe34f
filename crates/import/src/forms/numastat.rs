//! `numastat`: allocations on each node, in pages since boot; with `-m` the memory of each node, in MiB. Two kinds of
//! tables in MiB are recognised and skipped: allocations (`-n`, `-c`) are too coarse for rates, and no rule uses those
//! of processes (`-p`).
//!
//! A table that is wider than the terminal continues below, with the columns of further nodes.

use timeline::Entity;
use timeline::signals::{self, MEMINFO, NODE_MEMINFO, NODE_NUMASTAT};

use super::Form;
use crate::block::{BlockReader, TextBlock};
use crate::builder::Snapshot;
use crate::text::figure::{MIB, PrintedFigure, raw};
use crate::text::line_scan::BlockStart;

pub(super) const FORM: Form = Form {
    name: "numastat",
    begins: BlockStart::with(&["Per-node", "Node ", "node", "Total"]),
    read,
};

fn read(input: &mut BlockReader<'_>) -> Option<TextBlock> {
    let (table, first) = NumastatTable::recognise(input.lines)?;
    let mut snapshot = Snapshot::default();
    let mut lines = first;
    let mut seen: Vec<NumastatColumn> = Vec::new();
    while let Some((columns, taken)) = heading(&input.lines[lines..]) {
        // A table of the same nodes is of another time.
        if columns.iter().any(|column| seen.contains(column)) {
            break;
        }
        lines += taken;
        while let Some((name, figures)) =
            input.lines.get(lines).and_then(|line| row(line, columns.len()))
        {
            for (column, figure) in columns.iter().zip(figures) {
                table.fill(*column, name, figure, &mut snapshot);
            }
            lines += 1;
        }
        seen.extend(columns);
        let is_below = |line: &&str| heading(&[line]).is_some();
        if input.lines.get(lines) == Some(&"") && input.lines.get(lines + 1).is_some_and(is_below) {
            lines += 1;
        }
    }
    while lines > first && input.lines.get(lines - 1) == Some(&"") {
        lines -= 1;
    }
    if snapshot.has_readings() {
        input.add(snapshot);
    }
    Some(TextBlock {
        what: table.what().to_owned(),
        lines,
        unit: table.unit(),
        ..TextBlock::default()
    })
}

/// Which of its tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NumastatTable {
    Allocations,
    Memory,
    Skipped,
}

impl NumastatTable {
    /// The table that begins at the first line, and how many lines its title has.
    fn recognise(lines: &[&str]) -> Option<(Self, usize)> {
        let first = lines.first()?.trim();
        let is_token = |line: &&&str| line.starts_with("Token ") && line.ends_with("hash table.");
        let tokens = lines[1..].iter().take(100).take_while(is_token).count();
        if first.starts_with("Per-node system memory usage") {
            return Some((Self::Memory, 1 + tokens));
        }
        if first.starts_with("Per-node numastat info")
            || first.starts_with("Per-node process memory")
        {
            return Some((Self::Skipped, 1 + tokens));
        }
        let (columns, taken) = heading(lines)?;
        let (name, _) = row(lines.get(taken)?, columns.len())?;
        let is_field = |file| signals::field_of(file).any(|(field, ..)| field == name);
        match (taken, is_field(NODE_NUMASTAT), is_field(NODE_MEMINFO)) {
            (1, true, _) => Some((Self::Allocations, 0)),
            (2, _, true) => Some((Self::Memory, 0)),
            _ => None,
        }
    }

    const fn what(self) -> &'static str {
        match self {
            Self::Allocations => "numastat",
            Self::Memory => "numastat -m",
            Self::Skipped => "numastat: this table is not used",
        }
    }

    const fn unit(self) -> &'static str {
        match self {
            Self::Allocations => "pages",
            Self::Memory | Self::Skipped => "MiB",
        }
    }

    fn fill(
        self,
        column: NumastatColumn,
        name: &str,
        figure: PrintedFigure,
        snapshot: &mut Snapshot,
    ) {
        match (self, column) {
            (Self::Allocations, NumastatColumn::Node(node)) => {
                let found = signals::field_of(NODE_NUMASTAT).find(|(field, ..)| *field == name);
                if let (Some((_, signal, _)), Some(pages)) = (found, raw(figure.value)) {
                    let key = node.to_string();
                    snapshot.sample.table_mut(Entity::Node).entry(&key).row.set_raw(signal, pages);
                }
            }
            (Self::Memory, column) => fill_memory(column, name, figure, snapshot),
            _ => {}
        }
    }
}

/// Sets memory of a node. In the column of totals, sets memory of the host if `/proc/meminfo` has the same field.
fn fill_memory(column: NumastatColumn, name: &str, figure: PrintedFigure, snapshot: &mut Snapshot) {
    let file = match column {
        NumastatColumn::Node(_) => NODE_MEMINFO,
        NumastatColumn::Total => MEMINFO,
    };
    let found =
        signals::field_of(file).find(|(field, _, def)| *field == name && def.unit == "bytes");
    let (Some((_, signal, _)), Some(bytes)) = (found, raw(figure.value * MIB)) else {
        return;
    };
    match column {
        NumastatColumn::Node(node) => {
            let key = node.to_string();
            snapshot.sample.table_mut(Entity::Node).entry(&key).row.set_raw(signal, bytes);
        }
        NumastatColumn::Total => {
            snapshot.set_size(signal, figure, MIB);
        }
    }
}

/// The subject of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NumastatColumn {
    Node(u32),
    Total,
}

/// The columns, and how many lines their heading has: `node0 node1`, or `Node 0 Node 1 Total` over a line of dashes.
fn heading(lines: &[&str]) -> Option<(Vec<NumastatColumn>, usize)> {
    let line = lines.first()?;
    let mut columns = Vec::new();
    let mut words = line.split_whitespace();
    while let Some(word) = words.next() {
        let number = match word {
            "Total" => {
                columns.push(NumastatColumn::Total);
                continue;
            }
            "Node" => words.next()?,
            word => word.strip_prefix("node")?,
        };
        columns.push(NumastatColumn::Node(number.parse().ok()?));
    }
    let is_rule = |line: &&&str| !line.is_empty() && line.bytes().all(|b| b == b'-' || b == b' ');
    let rule = lines.iter().skip(1).take(1).filter(is_rule).count();
    (!columns.is_empty()).then_some((columns, 1 + rule))
}

/// A name and a figure for each column.
fn row(line: &str, columns: usize) -> Option<(&str, Vec<PrintedFigure>)> {
    let mut words = line.split_whitespace();
    let name = words.next()?;
    let figures: Option<Vec<PrintedFigure>> = words.map(PrintedFigure::binary).collect();
    figures.filter(|figures| figures.len() == columns).map(|figures| (name, figures))
}

#[cfg(test)]
mod tests {
    use crate::testing::{paste, survives};
    use timeline::signals::{MEM_FREE, MEM_SLAB, NODE_ANON, NODE_FREE, NODE_HIT, NODE_MISS};
    use timeline::{Entity, Kind, Signal, Timeline};
    use units::{Bytes, Pages};

    fn of<K: Kind>(timeline: &Timeline, node: &str, signal: Signal<K>) -> Option<K::Unit> {
        timeline.last_of(timeline.entity(Entity::Node, node)?, signal)
    }

    #[test]
    fn allocations_of_each_node_are_read_across_folded_tables() {
        let text = "$ numastat\n                           node0           node1\nnuma_hit               270163371              17\nnuma_miss                      0               5\nother_node                     0               1\n\n                           node2\nnuma_hit                       9\n";
        let opened = paste(text);
        let timeline = &opened.timeline;
        assert_eq!(of(timeline, "0", NODE_HIT), Some(Pages::new(270_163_371)));
        assert_eq!(of(timeline, "1", NODE_MISS), Some(Pages::new(5)));
        assert_eq!(of(timeline, "2", NODE_HIT), Some(Pages::new(9)));
        assert_eq!((timeline.len(), opened.origin.inputs[0].last_line), (1, 8));
    }

    const MEMORY: &str = "Per-node system memory usage (in MBs):
Token Unaccepted not in hash table.
                          Node 0          Node 1           Total
                 --------------- --------------- ---------------
MemTotal               385224.75       387055.25       772280.00
MemFree                371649.25       376963.50       748612.75
AnonPages                    7.5            0.25            7.75
Slab                       12.00            3.00           15.00
HugePages_Total             0.00            0.00            0.00
";

    #[test]
    fn memory_of_nodes_and_of_the_host_is_in_mib() {
        let untitled = MEMORY.split_once("table.\n").unwrap().1;
        for text in [MEMORY, untitled] {
            let opened = paste(text);
            let timeline = &opened.timeline;
            assert_eq!(of(timeline, "1", NODE_FREE), Some(Bytes::from_kib(376_963 * 1024 + 512)));
            assert_eq!(of(timeline, "0", NODE_ANON), Some(Bytes::from_kib(7_680)));
            assert_eq!(timeline.last(MEM_SLAB), Some(Bytes::from_mib(15)));
            assert!(timeline.rounded_signals().any(|id| id == MEM_FREE.id()));
            assert_eq!((timeline.len(), opened.origin.inputs.len()), (1, 1));
        }
    }

    #[test]
    fn unused_tables_are_recognised() {
        let text = "Per-node process memory usage (in MBs) for PID 32014 (bash)
                           Node 0           Total
                  --------------- ---------------
Huge                         0.00            0.00
----------------  --------------- ---------------
Total                        3.76            3.76\n";
        let opened = paste(text);
        assert!(opened.timeline.is_empty());
        assert!(opened.origin.inputs[0].what.contains("not used"));
    }

    #[test]
    fn hostile_tables_are_survived() {
        for text in [
            "node0\n",
            "node0 node99999999999\nnuma_hit 1 2\n",
            "node0\nnuma_hit -1\n",
            "node0\nnuma_hit 1 2\n",
            "Node\n",
            "Per-node system memory usage (in MBs):\n",
        ] {
            assert!(paste(text).timeline.is_empty(), "{text}");
        }
        paste("node0\nnuma_hit 99999999999999999999\n");
    }

    #[test]
    fn any_damage_is_survived() {
        survives(MEMORY);
        survives("  node0   node1\nnuma_hit  270163371   17\n\n  node2\nnuma_hit   9\n");
    }
}
