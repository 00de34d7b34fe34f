//! Swap areas: `swapon --show` with human-readable sizes, `swapon -s` and `/proc/swaps` in KiB.

use timeline::signals::{SWAP_AREA_RANK, SWAP_AREA_SIZE, SWAP_AREA_USED, SWAP_FREE, SWAP_TOTAL};
use timeline::{Entity, Gauge, Signal};
use units::{Bytes, Count};

use super::Form;
use crate::block::{BlockReader, TextBlock};
use crate::builder::Snapshot;
use crate::text::figure::{PrintedFigure, raw};
use crate::text::line_scan::BlockStart;

pub(super) const FORM: Form =
    Form { name: "swapon", begins: BlockStart::with(&["rio", "RIO", "Rio"]), read };

fn read(input: &mut BlockReader<'_>) -> Option<TextBlock> {
    let heading: Vec<String> =
        input.lines.first()?.split_whitespace().take(9).map(str::to_lowercase).collect();
    let heading: Vec<&str> = heading.iter().map(String::as_str).collect();
    match heading.as_slice() {
        ["filename", "type", "size", "used", "priority"] => Some(swaps(input)),
        ["name", "type", "size", "used", "prio", ..] => Some(show(input)),
        _ => None,
    }
}

/// `/proc/swaps`.
fn swaps(input: &mut BlockReader<'_>) -> TextBlock {
    let is_area = |line: &&&str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        words.len() == 5 && words[2].parse::<u64>().is_ok()
    };
    let lines = 1 + input.lines[1..].iter().take_while(is_area).count();
    let text = input.lines[..lines].join("\n");
    let mut snapshot = Snapshot::default();
    let mut block =
        TextBlock { what: "/proc/swaps".to_owned(), lines, unit: "KiB", ..TextBlock::default() };
    let sample = &mut snapshot.sample;
    let read = input.parsers.read("/proc/swaps", text.as_bytes(), sample, input.facts);
    if let Err(error) = read {
        block.problems.push((error.line.saturating_sub(1), error.to_string()));
    } else {
        sum_up(&mut snapshot, 0.0);
    }
    input.add(snapshot);
    block
}

/// `swapon --show`: sizes with units, or plain bytes with `--bytes`.
fn show(input: &mut BlockReader<'_>) -> TextBlock {
    let mut snapshot = Snapshot::default();
    let mut error: f64 = 0.0;
    let mut lines = 1;
    while let Some((name, size, used, priority)) =
        input.lines.get(lines).and_then(|line| area(line))
    {
        let row = &mut snapshot.sample.table_mut(Entity::SwapArea).entry(name).row;
        for (signal, figure) in [(SWAP_AREA_SIZE, size), (SWAP_AREA_USED, used)] {
            error += figure.in_bytes(1.0).error;
            if let Some(bytes) = raw(figure.in_bytes(1.0).value) {
                row.set(signal, Bytes::new(bytes));
            }
        }
        // The rank in the catalogue is priority + 32768.
        if let Some(rank) =
            priority.and_then(|priority| u64::try_from(i64::from(priority) + 32_768).ok())
        {
            row.set(SWAP_AREA_RANK, Count::new(rank));
        }
        lines += 1;
    }
    if lines > 1 {
        sum_up(&mut snapshot, error);
        input.add(snapshot);
    }
    TextBlock { what: "swapon --show".to_owned(), lines, ..TextBlock::default() }
}

/// `/dev/sda5 partition 2G 657.8M -2`.
fn area(line: &str) -> Option<(&str, PrintedFigure, PrintedFigure, Option<i16>)> {
    let words: Vec<&str> = line.split_whitespace().take(9).collect();
    let [name, "partition" | "file", size, used, rest @ ..] = words.as_slice() else {
        return None;
    };
    let priority = rest.first().and_then(|word| word.parse().ok());
    Some((name, PrintedFigure::binary(size)?, PrintedFigure::binary(used)?, priority))
}

/// Sets the totals of all areas; `error` is by how much they may be off.
fn sum_up(snapshot: &mut Snapshot, error: f64) {
    let rows = snapshot.sample.table(Entity::SwapArea).rows();
    let sum = |signal: Signal<Gauge<Bytes>>| {
        rows.iter().try_fold(0u64, |sum, area| sum.checked_add(area.row.get(signal)?.get()))
    };
    let (Some(total), Some(used)) = (sum(SWAP_AREA_SIZE), sum(SWAP_AREA_USED)) else {
        return;
    };
    let Some(free) = total.checked_sub(used) else {
        return;
    };
    for (signal, bytes) in [(SWAP_TOTAL, total), (SWAP_FREE, free)] {
        snapshot.sample.host.set(signal, Bytes::new(bytes));
        snapshot.set_error(signal.id(), error);
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{paste, survives};
    use timeline::Entity;
    use timeline::signals::{SWAP_AREA_RANK, SWAP_FREE, SWAP_TOTAL};
    use units::{Bytes, Count};

    #[test]
    fn areas_are_summed_up_with_their_rounding() {
        let text = "$ swapon --show\nNAME      TYPE       SIZE   USED PRIO\n/dev/sda5 partition    2G   512M   -2\n/swapfile file      1024M     0B    5\n";
        let opened = paste(text);
        let timeline = &opened.timeline;
        assert_eq!(timeline.last(SWAP_TOTAL), Some(Bytes::from_gib(3)));
        assert_eq!(timeline.last(SWAP_FREE), Some(Bytes::from_mib(2_560)));
        assert!(timeline.rounded_signals().any(|id| id == SWAP_FREE.id()));
        let area = timeline.entity(Entity::SwapArea, "/dev/sda5").unwrap();
        assert_eq!(timeline.last_of(area, SWAP_AREA_RANK), Some(Count::new(32_766)));
        assert_eq!(opened.origin.inputs[0].last_line, 4);
    }

    #[test]
    fn the_kernels_table_is_exact_and_may_be_empty() {
        let text = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n/dev/dm-1                               partition\t2097148\t\t10240\t\t-2\n\n";
        let timeline = paste(text).timeline;
        assert_eq!(timeline.last(SWAP_TOTAL), Some(Bytes::from_kib(2_097_148)));
        assert_eq!(timeline.last(SWAP_FREE), Some(Bytes::from_kib(2_086_908)));
        let none = paste("# swapon -s\nFilename Type Size Used Priority\n").timeline;
        assert_eq!(none.last(SWAP_TOTAL), Some(Bytes::ZERO));
    }

    #[test]
    fn hostile_areas_are_survived() {
        for area in [
            "/a partition 99999999999999999999G 1G 0",
            "/a partition 1G 2G 0",
            "/a partition -1 0 0",
            "/a partition 1G",
        ] {
            let timeline = paste(&format!("NAME TYPE SIZE USED PRIO\n{area}\n")).timeline;
            assert_eq!(timeline.last(SWAP_FREE), None, "{area}");
        }
    }

    #[test]
    fn any_damage_is_survived() {
        survives("NAME TYPE SIZE USED PRIO\n/dev/sda5 partition 2G 657.8M -2\n");
        survives("Filename Type Size Used Priority\n/dev/dm-1 partition 2097148 10240 -2\n");
    }
}
