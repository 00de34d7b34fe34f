//! `zramctl`: the size of each zram device, its data before and after compression, and the RAM that it takes.

use timeline::signals::{ZRAM_COMPRESSED, ZRAM_DISK_SIZE, ZRAM_ORIG, ZRAM_USED};
use timeline::{Entity, Gauge, Signal};
use units::Bytes;

use super::Form;
use crate::block::{BlockReader, TextBlock};
use crate::builder::Snapshot;
use crate::text::figure::{PrintedFigure, raw};
use crate::text::line_scan::BlockStart;

pub(super) const FORM: Form = Form { name: "zramctl", begins: BlockStart::with(&["COMPR"]), read };

/// The columns that are used.
const COLUMNS: [(&str, Signal<Gauge<Bytes>>); 4] = [
    ("DISKSIZE", ZRAM_DISK_SIZE),
    ("DATA", ZRAM_ORIG),
    ("COMPR", ZRAM_COMPRESSED),
    ("TOTAL", ZRAM_USED),
];

fn read(input: &mut BlockReader<'_>) -> Option<TextBlock> {
    let heading: Vec<&str> = input.lines.first()?.split_whitespace().collect();
    if heading.first() != Some(&"NAME") || !heading.contains(&"COMPR") {
        return None;
    }
    let mut snapshot = Snapshot::default();
    let devices = input.lines[1..].iter().map_while(|line| device(&heading, line));
    let mut lines = 1;
    for (name, sizes) in devices {
        let row = &mut snapshot.sample.table_mut(Entity::Zram).entry(name).row;
        for ((_, signal), size) in COLUMNS.iter().zip(sizes) {
            if let Some(size) = size {
                row.set(*signal, size);
            }
        }
        lines += 1;
    }
    if lines > 1 {
        input.add(snapshot);
    }
    Some(TextBlock {
        what: "zramctl".to_owned(),
        lines,
        unit: "as printed",
        ..TextBlock::default()
    })
}

/// The name of a device without its path, and its sizes by [`COLUMNS`].
fn device<'l>(heading: &[&str], line: &'l str) -> Option<(&'l str, [Option<Bytes>; 4])> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let name = words.first()?.strip_prefix("/dev/")?;
    let sizes = COLUMNS.map(|(column, _)| {
        let at = heading.iter().position(|head| *head == column)?;
        let figure = PrintedFigure::binary(words.get(at)?)?;
        raw(figure.in_bytes(1.0).value).map(Bytes::new)
    });
    Some((name, sizes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{paste, survives};

    #[test]
    fn each_device_has_its_data_and_its_cost() {
        let text = "NAME       ALGORITHM DISKSIZE  DATA COMPR TOTAL STREAMS MOUNTPOINT\n/dev/zram0 lzo-rle         8G  6.5G    2G  2.5G       8 [SWAP]\n";
        let timeline = paste(text).timeline;
        let device = timeline.entity(Entity::Zram, "zram0").unwrap();
        let mib = |signal| timeline.last_of(device, signal).map(|b: Bytes| b.get() >> 20);
        assert_eq!((mib(ZRAM_ORIG), mib(ZRAM_USED)), (Some(6_656), Some(2_560)));
        survives(text);
    }
}
