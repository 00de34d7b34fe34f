//! Screens of `htop`: the bars of memory and swap (`Mem[||||1.23G/7.80G]`, old: `49/995MB`), the same as text, and
//! processes.
//!
//! A bar shows used / total. Used leaves out what the kernel can drop (buffers, cache, reclaimable slab, ZFS's ARC), so
//! the rest is what is available, to a few percent of RAM. Threads have the sizes of their process: rows that repeat
//! them are one process.

use std::collections::HashSet;

use timeline::signals::{
    MEM_AVAILABLE, MEM_TOTAL, PROC_RSS, PROC_SIZE, SWAP_FREE, SWAP_TOTAL, SWAP_USED,
};
use timeline::{Entity, Gauge, Signal};
use units::Bytes;

use super::Form;
use super::processes::ProcessHeader;
use crate::block::{BlockReader, TextBlock};
use crate::builder::Snapshot;
use crate::text::figure::PrintedFigure;
use crate::text::line_scan::BlockStart;
use crate::text::prompt;

pub(super) const FORM: Form =
    Form { name: "htop", begins: BlockStart::with(&["Mem[", "Swp[", "Mem [", "Swp ["]), read };

/// The kernel's estimate of available memory is lower than what htop leaves out of "used", by the reserves of its zones
/// and by the part of the cache that it keeps: an engineering choice, 1.5 % on the one host where both were read (`si_mem_available`).
const KEPT_BY_THE_KERNEL: f64 = 0.03;
/// At most 24 lines between the bar of memory and the processes: bars of CPUs, tasks, uptime, disks.
const HEAD_MAX: usize = 24;

fn read(input: &mut BlockReader<'_>) -> Option<TextBlock> {
    let mut snapshot = Snapshot::default();
    let mut block = TextBlock {
        what: "htop: used is without what the kernel can drop".to_owned(),
        unit: "as printed",
        ..TextBlock::default()
    };
    bars(input.lines.first()?, &mut snapshot);
    if !snapshot.has_readings() {
        return None;
    }
    block.lines = 1;
    let mut at = 1;
    let mut header = None;
    while let Some(line) = input.lines.get(at).filter(|_| at < HEAD_MAX) {
        if prompt::command(line).is_some() || line.contains("Mem[") {
            break;
        }
        header = ProcessHeader::from_line(line);
        if header.is_some() {
            break;
        }
        at += 1;
        if bars(line, &mut snapshot) {
            block.lines = at;
        }
    }
    if let Some(header) = header {
        block.lines = at + 1;
        processes(&header, input, &mut snapshot, &mut block);
    }
    input.add(snapshot);
    Some(block)
}

/// Reads the bars on a line. Returns whether there is one.
fn bars(line: &str, snapshot: &mut Snapshot) -> bool {
    let mem = bar(line, "Mem");
    if let Some((used, total)) = mem {
        snapshot.set_size(MEM_TOTAL.id(), total, 1.0);
        set_rest(snapshot, MEM_AVAILABLE, used, total, KEPT_BY_THE_KERNEL);
    }
    let swap = bar(line, "Swp");
    if let Some((used, total)) = swap {
        snapshot.set_size(SWAP_TOTAL.id(), total, 1.0);
        snapshot.set_size(SWAP_USED.id(), used, 1.0);
        set_rest(snapshot, SWAP_FREE, used, total, 0.0);
    }
    mem.or(swap).is_some()
}

/// Sets what is not used.
fn set_rest(
    snapshot: &mut Snapshot,
    signal: Signal<Gauge<Bytes>>,
    used: PrintedFigure,
    total: PrintedFigure,
    kept: f64,
) {
    let rest = PrintedFigure {
        value: (total.value - used.value).max(0.0),
        error: used.doubt() + total.doubt() + kept * total.value,
        has_unit: true,
    };
    snapshot.set_size(signal.id(), rest, 1.0);
    snapshot.set_error(signal.id(), rest.error);
}

/// Used and total in the bar with a name; used is never more.
fn bar(line: &str, name: &str) -> Option<(PrintedFigure, PrintedFigure)> {
    // A meter of two columns has a blank before the bar.
    let (_, rest) = line.split_once(name)?;
    let rest = rest.trim_start().strip_prefix('[')?;
    let (inside, _) = rest.split_once(']')?;
    let figures =
        inside.rsplit(|c: char| !(c.is_ascii_alphanumeric() || "./,".contains(c))).next()?;
    let (used, total) = figures.split_once('/')?;
    let total_figure = PrintedFigure::binary(total)?;
    // Old versions print the unit once: `49/995MB`.
    let unit = total.trim_start_matches(|c: char| c.is_ascii_digit() || ".,".contains(c));
    let used = match PrintedFigure::binary(used)? {
        figure if figure.has_unit => figure,
        _ => PrintedFigure::binary(&format!("{used}{unit}"))?,
    };
    let fits = used.value - used.error <= total_figure.value + total_figure.error;
    (total_figure.has_unit && fits).then_some((used, total_figure))
}

