//! `dstat` with memory (`-m`), and its swap (`-s`) and paging (`-g`): groups of columns between bars, a row for each
//! interval.
//!
//! Sizes are rounded to three digits. What is used leaves out reclaimable slab, so that the columns add up to less than
//! MemTotal by it. The rates of the first row are averages since boot.

use timeline::Facts;
use timeline::signals::{
    MEM_BUFFERS, MEM_CACHED, MEM_FREE, MEM_TOTAL, PSWPIN, PSWPOUT, SWAP_FREE, SWAP_TOTAL,
};
use units::Span;

use super::Form;
use super::rate_totals::RateTotals;
use crate::block::{BlockReader, TextBlock};
use crate::builder::Snapshot;
use crate::text::figure::{self, PrintedFigure};
use crate::text::line_scan::BlockStart;
use crate::text::prompt;
use crate::text::times::{PrintedTime, SampleTimes};

pub(super) const FORM: Form =
    Form { name: "dstat", begins: BlockStart::with(&["memory-usage"]), read };

/// What the columns may miss of MemTotal: a twentieth, reclaimable slab beside a cache of usual size.
const UNCOUNTED_SHARE: f64 = 0.05;

/// Which group has which columns. Groups that are not known are passed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Group {
    Time,
    Memory,
    Swap,
    Paging,
    Other,
}

impl Group {
    fn named(name: &str) -> Self {
        match name.trim_matches(['-', ' ']) {
            "memory-usage" => Self::Memory,
            "swap" => Self::Swap,
            "paging" => Self::Paging,
            "system" => Self::Time,
            _ => Self::Other,
        }
    }
}

/// Reads the rows below the names of the groups and of the columns.
fn read(input: &mut BlockReader<'_>) -> Option<TextBlock> {
    let (groups, names) = (input.lines.first()?.trim(), input.lines.get(1)?);
    let groups = groups_of(groups, names)?;
    let command = input.command.unwrap_or_default();
    let mut times = SampleTimes::new(Some(interval(command)));
    let mut paged = RateTotals::default();
    let mut lines = 2;
    for (at, line) in input.lines.iter().enumerate().skip(2) {
        if input.builder.is_past_counting() {
            break;
        }
        // It repeats its heading.
        if line.contains("memory-usage") || line.contains("used  free") {
            continue;
        }
        let Some(cells) = cells(line, groups.len()) else {
            break;
        };
        let cell = |group: Group| {
            let at = groups.iter().position(|found| *found == group)?;
            cells.get(at).copied()
        };
        let Some((when, between)) = times.next(cell(Group::Time).and_then(time)) else {
            break;
        };
        let Some(mut snapshot) = cell(Group::Memory).and_then(memory) else {
            break;
        };
        snapshot.when = when;
        if let Some(swap) = cell(Group::Swap) {
            swap_areas(swap, &mut snapshot);
        }
        if let Some(rates) = cell(Group::Paging).and_then(figures::<2>) {
            paging(rates, between, &mut paged, &mut snapshot, input.facts);
        }
        input.add(snapshot);
        lines = at + 1;
    }
    (lines > 2).then(|| TextBlock {
        what: "dstat".to_owned(),
        lines,
        unit: "as printed",
        ..TextBlock::default()
    })
}

/// The groups between bars, by the line of their names; the line below has as many.
fn groups_of(groups: &str, names: &str) -> Option<Vec<Group>> {
    let mut found = Vec::new();
    // Names are padded with dashes to the width of their columns, with a blank between two groups.
    for name in groups.split(' ').filter(|name| !name.is_empty()) {
        found.push(Group::named(name));
    }
    let columns: Vec<Vec<&str>> =
        names.split('|').map(|cell| cell.split_whitespace().collect()).collect();
    for (group, columns) in found.iter_mut().zip(&columns) {
        match (*group, columns.as_slice()) {
            (Group::Memory, ["used", "free", "buff" | "buf", "cach"]) => {}
            (Group::Memory, _) => return None,
            // PCP's dstat calls the group of swap total.
            (Group::Other, ["used", "free"]) => *group = Group::Swap,
            _ => {}
        }
    }
    (found.contains(&Group::Memory) && columns.len() == found.len()).then_some(found)
}

/// The groups of a row.
fn cells(line: &str, groups: usize) -> Option<Vec<&str>> {
    let cells: Vec<&str> = line.trim_end_matches(['>', ' ']).split('|').collect();
    (cells.len() == groups).then_some(cells)
}

