//! Tables with a header of known names, as scripts log them: CSV, columns, Markdown.
//!
//! The unit of a size is in its head (`free_MB`) or in the heading above (`series (MiB)`); names of kernel fields are
//! KiB. A column without a unit is not used, and a problem reports it. The same applies to percentages under the name
//! of a size, and to figures that are ambiguous by a factor of a thousand (`1,925`). Rows with times are one timeline,
//! rows without are unrelated samples. Rates and shares of stall time become totals by the time between rows.

use timeline::signals::{MEM_TOTAL, PROC_RSS};
use timeline::{Entity, SignalId};

use super::ram_unit::{self, TotalUnit};
use super::size_unit::SizeUnit;
use super::{Form, row_order};
use crate::block::{BlockReader, TextBlock};
use crate::builder::{Snapshot, SnapshotTime, TimelineBuilder};
use crate::plausible::{drop_impossible, note_new};
use crate::text::figure::{self, KIB, PrintedFigure, raw};
use crate::text::line_scan::BlockStart;
use decimal_mark::{DecimalMark, MarksSeen};
use header::TableHeader;
use names::{ColumnMeaning, PressureKind, TableColumn};
use row_time::RowTime;

mod decimal_mark;
mod header;
mod names;
mod row_time;

pub(super) const FORM: Form = Form { name: "table", begins: BlockStart::with(&names::STEMS), read };

/// At most 3 lines between the header and the first row.
const BEFORE_A_ROW_MAX: usize = 3;

fn read(input: &mut BlockReader<'_>) -> Option<TextBlock> {
    // This runs for every line of a text: the next lines decide quickly.
    let mut next = input.lines.iter().skip(1).take(BEFORE_A_ROW_MAX);
    if !next.any(|line| may_be_row(line)) {
        return None;
    }
    let heading = input.command.unwrap_or_default();
    let unit = SizeUnit::in_heading(heading);
    let header = TableHeader::from_line(input.lines.first()?, unit.is_some())?;
    let mut block =
        TextBlock { what: "a table of memory figures".to_owned(), ..TextBlock::default() };
    let mut rows = rows(&header, input.lines, &mut block);
    if rows.is_empty() {
        return None;
    }
    if !header.has_keys() {
        for problem in row_order::sort(&mut rows, |a, b| row_time::compare(a.time, b.time)) {
            block.problem(problem);
        }
    }
    let interval = row_time::interval_in(heading).filter(|_| header.clock.is_none());
    let mut table = TableReader {
        columns: columns(&header, &rows, unit, &mut block),
        sums: vec![0.0; header.columns.len()],
        rows,
    };
    table.drop_rates_without_times(&header, interval, &mut block);
    table.emit(&header, interval, input, &mut block);
    Some(block)
}

/// Whether a line begins or ends with a digit, also in Markdown.
fn may_be_row(line: &str) -> bool {
    let is_digit = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit());
    let line = line.trim_matches([' ', '"', '\'', '|']);
    is_digit(line.chars().next()) || is_digit(line.chars().next_back())
}

/// A row: its time, and its cells with figures by column.
struct TableRow<'l> {
    time: Option<RowTime>,
    cells: Vec<Option<&'l str>>,
}

/// Reads rows up to the end of the table.
fn rows<'l>(header: &TableHeader, lines: &[&'l str], block: &mut TextBlock) -> Vec<TableRow<'l>> {
    let mut rows = Vec::new();
    let mut bad = 0;
    block.lines = 1;
    for (at, line) in lines.iter().enumerate().skip(1) {
        if line.is_empty() || crate::text::prompt::command(line).is_some() {
            break;
        }
        if header.is_repeated(line) {
            continue;
        }
        match row(header, line) {
            Some(row) => {
                if rows.len() < TimelineBuilder::TAKEN_MAX {
                    rows.push(row);
                }
                block.not_understood += bad;
                bad = 0;
                block.lines = at + 1;
            }
            // It may be text after the table.
            None => bad += 1,
        }
        if bad > if rows.is_empty() { BEFORE_A_ROW_MAX } else { 2 } {
            break;
        }
    }
    rows
}

