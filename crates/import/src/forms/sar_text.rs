//! `sar` as text: any of its tables, with 12 and 24 hour clocks and any decimal mark; also pasted `sadf -d` and `-p`.
//!
//! sar prints one table after the other over the same times, each with repeated headings, averages at its end and
//! `LINUX RESTART` after a boot. All tables of one host are collected by time before they become snapshots.

mod head;
mod table;
mod time;

use std::collections::{BTreeSet, HashMap};

use super::Form;
use crate::block::{BlockReader, TextBlock};
use crate::sar::{SadfLines, SarData};
use crate::text::line_scan::BlockStart;
use crate::text::prompt;
use head::SarHead;
use table::SarTable;
use time::TableDays;

pub(super) const FORM: Form = Form {
    name: "sar",
    begins: BlockStart::with(&[
        "/s",
        " %",
        "\t%",
        ";%",
        "Linux ",
        "LINUX-RESTART",
        "# hostname;",
        "kb",
        "-sz",
        "ldavg",
        "rtps",
        "dentunusd",
        "file-nr",
        "inode-nr",
        "blocked",
    ]),
    read,
};

fn read(input: &mut BlockReader<'_>) -> Option<TextBlock> {
    if SadfLines::begins(input.lines[0]) {
        return sadf(input);
    }
    if !begins(input.lines) {
        return None;
    }
    let mut text = SarText::default();
    let lines = text.lines(input.lines);
    Some(TextBlock { lines, not_understood: text.not_understood, ..text.data.emit(input) })
}

fn sadf(input: &mut BlockReader<'_>) -> Option<TextBlock> {
    let mut lines = SadfLines::default();
    let mut taken = 0;
    for (at, line) in input.lines.iter().enumerate() {
        if lines.take(line) {
            taken = at + 1;
        } else if !line.is_empty() {
            break;
        }
    }
    Some(TextBlock { lines: taken, ..lines.data.emit(input) })
}

/// Whether output of sar begins here: its first line with a table below, or headings that no other tool has.
fn begins(lines: &[&str]) -> bool {
    let headings = |line: &&str| match time::split(line) {
        Some((_, rest)) => rest.starts_with("LINUX RESTART") || table(rest).is_some(),
        None => false,
    };
    match lines {
        [first, rest @ ..] if SarHead::read(first).is_some() => rest.iter().take(4).any(headings),
        [first, rest @ ..] => {
            let is_row = |line: &&str| time::split(line).is_some();
            match time::split(first) {
                Some((_, words)) => table(words).is_some_and(|t| t.known() >= 2),
                None => bare(first).is_some() && rest.iter().take(3).any(is_row),
            }
        }
        [] => false,
    }
}

fn table(text: &str) -> Option<SarTable> {
    let words: Vec<&str> = text.split_whitespace().collect();
    SarTable::read(&words)
}

/// Headings without a time before them: `time pgpgin/s pgpgout/s`.
fn bare(line: &str) -> Option<SarTable> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let (first, rest) = words.split_first()?;
    let names_time = matches!(first.to_ascii_lowercase().as_str(), "time" | "timestamp" | "#time");
    let found = SarTable::read(if names_time { rest } else { &words })?;
    (found.known() >= 2).then_some(found)
}

/// Reads lines of sar.
#[derive(Default)]
struct SarText<'a> {
    data: SarData,
    identity: Option<&'a str>,
    midnight: i64,
    /// The table of the next rows, and the start of its first interval.
    table: Option<(SarTable, Option<i64>)>,
    /// The days of each table, by its headings.
    days: HashMap<String, TableDays>,
    /// How many words the rows of the tables have, to recognise averages.
    widths: BTreeSet<usize>,
    not_understood: usize,
}

/// What a line is.
enum LineUse {
    /// A line of sar.
    Taken,
    /// Another line; lines of sar may follow.
    Other,
    /// The start of output from another host or another time.
    Ends,
}

impl<'a> SarText<'a> {
    /// Lines of prose between two tables.
    const PROSE_MAX: usize = 2;

