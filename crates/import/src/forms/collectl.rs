//! `collectl -sm`: a line a second (`Free Buff Cach Inac Slab Map`), more of it with `--verbose`, and for plotting (`-P`,
//! columns such as `[MEM]Free`). Other subsystems may have columns beside those of memory.
//!
//! Sizes have a unit where they are short (`16G`), else they are KiB. The short ones are rounded to whole units.

use timeline::signals::{
    MEM_ANON, MEM_BUFFERS, MEM_CACHED, MEM_DIRTY, MEM_FREE, MEM_INACTIVE, MEM_MAPPED, MEM_SLAB,
    MEM_SLAB_UNRECLAIMABLE, MEM_TOTAL, SWAP_FREE, SWAP_TOTAL, SWAP_USED,
};
use timeline::{Gauge, Signal};
use units::{Bytes, Span};

use super::Form;
use crate::block::{BlockReader, TextBlock};
use crate::builder::Snapshot;
use crate::text::figure::{KIB, PrintedFigure};
use crate::text::line_scan::BlockStart;
use crate::text::prompt;
use crate::text::times::{PrintedTime, SampleTimes};

pub(super) const FORM: Form = Form {
    name: "collectl",
    begins: BlockStart::with(&["Free Buff Cach", "[MEM]Free", "Free    Buff  Cached"]),
    read,
};

/// At most 6 lines of a heading between two rows.
const HEADING_MAX: usize = 6;

