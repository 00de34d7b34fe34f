//! `vmstat -s`: sizes and totals since boot, one a line: `4020152 K total memory`, or as pairs, `total_memory 4020152`.

use timeline::signals::{
    CPU_IDLE, CPU_IOWAIT, CPU_IRQ, CPU_NICE, CPU_SOFTIRQ, CPU_STEAL, CPU_SYSTEM, CPU_USER, FORKS,
    MEM_ACTIVE, MEM_BUFFERS, MEM_CACHED, MEM_FREE, MEM_INACTIVE, MEM_TOTAL, PGPGIN, PGPGOUT,
    PSWPIN, PSWPOUT, SWAP_FREE, SWAP_TOTAL,
};
use timeline::{Counter, Gauge, Signal, SignalId};
use units::Bytes;

use super::options::{Options, Unit};
use crate::figure::{Figure, raw};
use crate::forms::fill::SLAB_IN_CACHE;
use crate::forms::{Block, Form, Reading};
use crate::looks::Look;

/// The form of totals, which may be of one moment with a series' first row.
pub(in crate::forms) const FORM: Form = Form {
    name: "vmstat -s",
    read,
};

/// Sizes, in the unit of `-S`.
const SIZES: [(&str, Signal<Gauge<Bytes>>); 8] = [
    ("total memory", MEM_TOTAL),
    ("free memory", MEM_FREE),
    ("active memory", MEM_ACTIVE),
    ("inactive memory", MEM_INACTIVE),
    ("buffer memory", MEM_BUFFERS),
    // With reclaimable slab since procps 3.3.10.
    ("swap cache", MEM_CACHED),
    ("total swap", SWAP_TOTAL),
    ("free swap", SWAP_FREE),
];
/// KiB since boot, whatever the line says: old versions call them pages.
const PAGED: [(&str, Signal<Counter<Bytes>>); 4] = [
    ("paged in", PGPGIN),
    ("paged out", PGPGOUT),
    ("pages paged in", PGPGIN),
    ("pages paged out", PGPGOUT),
];
/// Totals since boot, in the catalogue's own units.
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
/// So many lines of names and numbers are no accident.
const ENOUGH: usize = 3;

fn read(reading: &mut Reading<'_>) -> Option<Block> {
    let options = Options::of(reading.command.unwrap_or_default());
    let default = options.unit.unwrap_or(Unit::KIB);
    let mut look = Look::default();
    let mut block = Block {
        what: "vmstat -s: totals since boot".to_owned(),
        unit: default.name,
        ..Block::default()
    };
    let mut is_pairs = false;
    for line in reading.lines {
        let Some(total) = Total::of(line) else { break };
        let unit = total.unit.unwrap_or(default);
        if total.name == SIZES[0].0 {
            block.unit = unit.name;
        }
        is_pairs |= total.is_pair;
        total.fill(unit, &mut look);
        block.lines += 1;
    }
    let is_sure = block.lines >= ENOUGH || options.ran || (block.lines > 0 && !is_pairs);
    if !is_sure || block.lines == 0 {
        return None;
    }
    if look.sample.host.is_empty() {
        return Some(block);
    }
    if look.sample.host.get(MEM_FREE)
        > look
            .sample
            .host
            .get(MEM_TOTAL)
            .or(Some(Bytes::new(u64::MAX)))
    {
        let problem = "`free memory` is larger than `total memory`: the block is left out";
        block.problems.push((0, problem.to_owned()));
        return Some(block);
    }
    reading.look(look);
    Some(block)
}

/// A line.
struct Total {
    name: String,
    value: f64,
    unit: Option<Unit>,
    is_pair: bool,
}

impl Total {
    fn of(line: &str) -> Option<Self> {
        let line = line.trim();
        let (first, rest) = line.split_once(' ')?;
        let number = |word: &str| word.parse::<u64>().ok();
        let (value, words, is_pair) = match number(first) {
            Some(value) => (value, rest.trim_start().to_owned(), false),
            None => (
                number(rest.trim())?,
                first.trim_end_matches([':', '=']).replace('_', " "),
                true,
            ),
        };
        let unit = |word: &str| {
            word.chars()
                .next()
                .filter(|_| word.len() == 1)
                .and_then(Unit::of)
        };
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

    fn fill(&self, unit: Unit, look: &mut Look) {
        let is_it = |known: &str| known == self.name;
        if let Some((_, signal)) = SIZES.iter().find(|(known, _)| is_it(known)) {
            look.set_size(signal.id(), Figure::whole(self.value), unit.bytes);
            if signal.id() == MEM_CACHED.id() {
                look.may_be_off(signal.id(), SLAB_IN_CACHE);
            }
        } else if let Some((_, signal)) = PAGED.iter().find(|(known, _)| is_it(known)) {
            if let Some(bytes) = raw(self.value * 1024.0) {
                look.sample.host.set(*signal, Bytes::new(bytes));
            }
        } else if let Some((_, signal)) = TOTALS.iter().find(|(known, _)| is_it(known))
            && let Some(value) = raw(self.value)
        {
            look.sample.host.set_raw(*signal, value);
        }
    }
}
