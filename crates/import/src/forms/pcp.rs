//! Performance Co-Pilot: what `pmrep`, `pmval` and `pminfo -f` print of memory. CSV of pmrep is a [`table`](super::table).
//!
//! pmrep shortens the names of metrics (`m.u.free`), prints units in a line of their own, and rates of counters; a time
//! stands before the rows only if it was asked for. Columns end where their heading ends.

use std::collections::HashMap;
use std::sync::LazyLock;

use timeline::signals::{self, MEM_TOTAL, SWAP_FREE, SWAP_TOTAL, SWAP_USED};
use timeline::{Entity, SignalId};
use units::{PageSize, Span};

use super::Form;
use super::rate_totals::RateTotals;
use crate::block::{BlockReader, TextBlock};
use crate::builder::Snapshot;
use crate::text::figure::{GIB, KIB, MIB, PrintedFigure, TIB, raw};
use crate::text::line_scan::BlockStart;
use crate::text::prompt;
use crate::text::times::{PrintedTime, SampleTimes};

pub(super) const FORM: Form = Form {
    name: "PCP",
    begins: BlockStart::with(&[
        "m.u.",
        "m.v.",
        "m.physmem",
        "s.free",
        "s.used",
        "s.length",
        "mem.",
        "swap.",
    ]),
    read,
};

/// The line of units is the second or, below names of instances, the third.
const HEADING_LINES_MAX: usize = 3;
/// No host that runs PCP has less RAM: sizes are in another unit.
const RAM_MIN: f64 = 32.0 * MIB;
/// `pmval` prints so many lines before its rows.
const PMVAL_HEAD_MAX: usize = 10;

fn read(input: &mut BlockReader<'_>) -> Option<TextBlock> {
    pmrep(input).or_else(|| pmval(input)).or_else(|| pminfo(input))
}

/// A metric of memory, and how a figure of it becomes a reading.
#[derive(Debug, Clone, Copy)]
struct PcpMetric {
    signal: SignalId,
    /// Whether it only rises: pmrep and pmval print its rate.
    is_counter: bool,
    /// The unit in the catalogue of PCP, in bytes; events have none.
    unit: f64,
}

/// The metrics by their names, whole and as pmrep shortens them.
static METRICS: LazyLock<HashMap<String, PcpMetric>> = LazyLock::new(|| {
    let mut metrics = HashMap::new();
    let mut add = |name: &str, signal, is_counter, unit| {
        let metric = PcpMetric { signal, is_counter, unit };
        metrics.insert(shortened(name), metric);
        metrics.insert(name.to_owned(), metric);
    };
    for def in signals::ALL.iter().filter(|def| def.entity == Entity::Host) {
        let Some(signal) = def.id() else {
            continue;
        };
        let is_size = def.pcp.starts_with("mem.util.") || def.pcp == "mem.physmem";
        if def.pcp.starts_with("mem.vmstat.") && def.is_counter {
            add(def.pcp, signal, true, 1.0);
        } else if is_size && def.unit == "bytes" {
            add(def.pcp, signal, false, KIB);
        }
    }
    add("swap.length", SWAP_TOTAL.id(), false, 1.0);
    add("swap.free", SWAP_FREE.id(), false, 1.0);
    add("swap.used", SWAP_USED.id(), false, 1.0);
    metrics
});

/// `mem.util.free` as `m.u.free`.
fn shortened(name: &str) -> String {
    let mut parts: Vec<&str> = name.split('.').collect();
    let last = parts.pop().unwrap_or_default();
    let firsts = parts.iter().filter_map(|part| part.get(..1));
    firsts.chain([last]).collect::<Vec<_>>().join(".")
}

/// The size of a printed unit in bytes; a rate of events has 1.
fn unit_in(printed: &str, is_counter: bool) -> Option<f64> {
    Some(match printed {
        "count/s" | "count / sec" if is_counter => 1.0,
        _ if is_counter => return None,
        "byte" | "B" => 1.0,
        "Kbyte" | "KB" => KIB,
        "Mbyte" | "MB" => MIB,
        "Gbyte" | "GB" => GIB,
        "Tbyte" | "TB" => TIB,
        _ => return None,
    })
}

