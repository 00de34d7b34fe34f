//! `vmstat -s`: sizes and totals since boot, one a line: `4020152 K total memory`, or paired: `total_memory 4020152`.

use timeline::signals::{
    CPU_IDLE, CPU_IOWAIT, CPU_IRQ, CPU_NICE, CPU_SOFTIRQ, CPU_STEAL, CPU_SYSTEM, CPU_USER, FORKS,
    MEM_ACTIVE, MEM_BUFFERS, MEM_CACHED, MEM_FREE, MEM_INACTIVE, MEM_TOTAL, PGPGIN, PGPGOUT,
    PSWPIN, PSWPOUT, SWAP_FREE, SWAP_TOTAL,
};
use timeline::{Counter, Gauge, Signal, SignalId};
use units::Bytes;

use super::options::{VmstatOptions, unit_of};
use crate::block::{BlockReader, TextBlock};
use crate::builder::Snapshot;
use crate::forms::Form;
use crate::forms::size_unit::{SLAB_IN_CACHE, SizeUnit};
use crate::text::figure::{KIB, PrintedFigure, raw};
use crate::text::line_scan::BlockStart;

/// A separate form, so that totals and the first row of a series can be of one time.
pub(in crate::forms) const FORM: Form = Form {
    name: "vmstat -s",
    begins: BlockStart {
        commands: &["vmstat"],
        ..BlockStart::with(&[
            " memory",
            "_memory",
            "swap",
            "ticks",
            "paged",
            "interrupts",
            "context",
            "boot",
            "forks",
        ])
    },
    read,
};

/// Sizes, in the unit of `-S`.
const SIZES: [(&str, Signal<Gauge<Bytes>>); 8] = [
    ("total memory", MEM_TOTAL),
    ("free memory", MEM_FREE),
    ("active memory", MEM_ACTIVE),
    ("inactive memory", MEM_INACTIVE),
    ("buffer memory", MEM_BUFFERS),
    // Includes reclaimable slab since procps 3.3.10.
    ("swap cache", MEM_CACHED),
    ("total swap", SWAP_TOTAL),
    ("free swap", SWAP_FREE),
];
/// KiB since boot, also where old versions call them pages.
const PAGED: [(&str, Signal<Counter<Bytes>>); 4] = [
    ("paged in", PGPGIN),
    ("paged out", PGPGOUT),
    ("pages paged in", PGPGIN),
    ("pages paged out", PGPGOUT),
];
/// Totals since boot, in the units of the catalogue.
const TOTALS: [(&str, SignalId); 11] = [
    ("pages swapped in", PSWPIN.id()),
    ("pages swapped out", PSWPOUT.id()),
    ("non-nice user cpu ticks", CPU_USER.id()),
    ("nice user cpu ticks", CPU_NICE.id()),
    ("system cpu ticks", CPU_SYSTEM.id()),
    ("idle cpu ticks", CPU_IDLE.id()),
    ("IO-wait cpu ticks", CPU_IOWAIT.id()),
    ("IRQ cpu ticks", CPU_IRQ.id()),
    ("softirq cpu ticks", CPU_SOFTIRQ.id()),
    ("stolen cpu ticks", CPU_STEAL.id()),
    ("forks", FORKS.id()),
];
/// Lines that are known and not used.
const OTHERS: [&str; 6] = [
    "used memory",
    "used swap",
    "non-nice guest cpu ticks",
    "nice guest cpu ticks",
    "interrupts",
    "CPU context switches",
];
const BOOT_TIME: &str = "boot time";
/// This many known lines do not occur by chance.
const LINES_ENOUGH: usize = 3;

fn read(input: &mut BlockReader<'_>) -> Option<TextBlock> {
    let options = VmstatOptions::from_command(input.command.unwrap_or_default());
    let default = options.unit.unwrap_or(SizeUnit::KIB);
    let mut snapshot = Snapshot::default();
    let mut block = TextBlock {
        what: "vmstat -s: totals since boot".to_owned(),
        unit: default.name,
        ..TextBlock::default()
    };
    let mut is_pairs = false;
    for line in input.lines {
        let Some(total) = VmstatTotal::from_line(line) else {
            break;
        };
        let unit = total.unit.unwrap_or(default);
        if total.name == SIZES[0].0 {
            block.unit = unit.name;
        }
        is_pairs |= total.is_pair;
        total.fill(unit, &mut snapshot);
        block.lines += 1;
    }
    let is_sure = block.lines >= LINES_ENOUGH || options.ran || (block.lines > 0 && !is_pairs);
    if !is_sure || block.lines == 0 {
        return None;
    }
    if snapshot.sample.host.is_empty() {
        return Some(block);
    }
    let host = &snapshot.sample.host;
    if let (Some(free), Some(total)) = (host.get(MEM_FREE), host.get(MEM_TOTAL))
        && free > total
    {
        block.problem("`free memory` is larger than `total memory`: the block is not used");
        return Some(block);
    }
    input.add(snapshot);
    Some(block)
}

/// One line.
struct VmstatTotal {
    name: String,
    value: f64,
    unit: Option<SizeUnit>,
    is_pair: bool,
}

impl VmstatTotal {
    fn from_line(line: &str) -> Option<Self> {
        let line = line.trim();
        let (first, rest) = line.split_once(' ')?;
        let number = |word: &str| word.parse::<u64>().ok();
        let (value, words, is_pair) = match number(first) {
            Some(value) => (value, rest.trim_start().to_owned(), false),
            None => {
                (number(rest.trim())?, first.trim_end_matches([':', '=']).replace('_', " "), true)
            }
        };
        let unit = |word: &str| word.chars().next().filter(|_| word.len() == 1).and_then(unit_of);
        let (unit, name) = match words.split_once(' ') {
            Some((word, name)) if unit(word).is_some() => (unit(word), name.to_owned()),
            _ => (None, words),
        };
        let is_size = SIZES.iter().any(|(known, _)| *known == name) || name.starts_with("used ");
        let is_known = is_size
            || PAGED.iter().any(|(known, _)| *known == name)
            || TOTALS.iter().any(|(known, _)| *known == name)
            || OTHERS.contains(&name.as_str())
            || name == BOOT_TIME;
        #[allow(clippy::cast_precision_loss)] // totals far below 2^53
        (is_known && (is_pair || !is_size || unit.is_some())).then_some(Self {
            name,
            value: value as f64,
            unit,
            is_pair,
        })
    }

    fn fill(&self, unit: SizeUnit, snapshot: &mut Snapshot) {
        if let Some((_, signal)) = SIZES.iter().find(|(name, _)| *name == self.name) {
            snapshot.set_size(signal.id(), PrintedFigure::whole(self.value), unit.bytes);
            if signal.id() == MEM_CACHED.id() {
                snapshot.set_error(signal.id(), SLAB_IN_CACHE);
            }
        } else if let Some((_, signal)) = PAGED.iter().find(|(name, _)| *name == self.name) {
            if let Some(bytes) = raw(self.value * KIB) {
                snapshot.sample.host.set(*signal, Bytes::new(bytes));
            }
        } else if let Some((_, signal)) = TOTALS.iter().find(|(name, _)| *name == self.name)
            && let Some(value) = raw(self.value)
        {
            snapshot.sample.host.set_raw(*signal, value);
        }
    }
}
