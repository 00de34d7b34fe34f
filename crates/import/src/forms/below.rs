//! `below dump system` as a table (`-O raw`, `csv` or `tsv`) or as JSON: fields of `/proc/meminfo` under names of its own, rates of
//! paging. A rate in bytes counts pages of 4 KiB, whatever the kernel has; `--raw` prints pages.
//!
//! `below dump` of processes and cgroups is not read.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::LazyLock;

use timeline::signals::{
    self, OOM_KILLS, PGSCAN_DIRECT, PGSCAN_KSWAPD, PGSTEAL_DIRECT, PGSTEAL_KSWAPD, PSWPIN, PSWPOUT,
};
use timeline::{Entity, SignalDef, SignalId};
use units::{PageSize, Quantity, Span};

use super::Form;
use super::rate_totals::RateTotals;
use crate::block::{BlockReader, TextBlock};
use crate::builder::Snapshot;
use crate::text::figure::{self, PrintedFigure, raw};
use crate::text::line_scan::BlockStart;
use crate::text::times::{PrintedTime, SampleTimes};

pub(super) const FORM: Form =
    Form { name: "below", begins: BlockStart::with(&["OOM Kills", "Datetime"]), read };

/// A tab in plain text.
const TAB: &str = "        ";

/// How a row has its cells.
enum RowLayout {
    /// Between commas or tabs.
    Separated(&'static str),
    /// From these columns on, in bytes, to the next one.
    Aligned(Vec<usize>),
    /// As an object with names.
    Json,
}

fn read(input: &mut BlockReader<'_>) -> Option<TextBlock> {
    let head = *input.lines.first()?;
    let layout = layout_of(head);
    let titles: Vec<&str> = cells(&layout, head)?;
    let is_known = |title: &str| titles.contains(&title);
    let is_json = matches!(layout, RowLayout::Json);
    let has_time = is_json || is_known("Datetime") || is_known("Timestamp");
    let has_memory = is_json || is_known("OOM Kills") || (is_known("Total") && is_known("Free"));
    if !has_time || !has_memory {
        return None;
    }
    let mut times = SampleTimes::new(None);
    let mut totals = RateTotals::default();
    let first = usize::from(!is_json);
    let mut lines = first;
    for (at, line) in input.lines.iter().enumerate().skip(first) {
        if input.builder.is_past_counting() {
            break;
        }
        // `--repeat-title` repeats it.
        if line.is_empty() || (*line == head && !is_json) {
            continue;
        }
        let Some(row) = row(&layout, &titles, line) else {
            break;
        };
        let printed = row.get("Timestamp").or_else(|| row.get("Datetime"));
        let time = printed.and_then(|time| Some(PrintedTime::leading(time)?.0));
        let Some((when, between)) = times.next(time) else {
            break;
        };
        let mut snapshot = Snapshot { when, ..Snapshot::default() };
        for (title, cell) in &row {
            gauge(title, cell, &mut snapshot);
        }
        counters(&row, between, &mut totals, &mut snapshot, input);
        if snapshot.has_readings() {
            input.add(snapshot);
        }
        lines = at + 1;
    }
    (input.added > 0).then(|| TextBlock {
        what: "below dump system".to_owned(),
        lines,
        unit: "as printed",
        ..TextBlock::default()
    })
}

fn layout_of(head: &str) -> RowLayout {
    let is_title = |title: &str| title == title.trim() && !title.contains("  ");
    if head.trim_start_matches(['[', ',', ' ']).starts_with('{') {
        RowLayout::Json
    } else if head.contains(',') {
        RowLayout::Separated(",")
    } else if head.split(TAB).all(is_title) {
        RowLayout::Separated(TAB)
    } else {
        RowLayout::Aligned(column_starts(head))
    }
}

/// Where the columns of a heading start: behind two blanks.
fn column_starts(head: &str) -> Vec<usize> {
    let is_start = |three: &[u8]| matches!(three, [b' ', b' ', last] if *last != b' ');
    let windows = head.as_bytes().windows(3).enumerate();
    let starts = windows.filter(|(_, three)| is_start(three)).map(|(at, _)| at + 2);
    [0].into_iter().chain(starts).collect()
}

/// The cells of a line; `None` where they do not stand below their titles.
fn cells<'a>(layout: &RowLayout, line: &'a str) -> Option<Vec<&'a str>> {
    match layout {
        RowLayout::Separated(separator) => Some(line.split(*separator).map(str::trim).collect()),
        RowLayout::Json => Some(Vec::new()),
        RowLayout::Aligned(starts) => {
            let ends = starts.iter().skip(1).copied().chain([usize::MAX]);
            let cell = |(start, end): (&usize, usize)| {
                let cell = line.get(*start..end.min(line.len())).unwrap_or_default();
                let is_apart = *start == 0 || line.get(..*start).is_none_or(|l| l.ends_with(' '));
                is_apart.then(|| cell.trim())
            };
            starts.iter().zip(ends).map(cell).collect()
        }
    }
}

