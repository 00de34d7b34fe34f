//! The head of `glances`: columns MEM and SWAP between those of CPU and load; names have a colon in 3.1. Its `cached` has
//! reclaimable slab in it, as psutil counts it.
//!
//! `used` is the total without what is available, in all versions. `free` is what is available until 4.3, and MemFree from 4.4
//! on (`glances/plugins/mem`): it is MemFree where used and free are less than the total.

use timeline::signals::{
    MEM_ACTIVE, MEM_AVAILABLE, MEM_BUFFERS, MEM_CACHED, MEM_FREE, MEM_INACTIVE, MEM_TOTAL,
    SWAP_FREE, SWAP_TOTAL, SWAP_USED,
};

use super::Form;
use super::size_unit::SLAB_IN_CACHE;
use crate::block::{BlockReader, TextBlock};
use crate::builder::Snapshot;
use crate::text::figure::PrintedFigure;
use crate::text::line_scan::BlockStart;

pub(super) const FORM: Form = Form { name: "glances", begins: BlockStart::with(&["SWAP "]), read };

/// The heading and the three lines below it.
const LINES: usize = 4;

fn read(input: &mut BlockReader<'_>) -> Option<TextBlock> {
    let lines = &input.lines[..input.lines.len().min(LINES)];
    let has = |word: &str| lines[0].split_whitespace().any(|found| found == word);
    if lines.is_empty() || !["CPU", "MEM", "SWAP"].iter().all(|word| has(word)) {
        return None;
    }
    let mut sizes = Vec::new();
    for line in lines {
        let words: Vec<&str> = line.split_whitespace().collect();
        sizes.extend(words.windows(2).filter_map(|pair| {
            Some((pair[0].trim_end_matches(':'), PrintedFigure::binary(pair[1])?))
        }));
    }
    // MEM is left of SWAP.
    let nth = |names: &[&str], n: usize| {
        let mut named = sizes.iter().filter(|(name, _)| names.contains(name));
        named.nth(n).map(|(_, figure)| *figure)
    };
    let available = nth(&["available"], 0);
    // It may stand in the place of what is used.
    let used = nth(&["used"], 0).filter(|_| available.is_none());
    let total = nth(&["total"], 0)?;
    let mut snapshot = Snapshot::default();
    for (signal, figure) in [
        (MEM_TOTAL, Some(total)),
        (MEM_AVAILABLE, available),
        (MEM_ACTIVE, nth(&["active"], 0)),
        (MEM_INACTIVE, nth(&["inacti", "inactive"], 0)),
        (MEM_BUFFERS, nth(&["buffer", "buffers"], 0)),
        (MEM_CACHED, nth(&["cached"], 0)),
        (SWAP_TOTAL, nth(&["total"], 1)),
        (SWAP_USED, nth(&["used"], usize::from(used.is_some()))),
        (SWAP_FREE, nth(&["free"], 1)),
    ] {
        if let Some(figure) = figure {
            snapshot.set_size(signal.id(), figure, 1.0);
        }
    }
    snapshot.set_error(MEM_CACHED.id(), SLAB_IN_CACHE);
    let free = nth(&["free"], 0);
    let unused = used.map(|used| PrintedFigure {
        value: (total.value - used.value).max(0.0),
        error: total.error + used.error,
        ..total
    });
    if let Some(unused) = unused {
        snapshot.set_size(MEM_AVAILABLE.id(), unused, 1.0);
    }
    let is_available = |free: &PrintedFigure| {
        unused.is_some_and(|unused| unused.value - free.value <= unused.error + free.error)
    };
    if let Some(free) = free.filter(|free| !is_available(free)) {
        snapshot.set_size(MEM_FREE.id(), free, 1.0);
    }
    input.add(snapshot);
    Some(TextBlock {
        what: "glances".to_owned(),
        unit: "as printed",
        lines: lines.len(),
        ..TextBlock::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{are_within_rounding, paste, survives};
    use units::Bytes;

    const SCREEN: &str = "\
                     CPU      12.9%  idle    56.0%  ctx_sw     4K   MEM      4.5%  active   2.88G   SWAP     0.0%   LOAD    2core
CPU  [|     12.9%]   user     31.8%  irq      0.0%  inter      1K   total   23.5G  inacti   7.52G   total       0   1 min    4.07
MEM  [       4.5%]   system   10.4%  nice     0.2%  sw_int    582   used    1.06G  buffer   37.8M   used        0   5 min    3.32
SWAP [       0.0%]   iowait    1.5%  steal    0.0%                  free    22.5G  cached   10.5G   free        0   15 min   2.45
";

    /// `/proc/meminfo`, read right after the screen.
    #[test]
    fn figures_are_the_kernels_within_their_rounding() {
        let timeline = paste(SCREEN).timeline;
        let sizes = [
            (MEM_TOTAL, 24_684_084),
            (MEM_AVAILABLE, 23_571_428),
            (MEM_BUFFERS, 38_676),
            (MEM_INACTIVE, 7_886_628),
        ];
        are_within_rounding(&timeline, &sizes);
        assert_eq!(timeline.last(SWAP_TOTAL), Some(Bytes::ZERO));
        survives(SCREEN);
    }

    /// 4.5.8 on a terminal of 80 columns, and `/proc/meminfo` right after it.
    #[test]
    fn since_4_4_free_is_not_what_is_available() {
        let screen = "\
Frequency 2.60GHz   CPU      51.1%  MEM      2.6%  SWAP     0.0%  LOAD    2core
CPU  [▪▪   51.1%]   user     50.4%  total   23.5G  total       0  1 min    3.87
MEM  [      2.6%]   system    0.7%  used     621M  used        0  5 min    5.38
LOAD [▪▪▪▪ >100%]   iowait    0.0%  free    13.3G  free        0  15 min   3.10
";
        let timeline = paste(screen).timeline;
        let sizes = [(MEM_TOTAL, 24_684_084), (MEM_AVAILABLE, 24_048_716), (MEM_FREE, 13_941_016)];
        are_within_rounding(&timeline, &sizes);
        // It can be set to print what is available in the place of what is used.
        let screen = screen.replace("used     621M", "available 22.9G");
        let timeline = paste(&screen).timeline;
        are_within_rounding(&timeline, &sizes);
        assert_eq!(timeline.last(SWAP_USED), Some(Bytes::ZERO));
        survives(&screen);
    }

    /// 3.1.7 on a terminal of 80 columns.
    #[test]
    fn names_with_colons_and_no_column_of_the_load_are_read() {
        let screen = "\
CPU  [ 91.3%]   CPU      91.3%  idle:     8.7% MEM      3.3% SWAP      0.0%
MEM  [  3.3%]   user:    83.8%                 total:  23.5G total:       0
SWAP [  0.0%]   system:   7.4%                 used:    800M used:        0
                iowait:   0.0%                 free:   22.8G free:        0
";
        let timeline = paste(screen).timeline;
        are_within_rounding(&timeline, &[(MEM_TOTAL, 24_684_084)]);
        let available = timeline.last(MEM_AVAILABLE).unwrap();
        assert_eq!(available.get() >> 20, 23_264);
        assert_eq!(timeline.last(MEM_FREE), None);
        survives(screen);
    }
}