fn row<'l>(header: &TableHeader, line: &'l str) -> Option<TableRow<'l>> {
    let (time, cells) = header.cells(line)?;
    let time = time.and_then(|time| header.clock?.read(&time));
    if header.clock.is_some() && time.is_none() {
        return None;
    }
    let mut figures = Vec::with_capacity(cells.len());
    for (column, cell) in header.columns.iter().zip(cells) {
        let is_missing = matches!(cell, "" | "-" | "NA" | "N/A" | "NaN" | "nan" | "null" | "None");
        if !column.is_known() || is_missing {
            figures.push(None);
            continue;
        }
        if !decimal_mark::is_figure(cell) {
            return None;
        }
        figures.push(Some(cell));
    }
    let has_any = figures.iter().any(Option::is_some);
    has_any.then_some(TableRow { time, cells: figures })
}

/// How a column is used.
#[derive(Debug, Clone, Copy, PartialEq)]
enum ColumnUse {
    /// In units of this many bytes.
    Size(SignalId, f64),
    Resident(f64),
    Plain(SignalId),
    /// In the unit of the catalogue.
    Reading(SignalId),
    Rate(SignalId),
    /// Percent over this many seconds.
    Share(SignalId, f64),
    Unused,
}

impl ColumnUse {
    const fn needs_times(self) -> bool {
        matches!(self, Self::Rate(_) | Self::Share(..))
    }
}