/// The cells of a row by their titles.
fn row<'a>(
    layout: &RowLayout,
    titles: &[&'a str],
    line: &'a str,
) -> Option<HashMap<Cow<'a, str>, Cow<'a, str>>> {
    if let RowLayout::Json = layout {
        let object = line.trim_start_matches(['[', ',', ' ']).trim_end_matches([']', ',', ' ']);
        let object: HashMap<String, String> = serde_json::from_str(object).ok()?;
        let owned = object.into_iter().map(|(title, cell)| (title.into(), cell.into()));
        return Some(owned.collect());
    }
    let cells = cells(layout, line).filter(|cells| cells.len() == titles.len())?;
    let named = titles.iter().zip(cells).filter(|(title, _)| !title.is_empty());
    Some(named.map(|(title, cell)| ((*title).into(), cell.into())).collect())
}

/// The sizes of `/proc/meminfo` by their titles without blanks.
static SIZES: LazyLock<HashMap<&str, SignalId>> = LazyLock::new(|| {
    let is_size = |def: &&SignalDef| def.entity == Entity::Host && def.file == "/proc/meminfo";
    let title = |field: &'static str| match field {
        "MemTotal" | "MemFree" | "MemAvailable" => field.trim_start_matches("Mem"),
        "SReclaimable" => "SlabReclaimable",
        "SUnreclaim" => "SlabUnreclaimable",
        "KReclaimable" => "Kreclaimable",
        _ => field,
    };
    let sizes = signals::ALL.iter().filter(is_size);
    sizes.filter_map(|def| Some((title(def.field), def.id()?))).collect()
});

/// A size of `/proc/meminfo`.
fn gauge(title: &str, cell: &str, snapshot: &mut Snapshot) {
    let signal = SIZES.get(title.replace(' ', "").as_str());
    if let (Some(signal), Some(figure)) = (signal, figure_in(cell)) {
        snapshot.set_size(*signal, figure, 1.0);
    }
}

/// `23.5 GB`, `69206016`.
fn figure_in(cell: &str) -> Option<PrintedFigure> {
    PrintedFigure::binary(&cell.replace(' ', ""))
}

/// Rates, added up to counters, and the count of kills since boot.
fn counters(
    row: &HashMap<Cow<'_, str>, Cow<'_, str>>,
    between: Span,
    totals: &mut RateTotals,
    snapshot: &mut Snapshot,
    input: &mut BlockReader<'_>,
) {
    const RATES: [(&str, SignalId); 6] = [
        ("Swap In", PSWPIN.id()),
        ("Swap Out", PSWPOUT.id()),
        ("Pgscan Kswapd", PGSCAN_KSWAPD.id()),
        ("Pgscan Direct", PGSCAN_DIRECT.id()),
        ("Pgsteal Kswapd", PGSTEAL_KSWAPD.id()),
        ("Pgsteal Direct", PGSTEAL_DIRECT.id()),
    ];
    for (title, signal) in RATES {
        let rate = row.get(title).and_then(|cell| {
            let cell = cell.trim_end_matches("/s").trim_end_matches("pages");
            figure_in(cell)
        });
        let Some(rate) = rate else {
            continue;
        };
        let page = PageSize::USUAL.bytes().as_f64();
        let bytes = totals.add(signal, rate.in_bytes(page).value, between);
        if let Some(pages) = figure::pages(bytes, input.facts) {
            snapshot.sample.host.set_raw(signal, pages.get());
        }
    }
    let kills = row.get("OOM Kills").and_then(|cell| figure_in(cell));
    if let Some(kills) = kills.and_then(|kills| raw(kills.value)) {
        snapshot.sample.host.set_raw(OOM_KILLS.id(), kills);
    }
}