/// Reads the rows of processes.
fn processes(
    header: &ProcessHeader,
    input: &mut BlockReader<'_>,
    snapshot: &mut Snapshot,
    block: &mut TextBlock,
) {
    let lines = input.lines;
    let mut seen = HashSet::new();
    while let Some(line) = lines.get(block.lines).filter(|line| !line.is_empty()) {
        if prompt::command(line).is_some()
            || !header.read_row(line, block.lines, snapshot, input.facts)
        {
            break;
        }
        block.lines += 1;
        let table = snapshot.sample.table_mut(Entity::Process);
        let repeats = table.rows().last().is_some_and(|row| {
            let size = row.row.get(PROC_SIZE);
            let sizes = (row.label.clone(), size, row.row.get(PROC_RSS));
            size.is_some() && !seen.insert(sizes)
        });
        if repeats {
            table.drop_last();
        }
    }
    // The keys below the list.
    block.lines +=
        usize::from(lines.get(block.lines).is_some_and(|line| line.starts_with("F1Help")));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{paste, survives};
    use units::{Pages, Quantity};

    const SCREEN: &str = "\
  0[|||||                      12.3%]   Tasks: 78, 1 thr, 64 kthr; 1 running
  1[||                          2.0%]   Load average: 0.89 0.23 0.08
Mem[|||||||##*@@@@@@@@    13.6G/62.5G]   Uptime: 2 days, 23:47:15
Swp[||#                   253M/18.0G]

  [Main] [I/O]
    PID USER       PRI  NI  VIRT   RES   SHR S  CPU%▽MEM%   TIME+  Command
   4242 app         20   0 77.9G 1305M  9000 R  69.3  2.0  5h42:20 /usr/bin/java -Xmx1g
   4243 app         20   0 77.9G 1305M  9000 S   0.0  2.0  0:12.20 /usr/bin/java -Xmx1g
      1 root        20   0  163M 13092  8400 S   0.0  0.0  0:14.12 /sbin/init
F1Help  F2Setup F3SearchF4FilterF5Tree  F6SortByF7Nice -F8Nice +F9Kill  F10Quit
";

    #[test]
    fn bars_are_used_and_total_and_the_rest_is_available() {
        let opened = paste(SCREEN);
        let timeline = &opened.timeline;
        let gib = |n: f64| Some(Bytes::from_f64((n * 1024.0 * 1024.0 * 1024.0).round()));
        assert_eq!(timeline.last(MEM_TOTAL), gib(62.5));
        assert_eq!(timeline.last(MEM_AVAILABLE), gib(62.5 - 13.6));
        assert_eq!(timeline.last(SWAP_USED), Some(Bytes::from_mib(253)));
        assert_eq!(timeline.last(SWAP_TOTAL), Some(Bytes::from_gib(18)));
        let error = timeline.rounding_error(MEM_AVAILABLE.id());
        assert!(error.is_some_and(|error| error > 1 << 30), "{error:?}");
        assert_eq!(opened.origin.inputs[0].last_line, 11);
    }

    /// The bar, and `/proc/meminfo` read right after it.
    #[test]
    fn what_is_available_is_the_kernels_within_its_error() {
        let text = "  Mem[||||||||||||||||              674M/23.5G] Uptime: 02:13:07\n  Swp[                              0K/0K]\n";
        let timeline = paste(text).timeline;
        for (signal, kib) in [(MEM_TOTAL, 24_684_084), (MEM_AVAILABLE, 23_571_428)] {
            let read = timeline.last(signal).unwrap().get();
            let error = timeline.rounding_error(signal.id()).unwrap();
            assert!(read.abs_diff(kib * 1024) <= error, "{read} {error}");
        }
        assert_eq!(timeline.last(SWAP_TOTAL), Some(Bytes::ZERO));
    }

    #[test]
    fn threads_are_not_counted_again() {
        let timeline = paste(SCREEN).timeline;
        let rows: Vec<_> = timeline.entities(Entity::Process).collect();
        assert_eq!(rows.len(), 2);
        assert_eq!(timeline.last_of(rows[1], PROC_RSS), Some(Pages::new(1305 * 256)));
    }

    #[test]
    fn old_versions_print_megabytes_once() {
        let text = "    1 [|||||96.7%]\n    Mem[|||||3810/3840MB]\n    Swp[||||3466/4096MB]\n";
        let timeline = paste(text).timeline;
        assert_eq!(timeline.last(MEM_TOTAL), Some(Bytes::from_mib(3840)));
        assert_eq!(timeline.last(MEM_AVAILABLE), Some(Bytes::from_mib(30)));
        assert_eq!(timeline.last(SWAP_FREE), Some(Bytes::from_mib(630)));
    }

    #[test]
    fn percentages_and_code_are_no_sizes() {
        for text in [
            "Mem[||||   42.1%]\n",
            "Mem[i] = 7/8;\n",
            "Mem[12/7]\n",
            "Mem[9G/1G]\n",
            "Mem[0/0MB]\n",
        ] {
            let timeline = paste(text).timeline;
            assert_eq!(
                timeline.last(MEM_AVAILABLE).filter(|_| !text.contains("0/0")),
                None,
                "{text}"
            );
        }
        survives(SCREEN);
    }
}