/// The figures of a column.
fn cells<'r>(rows: &'r [TableRow<'_>], column: usize) -> impl Iterator<Item = &'r str> + Clone {
    rows.iter().filter_map(move |row| row.cells.get(column).copied().flatten())
}

/// Returns how the columns are used, and their decimal marks. Notes a problem for each column that is not used.
fn columns(
    header: &TableHeader,
    rows: &[TableRow<'_>],
    unit: Option<SizeUnit>,
    block: &mut TextBlock,
) -> Vec<(ColumnUse, DecimalMark)> {
    let marks: Vec<MarksSeen> =
        (0..header.columns.len()).map(|i| MarksSeen::in_cells(cells(rows, i))).collect();
    let all = marks.iter().fold(MarksSeen::default(), |all, marks| all.and(*marks));
    let mut columns = Vec::with_capacity(header.columns.len());
    for (i, (column, marks)) in header.columns.iter().zip(marks).enumerate() {
        let size = size_for_marks(column, rows, i, unit);
        let decimals = marks.decimals(all, header.separator, size);
        let used = match decimals {
            Some(mark) => used(header, column, cells(rows, i), mark, unit),
            None => Err("a mark in it may be a decimal point or a thousands separator"),
        };
        match used {
            Ok(ColumnUse::Size(_, bytes)) if block.unit.is_empty() => {
                block.unit = unit_name(bytes);
            }
            Ok(_) => {}
            Err(why) => {
                let name: String = column.name.chars().take(40).collect();
                block.problem(format!("column `{name}`: {why}; not used"));
            }
        }
        let mark = decimals.unwrap_or(DecimalMark::Point);
        columns.push((used.unwrap_or(ColumnUse::Unused), mark));
    }
    check_unit_of_total(header, rows, unit, &mut columns, block);
    columns
}

/// Returns how many bytes a figure of 1 stands for, if that helps to find the decimal mark.
fn size_for_marks(
    column: &TableColumn,
    rows: &[TableRow<'_>],
    index: usize,
    unit: Option<SizeUnit>,
) -> Option<f64> {
    match column.meaning {
        // Counts are whole, as bytes are; shares are below 100.
        ColumnMeaning::Plain(_)
        | ColumnMeaning::Reading(_)
        | ColumnMeaning::Pressure(_, PressureKind::Total) => {
            return Some(1.0);
        }
        ColumnMeaning::Pressure(_, PressureKind::Average(_)) => return Some(f64::INFINITY),
        _ => {}
    }
    if let Some(unit) = column.unit.or(unit) {
        return Some(unit.bytes);
    }
    let first = cells(rows, index).next();
    let figure = first.and_then(|cell| DecimalMark::Point.figure(cell));
    match column.meaning {
        _ if figure.is_some_and(|figure| figure.has_unit) => suffix(first?),
        ColumnMeaning::Size(_, implied) => implied,
        _ => None,
    }
}

/// The size of the suffix in a cell.
fn suffix(cell: &str) -> Option<f64> {
    let suffix = cell.get(cell.find(|c: char| c.is_ascii_alphabetic())?..)?;
    PrintedFigure::binary(&format!("1{suffix}")).map(|one| one.value)
}

/// How a column is used; `Err` with the reason if it is not.
fn used<'c>(
    header: &TableHeader,
    column: &TableColumn,
    cells: impl Iterator<Item = &'c str> + Clone,
    mark: DecimalMark,
    unit: Option<SizeUnit>,
) -> Result<ColumnUse, &'static str> {
    let figures = || cells.clone().filter_map(|cell| mark.figure(cell));
    let size = |implied: Option<f64>| {
        let of_suffixes = || figures().all(|f| f.has_unit).then_some(1.0);
        let bytes = column.unit.or(unit).map(|unit| unit.bytes);
        bytes
            .or(implied)
            .or_else(of_suffixes)
            .ok_or("it has no unit: write kB or MiB behind its name")
    };
    let is_share = matches!(column.meaning, ColumnMeaning::Pressure(..));
    if !is_share && cells.clone().any(|cell| cell.ends_with('%')) {
        return Err("a percentage is not a size");
    }
    let used = match column.meaning {
        ColumnMeaning::Size(signal, implied) => ColumnUse::Size(signal, size(implied)?),
        ColumnMeaning::Resident if !header.has_keys() => ColumnUse::Resident(size(None)?),
        ColumnMeaning::Plain(signal) => ColumnUse::Plain(signal),
        ColumnMeaning::Reading(signal) => ColumnUse::Reading(signal),
        ColumnMeaning::Rate(signal) => ColumnUse::Rate(signal),
        ColumnMeaning::Pressure(signal, kind) => {
            pressure(signal, kind, figures()).ok_or("it is neither a percentage nor a total")?
        }
        ColumnMeaning::Key | ColumnMeaning::Other | ColumnMeaning::Resident => ColumnUse::Unused,
    };
    if falls(used, figures()) {
        return Err("a total does not fall");
    }
    Ok(used)
}

/// Corrects the unit of kernel fields without a unit, if `MemTotal` cannot be KiB.
fn check_unit_of_total(
    header: &TableHeader,
    rows: &[TableRow<'_>],
    unit: Option<SizeUnit>,
    columns: &mut [(ColumnUse, DecimalMark)],
    block: &mut TextBlock,
) {
    let is_kernel_field = |column: &TableColumn| {
        let is_kib = matches!(column.meaning, ColumnMeaning::Size(_, Some(KIB)));
        is_kib && unit.or(column.unit).is_none() && !column.name.starts_with("kb")
    };
    let is_total = |column: &TableColumn| {
        matches!(column.meaning, ColumnMeaning::Size(signal, _) if signal == MEM_TOTAL.id())
            && is_kernel_field(column)
    };
    let total = header.columns.iter().position(is_total).and_then(|i| {
        let (used, mark) = columns.get(i)?;
        let figure = mark.figure(cells(rows, i).next()?)?;
        (*used != ColumnUse::Unused && !figure.has_unit).then_some(figure.value)
    });
    let total_unit = total.map_or(TotalUnit::Kib, ram_unit::unit_of_total);
    if let Some(problem) = ram_unit::unit_problem(total_unit) {
        block.problem(problem);
    }
    for (column, (used, _)) in header.columns.iter().zip(columns) {
        if let (ColumnUse::Size(signal, _), true) = (*used, is_kernel_field(column)) {
            *used = match total_unit {
                TotalUnit::Kib => continue,
                TotalUnit::BySize(unit) => ColumnUse::Size(signal, unit.bytes),
                TotalUnit::Unknown => ColumnUse::Unused,
            };
        }
    }
    match total_unit {
        TotalUnit::Kib => {}
        TotalUnit::BySize(unit) => block.unit = unit.name,
        TotalUnit::Unknown => block.unit = "",
    }
}

fn unit_name(bytes: f64) -> &'static str {
    ["bytes", "KiB", "MiB", "GiB", "TiB"]
        .into_iter()
        .find(|name| SizeUnit::named(name).is_some_and(|unit| unit.bytes == bytes))
        .unwrap_or("")
}

/// Whether a column that is used as a total falls, so that it cannot be one.
fn falls(used: ColumnUse, figures: impl Iterator<Item = PrintedFigure>) -> bool {
    let ColumnUse::Plain(signal) = used else {
        return false;
    };
    signal.def().is_counter && !figures.map(|figure| figure.value).is_sorted()
}

/// Averages are percentages. If the kind is unknown, a first figure above 100 means a total.
fn pressure(
    signal: SignalId,
    kind: PressureKind,
    figures: impl Iterator<Item = PrintedFigure>,
) -> Option<ColumnUse> {
    let mut values = figures.map(|figure| (figure.value, figure.error)).peekable();
    let is_first_large = values.peek().is_some_and(|(value, _)| *value > 100.0);
    match kind {
        PressureKind::Average(window) => Some(ColumnUse::Share(signal, window)),
        PressureKind::Total => Some(ColumnUse::Plain(signal)),
        PressureKind::Unknown if is_first_large => Some(ColumnUse::Plain(signal)),
        PressureKind::Unknown => values
            .all(|(value, error)| value <= 100.0 && (error < 1.0 || value == 0.0))
            .then_some(ColumnUse::Share(signal, 10.0)),
    }
}

struct TableReader<'l> {
    columns: Vec<(ColumnUse, DecimalMark)>,
    /// Running totals of rates and shares.
    sums: Vec<f64>,
    rows: Vec<TableRow<'l>>,
}