#[cfg(test)]
mod tests {
    use timeline::signals::*;
    use units::{Bytes, Count, Pages, Span};

    use crate::builder::TimelineBuilder;
    use crate::testing::{paste, survives};

    const RAW: &str = "\
Hostname             Datetime            Usage      Total      Free       Page Tables  Swap In    Pgscan Kswapd   OOM Kills   Timestamp  
db1                  2026-11-21 10:00:00 ?          15.5 GB    1.2 GB     210.5 MB     ?          ?               3           1795255200 
db1                  2026-11-21 10:00:05 93.11%     15.5 GB    1.1 GB     210.5 MB     2 MB/s     640 pages/s     4           1795255205 
";

    fn separated(by: char) -> String {
        let cells = |line: &str| {
            let line = line.trim_end();
            let mut cells: Vec<&str> =
                line.split("  ").map(str::trim).filter(|c| !c.is_empty()).collect();
            // The time and the cell behind it have one blank between them.
            let at = cells.iter().position(|cell| cell.starts_with("2026"));
            if let Some((time, next)) =
                at.and_then(|at| Some((at, cells[at].split_at_checked(19)?)))
            {
                cells.splice(time..=time, [next.0, next.1.trim()]);
            }
            cells.join(&by.to_string()) + &by.to_string()
        };
        RAW.lines().map(|line| cells(line) + "\n").collect()
    }

    #[test]
    fn tables_and_json_of_a_dump_are_the_same_samples() {
        let json = "[{\"Datetime\":\"2026-11-21 10:00:00\",\"Free\":\"1.2 GB\",\"OOM Kills\":\"3\",\"Page Tables\":\"210.5 MB\",\"Pgscan Kswapd\":\"?\",\"Swap In\":\"?\",\"Timestamp\":\"1795255200\",\"Total\":\"15.5 GB\"}\n\
            ,{\"Datetime\":\"2026-11-21 10:00:05\",\"Free\":\"1.1 GB\",\"OOM Kills\":\"4\",\"Page Tables\":\"210.5 MB\",\"Pgscan Kswapd\":\"640 pages/s\",\"Swap In\":\"2 MB/s\",\"Timestamp\":\"1795255205\",\"Total\":\"15.5 GB\"}\n]\n";
        for text in [RAW, &separated(','), &separated('\t'), json] {
            let opened = paste(text);
            let timeline = opened.timeline;
            assert_eq!((timeline.len(), timeline.duration()), (2, Span::from_secs(5)), "{text}");
            let mib = |signal| timeline.last(signal).map(|bytes: Bytes| bytes.get() >> 20);
            assert_eq!(
                [MEM_TOTAL, MEM_FREE, MEM_PAGE_TABLES].map(mib),
                [Some(15_872), Some(1_126), Some(210)],
                "{text}"
            );
            // 2 MB/s and 640 pages/s over 5 s.
            assert_eq!(timeline.last(PSWPIN), Some(Pages::new(2_560)), "{text}");
            assert_eq!(timeline.last(PGSCAN_KSWAPD), Some(Pages::new(3_200)), "{text}");
            assert_eq!(timeline.last(OOM_KILLS), Some(Count::new(4)), "{text}");
            survives(text);
        }
    }

    #[test]
    fn rows_that_find_no_room_are_counted() {
        let row = |n| format!("{},15.5 GB,1\n", 1_795_305_527 + n);
        let rows: String = (0..TimelineBuilder::SNAPSHOTS_MAX + 50).map(row).collect();
        let opened = paste(&format!("Datetime,Total,Free\n{rows}"));
        assert_eq!(opened.timeline.len(), TimelineBuilder::SNAPSHOTS_MAX);
        let problems = opened.problems.concat();
        assert!(problems.contains("50 more are left out"), "{problems}");
    }

    #[test]
    fn other_tables_are_left_to_others() {
        for text in [
            "Hostname,Datetime,CPU\nweb,2026-11-21 10:00:00,5%\n",
            "Datetime            Pid        Comm       RSS\n2026-11-21 10:00:00 1          init       12 MB\n",
        ] {
            assert!(paste(text).origin.inputs.iter().all(|input| input.form != "below"), "{text}");
        }
    }
}