/// A column of pmrep: the metric with the unit in which it is printed, and where its cells are.
struct PmrepColumn {
    metric: PcpMetric,
    place: CellPlace,
}

impl PmrepColumn {
    /// Its cell in a row.
    fn cell<'l>(&self, line: &'l str) -> Option<&'l str> {
        match self.place {
            CellPlace::EndsAt(end) => words(line).find(|(_, at)| *at == end).map(|(word, _)| word),
            CellPlace::Nth(n) => line.split(',').nth(n),
        }
    }
}

/// Where a row has a cell.
enum CellPlace {
    /// It ends at this byte.
    EndsAt(usize),
    /// Behind so many commas.
    Nth(usize),
}

/// Words with the places where they end.
fn words(line: &str) -> impl Iterator<Item = (&str, usize)> {
    let start = line.as_ptr() as usize;
    line.split_ascii_whitespace()
        .map(move |word| (word, (word.as_ptr() as usize).saturating_sub(start) + word.len()))
}

/// The heading of pmrep: the columns that are known, and the lines of the heading.
fn heading(lines: &[&str]) -> Option<(Vec<PmrepColumn>, usize)> {
    let (names, below) = lines.split_first()?;
    let is_heading = names.split_ascii_whitespace().all(|name| name.contains('.'));
    let known: Vec<(PcpMetric, usize)> =
        words(names).filter_map(|(name, end)| Some((*METRICS.get(name)?, end))).collect();
    if !is_heading || known.is_empty() {
        return None;
    }
    let has_unit = |line: &&str| words(line).any(|(word, _)| unit_in(word, false).is_some());
    let at = below.iter().take(HEADING_LINES_MAX - 1).position(has_unit)?;
    let columns = known.into_iter().filter_map(|(metric, end)| {
        let (printed, _) = words(below[at]).find(|(_, of)| *of == end)?;
        let unit = unit_in(printed, metric.is_counter)?;
        let metric = PcpMetric { unit, ..metric };
        Some(PmrepColumn { metric, place: CellPlace::EndsAt(end) })
    });
    Some((columns.collect(), at + 2))
}

/// The heading of `pmrep -o csv`, which has whole names and no units: they are those of the catalogue, or that of `-b`.
fn csv_heading(lines: &[&str], command: &str) -> Option<(Vec<PmrepColumn>, usize)> {
    let names = lines.first()?.trim_start().strip_prefix("Time,")?;
    let arguments = prompt::arguments(command, "pmrep").unwrap_or_default();
    let scale = prompt::option_value(&arguments, "-b");
    let columns = names.split(',').enumerate().filter_map(|(n, name)| {
        let metric = *METRICS.get(name.trim_matches('"'))?;
        // The first row has no rate; with `-r` it has a total.
        let first = lines.get(1)?.split(',').nth(n + 1)?;
        if metric.is_counter && !first.is_empty() {
            return None;
        }
        let unit = match scale.filter(|_| !metric.is_counter) {
            Some(scale) => unit_in(scale, false)?,
            None => metric.unit,
        };
        Some(PmrepColumn { metric: PcpMetric { unit, ..metric }, place: CellPlace::Nth(n + 1) })
    });
    let columns: Vec<PmrepColumn> = columns.collect();
    // The option may not have been pasted.
    let is_small = |column: &PmrepColumn| {
        let total = lines.iter().skip(1).find_map(|line| PrintedFigure::binary(column.cell(line)?));
        column.metric.signal == MEM_TOTAL.id()
            && total.is_none_or(|total| total.value * column.metric.unit < RAM_MIN)
    };
    (!columns.is_empty() && !columns.iter().any(is_small)).then_some((columns, 1))
}

/// Readings of metrics; rates are added up.
#[derive(Default)]
struct PcpReadings {
    totals: RateTotals,
}