    /// Reads the lines of sar. Returns how many there are.
    fn lines(&mut self, lines: &[&'a str]) -> usize {
        let mut taken = 0;
        let mut prose = 0;
        for (at, line) in lines.iter().enumerate() {
            if line.is_empty() {
                continue;
            }
            match self.line(line) {
                LineUse::Taken => {
                    self.not_understood += prose;
                    (taken, prose) = (at + 1, 0);
                }
                LineUse::Other if prose < Self::PROSE_MAX => prose += 1,
                LineUse::Other | LineUse::Ends => break,
            }
        }
        taken
    }

    fn line(&mut self, line: &'a str) -> LineUse {
        if let Some((time, rest)) = time::split(line) {
            return self.timed(time, rest);
        }
        if let Some(head) = SarHead::read(line) {
            return self.head(head);
        }
        if self.is_average(line) {
            return LineUse::Taken;
        }
        if let Some(table) = bare(line) {
            self.begin(table, None);
            return LineUse::Taken;
        }
        match prompt::command(line) {
            Some(command) if prompt::arguments(command, "sar").is_some() => {
                self.table = None;
                LineUse::Taken
            }
            Some(_) => LineUse::Ends,
            None if line == "^C" => LineUse::Taken,
            None => LineUse::Other,
        }
    }

    fn head(&mut self, head: SarHead<'a>) -> LineUse {
        let is_first = self.identity.is_none() && self.days.is_empty();
        let is_dated = head.midnight.is_some();
        let same = self.identity == Some(head.identity) && self.data.series.is_dated == is_dated;
        if !is_first && !same {
            return LineUse::Ends;
        }
        self.identity = Some(head.identity);
        self.midnight = head.midnight.unwrap_or(0);
        self.data.series.is_dated = is_dated;
        if is_first {
            self.data.host = head.host;
        }
        self.table = None;
        self.days.clear();
        LineUse::Taken
    }

    /// A line that begins with a time.
    fn timed(&mut self, time: i64, rest: &str) -> LineUse {
        let words: Vec<&str> = rest.split_whitespace().collect();
        if let Some(table) = SarTable::read(&words) {
            self.begin(table, Some(time));
            return LineUse::Taken;
        }
        let is_restart = words.starts_with(&["LINUX", "RESTART"]);
        let is_remark = words.first() == Some(&"COM");
        let Some(now) = self.now(time) else {
            self.not_understood += 1;
            return LineUse::Taken;
        };
        if is_restart {
            self.data.series.restart(now);
        } else if self.table.is_none() && !is_remark {
            return LineUse::Other;
        } else if !is_remark && !self.row(now, &words) {
            self.not_understood += 1;
        }
        LineUse::Taken
    }

    /// Seconds since 1970, or since the midnight before the first line; `None` if time went back.
    fn now(&mut self, time: i64) -> Option<i64> {
        let since_midnight = match &self.table {
            Some((table, _)) => self.days.entry(table.name.clone()).or_default().advance(time)?,
            None => time,
        };
        Some(self.midnight + since_midnight)
    }

    /// Adds a row of the table. Returns whether the line is one.
    fn row(&mut self, now: i64, words: &[&str]) -> bool {
        let Some((table, start)) = &mut self.table else {
            return false;
        };
        let Some(row) = table.row(words) else {
            // Rows of tables that are not read need not be understood.
            return table.known() == 0;
        };
        if !row.figures.is_empty()
            && let Some(start) = start.take()
        {
            self.data.series.start(now, start);
        }
        for (column, value) in row.figures {
            self.data.series.figure(now, row.name, column, value);
        }
        true
    }

    /// Headings: of a new table, or of the same one repeated.
    fn begin(&mut self, table: SarTable, time: Option<i64>) {
        self.widths.insert(table.width());
        let days = self.days.entry(table.name.clone()).or_default();
        let start = time.and_then(|time| days.advance(time));
        self.table = Some((table, start.map(|start| self.midnight + start)));
    }

    /// `Average:`, `Durchschnitt:`, `Moyenne :`: a word or two before a colon, then headings or a row of a table.
    fn is_average(&self, line: &str) -> bool {
        let words: Vec<&str> = line.split_whitespace().collect();
        let ends = |word: &&str| word.ends_with([':', '：']);
        let Some(colon) = words.iter().take(3).position(ends) else {
            return false;
        };
        let rest = &words[colon + 1..];
        self.widths.contains(&rest.len()) || SarTable::read(rest).is_some()
    }
}

#[cfg(test)]
mod tests;