impl TableReader<'_> {
    fn drop_rates_without_times(
        &mut self,
        header: &TableHeader,
        interval: Option<f64>,
        block: &mut TextBlock,
    ) {
        if header.clock.is_some() || interval.is_some() {
            return;
        }
        if self.columns.iter().any(|(used, _)| used.needs_times()) {
            block.problem("rates and shares need the time between rows; not used");
        }
        for (used, _) in &mut self.columns {
            if used.needs_times() {
                *used = ColumnUse::Unused;
            }
        }
    }

    fn emit(
        &mut self,
        header: &TableHeader,
        interval: Option<f64>,
        input: &mut BlockReader<'_>,
        block: &mut TextBlock,
    ) {
        let is_apart = header.has_keys();
        let mut impossible = Vec::new();
        let rows = std::mem::take(&mut self.rows);
        let mut before = None;
        for (i, row) in rows.iter().enumerate() {
            let (when, between) = match interval.filter(|_| i > 0) {
                _ if is_apart => (SnapshotTime::Unknown, None),
                Some(seconds) => {
                    (SnapshotTime::After(units::Span::from_secs_f64(seconds)), Some(seconds))
                }
                None => row_time::when(before, row.time),
            };
            before = row.time.or(before);
            let mut snapshot = Snapshot { when, ..Snapshot::default() };
            for (i, cell) in row.cells.iter().enumerate() {
                if let Some(cell) = *cell {
                    self.fill(i, cell, between, &mut snapshot, input);
                }
            }
            note_new(&mut impossible, drop_impossible(&mut snapshot));
            if snapshot.has_readings() {
                input.add(snapshot);
            }
        }
        for impossible in impossible {
            block.problem(impossible.problem());
        }
    }

    fn fill(
        &mut self,
        column: usize,
        cell: &str,
        between: Option<f64>,
        snapshot: &mut Snapshot,
        input: &mut BlockReader<'_>,
    ) {
        let Some((used, mark)) = self.columns.get(column).copied() else {
            return;
        };
        let Some(figure) = mark.figure(cell) else {
            return;
        };
        match used {
            ColumnUse::Size(signal, unit) => snapshot.set_size(signal, figure, unit),
            ColumnUse::Resident(unit) => {
                let bytes = figure.in_bytes(unit).value;
                let row = snapshot.sample.table_mut(Entity::Process).entry("0@0");
                row.label = "(pasted process)".to_owned();
                if let Some(pages) = figure::pages(bytes, input.facts) {
                    row.row.set(PROC_RSS, pages);
                }
            }
            ColumnUse::Plain(signal) => {
                let scale = scale(signal);
                if let Some(value) = raw(figure.value * scale).filter(|_| !figure.has_unit) {
                    snapshot.sample.host.set_raw(signal, value);
                }
            }
            ColumnUse::Reading(signal) => {
                if let Some(value) = raw(figure.value).filter(|_| !figure.has_unit) {
                    snapshot.sample.host.set_raw(signal, value);
                }
            }
            ColumnUse::Rate(signal) => {
                let seconds = between.unwrap_or(0.0);
                self.add(column, figure.value * seconds * scale(signal), between);
                self.set_sum(column, signal, snapshot);
            }
            ColumnUse::Share(signal, window) => {
                // An average over ten seconds is no measure of ten minutes.
                let seconds = between.unwrap_or(0.0);
                if seconds <= window * 6.0 {
                    let micros = figure.value.min(100.0) / 100.0 * seconds * 1e6;
                    self.add(column, micros, between);
                    self.set_sum(column, signal, snapshot);
                }
            }
            ColumnUse::Unused => {}
        }
    }

    /// Adds to a total, which starts again if the time since the row before is unknown.
    fn add(&mut self, column: usize, more: f64, between: Option<f64>) {
        let sum = &mut self.sums[column];
        *sum = if between.is_some() { *sum + more } else { 0.0 };
    }

    fn set_sum(&self, column: usize, signal: SignalId, snapshot: &mut Snapshot) {
        if let Some(total) = raw(self.sums[column]) {
            snapshot.sample.host.set_raw(signal, total);
        }
    }
}

