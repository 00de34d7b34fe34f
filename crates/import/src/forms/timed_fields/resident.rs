//! Resident memory of one process in lines of a log or a loop: `2026-11-21 23:58:47 RSS: 195.3 MB`, `VmRSS: 208000 kB`
//! below the time, Node's `rss: '166.71 MB'` and `rss: 204800000`. Also the memory that a program prints of itself, `[10:01:02] mem: 312 MB`,
//! `after 2 hours: memory usage 560 MB`.
//!
//! A number without a unit is in bytes beside the other fields of Node's `process.memoryUsage()`, else its unit is unknown
//! and the line is none. Sizes that belong to something else are not read: `anon-rss:` of a kill, `Rss:` of a mapping,
//! `total_rss` of a cgroup, a peak.

use timeline::Entity;
use timeline::signals::PROC_RSS;
use units::Span;

use crate::block::{BlockReader, TextBlock};
use crate::builder::{Snapshot, SnapshotTime, TimelineBuilder};
use crate::text::figure::{self, PrintedFigure};
use crate::text::times::{self, PrintedTime, SampleTimes};

/// The words that begin a size, in lower case.
const KEYS: [&str; 4] = ["vmrss", "rss", "resident set size", "resident memory"];
/// The words that begin the only size of a line: a host's memory has several.
const ONLY_KEYS: [&str; 7] =
    ["memory usage", "mem usage", "memory used", "memory:", "memory=", "mem:", "mem="];
/// With fewer readings it is one figure, not a course.
const READINGS_MIN: usize = 4;
/// So many other lines may be between two readings: the rest of an object, a rule.
const OTHERS_MAX: usize = 12;
/// The first fields of Node's object are within so many lines.
const OBJECT: usize = 3;

/// A reading, and its line.
struct Resident {
    line: usize,
    /// Whether it has a time of its own.
    is_timed: bool,
    /// `None` if its time does not follow that of the reading before.
    when: Option<SnapshotTime>,
    bytes: f64,
}

/// When a reading was taken.
#[derive(Debug, Clone, Copy)]
enum ReadingTime {
    Printed(PrintedTime),
    /// Seconds since some start.
    Since(f64),
}

/// Reads a series of readings.
pub(super) fn read(input: &mut BlockReader<'_>) -> Option<TextBlock> {
    reading(input.lines, 0)?;
    let before = input.before.iter().rev().take(OBJECT);
    let above = input.time.map(ReadingTime::Printed);
    let above = above.or_else(|| before.copied().find_map(leading));
    let readings = series(input.lines, above);
    // `memory:` without times is also a limit in a manifest. The first may have the time of the text above it.
    let is_course = |reading: &Resident| {
        reading.is_timed || names_resident(&input.lines[reading.line].to_ascii_lowercase())
    };
    if !readings.get(1..READINGS_MIN)?.iter().any(is_course) {
        return None;
    }
    let mut lines = 0;
    for reading in &readings {
        let Some(when) = reading.when else {
            break;
        };
        let mut snapshot = Snapshot { when, ..Snapshot::default() };
        let row = snapshot.sample.table_mut(Entity::Process).add();
        row.key.push_str("0@0");
        row.label.push_str("(pasted process)");
        row.row.set(PROC_RSS, figure::pages(reading.bytes, input.facts)?);
        input.add(snapshot);
        lines = reading.line + 1;
    }
    (lines > 0).then(|| TextBlock {
        what: format!("resident memory of a process, {} readings", input.added),
        lines,
        unit: "as printed",
        ..TextBlock::default()
    })
}

/// The readings from the first line on, each with its time: in its line, or above it. From the smallest number on they end
/// where a time does not follow that of the reading before: the lines behind it are of another series.
fn series(lines: &[&str], above: Option<ReadingTime>) -> Vec<Resident> {
    let mut readings: Vec<Resident> = Vec::new();
    let mut times = SampleTimes::new(None);
    let (mut time, mut since) = (above, None);
    for (at, line) in lines.iter().enumerate() {
        let last = readings.last().map_or(0, |reading| reading.line);
        if at - last > OTHERS_MAX || readings.len() == TimelineBuilder::TAKEN_MAX {
            break;
        }
        time = leading(line).or(time);
        let Some(bytes) = reading(lines, at) else {
            continue;
        };
        time = time.or_else(|| within(line));
        let follows = readings.last().is_none_or(|last| last.when.is_some());
        // Without any time the order is that of the text.
        let is_timeless = time.is_none() && readings.iter().all(|reading| !reading.is_timed);
        let when = if is_timeless {
            Some(SnapshotTime::Unknown)
        } else {
            follows.then(|| when(time, &mut since, &mut times)).flatten()
        };
        if when.is_none() && readings.len() >= READINGS_MIN {
            break;
        }
        readings.push(Resident { line: at, is_timed: time.take().is_some(), when, bytes });
    }
    readings
}

