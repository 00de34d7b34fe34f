//! A table of one process over time: `ts,rss`, and perhaps `live,free`, comma-separated, with that header. `ts` is
//! seconds or RFC 3339, the rest is bytes: `live` and `free` as mallinfo2 gives them.
//!
//! Rows may be in any order; a row that is no reading is skipped and counted. At most a million rows are read, and 4 KiB
//! of a line.

use std::io::{BufRead, Read};

use timeline::signals::{PROC_HEAP_FREE, PROC_HEAP_LIVE, PROC_RSS};
use timeline::{Entity, Input, Origin, Problems, Sample, Source, SourceKind, Stamp};
use units::{Bytes, PageSize, Pages, Quantity, Span, WallClock};

/// Rows above this number are left out: three days at a row a second.
const ROWS_MAX: usize = 300_000;
/// A longer line is no row.
const LINE_BYTES_MAX: u64 = 4096;
/// Seconds from here on (2001) are a date; smaller ones count from any start.
const DATE_MIN: f64 = 1e9;

/// A reading.
#[derive(Debug, Clone, Copy)]
struct ProcessTableRow {
    seconds: f64,
    rss: f64,
    live: Option<f64>,
    free: Option<f64>,
}

/// Returns whether a file begins with the header of such a table.
pub(crate) fn looks_like(start: &[u8]) -> bool {
    let line = start.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line).trim_start_matches('\u{feff}').to_owned();
    let mut names = line.split(',').map(|name| name.trim().to_ascii_lowercase());
    names.next().as_deref() == Some("ts") && names.any(|name| name == "rss")
}

/// Reads the table; `name` is the file's.
pub(crate) fn read(input: &mut dyn BufRead, name: &str) -> Source {
    let mut problems = Problems::default();
    let mut rows = Vec::new();
    let mut columns: Vec<String> = Vec::new();
    let mut line = Vec::new();
    let (mut lines, mut bad) = (0, 0);
    loop {
        line.clear();
        match (&mut *input).take(LINE_BYTES_MAX).read_until(b'\n', &mut line) {
            Ok(0) => break,
            Ok(_) => {}
            Err(error) => {
                problems.note(format!("line {}: {error}; the rows before it are used", lines + 1));
                break;
            }
        }
        lines += 1;
        let text = String::from_utf8_lossy(&line);
        let cells = text.trim_start_matches('\u{feff}').trim().split(',').map(str::trim);
        if columns.is_empty() {
            columns = cells.map(str::to_ascii_lowercase).collect();
            continue;
        }
        if rows.len() == ROWS_MAX {
            problems.note(format!("only the first {ROWS_MAX} rows are used"));
            break;
        }
        match row(&columns, &cells.collect::<Vec<_>>()) {
            Some(row) => rows.push(row),
            None if text.trim().is_empty() => {}
            None => {
                bad += 1;
                problems.note(format!(
                    "line {lines}: expected {}, found other text",
                    columns.join(",")
                ));
            }
        }
    }
    let mut source = source(rows, name, &mut problems);
    source.origin.inputs = vec![Input {
        form: "process table",
        what: format!("a table of one process: {}", columns.join(", ")),
        file: String::new(),
        first_line: 1,
        last_line: lines.max(1),
        unit: "bytes",
        signals: vec![PROC_RSS.def().name, PROC_HEAP_LIVE.def().name, PROC_HEAP_FREE.def().name],
        not_understood: bad,
        other_system: "",
    }];
    source.problems = problems.into_texts();
    source
}

/// Reads a row.
fn row(columns: &[String], cells: &[&str]) -> Option<ProcessTableRow> {
    let cell = |name: &str| {
        let at = columns.iter().position(|column| column == name)?;
        cells.get(at).copied().filter(|cell| !cell.is_empty())
    };
    let bytes = |name| cell(name)?.parse().ok().filter(|n: &f64| n.is_finite() && *n >= 0.0);
    Some(ProcessTableRow {
        seconds: seconds(cell("ts")?)?,
        rss: bytes("rss")?,
        live: bytes("live"),
        free: bytes("free"),
    })
}