/// The factor from the unit of the kernel file to that of the catalogue.
fn scale(signal: SignalId) -> f64 {
    // 1, 512 or 1024.
    u32::try_from(signal.def().scale).map_or(1.0, f64::from)
}

#[cfg(test)]
mod tests {
    use crate::testing::paste;
    use timeline::signals::*;
    use timeline::{Entity, Timeline};
    use units::{Bytes, Pages};

    fn shape(timeline: &Timeline) -> (usize, usize, u64) {
        let seconds = timeline.duration().as_nanos() / 1_000_000_000;
        (timeline.len(), timeline.segments().len(), seconds)
    }

    #[test]
    fn what_memtide_exports_has_the_units_of_the_catalogue() {
        let text = "time,elapsed_s,mem.free,vm.pswpin,vm.pgpgin,psi.memory.some\n\
            2026-11-26T16:56:14.5Z,0,4096,7,1024,3\n2026-11-26T16:56:15.5Z,1,8192,9,2048,5\n";
        let clockless =
            text.replace("2026-11-26T16:56:14.5Z", "").replace("2026-11-26T16:56:15.5Z", "");
        for text in [text, &clockless] {
            let timeline = paste(text).timeline;
            assert_eq!(shape(&timeline), (2, 1, 1), "{text}");
            assert_eq!(timeline.last(MEM_FREE), Some(Bytes::new(8192)), "{text}");
            assert_eq!(timeline.last(PSWPIN), Some(Pages::new(9)));
            assert_eq!(timeline.last(PGPGIN), Some(Bytes::new(2048)));
            assert_eq!(timeline.last(PSI_MEMORY_SOME), Some(units::Micros::new(5)));
        }
    }

    #[test]
    fn a_series_with_its_time_is_a_timeline() {
        let kib = "uptime_min Slab SReclaimable SUnreclaim\n0 195928 107428 88500\n57 728732 153524 575208\n";
        for text in [
            format!("$ slab series boot-1 (kB)\n{kib}"),
            kib.to_owned(),
            "t_s,Slab_kB,SUnreclaim\n0,195928,88500\n3420,728732,575208\n".to_owned(),
            "epoch;slab;sunreclaim\n1795305527;195928;88500\n1795308947;728732;575208\n".to_owned(),
            "| time | Slab (kB) | SUnreclaim |\n|---|---|---|\n| 23:58:47 | 195928 kB | 88,500 |\n| 00:55:47 | 728732 kB | 575,208 |\n".to_owned(),
            "# columns: time SUnreclaim[kB] Slab\n2026-11-21 22:00:00 88500 195928\n2026-11-21 22:57:00 575208 728732\n".to_owned(),
            "date time Slab SUnreclaim\n2026-11-21 22:00:00 195928 88500\n2026-11-21 22:57:00 728732 575208\n".to_owned(),
        ] {
            let opened = paste(&text);
            let timeline = &opened.timeline;
            assert_eq!(shape(timeline), (2, 1, 3420), "{text}");
            assert_eq!(timeline.last(MEM_SLAB_UNRECLAIMABLE), Some(Bytes::from_kib(575_208)), "{text}");
            assert_eq!(timeline.last(MEM_SLAB), Some(Bytes::from_kib(728_732)), "{text}");
            assert!(opened.problems.is_empty(), "{text} {:?}", opened.problems);
        }
    }