/// A column, and what it is.
type Column = (&'static str, Signal<Gauge<Bytes>>);

/// The columns of a line a second.
const BRIEF: [Column; 5] = [
    ("Free", MEM_FREE),
    ("Buff", MEM_BUFFERS),
    ("Cach", MEM_CACHED),
    ("Inac", MEM_INACTIVE),
    ("Slab", MEM_SLAB),
];
/// The columns of `--verbose`, in their order: those of swap have the names of those of memory.
const VERBOSE: [Column; 11] = [
    ("Total", MEM_TOTAL),
    ("Free", MEM_FREE),
    ("Buff", MEM_BUFFERS),
    ("Cached", MEM_CACHED),
    ("Slab", MEM_SLAB),
    ("Mapped", MEM_MAPPED),
    ("Anon", MEM_ANON),
    ("Inact", MEM_INACTIVE),
    ("Total", SWAP_TOTAL),
    ("Used", SWAP_USED),
    ("Free", SWAP_FREE),
];
/// The columns for plotting.
const PLOTTED: [Column; 13] = [
    ("[MEM]Tot", MEM_TOTAL),
    ("[MEM]Free", MEM_FREE),
    ("[MEM]Buf", MEM_BUFFERS),
    ("[MEM]Cached", MEM_CACHED),
    ("[MEM]Slab", MEM_SLAB),
    ("[MEM]Map", MEM_MAPPED),
    ("[MEM]Anon", MEM_ANON),
    ("[MEM]SwapTot", SWAP_TOTAL),
    ("[MEM]SwapUsed", SWAP_USED),
    ("[MEM]SwapFree", SWAP_FREE),
    ("[MEM]Dirty", MEM_DIRTY),
    ("[MEM]Inactive", MEM_INACTIVE),
    ("[MEM]SUnreclaim", MEM_SLAB_UNRECLAIMABLE),
];

/// The heading of a table: how many columns, and which of them are used.
struct CollectlHeader {
    columns: usize,
    used: Vec<(usize, Signal<Gauge<Bytes>>)>,
}

impl CollectlHeader {
    fn from_line(line: &str) -> Option<Self> {
        let line = line.trim_start().strip_prefix('#')?;
        let names: Vec<&str> = line.split_whitespace().collect();
        let known: &[Column] = if line.contains("[MEM]Free") {
            &PLOTTED
        } else if line.contains("Free Buff Cach") {
            &BRIEF
        } else {
            &VERBOSE
        };
        let mut from = 0;
        let mut used = Vec::new();
        for (name, signal) in known {
            let rest = names.get(from..)?;
            // A column that this version lacks is left out.
            let Some(at) = rest.iter().position(|found| found == name) else {
                continue;
            };
            used.push((from + at, *signal));
            from += at + 1;
        }
        let is_memory = used.iter().any(|(_, signal)| signal.id() == MEM_CACHED.id());
        is_memory.then_some(Self { columns: names.len(), used })
    }

    fn row(&self, line: &str) -> Option<Snapshot> {
        let words: Vec<&str> = line.split_whitespace().collect();
        if words.len() != self.columns {
            return None;
        }
        let mut snapshot = Snapshot::default();
        for (at, signal) in &self.used {
            let figure = PrintedFigure::binary(words.get(*at)?)?;
            snapshot.set_size(signal.id(), figure, KIB);
        }
        Some(snapshot)
    }
}

/// The interval of its option `-i`; without it, a second.
fn interval(command: &str) -> Span {
    let arguments = prompt::arguments(command, "collectl").unwrap_or_default();
    prompt::whole_seconds(prompt::option_value(&arguments, "-i"))
}

/// The time at the start of a row; a date has no dashes: `20261126 19:49:45`.
fn time(line: &str) -> Option<PrintedTime> {
    let is_date = |date: &&str| date.len() == 8 && date.bytes().all(|b| b.is_ascii_digit());
    let dashed = line.split_once(' ').filter(|(date, _)| is_date(date)).map(|(date, rest)| {
        let (year, day) = date.split_at(4);
        let (month, day) = day.split_at(2);
        format!("{year}-{month}-{day} {rest}")
    });
    let (time, _) = PrintedTime::leading(dashed.as_deref().unwrap_or(line))?;
    Some(time)
}

fn read(input: &mut BlockReader<'_>) -> Option<TextBlock> {
    let header = CollectlHeader::from_line(input.lines.first()?)?;
    let mut block = TextBlock {
        what: "collectl".to_owned(),
        lines: 1,
        unit: "as printed, else KiB",
        ..TextBlock::default()
    };
    let mut series = SampleTimes::new(Some(interval(input.command.unwrap_or_default())));
    let lines = input.lines;
    for (at, line) in lines.iter().enumerate().skip(1) {
        // It repeats its heading.
        if line.starts_with('#') || line.is_empty() {
            if at - block.lines >= HEADING_MAX {
                break;
            }
            continue;
        }
        let Some(mut snapshot) = header.row(line) else {
            break;
        };
        let Some((when, _)) = series.next(time(line)) else {
            break;
        };
        snapshot.when = when;
        input.add(snapshot);
        block.lines = at + 1;
    }
    (block.lines > 1).then_some(block)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{paste, survives};

    fn mib(n: u64) -> Option<Bytes> {
        Some(Bytes::from_mib(n))
    }

    #[test]
    fn a_line_a_second_is_read_beside_other_subsystems() {
        let text = "\
#         <--------CPU--------><-----------Memory----------->
#Time     cpu sys inter  ctxsw Free Buff Cach Inac Slab  Map 
19:50:20  100   4   963   2965   3G  43M  16G  10G 911M   2G 
19:50:21  100   8   862   2523   2G  43M  16G  10G 911M   2G 
";
        let timeline = paste(text).timeline;
        assert_eq!(timeline.len(), 2);
        assert_eq!(timeline.last(MEM_SLAB), mib(911));
        assert_eq!(timeline.last(MEM_FREE), mib(2048));
        assert_eq!(timeline.last(MEM_TOTAL), None);
        survives(text);
        let bare = "$ collectl -sm -i5\n#Free Buff Cach Inac Slab  Map \n   4G  47M  16G  10G 913M   1G \n   4G  47M  16G  10G 913M   1G \n";
        let timeline = paste(bare).timeline;
        assert_eq!(timeline.len(), 2);
        assert_eq!(timeline.whole().unwrap().duration(), Span::from_secs(5));
    }

    #[test]
    fn the_verbose_table_has_memory_and_swap() {
        let text = "\
# MEMORY SUMMARY
#<------------------------------------Physical Memory-----------------------------------><-----------Swap------------><-------Paging------>
#   Total    Used    Free    Buff  Cached    Slab  Mapped    Anon   AnonH  Commit  Locked Inact Total  Used  Free   In  Out Fault MajFt   In  Out
   24105M  19923M   4182M  46284K  16814M 934948K 433440K   2050M 180224K   2122M  27152K   10G  100M  40M   60M    0    0 21777     6 1240    8
";
        let timeline = paste(text).timeline;
        assert_eq!(timeline.last(MEM_TOTAL), mib(24_105));
        assert_eq!(timeline.last(MEM_BUFFERS), Some(Bytes::from_kib(46_284)));
        assert_eq!(timeline.last(SWAP_FREE), mib(60));
        survives(text);
    }

    #[test]
    fn the_table_for_plotting_has_dates() {
        let text = "\
#Date Time [MEM]Tot [MEM]Used [MEM]Free [MEM]Buf [MEM]Cached [MEM]Slab [MEM]SwapTot
20261126 19:49:45 24684084 19947252 4736832 48316 16968944 934816 0
20261126 19:49:46 24684084 19914920 4769164 45248 16931372 933420 0
";
        let timeline = paste(text).timeline;
        assert_eq!(timeline.len(), 2);
        assert_eq!(timeline.last(MEM_FREE), Some(Bytes::from_kib(4_769_164)));
        survives(text);
    }
}
