//! `vmstat`: one look or a series, wide, with times (`-t`, or put before each row by `ts`), in any unit, with `active` and
//! `inactive` (`-a`), without its heading; what else it prints (`-d`, `-D`, `-p`) is known and passed over.
//!
//! The first row of a run is the average since boot: its levels are current, its rates are not used. Rates are per
//! second, `si` and `so` in the unit of the sizes, `bi` and `bo` always in blocks of 1 KiB. "cache" contains
//! reclaimable slab since procps 3.3.10. There is no total of RAM or swap.

use timeline::signals::{
    CPU_IDLE, CPU_IOWAIT, CPU_STEAL, CPU_SYSTEM, CPU_USER, MEM_ACTIVE, MEM_BUFFERS, MEM_CACHED,
    MEM_FREE, MEM_INACTIVE, PGPGIN, PGPGOUT, PSWPIN, PSWPOUT, SWAP_USED, TASKS_BLOCKED,
    TASKS_RUNNING,
};
use timeline::{Facts, Gauge, Signal, SignalId};
use units::{Bytes, Count, Quantity, Span};

use super::fill::SLAB_IN_CACHE;
use super::{Block, Form, Reading, order};
use crate::figure::{Figure, raw};
use crate::looks::Look;
use crate::prompt;
use crate::times::Series;

mod options;
mod rows;
mod scale;
mod totals;

use options::{Options, Unit};
use rows::{Row, Rows};
pub(super) use totals::FORM as TOTALS;

pub(super) const FORM: Form = Form {
    name: "vmstat",
    read,
};

/// Where nothing tells the interval.
const NOMINAL: Span = Span::from_secs(1);
/// USER_HZ where nothing tells.
const TICKS_PER_PERCENT: f64 = 1.0;

fn read(reading: &mut Reading<'_>) -> Option<Block> {
    let command = reading.command.unwrap_or_default();
    let options = Options::of(command);
    let Some(mut rows) = Rows::read(reading.lines, &options) else {
        return passed_over(reading.lines);
    };
    let told = options.unit;
    let unit = told.unwrap_or_else(|| scale::unit(&rows, reading.looks));
    let mut block = Block {
        what: "vmstat".to_owned(),
        lines: rows.lines,
        unit: unit.name,
        not_understood: rows.not_understood,
        problems: rows.problems.clone(),
    };
    let ordered = order::put(&mut rows.rows, |a, b| a.time?.compare(b.time?));
    let ordered = ordered.into_iter().map(|text| (0, text.to_owned()));
    block.problems.extend(ordered);
    let every = options.every.or_else(|| prompt::loop_interval(command));
    let is_timed = every.is_some() || rows.rows.iter().any(|row| row.time.is_some());
    if !is_timed && rows.rows.len() > 1 {
        let problem = "interval not shown: taken as 1 s; rates are right, lengths of time are not";
        block.problems.push((0, problem.to_owned()));
    }
    if let Some(problem) = scale::problem(unit) {
        block.problems.push((0, problem.to_owned()));
    }
    let mut series = Series::of(every.or(Some(NOMINAL)));
    let mut sums = Sums::of(&rows, unit, &mut block);
    for row in &rows.rows {
        let Some((when, after)) = series.next(row.time) else {
            // Its times stand still: the rest is of another run.
            block.lines = row.at;
            break;
        };
        let mut look = levels(&rows, row, unit);
        look.when = when;
        if rows.rows.len() > 1 {
            sums.add(&rows, row, after, &mut look, reading.facts);
        }
        reading.look(look);
    }
    Some(block)
}

/// Sizes by their columns.
const LEVELS: [(&str, Signal<Gauge<Bytes>>); 6] = [
    ("swpd", SWAP_USED),
    ("free", MEM_FREE),
    ("buff", MEM_BUFFERS),
    ("cache", MEM_CACHED),
    ("inact", MEM_INACTIVE),
    ("active", MEM_ACTIVE),
];