/// The time of the next snapshot; `None` if the reading's time does not follow that of the one before. `since`: the
/// seconds of the one before, where they count from some start.
fn when(
    time: Option<ReadingTime>,
    since: &mut Option<f64>,
    times: &mut SampleTimes,
) -> Option<SnapshotTime> {
    let printed = match time {
        Some(ReadingTime::Since(now)) => {
            let Some(before) = since.replace(now) else {
                return Some(SnapshotTime::Unknown);
            };
            let passed = now - before;
            return (passed > 0.0).then(|| SnapshotTime::After(Span::from_secs_f64(passed)));
        }
        Some(ReadingTime::Printed(time)) => Some(time),
        None => None,
    };
    times.next(printed).map(|(when, _)| when)
}

/// The time at the start of a line: `2026-11-21 23:58:47 …`, `After 2 hours: …`.
fn leading(line: &str) -> Option<ReadingTime> {
    let line = line.trim_start_matches(['[', '(', ' ', '-', '*', '|']);
    let printed = PrintedTime::leading(line).map(|(time, _)| ReadingTime::Printed(time));
    let since = || {
        let (start, _) = line.split_once([':', '|', '=', '-', '→'])?;
        times::elapsed(start).map(ReadingTime::Since)
    };
    printed.or_else(since)
}

/// The time in a line of a log, behind a level, a name, a mark: `INFO 2026-11-21 23:58:47 …`, `[worker] 23:58:47 …`.
fn within(line: &str) -> Option<ReadingTime> {
    /// So many words are before it at most.
    const WORDS_MAX: usize = 6;
    let starts = line.match_indices(' ').map(|(at, _)| at + 1).take(WORDS_MAX);
    let mut rests = starts.filter_map(|at| line.get(at..));
    let printed = rests.find_map(|rest| {
        let rest = rest.trim_start_matches(['[', '(', ' ', '-', '*', '|']);
        PrintedTime::leading(rest).map(|(time, _)| time)
    });
    printed.map(ReadingTime::Printed)
}

/// The size in a line, in bytes.
fn reading(lines: &[&str], at: usize) -> Option<f64> {
    let line = lines[at].trim();
    // Lower case has the same offsets.
    let lower = line.to_ascii_lowercase();
    let find = |keys: &[&'static str]| {
        let mut found = keys.iter().filter_map(|key| Some((key_at(&lower, key)?, *key)));
        found.next()
    };
    let (start, key) = find(&KEYS).or_else(|| find(&ONLY_KEYS))?;
    let is_of_mapping = lower.starts_with("rss:") && lower.ends_with(" kb");
    let behind = line.get(start + key.len()..)?;
    let number = behind.trim_start_matches(|c: char| " \t:=\"'(,".contains(c));
    let is_apart = key.ends_with([':', '=']) || number.len() < behind.len();
    if is_of_mapping || !is_apart {
        return None;
    }
    let end = number.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == ','));
    let (digits, rest) = number.split_at(end.unwrap_or(number.len()));
    let has_more = || rest.contains(|c: char| c.is_ascii_digit() || c == '%');
    if ONLY_KEYS.contains(&key) && (has_more() || lower.contains("total")) {
        return None;
    }
    let digits = digits.trim_end_matches([',', '.']);
    let unit = rest.strip_prefix(' ').unwrap_or(rest);
    let end = unit.find(|c: char| !c.is_ascii_alphabetic());
    let unit = unit.get(..end.unwrap_or(unit.len()))?;
    let with_unit = PrintedFigure::binary(&format!("{digits}{unit}"));
    if let Some(figure) = with_unit.filter(|figure| figure.has_unit) {
        return Some(figure.value);
    }
    let of_node = |line: &&str| line.contains("heapTotal") || line.contains("heapUsed");
    let in_bytes = lines.iter().skip(at).take(OBJECT).any(of_node) || unit == "bytes";
    in_bytes.then(|| digits.parse().ok())?
}

/// Whether a line, in lower case, names resident memory.
fn names_resident(lower: &str) -> bool {
    KEYS.iter().any(|key| key_at(lower, key).is_some())
}