/// The figures of a group.
fn figures<const N: usize>(cell: &str) -> Option<[PrintedFigure; N]> {
    let figures: Vec<PrintedFigure> =
        cell.split_whitespace().map(PrintedFigure::binary).collect::<Option<_>>()?;
    figures.try_into().ok()
}

fn memory(cell: &str) -> Option<Snapshot> {
    let [used, free, buffers, cached] = figures(cell)?;
    let mut snapshot = Snapshot::default();
    for (signal, figure) in [(MEM_FREE, free), (MEM_BUFFERS, buffers), (MEM_CACHED, cached)] {
        snapshot.set_size(signal.id(), figure, 1.0);
    }
    let sum: f64 = [used, free, buffers, cached].iter().map(|f| f.value).sum();
    let total = PrintedFigure { value: sum, error: sum * UNCOUNTED_SHARE, has_unit: true };
    snapshot.set_size(MEM_TOTAL.id(), total, 1.0);
    Some(snapshot)
}

fn swap_areas(cell: &str, snapshot: &mut Snapshot) {
    let Some([used, free]) = figures(cell) else {
        return;
    };
    let total = PrintedFigure {
        value: used.value + free.value,
        error: used.doubt() + free.doubt(),
        has_unit: true,
    };
    snapshot.set_size(SWAP_FREE.id(), free, 1.0);
    snapshot.set_size(SWAP_TOTAL.id(), total, 1.0);
}

/// Adds the rates of a row, in bytes, to what was paged.
fn paging(
    rates: [PrintedFigure; 2],
    between: Span,
    paged: &mut RateTotals,
    snapshot: &mut Snapshot,
    facts: &mut Facts,
) {
    for (signal, rate) in [PSWPIN, PSWPOUT].into_iter().zip(rates) {
        let bytes = paged.add(signal.id(), rate.value, between);
        if let Some(pages) = figure::pages(bytes, facts) {
            snapshot.sample.host.set(signal, pages);
        }
    }
}

/// `27-11 02:47:04`: the time of day; the order of day and month depends on the locale.
fn time(cell: &str) -> Option<PrintedTime> {
    let (time, _) = PrintedTime::leading(cell.split_whitespace().last()?)?;
    Some(time)
}

/// The seconds of its first argument without a dash; without it, one.
fn interval(command: &str) -> Span {
    let arguments = prompt::arguments(command, "dstat").unwrap_or_default();
    prompt::whole_seconds(arguments.iter().copied().find(|word| word.parse::<u64>().is_ok()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{paste, survives};
    use units::{Bytes, Pages};

    const TEXT: &str = "\
$ dstat -tcmsg 5 3
----system---- --total-cpu-usage-- ------memory-usage----- ----swap--- ---paging--
     time     |usr sys idl wai stl| used  free  buff  cach| used  free|  in   out 
27-11 02:47:04| 67   3  29   1   0|7180M  120M 12.5M  310M| 512M 1536M|  40k   90k
27-11 02:47:09|  0   0 100   0   0|7190M  110M 12.5M  310M| 513M 1535M|   0     0 
27-11 02:47:14|  0   0 100   0   0|7200M  100M 12.5M  310M| 514M 1534M| 400k  800k
";

    #[test]
    fn groups_of_memory_are_read_beside_others() {
        let timeline = paste(TEXT).timeline;
        assert_eq!((timeline.len(), timeline.duration()), (3, Span::from_secs(10)));
        assert_eq!(timeline.last(MEM_FREE), Some(Bytes::from_mib(100)));
        assert_eq!(timeline.last(SWAP_TOTAL), Some(Bytes::from_mib(2048)));
        assert!(timeline.rounded_signals().any(|id| id == MEM_TOTAL.id()));
        // 400 kB a second over 5 s.
        assert_eq!(timeline.last(PSWPIN), Some(Pages::new(500)));
        survives(TEXT);
    }

    #[test]
    fn rows_without_times_follow_the_interval_of_the_command() {
        let text = "$ dstat -m 2\n------memory-usage-----\n used  free  buff  cach\n 198M 18.2G 34.1M 4707M\n 198M 18.2G 34.1M 4707M\n";
        let timeline = paste(text).timeline;
        assert_eq!((timeline.len(), timeline.duration()), (2, Span::from_secs(2)));
        survives(text);
    }
}