impl PcpReadings {
    fn set(
        &mut self,
        metric: PcpMetric,
        figure: PrintedFigure,
        between: Span,
        snapshot: &mut Snapshot,
    ) {
        if !metric.is_counter {
            snapshot.set_size(metric.signal, figure, metric.unit);
            return;
        }
        let total = self.totals.add(metric.signal, figure.value, between);
        if let Some(total) = raw(total) {
            snapshot.sample.host.set_raw(metric.signal, total);
        }
    }
}

/// Counters of `/proc/vmstat` count pages; the usual ones, if nothing says their size.
fn note_page_size(metric: PcpMetric, input: &mut BlockReader<'_>) {
    if metric.is_counter {
        input.facts.page_size.get_or_insert(PageSize::USUAL);
    }
}

/// The rate of a counter in the first row, which begins the time of the rate in the next.
fn without_rate(metric: PcpMetric, rows_before: usize) -> Option<PrintedFigure> {
    (metric.is_counter && rows_before == 0).then(|| PrintedFigure::whole(0.0))
}

/// Rows below a heading of shortened names.
fn pmrep(input: &mut BlockReader<'_>) -> Option<TextBlock> {
    let command = input.command.unwrap_or_default();
    let (columns, first) = heading(input.lines).or_else(|| csv_heading(input.lines, command))?;
    for column in &columns {
        note_page_size(column.metric, input);
    }
    let mut times = SampleTimes::new(Some(interval(command)));
    let mut readings = PcpReadings::default();
    let mut lines = first;
    for (at, line) in input.lines.iter().enumerate().skip(first) {
        if input.builder.is_past_counting() {
            break;
        }
        // It repeats its heading.
        if line.contains("m.u.") || heading(&[line, input.lines[first - 1]]).is_some() {
            continue;
        }
        let time = PrintedTime::leading(line).map(|(time, _)| time);
        let cells = columns.iter().map(|column| column.cell(line));
        let Some(cells) = cells.collect::<Option<Vec<_>>>() else {
            break;
        };
        let Some((when, between)) = times.next(time) else {
            break;
        };
        let mut snapshot = Snapshot { when, ..Snapshot::default() };
        for (column, cell) in columns.iter().zip(cells) {
            let figure = match PrintedFigure::binary(cell) {
                None if matches!(cell, "N/A" | "") => without_rate(column.metric, input.added),
                figure => figure,
            };
            if let Some(figure) = figure {
                readings.set(column.metric, figure, between, &mut snapshot);
            }
        }
        if snapshot.has_readings() {
            input.add(snapshot);
        }
        lines = at + 1;
    }
    (lines > first && input.added > 0).then(|| block("pmrep", lines))
}

fn block(tool: &str, lines: usize) -> TextBlock {
    TextBlock { what: format!("{tool} of PCP"), lines, unit: "as printed", ..TextBlock::default() }
}

/// The interval of the option `-t`; without it, a second.
pub(super) fn interval(command: &str) -> Span {
    let arguments = prompt::arguments(command, "pmrep").unwrap_or_default();
    let seconds = prompt::option_value(&arguments, "-t");
    prompt::whole_seconds(seconds.map(|seconds| seconds.trim_end_matches(['s', 'e', 'c'])))
}

