//! Android: the end of `dumpsys meminfo` (`Total RAM: 3,840,512K (status normal)`), and the line of RAM below `procrank`; its rows are
//! those of [`ps`](super::ps).
//!
//! Android counts memory of cached apps as free, as it ends them for memory: `Free RAM` is not MemAvailable. The kernel's
//! own free memory, and swap on zram, are used.

use timeline::signals::{
    MEM_BUFFERS, MEM_CACHED, MEM_FREE, MEM_SHMEM, MEM_SLAB, MEM_TOTAL, SWAP_TOTAL, SWAP_USED,
};

use super::Form;
use crate::block::{BlockReader, TextBlock};
use crate::builder::Snapshot;
use crate::text::figure::{KIB, PrintedFigure};
use crate::text::line_scan::BlockStart;

pub(super) const FORM: Form =
    Form { name: "Android", begins: BlockStart::with(&["Total RAM:", "RAM: "]), read };

fn read(input: &mut BlockReader<'_>) -> Option<TextBlock> {
    let mut snapshot = Snapshot::default();
    let first = input.lines.first()?.trim();
    let (what, lines) = if first.starts_with("Total RAM:") {
        ("dumpsys meminfo", summary(input.lines, &mut snapshot))
    } else {
        ram_line(first, &mut snapshot)?;
        ("procrank: RAM", 1)
    };
    if !snapshot.has_readings() {
        return None;
    }
    input.add(snapshot);
    Some(TextBlock { what: what.to_owned(), lines, unit: "KiB", ..TextBlock::default() })
}

/// `Total RAM`, `Free RAM`, `Used RAM`, `Lost RAM`, `ZRAM`.
fn summary(lines: &[&str], snapshot: &mut Snapshot) -> usize {
    let mut taken = 0;
    for line in lines {
        let Some((name, rest)) = line.trim().split_once(':') else {
            break;
        };
        match name {
            "Total RAM" => set(snapshot, MEM_TOTAL.id(), rest.split_whitespace().next()),
            "Free RAM" => set(snapshot, MEM_FREE.id(), before(rest, " free)")),
            "ZRAM" => {
                set(snapshot, SWAP_USED.id(), before(rest, " in swap"));
                set(snapshot, SWAP_TOTAL.id(), before(rest, " total swap"));
            }
            "Used RAM" | "Lost RAM" | "Tuning" | "Oom" => {}
            _ => break,
        }
        taken += 1;
    }
    taken
}

/// `RAM: 1894512K total, 45120K free, 1204K buffers, 512340K cached, 2012K shmem, 81234K slab`.
fn ram_line(line: &str, snapshot: &mut Snapshot) -> Option<()> {
    let rest = line.strip_prefix("RAM: ")?;
    for (name, signal) in [
        (" total", MEM_TOTAL),
        (" free", MEM_FREE),
        (" buffers", MEM_BUFFERS),
        (" cached", MEM_CACHED),
        (" shmem", MEM_SHMEM),
        (" slab", MEM_SLAB),
    ] {
        set(snapshot, signal.id(), before(rest, name));
    }
    Some(())
}

/// The word before a text.
fn before<'l>(line: &'l str, text: &str) -> Option<&'l str> {
    let (front, _) = line.split_once(text)?;
    front.rsplit([' ', '(']).find(|word| !word.is_empty())
}

/// Sets a size of the host that has a unit: `3,840,512K`.
fn set(snapshot: &mut Snapshot, signal: timeline::SignalId, word: Option<&str>) {
    let figure = word.and_then(PrintedFigure::with_unit);
    if let Some(figure) = figure {
        snapshot.set_size(signal, figure, KIB);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{paste, survives};
    use timeline::Entity;
    use timeline::signals::PROC_PSS;
    use units::Bytes;

    #[test]
    fn the_summary_of_dumpsys_has_ram_and_zram() {
        let text = "\
Total RAM: 3,840,512K (status normal)
 Free RAM: 1,234,567K (  345,678K cached pss +   712,345K cached kernel +   176,544K free)
 Used RAM: 2,345,678K (1,945,678K used pss +   400,000K kernel)
 Lost RAM:   260,267K
     ZRAM:   123,456K physical used for   412,345K in swap (2,097,148K total swap)
";
        let timeline = paste(text).timeline;
        let kib = |n| Some(Bytes::from_kib(n));
        assert_eq!(timeline.last(MEM_TOTAL), kib(3_840_512));
        assert_eq!(timeline.last(MEM_FREE), kib(176_544));
        assert_eq!(timeline.last(SWAP_TOTAL), kib(2_097_148));
        survives(text);
    }

    #[test]
    fn procrank_has_processes_and_a_line_of_ram() {
        let text = "  PID      Vss      Rss      Pss      Uss  cmdline\n 1234   98765K   65432K   45678K   43210K  system_server\n                          ------   ------  ------\n\nRAM: 1894512K total, 45120K free, 1204K buffers, 512340K cached, 2012K shmem, 81234K slab\n";
        let timeline = paste(text).timeline;
        let process = timeline.entities(Entity::Process).next().unwrap();
        assert_eq!(timeline.last_of(process, PROC_PSS), Some(Bytes::from_kib(45_678)));
        assert_eq!(timeline.last(MEM_SLAB), Some(Bytes::from_kib(81_234)));
        survives(text);
        assert!(paste("RAM: all of it free\n").origin.inputs.is_empty());
    }
}
