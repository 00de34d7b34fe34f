//! The cache of ZFS (ARC): its size in the table of `arcstat`, in `/proc/spl/kstat/zfs/arcstats`, and in `arc_summary`.
//!
//! The kernel counts the ARC as used, and ZFS gives it back when programs want memory.

use timeline::signals::ZFS_ARC;
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
    let (what, lines, size) = table(input.lines)
        .or_else(|| kernel_file(input.before, input.lines))
        .or_else(|| Some(("arc_summary", 1, summary(first)?)))
        .or_else(|| status(input.lines))?;
    let mut snapshot = Snapshot::default();
    let size = size.in_bytes(KIB);
    let bytes = raw(size.value)?;
    snapshot.sample.host.set(ZFS_ARC, Bytes::new(bytes));
    snapshot.set_error(ZFS_ARC.id(), size.doubt());
    input.add(snapshot);
    Some(TextBlock {
        what: format!("{what}: the cache of ZFS"),
        lines,
        ..TextBlock::default()
    })
}

/// A heading with `size` or `arcsz`, and rows; the last one counts.
fn table(lines: &[&str]) -> Option<(&'static str, usize, PrintedFigure)> {
    let names: Vec<&str> = lines.first()?.split_whitespace().collect();
    let is_heading = names.contains(&"miss%") && names.contains(&"c");
    let at = names
        .iter()
        .position(|name| matches!(*name, "size" | "arcsz"))
        .filter(|_| is_heading)?;
    let sizes = lines[1..].iter().map_while(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let figure = PrintedFigure::binary(words.get(at)?)?;
        (words.len() == names.len() && figure.has_unit).then_some(figure)
    });
    let sizes: Vec<PrintedFigure> = sizes.collect();
    Some(("arcstat", 1 + sizes.len(), *sizes.last()?))
}

/// `size                            4    33285996544` near `c_max`.
fn kernel_file(above: &[&str], lines: &[&str]) -> Option<(&'static str, usize, PrintedFigure)> {
    field(lines.first()?, "c_max")?;
    // `c`, `c_min`, `c_max` and `size` stand together.
    let size = lines
        .iter()
        .take(8)
        .chain(above.iter().rev().take(8))
        .find_map(|line| field(line, "size"))?;
    let is_field = |line: &&&str| line.split_whitespace().count() == 3;
    let taken = lines.iter().take(LINES_MAX).take_while(is_field).count();
    Some((
        "arcstats",
        taken,
        PrintedFigure::binary(&format!("{}B", size))?,
    ))
}

/// The value of a field of a kstat: name, type, value.
fn field(line: &str, name: &str) -> Option<u64> {
    let words: Vec<&str> = line.split_whitespace().collect();
    match words.as_slice() {
        [known, "4", value] if *known == name => value.parse().ok(),
        _ => None,
    }
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
            (
                "ARC size (current):                                    99.9 %   31.0 GiB\n",
                31,
            ),
        ] {
            let timeline = paste(text).timeline;
            let size = timeline.last(ZFS_ARC).map(|bytes| bytes.get() >> 30);
            assert_eq!(size, Some(gib), "{text}");
            survives(text);
        }
    }
}