    #[test]
    fn rows_without_times_are_unrelated() {
        let opened = paste("$ series (MiB)\nmem_avail\n1503\n1420\n1337\n");
        assert_eq!(shape(&opened.timeline).1, 3);
        assert_eq!(opened.timeline.last(MEM_AVAILABLE), Some(Bytes::from_mib(1337)));
        assert_eq!(opened.origin.inputs[0].unit, "MiB");
        assert!(opened.timeline.rounded_signals().any(|id| id == MEM_AVAILABLE.id()));
        let timed = paste("$ series (MiB, every 10 s)\nmem_avail\n1503\n1420\n1337\n").timeline;
        assert_eq!(shape(&timed), (3, 1, 20));
    }

    #[test]
    fn sizes_of_unknown_unit_are_not_guessed() {
        let opened = paste("time mem_avail\n10:00 1503\n10:05 1420\n");
        assert!(opened.timeline.is_empty());
        assert_eq!(opened.origin.inputs.len(), 1);
        assert!(opened.problems[0].contains("no unit"), "{:?}", opened.problems);
        let opened = paste("time mem_avail\n10:00 1503M\n10:05 1420M\n");
        assert_eq!(opened.timeline.last(MEM_AVAILABLE), Some(Bytes::from_mib(1420)));
    }

    #[test]
    fn percentages_under_the_name_of_a_size_are_not_used() {
        let opened = paste(
            "time MemTotal MemAvailable SwapFree\n10:00:00 100% 4% 50%\n10:01:00 100% 3% 7\n",
        );
        assert!(opened.timeline.is_empty());
        assert_eq!(opened.problems.len(), 3);
        assert!(opened.problems[0].contains("percentage"), "{:?}", opened.problems);
    }

    #[test]
    fn all_cells_of_a_column_have_one_decimal_mark() {
        let mib = |mib: f64| crate::text::figure::raw(mib * 1_048_576.0).map(Bytes::new);
        for (text, available) in [
            (
                "time;MemTotal_GB;MemAvailable_GB\n10:00;1,925;1,025\n10:01;1,925;0,955\n",
                mib(977.92),
            ),
            (
                "time MemTotal_GB MemAvailable_GB\n10:00 15,625 1,125\n10:01 15,625 1,225\n",
                mib(1254.4),
            ),
            (
                "time mem_total_mb mem_available_mb\n10:00 7.746,125 4.102,250\n10:01 7.746,125 999,125\n",
                mib(999.125),
            ),
            ("time MemTotal_MB MemAvailable_MB\n10:00 1,925 1,025\n10:01 1,925 1,125\n", None),
        ] {
            let opened = paste(text);
            assert_eq!(opened.timeline.last(MEM_AVAILABLE), available, "{text}");
            assert_eq!(opened.problems.is_empty(), available.is_some(), "{:?}", opened.problems);
        }
    }

    #[test]
    fn implausible_sizes_are_not_used() {
        let opened = paste("time MemTotal_MB MemFree_MB MemAvailable_MB\n10:00 7746 500 4102250\n");
        assert_eq!(opened.timeline.last(MEM_FREE), Some(Bytes::from_mib(500)));
        assert_eq!(opened.timeline.last(MEM_AVAILABLE), None);
        assert!(opened.problems[0].contains("larger than MemTotal"), "{:?}", opened.problems);
        let by_size = paste("time MemTotal MemFree\n10:00 16384 1200\n");
        assert_eq!(by_size.timeline.last(MEM_FREE), Some(Bytes::from_mib(1200)));
        assert!(by_size.problems[0].contains("unit by the size"));
        let unknown = paste("\"ts\",\"MemTotal\"\n\"10:00:00\",\"16.694.710.272\"\n");
        assert!(unknown.timeline.is_empty());
        assert!(unknown.problems[0].contains("kB"), "{:?}", unknown.problems);
    }