/// `metric:    mem.util.free`, its unit and interval, and a figure in each row.
fn pmval(input: &mut BlockReader<'_>) -> Option<TextBlock> {
    let head = &input.lines[..input.lines.len().min(PMVAL_HEAD_MAX)];
    let field = |name: &str| {
        let found = head.iter().find_map(|line| line.strip_prefix(name));
        found.map(str::trim)
    };
    head.first()?.strip_prefix("metric:")?;
    let metric = *METRICS.get(field("metric:")?)?;
    let units = field("units:")?;
    let rate = units.split_once("(converting to ").map(|(_, rate)| rate.trim_end_matches(')'));
    let unit = unit_in(rate.unwrap_or(units), metric.is_counter)?;
    let metric = PcpMetric { unit, ..metric };
    note_page_size(metric, input);
    let first = 1 + head.iter().position(|line| line.starts_with("interval:"))?;
    let every = field("interval:")?.split_once(" sec")?.0;
    let mut times = SampleTimes::new(prompt::interval(every.trim()));
    let mut readings = PcpReadings::default();
    let mut lines = first;
    for (at, line) in input.lines.iter().enumerate().skip(first) {
        if input.builder.is_past_counting() {
            break;
        }
        let (time, rest) = match PrintedTime::leading(line) {
            Some((time, rest)) => (Some(time), rest),
            None => (None, *line),
        };
        let figure = PrintedFigure::binary(rest.trim());
        if figure.is_none() && !rest.contains("No values available") {
            break;
        }
        let Some((when, between)) = times.next(time) else {
            break;
        };
        if let Some(figure) = figure.or_else(|| without_rate(metric, input.added)) {
            let mut snapshot = Snapshot { when, ..Snapshot::default() };
            readings.set(metric, figure, between, &mut snapshot);
            input.add(snapshot);
        }
        lines = at + 1;
    }
    (lines > first && input.added > 0).then(|| block("pmval", lines))
}