fn levels(rows: &Rows<'_>, row: &Row, unit: Unit) -> Look {
    let mut look = Look::default();
    for (column, signal) in LEVELS {
        let Some(size) = rows.figure(row, column) else {
            continue;
        };
        look.set_size(signal.id(), Figure::whole(size), unit.bytes);
        if signal.id() == MEM_CACHED.id() {
            look.may_be_off(signal.id(), SLAB_IN_CACHE);
        }
    }
    for (column, signal) in [("r", TASKS_RUNNING), ("b", TASKS_BLOCKED)] {
        if let Some(tasks) = rows.figure(row, column).and_then(raw) {
            look.sample.host.set(signal, Count::new(tasks));
        }
    }
    look
}

/// Counters that give the printed rates back.
struct Sums {
    /// Column, counter, how many of its unit one of the column's is, and the sum so far.
    sums: Vec<(&'static str, SignalId, f64, f64)>,
    /// Whether the counter's unit is pages.
    swap_is_shown: bool,
}

impl Sums {
    fn of(rows: &Rows<'_>, unit: Unit, block: &mut Block) -> Self {
        let Unit { name, bytes: unit } = unit;
        let has_swapped = |row: &Row| {
            let moved = |column| rows.figure(row, column).is_some_and(|n| n > 0.0);
            moved("si") || moved("so")
        };
        // In MiB a second, 0 may be 255 pages a second.
        let swap_is_shown = unit <= 1024.0 || rows.rows.iter().skip(1).any(has_swapped);
        if !swap_is_shown && rows.rows.len() > 1 {
            let problem = format!("si and so in {name} show no small rates: left out");
            block.problems.push((0, problem));
        }
        let column = |name, signal, factor| (name, signal, factor, 0.0);
        let sums = vec![
            column("si", PSWPIN.id(), unit),
            column("so", PSWPOUT.id(), unit),
            column("bi", PGPGIN.id(), 1024.0),
            column("bo", PGPGOUT.id(), 1024.0),
            column("us", CPU_USER.id(), TICKS_PER_PERCENT),
            column("sy", CPU_SYSTEM.id(), TICKS_PER_PERCENT),
            column("id", CPU_IDLE.id(), TICKS_PER_PERCENT),
            column("wa", CPU_IOWAIT.id(), TICKS_PER_PERCENT),
            column("st", CPU_STEAL.id(), TICKS_PER_PERCENT),
        ];
        Self {
            sums,
            swap_is_shown,
        }
    }

    /// Adds what a row's rates bring in `after`; nothing for the first row.
    fn add(&mut self, rows: &Rows<'_>, row: &Row, after: Span, look: &mut Look, facts: &mut Facts) {
        let cpus = f64::from(facts.cpus.unwrap_or(1));
        for (column, signal, factor, sum) in &mut self.sums {
            let Some(rate) = rows.figure(row, column) else {
                continue;
            };
            *sum += rate * *factor * after.as_secs_f64();
            let value = match (*column, signal.def().unit) {
                ("si" | "so", _) if !self.swap_is_shown => None,
                (_, "pages") => crate::figure::pages(*sum, facts).map(|pages| pages.as_f64()),
                (_, "ticks") => Some(*sum * cpus),
                _ => Some(*sum),
            };
            if let Some(raw) = value.and_then(raw) {
                look.sample.host.set_raw(*signal, raw);
            }
        }
    }
}

/// Tables of disks and partitions, of which nothing is used.
fn passed_over(lines: &[&str]) -> Option<Block> {
    let first = lines.first()?.trim_start();
    let next = lines.get(1).map_or("", |line| line.trim_start());
    let is_disks = first.starts_with("disk-") && first.contains("reads---");
    let is_sums = first.ends_with(" disks") && next.ends_with(" partitions");
    let is_partition = first.contains("read sectors") && first.contains("requested writes");
    let what = match (is_disks, is_sums, is_partition) {
        (true, ..) => "vmstat -d",
        (_, true, _) => "vmstat -D",
        (.., true) => "vmstat -p",
        _ => return None,
    };
    let belongs = |line: &&&str| {
        let text = line.trim_start();
        let has_number = text.split(' ').any(|word| word.parse::<u64>().is_ok());
        has_number || text.starts_with("disk-") || text.starts_with("total merged")
    };
    let lines = 1 + lines[1..].iter().take_while(belongs).count();
    Some(Block {
        what: format!("{what}: nothing of it is used"),
        lines,
        ..Block::default()
    })
}

#[cfg(test)]
mod tests;