    #[test]
    fn a_reversed_order_is_corrected_and_repeated_times_dropped() {
        let opened = paste("time,MemFree\n10:02:00,3\n10:01:00,2\n10:01:00,9\n10:00:00,1\n");
        assert_eq!(shape(&opened.timeline), (3, 1, 120));
        assert_eq!(opened.timeline.last(MEM_FREE), Some(Bytes::from_kib(3)));
        assert_eq!(opened.problems.len(), 2);
    }

    #[test]
    fn rates_become_totals() {
        let text = "ts pswpin pswpout/s MemFree\n1795305527 100 0 5\n1795305537 600 50 5\n1795305547 600 70.5 5\n";
        let timeline = paste(text).timeline;
        assert_eq!(timeline.last(PSWPIN), Some(Pages::new(600)));
        let values = timeline.rate(PSWPOUT).unwrap();
        let rates: Vec<f64> = values.values().iter().flatten().copied().collect();
        assert_eq!(rates, [50.0, 70.5]);
        let opened = paste("t pgscan_direct MemFree\n0 500 5\n10 3 5\n");
        assert_eq!(opened.timeline.last(PGSCAN_DIRECT), None);
        assert!(opened.problems[0].contains("does not fall"), "{:?}", opened.problems);
    }

    #[test]
    fn shares_of_stall_time_become_totals() {
        let text = "time some_avg10 full MemFree\n10:00:00 0.00 0.00 5\n10:00:10 50.00 12.50 5\n10:00:20 10.00 0.00 5\n";
        let timeline = paste(text).timeline;
        assert_eq!(timeline.last(PSI_MEMORY_SOME).map(|us| us.get()), Some(6_000_000));
        assert_eq!(timeline.last(PSI_MEMORY_FULL).map(|us| us.get()), Some(1_250_000));
        let slow = paste("time some_avg10 MemFree\n10:00:00 0.00 5\n10:10:00 50.00 5\n").timeline;
        assert!(
            slow.rate(PSI_MEMORY_SOME)
                .is_none_or(|track| track.values().iter().flatten().count() == 0)
        );
        let untimed = paste("some_avg10 MemFree\n0.00 5\n50.00 5\n");
        assert_eq!(untimed.timeline.last(PSI_MEMORY_SOME), None);
        assert!(untimed.problems[0].contains("need the time"));
    }

    #[test]
    fn another_boot_or_host_starts_a_segment() {
        let boots = paste("uptime_s MemFree\n10 5\n20 5\n3 5\n9 5\n").timeline;
        assert_eq!(shape(&boots).1, 2);
        let hosts = paste("host MemFree\na 5\nb 5\nc 5\n").timeline;
        assert_eq!(shape(&hosts).1, 3);
    }

    #[test]
    fn rss_without_a_name_is_a_process() {
        let timeline = paste("uptime_min rss_GB\n65 6.8\n125 8.5\n").timeline;
        let series = timeline.entity(Entity::Process, "0@0").unwrap();
        assert_eq!(timeline.last_of(series, PROC_RSS), Some(Pages::new(2_228_224)));
    }

    #[test]
    fn rows_that_do_not_fit_are_counted() {
        let opened = paste(
            "time MemFree SwapFree\n10:00 1 2\nrestarted here\n10:05 1 2\n10:06 1\n10:07 x 2\n10:10 3 4\n\n10:15 9 9\n",
        );
        assert_eq!((opened.timeline.len(), opened.origin.inputs[0].not_understood), (3, 3));
        assert_eq!(opened.timeline.last(MEM_FREE), Some(Bytes::from_kib(3)));
        for text in [
            "MemFree is low and SwapFree too\nI restarted it then\n",
            "NAME READY AVAILABLE\nweb 1 1\n",
            "total used\n1 2\n",
            "MemFree\n",
        ] {
            assert!(paste(text).origin.inputs.is_empty(), "{text}");
        }
    }

    #[test]
    fn any_table_is_read_without_panic() {
        let text = "time,MemFree,pswpin/s,some,rss_MB\n10:00,1,2,3,4\n10:05,5,6,7.5,8\n";
        for cut in 0..text.len() {
            paste(&text[..cut]);
        }
        for number in ["-1", "99999999999999999999", "NaN", "1e308", "٣", ""] {
            paste(&text.replace(['1', '5'], number));
            paste(&text.replace("10:0", number));
        }
    }
}
