//! `numactl -H`: size and free memory of each node, in MiB. Their sum is not RAM: memory of no node is missing (seen: 19.1 of
//! 23.5 GiB, on a guest with memory added later).

use timeline::signals::{NODE_FREE, NODE_TOTAL};
use timeline::{Entity, Gauge, Signal};
use units::Bytes;

use super::Form;
use super::size_unit::SizeUnit;
use crate::block::{BlockReader, TextBlock};
use crate::builder::Snapshot;
use crate::text::figure::{PrintedFigure, raw};
use crate::text::line_scan::BlockStart;

pub(super) const FORM: Form =
    Form { name: "numactl", begins: BlockStart::with(&["available: ", "node "]), read };

fn read(input: &mut BlockReader<'_>) -> Option<TextBlock> {
    let is_title = |line: &str| line.starts_with("available: ") && line.contains(" nodes (");
    let first = input.lines.first()?;
    if !is_title(first) && node_size(first).is_none() && !is_cpus(first) {
        return None;
    }
    let mut snapshot = Snapshot::default();
    let mut block =
        TextBlock { what: "numactl -H".to_owned(), unit: "MiB", ..TextBlock::default() };
    for (at, line) in input.lines.iter().enumerate() {
        if let Some((node, is_free, figure)) = node_size(line) {
            let signal = if is_free { NODE_FREE } else { NODE_TOTAL };
            set(&mut snapshot, node, signal, figure);
        } else if !is_cpus(line) && !is_title(line) {
            break;
        }
        block.lines = at + 1;
    }
    let is_distance = |line: &&&str| {
        let mut words = line.split_whitespace();
        let first = words.next().map(|word| word.trim_end_matches(':'));
        line.starts_with("node distances:")
            || (first.is_some_and(|word| word == "node" || word.parse::<u32>().is_ok())
                && words.all(|word| word.parse::<u32>().is_ok()))
    };
    let rest = input.lines.iter().skip(block.lines);
    block.lines += rest.take_while(is_distance).count();
    // Lines of CPUs alone are taken, too: a text of nothing else is read once.
    if snapshot.has_readings() {
        input.add(snapshot);
    }
    Some(block)
}

/// `node 0 size: 260788 MB`, `node 0 free: 193331 MB`: the node, whether it is what is free, and how much.
fn node_size(line: &str) -> Option<(&str, bool, PrintedFigure)> {
    let words: Vec<&str> = line.split_whitespace().take(6).collect();
    let ["node", node, what @ ("size:" | "free:"), figure, unit] = words.as_slice() else {
        return None;
    };
    node.parse::<u16>().ok()?;
    let figure = PrintedFigure::binary(figure)?;
    let unit = SizeUnit::named(unit)?;
    Some((node, *what == "free:", figure.in_bytes(unit.bytes)))
}

fn is_cpus(line: &str) -> bool {
    let mut words = line.split_whitespace();
    words.next() == Some("node")
        && words.next().is_some_and(|node| node.parse::<u16>().is_ok())
        && words.next() == Some("cpus:")
        && words.all(|cpu| cpu.parse::<u16>().is_ok())
}

fn set(snapshot: &mut Snapshot, node: &str, signal: Signal<Gauge<Bytes>>, figure: PrintedFigure) {
    if let Some(bytes) = raw(figure.value) {
        let row = snapshot.sample.table_mut(Entity::Node).entry(node);
        row.row.set(signal, Bytes::new(bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{paste, survives};
    use timeline::signals::MEM_TOTAL;

    const TEXT: &str = "\
available: 2 nodes (0,8)
node 0 cpus: 0 1 2 3
node 0 size: 260788 MB
node 0 free: 193331 MB
node 8 cpus:
node 8 size: 16128 MB
node 8 free: 16108 MB
node distances:
node   0   8
  0:  10  40
  8:  40  10
";

    #[test]
    fn nodes_have_their_sizes_and_the_host_has_none() {
        let opened = paste(TEXT);
        let timeline = &opened.timeline;
        assert_eq!(timeline.last(MEM_TOTAL), None);
        let node = timeline.entities(Entity::Node).nth(1).unwrap();
        assert_eq!(node.key, "8");
        assert_eq!(timeline.last_of(node, NODE_FREE), Some(Bytes::from_mib(16_108)));
        assert_eq!(opened.origin.inputs[0].last_line, 11);
        survives(TEXT);
    }

    #[test]
    fn other_lines_about_nodes_are_not_read() {
        for text in ["node 0 size: big\n", "available: 2 nodes (0-1)\n", "node x free: 7 MB\n"] {
            assert!(paste(text).timeline.is_empty(), "{text}");
        }
    }
}
