//! `numactl --hardware`: the size and the free memory of each NUMA node, in MiB (printed as MB).

use timeline::Entity;
use timeline::signals::{MEM_FREE, MEM_TOTAL, NODE_FREE, NODE_TOTAL};
use units::Bytes;

use super::Form;
use crate::block::{BlockReader, TextBlock};
use crate::builder::Snapshot;
use crate::text::figure::MIB;
use crate::text::line_scan::BlockStart;

pub(super) const FORM: Form = Form {
    name: "numactl",
    begins: BlockStart::with(&["available: ", " size: "]),
    read,
};

/// A machine has at most 1,024 nodes, with three lines each.
const LINES_MAX: usize = 3200;

fn read(input: &mut BlockReader<'_>) -> Option<TextBlock> {
    let first = input.lines.first()?;
    let nodes = first
        .strip_prefix("available: ")
        .and_then(|rest| rest.split_once(" node"))
        .and_then(|(count, _)| count.parse::<usize>().ok());
    if nodes.is_none() && node(first).is_none_or(|(_, what, _)| what != "size") {
        return None;
    }
    let mut snapshot = Snapshot::default();
    let (mut sizes, mut frees) = (Vec::new(), Vec::new());
    let mut lines = 1;
    for (at, line) in input.lines.iter().enumerate().take(LINES_MAX) {
        if let Some((id, what, mib)) = node(line) {
            let bytes = Bytes::from_mib(mib);
            let row = snapshot.sample.table_mut(Entity::Node).entry(id);
            let signal = if what == "size" {
                sizes.push(bytes);
                NODE_TOTAL
            } else {
                frees.push(bytes);
                NODE_FREE
            };
            row.row.set(signal, bytes);
            lines = at + 1;
        } else if at > 0 && !is_other(line) {
            break;
        }
    }
    // All nodes together are the machine.
    if nodes.is_some_and(|nodes| nodes == sizes.len() && nodes == frees.len()) {
        for (signal, parts) in [(MEM_TOTAL, &sizes), (MEM_FREE, &frees)] {
            snapshot
                .sample
                .host
                .set(signal, parts.iter().copied().sum());
            snapshot.set_error(signal.id(), MIB);
        }
    }
    if snapshot.has_readings() {
        input.add(snapshot);
        Some(TextBlock {
            what: "numactl --hardware".to_owned(),
            lines,
            unit: "MiB",
            ..TextBlock::default()
        })
    } else {
        None
    }
}

/// `node 0 size: 260788 MB`: the node, `size` or `free`, the number.
fn node(line: &str) -> Option<(&str, &str, u64)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    match words.as_slice() {
        ["node", id, what @ ("size:" | "free:"), number, "MB"] => {
            id.parse::<u32>().ok()?;
            Some((id, what.trim_end_matches(':'), number.parse().ok()?))
        }
        _ => None,
    }
}

/// Other lines of its output: `node 0 cpus: 0 1 2`.
fn is_other(line: &str) -> bool {
    line.starts_with("node ") && line.contains(" cpus:")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{paste, survives};

    const TEXT: &str = "available: 2 nodes (0-1)\nnode 0 cpus: 0 1 2\nnode 0 size: 1000 MB\nnode 0 free: 300 MB\nnode 1 cpus:\nnode 1 size: 2000 MB\nnode 1 free: 1900 MB\nnode distances:\nnode   0   1\n  0:  10  40\n";

    #[test]
    fn nodes_add_up_to_the_machine_where_all_are_shown() {
        let timeline = paste(TEXT).timeline;
        assert_eq!(timeline.last(MEM_TOTAL), Some(Bytes::from_mib(3000)));
        assert_eq!(timeline.last(MEM_FREE), Some(Bytes::from_mib(2200)));
        let node = timeline.entity(Entity::Node, "1").unwrap();
        assert_eq!(
            timeline.last_of(node, NODE_FREE),
            Some(Bytes::from_mib(1900))
        );
        let part = paste(&TEXT.replace("2 nodes", "3 nodes")).timeline;
        assert_eq!(part.last(MEM_TOTAL), None);
        survives(TEXT);
    }
}
