//! `sadf -d` (fields with `;` between them, a heading for each table) and `sadf -p` (one figure a line).

use super::Read;
use super::columns::{self, ColumnIndex};
use super::stamp;

/// What a line was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Line {
    /// One of sadf's.
    Taken,
    /// None of sadf's.
    Other,
}

/// Lines in the reading.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    /// What was read so far.
    pub(crate) read: Read,
    is_fields: bool,
    headings: Vec<Option<ColumnIndex>>,
    /// Which field names the CPU or disk.
    entity: Option<usize>,
}

const HEADING: &str = "# hostname;interval;timestamp";
const RESTART: &str = "LINUX-RESTART";

impl Lines {
    /// Whether a text of sadf may begin with this line.
    pub(crate) fn begins(&self, line: &str) -> bool {
        line.starts_with(HEADING)
            || Moment::of_fields(line).is_some_and(|(_, rest)| rest.starts_with(RESTART))
            || Moment::of_words(line).is_some_and(|(_, words)| match words[..] {
                [_, heading, value] => is_heading(heading) && value.parse::<f64>().is_ok(),
                _ => words.contains(&RESTART),
            })
    }

    /// Which of the two it was.
    pub(crate) fn form(&self) -> &'static str {
        if self.is_fields { "sadf -d" } else { "sadf -p" }
    }

    /// Reads a line.
    pub(crate) fn take(&mut self, line: &str) -> Line {
        if let Some(headings) = line.strip_prefix(HEADING) {
            self.is_fields = true;
            self.headings(headings);
        } else if let Some((moment, rest)) = Moment::of_fields(line) {
            self.is_fields = true;
            self.fields(moment, rest);
        } else if let Some((moment, words)) = Moment::of_words(line) {
            self.words(moment, &words);
        } else {
            return Line::Other;
        }
        Line::Taken
    }

    fn headings(&mut self, headings: &str) {
        (self.entity, self.headings) = (None, Vec::new());
        for (field, heading) in headings.trim_start_matches(';').split(';').enumerate() {
            if matches!(heading, "CPU" | "DEV") {
                self.entity.get_or_insert(field);
            }
            self.headings.push(columns::by_heading(heading));
            // Behind this mark of `-h` come the same fields again for each CPU or disk: their places are not known.
            if heading.ends_with("[...]") {
                break;
            }
        }
    }

    fn fields(&mut self, moment: Moment, rest: &str) {
        if self.restart(moment, rest) {
            return;
        }
        let fields: Vec<&str> = rest.split(';').collect();
        let row = self.entity.and_then(|at| fields.get(at)).copied();
        for (field, column) in fields.iter().zip(&self.headings) {
            if let (Some(column), Ok(value)) = (column, field.replace(',', ".").parse()) {
                let row = row.unwrap_or_default();
                self.read.recording.figure(moment.time, row, *column, value);
            }
        }
        self.start(moment);
    }

    fn words(&mut self, moment: Moment, words: &[&str]) {
        if self.restart(moment, &words.join(" ")) {
            return;
        }
        if let [row, heading, value] = words
            && let (Some(column), Ok(value)) = (
                columns::by_heading(heading),
                value.replace(',', ".").parse(),
            )
        {
            self.read.recording.figure(moment.time, row, column, value);
            self.start(moment);
        }
    }

    fn start(&mut self, moment: Moment) {
        self.read.recording.is_dated = true;
        if let Some(interval) = moment.interval {
            let start = moment.time - interval;
            self.read.recording.start(moment.time, start);
        }
    }

    /// `LINUX-RESTART (8 CPU)`.
    fn restart(&mut self, moment: Moment, rest: &str) -> bool {
        let Some(rest) = rest.strip_prefix(RESTART) else {
            return false;
        };
        self.read.recording.restart(moment.time);
        let digits = |c: char| c.is_ascii_digit();
        let cpus = rest.trim_matches(|c| !digits(c)).parse().ok();
        self.read.host.cpus = self.read.host.cpus.or(cpus);
        true
    }
}

fn is_heading(word: &str) -> bool {
    columns::by_heading(word).is_some() || word.ends_with("/s") || word.starts_with('%')
}

/// What each line has in front.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Moment {
    time: i64,
    /// Seconds; −1 in lines that have none.
    interval: Option<i64>,
}

impl Moment {
    fn of(interval: &str, time: Option<i64>) -> Option<Self> {
        let interval: i64 = interval.parse().ok()?;
        Some(Self {
            time: time?,
            interval: (1..1 << 30).contains(&interval).then_some(interval),
        })
    }

    /// `host;600;2026-11-21 13:20:19 UTC;…`
    fn of_fields(line: &str) -> Option<(Self, &str)> {
        let mut fields = line.splitn(4, ';').skip(1);
        let (interval, stamp, rest) = (fields.next()?, fields.next()?, fields.next()?);
        let time = match stamp.split_once(' ') {
            Some((date, time)) => stamp::seconds(date, time),
            None => stamp::epoch(stamp),
        };
        Some((Self::of(interval, time)?, rest))
    }

    /// `host 600 2026-11-21 13:20:19 UTC all %user 0.13`, with tabs between most of it; the words behind the time.
    fn of_words(line: &str) -> Option<(Self, Vec<&str>)> {
        const MOST_WORDS: usize = 12;
        let words: Vec<&str> = line.split_whitespace().take(MOST_WORDS).collect();
        let (interval, stamp) = (*words.get(1)?, *words.get(2)?);
        let (time, mut behind) = match stamp::epoch(stamp) {
            Some(time) => (Some(time), 3),
            None => (stamp::seconds(stamp, words.get(3)?), 4),
        };
        let moment = Self::of(interval, time)?;
        // The name of a time zone, where one is printed.
        if words.len() == behind + 4 || (words.len() > behind && words[behind] == "UTC") {
            behind += 1;
        }
        Some((moment, words[behind..].to_vec()))
    }
}
