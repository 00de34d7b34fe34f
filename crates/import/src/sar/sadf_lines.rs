//! `sadf -d` (fields separated by `;`, a heading for each table) and `sadf -p` (one figure per line).

use super::SarData;
use super::columns::{self, ColumnIndex};
use super::stamp;

/// Reads lines of sadf.
#[derive(Debug, Default)]
pub(crate) struct SadfLines {
    /// What was read so far.
    pub(crate) data: SarData,
    /// Whether they are of `sadf -d`.
    has_fields: bool,
    headings: Vec<Option<ColumnIndex>>,
    /// Index of the field with the name of the CPU or disk.
    entity: Option<usize>,
}

const HEADING: &str = "# hostname;interval;timestamp";
const RESTART: &str = "LINUX-RESTART";

impl SadfLines {
    /// Whether output of sadf may begin with this line.
    pub(crate) fn begins(line: &str) -> bool {
        line.starts_with(HEADING)
            || SadfStamp::from_fields(line).is_some_and(|(_, rest)| rest.starts_with(RESTART))
            || SadfStamp::from_words(line).is_some_and(|(_, words)| match words[..] {
                [_, heading, value] => is_heading(heading) && value.parse::<f64>().is_ok(),
                _ => words.contains(&RESTART),
            })
    }

    /// `sadf -d` or `sadf -p`.
    pub(crate) fn form(&self) -> &'static str {
        if self.has_fields { "sadf -d" } else { "sadf -p" }
    }

    /// Reads a line. Returns whether it is one of sadf's.
    pub(crate) fn take(&mut self, line: &str) -> bool {
        if let Some(headings) = line.strip_prefix(HEADING) {
            self.has_fields = true;
            self.headings(headings);
        } else if let Some((at, rest)) = SadfStamp::from_fields(line) {
            self.has_fields = true;
            self.fields(at, rest);
        } else if let Some((at, words)) = SadfStamp::from_words(line) {
            self.words(at, &words);
        } else {
            return false;
        }
        true
    }

    fn headings(&mut self, headings: &str) {
        (self.entity, self.headings) = (None, Vec::new());
        for (field, heading) in headings.trim_start_matches(';').split(';').enumerate() {
            if matches!(heading, "CPU" | "DEV") {
                self.entity.get_or_insert(field);
            }
            self.headings.push(columns::by_heading(heading));
            // `-h` repeats the fields behind this mark for each CPU or disk: their number is unknown.
            if heading.ends_with("[...]") {
                break;
            }
        }
    }

    fn fields(&mut self, at: SadfStamp, rest: &str) {
        if self.restart(at, rest) {
            return;
        }
        let fields: Vec<&str> = rest.split(';').collect();
        let row = self.entity.and_then(|i| fields.get(i)).copied();
        for (field, column) in fields.iter().zip(&self.headings) {
            if let (Some(column), Ok(value)) = (column, field.replace(',', ".").parse()) {
                let row = row.unwrap_or_default();
                self.data.series.figure(at.time, row, *column, value);
            }
        }
        self.start(at);
    }

    fn words(&mut self, at: SadfStamp, words: &[&str]) {
        if self.restart(at, &words.join(" ")) {
            return;
        }
        if let [row, heading, value] = words
            && let (Some(column), Ok(value)) =
                (columns::by_heading(heading), value.replace(',', ".").parse())
        {
            self.data.series.figure(at.time, row, column, value);
            self.start(at);
        }
    }

    fn start(&mut self, at: SadfStamp) {
        self.data.series.is_dated = true;
        if let Some(interval) = at.interval {
            let start = at.time - interval;
            self.data.series.start(at.time, start);
        }
    }

    /// `LINUX-RESTART (8 CPU)`.
    fn restart(&mut self, at: SadfStamp, rest: &str) -> bool {
        let Some(rest) = rest.strip_prefix(RESTART) else {
            return false;
        };
        self.data.series.restart(at.time);
        let digits = |c: char| c.is_ascii_digit();
        let cpus = rest.trim_matches(|c| !digits(c)).parse().ok();
        self.data.host.cpus = self.data.host.cpus.or(cpus);
        true
    }
}

fn is_heading(word: &str) -> bool {
    columns::by_heading(word).is_some() || word.ends_with("/s") || word.starts_with('%')
}

/// What every line begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct SadfStamp {
    time: i64,
    /// Seconds; −1 in lines without one.
    interval: Option<i64>,
}

impl SadfStamp {
    fn new(interval: &str, time: Option<i64>) -> Option<Self> {
        let interval: i64 = interval.parse().ok()?;
        Some(Self { time: time?, interval: (1..1 << 30).contains(&interval).then_some(interval) })
    }

    /// `host;600;2026-11-21 13:20:19 UTC;…`
    fn from_fields(line: &str) -> Option<(Self, &str)> {
        let mut fields = line.splitn(4, ';').skip(1);
        let (interval, stamp, rest) = (fields.next()?, fields.next()?, fields.next()?);
        let time = match stamp.split_once(' ') {
            Some((date, time)) => stamp::seconds(date, time),
            None => stamp::epoch(stamp),
        };
        Some((Self::new(interval, time)?, rest))
    }

    /// `host 600 2026-11-21 13:20:19 UTC all %user 0.13`, mostly separated by tabs. Returns the words behind the time.
    fn from_words(line: &str) -> Option<(Self, Vec<&str>)> {
        const WORDS_MAX: usize = 12;
        let words: Vec<&str> = line.split_whitespace().take(WORDS_MAX).collect();
        let (interval, stamp) = (*words.get(1)?, *words.get(2)?);
        let (time, mut behind) = match stamp::epoch(stamp) {
            Some(time) => (Some(time), 3),
            None => (stamp::seconds(stamp, words.get(3)?), 4),
        };
        let at = Self::new(interval, time)?;
        // The name of a time zone may follow.
        if words.len() == behind + 4 || (words.len() > behind && words[behind] == "UTC") {
            behind += 1;
        }
        Some((at, words[behind..].to_vec()))
    }
}