/// Reads seconds, or a time of RFC 3339.
fn seconds(text: &str) -> Option<f64> {
    let number = text.parse().ok().filter(|n: &f64| n.is_finite() && n.abs() < 1e11);
    let time = || Some(text.parse::<jiff::Timestamp>().ok()?.as_duration().as_secs_f64());
    number.or_else(time)
}

/// Orders the rows and makes samples of them.
fn source(mut rows: Vec<ProcessTableRow>, name: &str, problems: &mut Problems) -> Source {
    rows.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
    let first = rows.first().map_or(0.0, |row| row.seconds);
    let mut source = Source {
        origin: Origin { kind: SourceKind::Text, ..Origin::default() },
        ..Source::default()
    };
    source.facts.page_size = Some(PageSize::USUAL);
    let mut sample = Sample::default();
    let file = std::path::Path::new(name).file_name().map(|file| file.to_string_lossy());
    let process = file.as_deref().and_then(|file| file.split('.').next()).unwrap_or("process");
    for row in rows {
        sample.clear();
        let since = Span::from_secs_f64(row.seconds - first);
        let start = WallClock::from_unix_nanos(0).plus(Span::from_secs_f64(first));
        sample.stamp = Stamp {
            boot: since,
            awake: None,
            wall: (first >= DATE_MIN).then(|| start.plus(since)),
            ..Stamp::default()
        };
        let entry = sample.table_mut(Entity::Process).entry("1@0");
        process.clone_into(&mut entry.label);
        entry.row.set(PROC_RSS, Pages::from_f64(row.rss / PageSize::USUAL.bytes().as_f64()));
        if let Some(live) = row.live {
            entry.row.set(PROC_HEAP_LIVE, Bytes::from_f64(live));
        }
        if let Some(free) = row.free {
            entry.row.set(PROC_HEAP_FREE, Bytes::from_f64(free));
        }
        if source.timeline.push(&sample).is_err() {
            problems.note("two rows have one time: the first is used");
        }
    }
    source
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(text: &str) -> Source {
        assert!(looks_like(text.as_bytes()), "{text}");
        read(&mut text.as_bytes(), "dir/web.csv")
    }

    #[test]
    fn rows_are_samples_of_one_process_named_by_the_file() {
        let source = reading("ts,rss,live,free\n0,8192,5000,10\n10,16384,6000,20\n");
        assert_eq!(source.timeline.len(), 2);
        assert_eq!(source.problems, Vec::<String>::new());
        let process = source.timeline.entities(Entity::Process).next().unwrap();
        assert_eq!(process.label, "web");
        assert_eq!(source.timeline.last_of(process, PROC_HEAP_LIVE), Some(Bytes::new(6000)));
        assert_eq!(source.timeline.last_of(process, PROC_RSS), Some(Pages::new(4)));
    }

    #[test]
    fn times_may_be_dates_and_rows_in_any_order() {
        let source = reading("ts,rss\n2026-11-21T10:00:10Z,4096\n2026-11-21T10:00:00Z,8192\r\n");
        assert_eq!(source.timeline.times(), [Span::ZERO, Span::from_secs(10)]);
        assert!(source.timeline.stamp(0).unwrap().wall.is_some());
    }

    #[test]
    fn a_row_that_is_none_is_named_and_the_rest_is_read() {
        let source = reading("ts,rss\n0,1e6\nNaN,5\n5,-3\n,\nx\n9,4096");
        assert_eq!(source.timeline.len(), 2);
        assert!(source.problems[0].contains("line 3"), "{:?}", source.problems);
        assert_eq!(source.origin.inputs[0].not_understood, 4);
    }

    #[test]
    fn other_tables_are_not_taken() {
        for text in ["time,rss\n", "ts;rss\n", "ts,live\n", "", "rss,ts\n"] {
            assert!(!looks_like(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn any_cut_survives() {
        let text = b"ts,rss,live,free\n0,8192,5000,10\n\xff\xfe,1\n10,16384,6000,20\n";
        for end in 0..text.len() {
            let _ = read(&mut &text[..end], "");
        }
    }
}
