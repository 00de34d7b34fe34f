//! The cache of ZFS (ARC): its size in the table of `arcstat`, in `/proc/spl/kstat/zfs/arcstats`, and in `arc_summary`.
//!
//! The kernel counts the ARC as used, and ZFS gives it back when programs want memory.

use timeline::signals::{ARCSTATS, ZFS_ARC};
use units::Bytes;

use super::Form;
use crate::block::{BlockReader, TextBlock};
use crate::builder::Snapshot;
use crate::text::figure::{KIB, PrintedFigure, raw};
use crate::text::line_scan::BlockStart;

pub(super) const FORM: Form = Form {
    name: "arcstat",
    begins: BlockStart::with(&[
        "arcsz",
        "miss%",
        "arc_meta",
        "c_max",
        "ARC size (current)",
        "ARC status:",
    ]),
    read,
};

/// arcstats has some 150 lines.
const LINES_MAX: usize = 200;

fn read(input: &mut BlockReader<'_>) -> Option<TextBlock> {
    let first = *input.lines.first()?;
    if let Some(block) = kernel_file(input) {
        return Some(block);
    }
    let (what, lines, size) = table(input.lines)
        .or_else(|| Some(("arc_summary", 1, summary(first)?)))
        .or_else(|| status(input.lines))?;
    let mut snapshot = Snapshot::default();
    let size = size.in_bytes(KIB);
    let bytes = raw(size.value)?;
    snapshot.sample.host.set(ZFS_ARC, Bytes::new(bytes));
    snapshot.set_error(ZFS_ARC.id(), size.doubt());
    input.add(snapshot);
    Some(block(what, lines))
}

fn block(what: &str, lines: usize) -> TextBlock {
    TextBlock { what: format!("{what}: the cache of ZFS"), lines, ..TextBlock::default() }
}

/// A heading with `size` or `arcsz`, and rows; the last one counts.
fn table(lines: &[&str]) -> Option<(&'static str, usize, PrintedFigure)> {
    let names: Vec<&str> = lines.first()?.split_whitespace().collect();
    let is_heading = names.contains(&"miss%") && names.contains(&"c");
    let at =
        names.iter().position(|name| matches!(*name, "size" | "arcsz")).filter(|_| is_heading)?;
    let sizes = lines[1..].iter().map_while(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let figure = PrintedFigure::binary(words.get(at)?)?;
        (words.len() == names.len() && figure.has_unit).then_some(figure)
    });
    let sizes: Vec<PrintedFigure> = sizes.collect();
    Some(("arcstat", 1 + sizes.len(), *sizes.last()?))
}

/// `size                            4    33285996544` near `c_max`: the kernel's file, or a part of it.
fn kernel_file(input: &mut BlockReader<'_>) -> Option<TextBlock> {
    let is_field = |line: &&&str| {
        let mut words = line.split_whitespace();
        words.by_ref().nth(1) == Some("4") && words.count() == 1
    };
    let is_start = input.lines.first()?.split_whitespace().next() == Some("c_max");
    // `c`, `c_min`, `c_max` and `size` stand together.
    let above = input.before.iter().rev().take(8).filter(is_field);
    let below = input.lines.iter().take(LINES_MAX).take_while(is_field);
    let lines = below.clone().count();
    if !is_start || lines == 0 {
        return None;
    }
    let text: Vec<&str> = above.chain(below).copied().collect();
    let mut snapshot = Snapshot::default();
    let text = text.join("\n");
    // A line without a number leaves its reading absent.
    let _ = input.parsers.read(ARCSTATS, text.as_bytes(), &mut snapshot.sample, input.facts);
    snapshot.sample.host.get(ZFS_ARC)?;
    input.add(snapshot);
    Some(block("arcstats", lines))
}

/// The section `ARC status:` of arc_summary 2.3, with a line `Current size:   268.8 %  253.7 GiB`.
fn status(lines: &[&str]) -> Option<(&'static str, usize, PrintedFigure)> {
    const SECTION_MAX: usize = 10;
    let is_status = |line: &&&str| line.trim() == "ARC status:";
    lines.first().filter(is_status)?;
    let section = lines.iter().take(SECTION_MAX).enumerate();
    section.skip(1).find_map(|(at, line)| {
        let rest = line.trim().strip_prefix("Current size:")?;
        Some(("arc_summary", at + 1, behind_share(rest)?))
    })
}

/// `ARC size (current):                                    99.9 %   31.2 GiB`.
fn summary(line: &str) -> Option<PrintedFigure> {
    let (_, rest) = line.split_once("ARC size (current):")?;
    behind_share(rest)
}

/// The size behind a percentage: `99.9 %   31.2 GiB`.
fn behind_share(text: &str) -> Option<PrintedFigure> {
    let (_, size) = text.split_once('%')?;
    let joined: String = size.split_whitespace().collect();
    PrintedFigure::with_unit(&joined)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{paste, survives};
    use timeline::signals::{ZFS_ARC_DATA, ZFS_ARC_METADATA, ZFS_ARC_MIN};

    #[test]
    fn the_size_is_found_in_all_three() {
        for (text, gib) in [
            (
                "    time  read  miss  miss%  dmis  dm%  pmis  pm%  mmis  mm%  size     c  avail\n18:55:34     0     0      0     0    0     0    0     0    0   31G   31G   2.1G\n",
                31,
            ),
            (
                "hits                            4    123\nc                               4    33285996544\nc_min                           4    2147483648\nc_max                           4    67108864000\nsize                            4    33285996544\n",
                31,
            ),
            ("ARC size (current):                                    99.9 %   31.0 GiB\n", 31),
        ] {
            let timeline = paste(text).timeline;
            let size = timeline.last(ZFS_ARC).map(|bytes| bytes.get() >> 30);
            assert_eq!(size, Some(gib), "{text}");
            survives(text);
        }
    }

    #[test]
    fn the_kernels_file_has_what_the_arc_keeps_and_its_pages() {
        let text = "c                               4    33676691456\nc_min                           4    2104793216\nc_max                           4    33676691456\nsize                            4    33743421984\nhdr_size                        4    192501600\ndata_size                       4    28890273280\nmetadata_size                   4    1463973888\n";
        let timeline = paste(text).timeline;
        let read = [ZFS_ARC, ZFS_ARC_MIN, ZFS_ARC_DATA, ZFS_ARC_METADATA]
            .map(|signal| timeline.last(signal).map(Bytes::get));
        let expected = [33_743_421_984, 2_104_793_216, 28_890_273_280, 1_463_973_888];
        assert_eq!(read, expected.map(Some));
    }
}
