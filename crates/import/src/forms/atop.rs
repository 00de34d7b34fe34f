//! Screens of `atop`: the lines MEM and SWP, with their bars or with blanks squeezed, and `atop -P MEM,SWP`, which prints
//! pages. Counts of the line PAG are of an interval of unknown length on a screen and are not used.

use timeline::SignalId;
use timeline::signals::{
    COMMIT_LIMIT, COMMITTED_AS, MEM_AVAILABLE, MEM_BUFFERS, MEM_CACHED, MEM_DIRTY, MEM_FREE,
    MEM_PAGE_TABLES, MEM_SHMEM, MEM_SLAB, MEM_SLAB_RECLAIMABLE, MEM_TOTAL, SWAP_FREE, SWAP_TOTAL,
};
use units::{PageSize, WallClock};

use super::Form;
use crate::block::{BlockReader, TextBlock};
use crate::builder::{Snapshot, SnapshotTime};
use crate::text::figure::PrintedFigure;
use crate::text::line_scan::BlockStart;

pub(super) const FORM: Form =
    Form { name: "atop", begins: BlockStart::with(&["MEM ", "SWP ", "PAG "]), read };

/// Names of the cells of MEM.
const MEM: [(&str, SignalId); 10] = [
    ("tot", MEM_TOTAL.id()),
    ("free", MEM_FREE.id()),
    ("avail", MEM_AVAILABLE.id()),
    ("cache", MEM_CACHED.id()),
    ("buff", MEM_BUFFERS.id()),
    ("slab", MEM_SLAB.id()),
    ("slrec", MEM_SLAB_RECLAIMABLE.id()),
    ("dirty", MEM_DIRTY.id()),
    ("shmem", MEM_SHMEM.id()),
    ("pgtab", MEM_PAGE_TABLES.id()),
];
/// Names of the cells of SWP.
const SWP: [(&str, SignalId); 4] = [
    ("tot", SWAP_TOTAL.id()),
    ("free", SWAP_FREE.id()),
    ("vmcom", COMMITTED_AS.id()),
    ("vmlim", COMMIT_LIMIT.id()),
];
/// Columns of `atop -P MEM` behind the page size (man atop, "PARSEABLE OUTPUT"), in pages.
const MEM_PAGES: [SignalId; 7] = [
    MEM_TOTAL.id(),
    MEM_FREE.id(),
    MEM_CACHED.id(),
    MEM_BUFFERS.id(),
    MEM_SLAB.id(),
    MEM_DIRTY.id(),
    MEM_SLAB_RECLAIMABLE.id(),
];
/// Columns of `atop -P SWP` behind the page size, in pages.
const SWP_PAGES: [SignalId; 2] = [SWAP_TOTAL.id(), SWAP_FREE.id()];
/// At most 12 lines of a screen from MEM to SWP.
const LINES_MAX: usize = 12;

fn read(input: &mut BlockReader<'_>) -> Option<TextBlock> {
    parseable(input).or_else(|| screen(input))
}

fn screen(input: &mut BlockReader<'_>) -> Option<TextBlock> {
    if label(input.lines.first()?)? != "MEM" {
        return None;
    }
    let mut snapshot = Snapshot::default();
    let mut block =
        TextBlock { what: "atop".to_owned(), unit: "as printed", ..TextBlock::default() };
    let mut names: &[(&str, SignalId)] = &[];
    for (at, line) in input.lines.iter().take(LINES_MAX).enumerate() {
        match label(line) {
            Some("MEM")
                if at > 0 && snapshot.host(MEM_TOTAL.id()).is_some() && line.contains(" tot ") =>
            {
                break;
            }
            Some("MEM") => names = &MEM,
            Some("SWP" | "swap") => names = &SWP,
            // A line that was broken in two.
            Some("") => {}
            Some(_) => names = &[],
            None => break,
        }
        if !names.is_empty() {
            cells(line, names, &mut snapshot);
            block.lines = at + 1;
        }
    }
    snapshot.host(MEM_TOTAL.id())?;
    if let Some(wall) = clock(input.before) {
        snapshot.when = SnapshotTime::At(wall);
    }
    input.add(snapshot);
    Some(block)
}

