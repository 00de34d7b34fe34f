//! `vmstat`: one row or a series, wide, with times (`-t`, or before each row by `ts`), in any unit, with `active` and
//! `inactive` (`-a`), without its heading. Output of `-d`, `-D` and `-p` is recognised and skipped.
//!
//! The first row of a run is the average since boot: its levels are current, its rates are not used. Rates are per
//! second, `si` and `so` in the unit of the sizes, `bi` and `bo` in blocks of 1 KiB. "cache" includes reclaimable slab
//! since procps 3.3.10. There is no total of RAM or swap. `pmrep :vmstat` of PCP prints the same columns in KiB, but pages in `si`
//! and `so`.

use timeline::signals::{
    CPU_IDLE, CPU_IOWAIT, CPU_STEAL, CPU_SYSTEM, CPU_USER, MEM_ACTIVE, MEM_BUFFERS, MEM_CACHED,
    MEM_FREE, MEM_INACTIVE, PGPGIN, PGPGOUT, PSWPIN, PSWPOUT, SWAP_USED, TASKS_BLOCKED,
    TASKS_RUNNING,
};
use timeline::{Facts, Gauge, Signal, SignalId};
use units::{Bytes, Count, PageSize, Quantity, Span};

use super::rate_totals::RateTotals;
use super::size_unit::{SLAB_IN_CACHE, SizeUnit};
use super::{Form, pcp, row_order};
use crate::block::{BlockReader, TextBlock};
use crate::builder::Snapshot;
use crate::text::figure::{self, KIB, PrintedFigure, raw};
use crate::text::line_scan::BlockStart;
use crate::text::prompt;
use crate::text::times::SampleTimes;

mod options;
mod rows;
mod scale;
mod totals;

use options::VmstatOptions;
use rows::{VmstatRow, VmstatRows};
pub(super) use totals::FORM as TOTALS;

pub(super) const FORM: Form = Form {
    name: "vmstat",
    begins: BlockStart {
        or: Some(|lines| lines.first().is_some_and(|line| rows::may_be_row(line))),
        commands: &["vmstat"],
        ..BlockStart::with(&["swpd", "procs", "free", "disk-", " disks", "read sectors"])
    },
    read,
};

/// The interval that is assumed if it is unknown.
const NOMINAL: Span = Span::from_secs(1);
/// Ticks a second in one percent of a CPU, with a USER_HZ of 100.
const TICKS_PER_PERCENT: f64 = 1.0;

