//! The head of `glances`: columns MEM and SWAP between those of CPU and load. Its `free` of RAM is what is available, and
//! its `cached` has reclaimable slab in it, both as psutil counts them.

use timeline::SignalId;
use timeline::signals::{
    MEM_ACTIVE, MEM_AVAILABLE, MEM_BUFFERS, MEM_CACHED, MEM_INACTIVE, MEM_TOTAL, SWAP_FREE,
    SWAP_TOTAL, SWAP_USED,
};

use super::Form;
use super::size_unit::SLAB_IN_CACHE;
use crate::block::{BlockReader, TextBlock};
use crate::builder::Snapshot;
use crate::text::figure::PrintedFigure;
use crate::text::line_scan::BlockStart;

pub(super) const FORM: Form = Form { name: "glances", begins: BlockStart::with(&["SWAP "]), read };

/// Names in the column MEM, and in the column SWAP.
const NAMES: [(&str, Option<SignalId>, Option<SignalId>); 8] = [
    ("total", Some(MEM_TOTAL.id()), Some(SWAP_TOTAL.id())),
    ("used", None, Some(SWAP_USED.id())),
    ("free", Some(MEM_AVAILABLE.id()), Some(SWAP_FREE.id())),
    ("active", Some(MEM_ACTIVE.id()), None),
    ("inacti", Some(MEM_INACTIVE.id()), None),
    ("inactive", Some(MEM_INACTIVE.id()), None),
    ("buffer", Some(MEM_BUFFERS.id()), None),
    ("cached", Some(MEM_CACHED.id()), None),
];

fn read(input: &mut BlockReader<'_>) -> Option<TextBlock> {
    let first = *input.lines.first()?;
    let has = |word: &str| first.split_whitespace().any(|found| found == word);
    if !["CPU", "MEM", "SWAP", "LOAD"].iter().all(|word| has(word)) {
        return None;
    }
    let mut snapshot = Snapshot::default();
    for line in input.lines.iter().take(4) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let mut seen = Vec::new();
        for pair in words.windows(2) {
            let Some((name, mem, swap)) = NAMES.iter().find(|(name, ..)| *name == pair[0]) else {
                continue;
            };
            let signal = if seen.contains(name) { swap } else { mem };
            seen.push(name);
            let figure = PrintedFigure::binary(pair[1]);
            if let (Some(signal), Some(figure)) = (signal, figure) {
                snapshot.set_size(*signal, figure, 1.0);
            }
        }
    }
    snapshot.host(MEM_TOTAL.id())?;
    snapshot.set_error(MEM_CACHED.id(), SLAB_IN_CACHE);
    input.add(snapshot);
    Some(TextBlock {
        what: "glances".to_owned(),
        unit: "as printed",
        lines: input.lines.len().min(4),
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
}