/// The word before the first bar: `MEM`; empty where a line goes on.
fn label(line: &str) -> Option<&str> {
    let (before, _) = line.split_once('|')?;
    let label = before.trim();
    (label.len() <= 4 && label.bytes().all(|byte| byte.is_ascii_alphabetic())).then_some(label)
}

/// Reads names and figures.
fn cells(line: &str, names: &[(&str, SignalId)], snapshot: &mut Snapshot) {
    let words: Vec<&str> = line
        .split(|c: char| c.is_whitespace() || c == '|')
        .filter(|word| !word.is_empty())
        .collect();
    for pair in words.windows(2) {
        let signal = names.iter().find(|(name, _)| *name == pair[0]);
        let figure = PrintedFigure::with_unit(pair[1]);
        if let (Some((_, signal)), Some(figure)) = (signal, figure) {
            snapshot.set_size(*signal, figure, 1.0);
        }
    }
}

/// The time in the heading of the screen: `ATOP - web  2016/12/11  18:41:27  …  10s elapsed`.
fn clock(before: &[&str]) -> Option<WallClock> {
    let heading = before.iter().rev().take(LINES_MAX);
    let heading = heading.into_iter().find(|line| line.starts_with("ATOP - "))?;
    let mut words = heading.split_whitespace().skip_while(|word| !word.contains('/'));
    let (date, time) = (words.next()?.replace('/', "-"), words.next()?);
    crate::text::prompt::time(&format!("{date} {time}"))
}

/// `MEM host 1795711648 2026/11/26 16:47:28 10 4096 6171021 …`, a line for each label and time.
fn parseable(input: &mut BlockReader<'_>) -> Option<TextBlock> {
    ParseableLine::parse(input.lines.first()?)?;
    let mut block = TextBlock { what: "atop -P".to_owned(), unit: "pages", ..TextBlock::default() };
    let mut snapshot = Snapshot::default();
    let mut time = None;
    for (at, line) in input.lines.iter().enumerate() {
        match ParseableLine::parse(line) {
            Some(found) => {
                if time.is_some_and(|time| time != found.time) && snapshot.has_readings() {
                    input.add(std::mem::take(&mut snapshot));
                }
                time = Some(found.time);
                snapshot.when = SnapshotTime::At(WallClock::from_unix_nanos(found.time));
                found.fill(&mut snapshot);
            }
            None if matches!(*line, "SEP" | "RESET") => {}
            None => break,
        }
        block.lines = at + 1;
    }
    if snapshot.has_readings() {
        input.add(snapshot);
    }
    Some(block)
}

/// A line of `atop -P`.
struct ParseableLine<'l> {
    label: &'l str,
    /// Nanoseconds since 1970.
    time: i64,
    page: PageSize,
    figures: Vec<u64>,
}

impl<'l> ParseableLine<'l> {
    fn parse(line: &'l str) -> Option<Self> {
        let mut words = line.split(' ');
        let label = words.next().filter(|word| matches!(*word, "MEM" | "SWP" | "PAG"))?;
        let epoch: i64 = words.nth(1)?.parse().ok()?;
        let date = words.next()?;
        let interval = words.nth(1)?;
        interval.parse::<u64>().ok().filter(|_| date.contains('/'))?;
        Some(Self {
            label,
            time: epoch.checked_mul(1_000_000_000)?,
            page: PageSize::from_bytes(words.next()?.parse().ok()?)?,
            figures: words.map_while(|word| word.parse().ok()).collect(),
        })
    }