fn read(input: &mut BlockReader<'_>) -> Option<TextBlock> {
    let command = input.command.unwrap_or_default();
    let options = VmstatOptions::from_command(command);
    let Some(mut rows) = VmstatRows::read(input.lines, &options) else {
        return skipped(input.lines);
    };
    let pmrep = rows.is_pmrep.then_some(SizeUnit::KIB);
    let unit = options.unit.or(pmrep).unwrap_or_else(|| scale::guess(&rows, input.builder));
    let what = if rows.is_pmrep { "pmrep :vmstat of PCP" } else { "vmstat" };
    let mut block = TextBlock {
        what: what.to_owned(),
        lines: rows.lines,
        unit: unit.name,
        not_understood: rows.not_understood,
        other_system: "",
        problems: rows.problems.clone(),
    };
    for problem in row_order::sort(&mut rows.rows, |a, b| a.time?.compare(b.time?)) {
        block.problem(problem);
    }
    let pmrep_every = rows.is_pmrep.then(|| pcp::interval(command));
    let every = options.every.or(pmrep_every).or_else(|| prompt::loop_interval(command));
    let is_timed = every.is_some() || rows.rows.iter().any(|row| row.time.is_some());
    if !is_timed && rows.rows.len() > 1 {
        block.problem("interval unknown: taken as 1 s; rates are right, durations are not");
    }
    if let Some(problem) = scale::problem(unit) {
        block.problem(problem);
    }
    let mut series = SampleTimes::new(every.or(Some(NOMINAL)));
    let page = input.facts.page_size.unwrap_or(PageSize::USUAL);
    let mut counters = VmstatCounters::new(&rows, unit, page, &mut block);
    for row in &rows.rows {
        let Some((when, after)) = series.next(row.time) else {
            // The clock did not advance: the rest is of another run.
            block.lines = row.at;
            break;
        };
        let mut snapshot = levels(&rows, row, unit);
        snapshot.when = when;
        if rows.rows.len() > 1 {
            counters.add(&rows, row, after, &mut snapshot, input.facts);
        }
        input.add(snapshot);
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

fn levels(rows: &VmstatRows<'_>, row: &VmstatRow, unit: SizeUnit) -> Snapshot {
    let mut snapshot = Snapshot::default();
    for (column, signal) in LEVELS {
        let Some(size) = rows.figure(row, column) else {
            continue;
        };
        snapshot.set_size(signal.id(), PrintedFigure::whole(size), unit.bytes);
        if signal.id() == MEM_CACHED.id() {
            snapshot.set_error(signal.id(), SLAB_IN_CACHE);
        }
    }
    for (column, signal) in [("r", TASKS_RUNNING), ("b", TASKS_BLOCKED)] {
        if let Some(tasks) = rows.figure(row, column).and_then(raw) {
            snapshot.sample.host.set(signal, Count::new(tasks));
        }
    }
    snapshot
}

/// Sums rates up to counters.
struct VmstatCounters {
    /// Column, counter, and factor to the unit of the counter.
    columns: [(&'static str, SignalId, f64); 9],
    totals: RateTotals,
    /// Whether `si` and `so` are used: in a large unit, small rates print as 0.
    swap_is_shown: bool,
}

impl VmstatCounters {
    fn new(rows: &VmstatRows<'_>, unit: SizeUnit, page: PageSize, block: &mut TextBlock) -> Self {
        let SizeUnit { name, bytes: unit } = unit;
        let has_swapped = |row: &VmstatRow| {
            let moved = |column| rows.figure(row, column).is_some_and(|n| n > 0.0);
            moved("si") || moved("so")
        };
        // In MiB/s, 0 may be 255 pages/s.
        let swap_is_shown = unit <= KIB || rows.rows.iter().skip(1).any(has_swapped);
        if !swap_is_shown && rows.rows.len() > 1 {
            block.problem(format!("si and so in {name} do not show small rates: not used"));
        }
        let swapped = if rows.is_pmrep { page.bytes().as_f64() } else { unit };
        let columns = [
            ("si", PSWPIN.id(), swapped),
            ("so", PSWPOUT.id(), swapped),
            ("bi", PGPGIN.id(), KIB),
            ("bo", PGPGOUT.id(), KIB),
            ("us", CPU_USER.id(), TICKS_PER_PERCENT),
            ("sy", CPU_SYSTEM.id(), TICKS_PER_PERCENT),
            ("id", CPU_IDLE.id(), TICKS_PER_PERCENT),
            ("wa", CPU_IOWAIT.id(), TICKS_PER_PERCENT),
            ("st", CPU_STEAL.id(), TICKS_PER_PERCENT),
        ];
        Self { columns, totals: RateTotals::default(), swap_is_shown }
    }

    /// Adds the rates of a row over the time `after` the one before; zero for the first row.
    fn add(
        &mut self,
        rows: &VmstatRows<'_>,
        row: &VmstatRow,
        after: Span,
        snapshot: &mut Snapshot,
        facts: &mut Facts,
    ) {
        let cpus = f64::from(facts.cpus.unwrap_or(1));
        for (column, signal, factor) in self.columns {
            let Some(rate) = rows.figure(row, column) else {
                continue;
            };
            let total = self.totals.add(signal, rate * factor, after);
            let value = match (column, signal.def().unit) {
                ("si" | "so", _) if !self.swap_is_shown => None,
                (_, "pages") => figure::pages(total, facts).map(|pages| pages.as_f64()),
                (_, "ticks") => Some(total * cpus),
                _ => Some(total),
            };
            if let Some(raw) = value.and_then(raw) {
                snapshot.sample.host.set_raw(signal, raw);
            }
        }
    }
}

/// Tables of disks and partitions, which are not used.
fn skipped(lines: &[&str]) -> Option<TextBlock> {
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
    Some(TextBlock { what: format!("{what}: not used"), lines, ..TextBlock::default() })
}

#[cfg(test)]
mod tests;