/// Where a key stands as a word of its own.
fn key_at(lower: &str, key: &str) -> Option<usize> {
    let is_inner = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-' || c == '.';
    let mut places = lower.match_indices(key).map(|(at, _)| at);
    places.find(|at| {
        let (before, behind) = lower.split_at(*at);
        let behind = behind.get(key.len()..).unwrap_or_default();
        let is_open = key.ends_with([':', '=']);
        let goes_on = behind.starts_with(|c: char| is_inner(c) && c != '.');
        !before.ends_with(is_inner) && (is_open || !goes_on)
    })
}

#[cfg(test)]
mod tests {
    use crate::testing::{paste, survives};
    use timeline::Entity;
    use timeline::signals::PROC_RSS;
    use units::{Pages, Span};

    /// Four readings, 200, 201, 202 and 203 MiB, as `line` prints them by their minute and their KiB.
    fn four(line: impl Fn(u64, u64) -> String) -> String {
        (0..4).map(|n| line(n, (200 + n) * 1024) + "\n").collect()
    }

    #[test]
    fn lines_of_loops_and_logs_are_a_course() {
        let date = |n| format!("2026-11-21 10:0{n}:00");
        for text in [
            four(|n, kib| format!("{} RSS: {}.0 MB", date(n), kib / 1024)),
            four(|n, kib| format!("{}\nVmRSS:\t {kib} kB", date(n))),
            four(|n, kib| format!("[10:0{n}:00] mem: {} MB", kib / 1024)),
            four(|n, kib| format!("After {n} min: memory usage {kib} kB")),
            four(|n, kib| format!("[{}] INFO worker rss={kib}KB heap=7MB", date(n))),
            four(|n, kib| format!("INFO {} [MEMORY] RSS: {}.0 MB", date(n), kib / 1024)),
            four(|n, kib| format!("app-1  | {} rss: {kib} kB", date(n))),
            four(|n, kib| format!("[worker 3] 10:0{n}:00 VmRSS: {kib} kB")),
            four(|n, kib| format!("[TIME] 8/24/2025, 4:4{n}:00 PM RSS: {kib} kB")),
            four(|n, kib| {
                format!("{} {{ rss: {}, heapTotal: 7, heapUsed: 6 }}", date(n), kib * 1024)
            }),
            four(|n, kib| {
                format!(
                    "{} done {{\n  rss: '{}.0 MB',\n  heapTotal: '9 MB',\n}}\n---",
                    date(n),
                    kib / 1024
                )
            }),
        ] {
            let timeline = paste(&text).timeline;
            assert_eq!((timeline.len(), timeline.duration()), (4, Span::from_mins(3)), "{text}");
            let process = timeline.entities(Entity::Process).next().unwrap();
            assert_eq!(timeline.last_of(process, PROC_RSS), Some(Pages::new(203 * 256)), "{text}");
            survives(&text);
        }
    }

    #[test]
    fn without_times_every_row_is_read_and_nothing_is_said_of_time() {
        for rows in [4, 6, 12] {
            let text: String =
                (0..rows).map(|n| format!("worker RSS: {}.0 MB\n", 200 + n)).collect();
            let opened = paste(&text);
            assert_eq!((opened.timeline.len(), opened.origin.inputs.len()), (rows, 1), "{text}");
            assert_eq!(opened.timeline.segments().len(), rows, "{text}");
            survives(&text);
        }
    }

    #[test]
    fn what_is_no_course_of_a_process_is_left_to_others() {
        for text in [
            four(|n, kib| format!("2026-11-21 10:0{n}:00 anon-rss:{kib}kB")),
            four(|n, kib| format!("total_rss {kib} kB {n}")),
            four(|n, kib| format!("rss {kib}{n}")),
            four(|_, _| "Rss:     12 kB".to_owned()),
            four(|n, kib| format!("10:0{n}:00 Mem: 15Gi 13Gi {kib}Ki")),
            four(|n, kib| format!("10:0{n}:00 mem: {kib}K used, 5600K free")),
            "RSS: 12 MB\nRSS: 13 MB\n".to_owned(),
            four(|n, kib| format!("c{n}:\n  limits:\n    memory: {kib}Ki")),
            "10:00:00 started\n".to_owned() + &four(|n, kib| format!("c{n} memory: {kib}Ki")),
        ] {
            let what =
                |input: &timeline::Input| input.what.contains("resident memory of a process");
            let of_form = paste(&text).origin.inputs.iter().any(what);
            assert!(!of_form, "{text}");
        }
    }
}
