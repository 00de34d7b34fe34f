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

/// Lines of the summary that are not used.
const OTHERS: [&str; 11] = [
    "Used RAM",
    "Lost RAM",
    "ION",
    "DMA-BUF",
    "DMA-BUF Heap",
    "DMA-BUF Heaps",
    "DMA-BUF Heaps pool",
    "GPU",
    "Kernel CMA",
    "KSM",
    "Tuning",
];

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
            _ if OTHERS.contains(&name) => {}
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
    front.rsplit([' ', '(']).find(|word| !word.is_empty() && *word != "kB")
}

/// Sets a size of the host: `3,840,512K`, or `2857032 kB` before Android 7, of which the unit is another word.
fn set(snapshot: &mut Snapshot, signal: timeline::SignalId, word: Option<&str>) {
    let figure = word.and_then(PrintedFigure::binary);
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

    /// Android 12 and later have lines of graphics memory among them (`MemUsageBuilder` of its activity manager).
    #[test]
    fn zram_is_read_behind_graphics_memory() {
        let text = "\
Total RAM: 7,698,860K (status normal)
 Free RAM: 3,291,536K (  449,036K cached pss + 2,783,596K cached kernel +    58,904K free)
DMA-BUF:   817,715K (      152K mapped +   817,563K unmapped)
DMA-BUF Heaps:    24,844K
DMA-BUF Heaps pool:         0K
      GPU:   258,796K (  258,796K dmabuf +         0K private)
      Kernel CMA:         0K
 Used RAM: 3,528,301K (1,772,358K used pss + 1,755,943K kernel)
 Lost RAM:   362,207K
     ZRAM:   557,480K physical used for 1,723,064K in swap (3,145,724K total swap)
   Tuning: 192 (large 512), oom   322,560K, restore limit   107,520K (high-end-gfx)
";
        let opened = paste(text);
        let kib = |n| Some(Bytes::from_kib(n));
        assert_eq!(opened.timeline.last(SWAP_USED), kib(1_723_064));
        assert_eq!(opened.timeline.last(SWAP_TOTAL), kib(3_145_724));
        assert_eq!(opened.origin.inputs[0].last_line, 11);
        survives(text);
    }

    #[test]
    fn before_android_7_the_unit_is_a_word() {
        let text = "\
Total RAM: 2857032 kB (status moderate)
 Free RAM: 1439488 kB (94888 cached pss + 344620 cached kernel + 999980 free)
 Used RAM: 1280552 kB (970140 used pss + 310412 kernel)
 Lost RAM: 136992 kB
     ZRAM: 4 kB physical used for 0 kB in swap (524284 kB total swap)
   Tuning: 256 (large 512), oom 525000 kB, restore limit 175000 kB (high-end-gfx)
";
        let timeline = paste(text).timeline;
        let kib = |n| Some(Bytes::from_kib(n));
        assert_eq!(timeline.last(MEM_TOTAL), kib(2_857_032));
        assert_eq!(timeline.last(MEM_FREE), kib(999_980));
        assert_eq!(timeline.last(SWAP_USED), kib(0));
        assert_eq!(timeline.last(SWAP_TOTAL), kib(524_284));
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