    fn fill(&self, snapshot: &mut Snapshot) {
        let signals: &[SignalId] = match self.label {
            "MEM" => &MEM_PAGES,
            "SWP" => &SWP_PAGES,
            _ => &[],
        };
        for (signal, pages) in signals.iter().zip(&self.figures) {
            if let Some(bytes) = pages.checked_mul(self.page.bytes().get()) {
                snapshot.sample.host.set_raw(*signal, bytes);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{are_within_rounding, paste, survives};
    use units::{Bytes, Span};

    const SCREEN: &str = "\
ATOP - web                 2026/11/26  16:47:14                  -----------------                  2s elapsed
CPL | numcpu     2 | avg1    4.07 | avg5    3.32 | avg15   2.45 |              | csw     9059 | intr    3003 |
MEM | tot    23.5G | free   12.3G | cache  10.0G | dirty 136.3M | buff   37.8M | slab  604.6M | pgtab  13.4M |
MEM | numnode    1 |              | shmem  56.4M | shrss   0.0M | shswp   0.0M | tcpsk   0.5M | udpsk   0.0M |
SWP | tot     0.0M | free    0.0M | swcac   0.0M |              |              | vmcom   3.6G | vmlim  11.8G |
PAG | numamig    0 | migrate    0 | pgin       1 | pgout  37236 | swin       0 | swout      0 | oomkill    0 |
";

    #[test]
    fn cells_are_known_by_their_names() {
        let opened = paste(SCREEN);
        let timeline = &opened.timeline;
        assert_eq!(timeline.last(MEM_CACHED), Some(Bytes::from_gib(10)));
        assert_eq!(timeline.last(SWAP_TOTAL), Some(Bytes::ZERO));
        assert_eq!(timeline.last(MEM_TOTAL), Some(Bytes::new(25_232_932_864)));
        assert!(timeline.stamp(0).unwrap().wall.is_some());
        survives(SCREEN);
        let squeezed = SCREEN.replace("  ", " ").replace("  ", " ").replace("  ", " ");
        assert_eq!(paste(&squeezed).timeline.last(MEM_CACHED), Some(Bytes::from_gib(10)));
    }

    /// `/proc/meminfo`, read right after the screen.
    #[test]
    fn figures_are_the_kernels_within_their_rounding() {
        let timeline = paste(SCREEN).timeline;
        let sizes = [
            (MEM_TOTAL, 24_684_084),
            (MEM_FREE, 12_931_264),
            (MEM_CACHED, 10_467_204),
            (MEM_SLAB, 619_152),
        ];
        are_within_rounding(&timeline, &sizes);
    }

    #[test]
    fn a_line_may_be_broken_in_two() {
        let text = "MEM | tot 67.5G  free 676.0M\n    | cache 45.0G\nswap| tot 7.0G   free 7.0G\n";
        let timeline = paste(text).timeline;
        assert_eq!(timeline.last(MEM_FREE), Some(Bytes::from_mib(676)));
        assert_eq!(timeline.last(MEM_CACHED), Some(Bytes::from_gib(45)));
        assert_eq!(timeline.last(SWAP_FREE), Some(Bytes::from_gib(7)));
    }

    #[test]
    fn parseable_lines_are_a_series() {
        let text = "RESET\nMEM vm 1795711648 2026/11/26 16:47:28 8001 4096 6171021 3304311 2566009 10138 154298 562 138758 0\nSWP vm 1795711648 2026/11/26 16:47:28 8001 4096 7 5 0\nSEP\nMEM vm 1795711649 2026/11/26 16:47:29 1 4096 6171021 3311796 2567052 10138 154379 574 138849 0\nSEP\n";
        let timeline = paste(text).timeline;
        assert_eq!(timeline.duration(), Span::from_secs(1));
        assert_eq!(timeline.last(MEM_FREE), Some(Bytes::new(3_311_796 * 4096)));
        assert_eq!(timeline.last(SWAP_FREE), Some(Bytes::new(5 * 4096)));
        survives(text);
    }
}