/// `mem.util.free` and `    value 13114768` below it, one metric after the other, all of one time.
fn pminfo(input: &mut BlockReader<'_>) -> Option<TextBlock> {
    let first = input.lines.first()?.trim();
    if !["mem.", "swap."].iter().any(|start| first.starts_with(start)) {
        return None;
    }
    let mut snapshot = Snapshot::default();
    let (mut lines, mut name) = (0, None);
    for (at, line) in input.lines.iter().enumerate() {
        let text = line.trim();
        if let Some(value) = text.strip_prefix("value ") {
            let metric = name.take().and_then(|name: &str| METRICS.get(name));
            if let (Some(metric), Some(figure)) = (metric, PrintedFigure::binary(value)) {
                note_page_size(*metric, input);
                match raw(figure.value).filter(|_| metric.is_counter) {
                    Some(total) => snapshot.sample.host.set_raw(metric.signal, total),
                    None => snapshot.set_size(metric.signal, figure, metric.unit),
                }
            }
            lines = at + 1;
        } else if text.contains('.') && !text.contains(' ') {
            name = Some(text);
        } else if !text.is_empty()
            && !text.starts_with("No value")
            && !text.starts_with("Error: ")
            && !text.starts_with("inst [")
        {
            break;
        }
    }
    if !snapshot.has_readings() {
        return None;
    }
    input.add(snapshot);
    Some(block("pminfo", lines))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{paste, survives};
    use timeline::signals::{MEM_AVAILABLE, MEM_FREE, PSWPIN};
    use units::{Bytes, Pages};

    const PMREP: &str = "          m.u.free  m.v.pswpin  m.physmem  k.a.load  k.a.load
                                           1 minute  5 minute
             Kbyte     count/s      Kbyte                    
23:58:05  13359292         N/A   24684084     0.000     0.000
23:58:07  13550900      10.000   24684084     0.000     0.000
23:58:09  13501568      20.000   24684084     0.000     0.000
";

    #[test]
    fn pmrep_has_columns_by_their_ends() {
        let opened = paste(PMREP);
        let timeline = &opened.timeline;
        assert_eq!((timeline.len(), timeline.duration()), (3, Span::from_secs(4)));
        assert_eq!(timeline.last(MEM_FREE), Some(Bytes::from_kib(13_501_568)));
        assert_eq!(timeline.last(MEM_TOTAL), Some(Bytes::from_kib(24_684_084)));
        assert_eq!(timeline.last(PSWPIN), Some(Pages::new(60)));
        let rates = timeline.rate(PSWPIN).unwrap();
        let rates: Vec<f64> = rates.values().iter().flatten().copied().collect();
        assert_eq!(rates, [10.0, 20.0]);
        // Without it no rule about swapping is evaluated.
        assert!(opened.facts.page_size.is_some());
        survives(PMREP);
    }

    #[test]
    fn a_unit_that_was_asked_for_counts() {
        let text =
            "$ pmrep -t 5 -b MB mem.util.free\n  m.u.free\n        MB\n  13160.47\n  13114.55\n";
        let timeline = paste(text).timeline;
        assert_eq!(timeline.duration(), Span::from_secs(5));
        let free = timeline.last(MEM_FREE).map(|free| free.get() >> 20);
        assert_eq!(free, Some(13_114));
        // Without units nothing is known.
        assert!(paste("  m.u.free\n  13160\n").timeline.is_empty());
    }

    #[test]
    fn pmval_and_pminfo_name_their_metric() {
        let text = "\nmetric:    mem.util.available\nhost:      vm\nsemantics: instantaneous value\nunits:     Kbyte\nsamples:   3\ninterval:  2.00 sec\n23:58:26.022  No values available\n23:58:28.022             12869264\n23:58:30.022             12858356\n";
        let timeline = paste(text).timeline;
        assert_eq!(timeline.duration(), Span::from_secs(2));
        let available = timeline.last(MEM_AVAILABLE);
        assert_eq!(available, Some(Bytes::from_kib(12_858_356)));
        survives(text);
        let text = "\nmem.util.free\n    value 13114768\n\nmem.util.shared\nNo value(s) available!\n\nmem.vmstat.pswpin\n    value 7\n\nmem.physmem\n    value 24684084\n";
        let timeline = paste(text).timeline;
        assert_eq!(timeline.last(MEM_FREE), Some(Bytes::from_kib(13_114_768)));
        assert_eq!(timeline.last(PSWPIN), Some(Pages::new(7)));
        assert_eq!(timeline.last(MEM_TOTAL), Some(Bytes::from_kib(24_684_084)));
        survives(text);
    }

    /// PCP 6.3.8. In a table of other names SwapFree is in KiB; of PCP it is in bytes.
    #[test]
    fn csv_of_pmrep_has_bytes_of_swap_and_rates() {
        let text = "\
Time,\"mem.physmem\",\"mem.util.free\",\"mem.util.available\",\"swap.free\",\"mem.vmstat.pswpin\",\"mem.vmstat.pswpout\"
2026-11-29 21:11:07,662188,117080,101016,629141504,,
2026-11-29 21:11:08,662188,117080,101036,629141504,0.000,0.000
2026-11-29 21:11:09,662188,117080,101036,629141504,0.000,0.000
";
        let opened = paste(text);
        let timeline = &opened.timeline;
        assert_eq!(opened.origin.inputs[0].what, "pmrep of PCP");
        assert_eq!(timeline.last(MEM_TOTAL), Some(Bytes::from_kib(662_188)));
        assert_eq!(timeline.last(SWAP_FREE), Some(Bytes::new(629_141_504)));
        let swaps = text.replace(",0.000,", ",512.000,");
        assert_eq!(paste(&swaps).timeline.last(PSWPIN), Some(Pages::new(1_024)));
        survives(text);
        // Quoted by blanks.
        let indented: String = text.lines().map(|line| format!("    {line}\n")).collect();
        let timeline = paste(&indented).timeline;
        assert_eq!(timeline.last(SWAP_FREE), Some(Bytes::new(629_141_504)));
        assert_eq!(timeline.last(MEM_TOTAL), Some(Bytes::from_kib(662_188)));
        // Written with -r: no rates.
        let raw = text.replace(",,\n", ",60266,80714\n");
        assert_eq!(paste(&raw).timeline.last(PSWPIN), None);
        // Written with -b MB: nothing says so.
        let mib = text.replace("662188", "646.67");
        assert_ne!(paste(&mib).origin.inputs[0].what, "pmrep of PCP");
    }

    /// The head of pmval 6.3.8 for a counter.
    #[test]
    fn pmval_converts_counters_to_rates() {
        let text = "\
metric:    mem.vmstat.pswpin
host:      vm
semantics: cumulative counter (converting to rate)
units:     count (converting to count / sec)
samples:   4
interval:  1.00 sec
               0.0
               7.0
              10.0
";
        let timeline = paste(text).timeline;
        assert_eq!(timeline.last(PSWPIN), Some(Pages::new(17)));
        survives(text);
    }
}
