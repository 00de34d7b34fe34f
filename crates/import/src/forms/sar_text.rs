//! `sar` as text: any of its tables, in 12 and 24 hour clocks, with any decimal mark; and `sadf -d` and `-p` where they are
//! pasted.
//!
//! sar prints one table after the other, each over the same times, with its headings repeated, averages at its end and
//! `LINUX RESTART` where the machine was started. All tables of one host are collected by time before they become looks.

mod clock;
mod head;
mod table;

use std::collections::{BTreeSet, HashMap};

use super::{Block, Form, Reading};
use crate::prompt;
use crate::sar::{Line, Lines, Read};
use clock::Days;
use head::Head;
use table::Table;

pub(super) const FORM: Form = Form { name: "sar", read };

fn read(reading: &mut Reading<'_>) -> Option<Block> {
    if Lines::default().begins(reading.lines[0]) {
        return sadf(reading);
    }
    begins(reading.lines).then_some(())?;
    let mut walk = Walk::default();
    let taken = walk.lines(reading.lines);
    let mut block = walk.read.emit(reading);
    block.lines = taken;
    block.not_understood = walk.not_understood;
    Some(block)
}

fn sadf(reading: &mut Reading<'_>) -> Option<Block> {
    let mut lines = Lines::default();
    let is_taken = |line: &&&str| line.is_empty() || lines.take(line) == Line::Taken;
    let taken = reading.lines.iter().take_while(is_taken).count();
    let blank = reading.lines[..taken].iter().rev();
    let taken = taken - blank.take_while(|line| line.is_empty()).count();
    let mut block = lines.read.emit(reading);
    block.lines = taken;
    Some(block)
}

/// Whether sar's output begins here: with its first line and a table below it, or with headings that no other tool has.
fn begins(lines: &[&str]) -> bool {
    let headings = |line: &&str| match clock::split(line) {
        Some((_, rest)) => rest.starts_with("LINUX RESTART") || table(rest).is_some(),
        None => false,
    };
    match lines {
        [first, rest @ ..] if Head::read(first).is_some() => rest.iter().take(4).any(headings),
        [first, rest @ ..] => {
            let is_row = |line: &&str| clock::split(line).is_some();
            match clock::split(first) {
                Some((_, words)) => table(words).is_some_and(|t| t.known() >= 2),
                None => bare(first).is_some() && rest.iter().take(3).any(is_row),
            }
        }
        [] => false,
    }
}

fn table(text: &str) -> Option<Table> {
    let words: Vec<&str> = text.split_whitespace().collect();
    Table::read(&words)
}

/// Headings without a time in front: `time pgpgin/s pgpgout/s`.
fn bare(line: &str) -> Option<Table> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let (first, rest) = words.split_first()?;
    let names_time = matches!(
        first.to_ascii_lowercase().as_str(),
        "time" | "timestamp" | "#time"
    );
    let found = Table::read(if names_time { rest } else { &words })?;
    (found.known() >= 2).then_some(found)
}

/// sar's lines in the reading.
#[derive(Default)]
struct Walk<'a> {
    read: Read,
    identity: Option<&'a str>,
    midnight: i64,
    /// The table that rows belong to, and where its first interval began.
    table: Option<(Table, Option<i64>)>,
    /// The days of each table, by its headings.
    days: HashMap<String, Days>,
    /// How many words the rows of the tables have: an average is known by it.
    widths: BTreeSet<usize>,
    not_understood: usize,
}

/// What became of a line.
enum Taken {
    Yes,
    /// It is none of sar's, though what follows may be.
    No,
    /// What begins here is of another host or another time.
    Ends,
}

impl<'a> Walk<'a> {
    /// Prose between two tables.
    const MOST_PROSE: usize = 2;

    /// Reads lines up to where sar's end; how many they are.
    fn lines(&mut self, lines: &[&'a str]) -> usize {
        let mut taken = 0;
        let mut prose = 0;
        for (at, line) in lines.iter().enumerate() {
            if line.is_empty() {
                continue;
            }
            match self.line(line) {
                Taken::Yes => {
                    self.not_understood += prose;
                    (taken, prose) = (at + 1, 0);
                }
                Taken::No if prose < Self::MOST_PROSE => prose += 1,
                Taken::No | Taken::Ends => break,
            }
        }
        taken
    }

    fn line(&mut self, line: &'a str) -> Taken {
        if let Some((time, rest)) = clock::split(line) {
            return self.timed(time, rest);
        }
        if let Some(head) = Head::read(line) {
            return self.head(head);
        }
        if self.is_average(line) {
            return Taken::Yes;
        }
        if let Some(table) = bare(line) {
            self.begin(table, None);
            return Taken::Yes;
        }
        match prompt::command(line) {
            Some(command) if prompt::arguments(command, "sar").is_some() => {
                self.table = None;
                Taken::Yes
            }
            Some(_) => Taken::Ends,
            None if line == "^C" => Taken::Yes,
            None => Taken::No,
        }
    }

    fn head(&mut self, head: Head<'a>) -> Taken {
        let is_first = self.identity.is_none() && self.days.is_empty();
        let is_dated = head.midnight.is_some();
        let same = self.identity == Some(head.identity) && self.read.recording.is_dated == is_dated;
        if !is_first && !same {
            return Taken::Ends;
        }
        self.identity = Some(head.identity);
        self.midnight = head.midnight.unwrap_or(0);
        self.read.recording.is_dated = is_dated;
        if is_first {
            self.read.host = head.host;
        }
        self.table = None;
        self.days.clear();
        Taken::Yes
    }

    /// A line with a time in front.
    fn timed(&mut self, time: i64, rest: &str) -> Taken {
        let words: Vec<&str> = rest.split_whitespace().collect();
        if let Some(table) = Table::read(&words) {
            self.begin(table, Some(time));
            return Taken::Yes;
        }
        let is_restart = words.starts_with(&["LINUX", "RESTART"]);
        let is_remark = words.first() == Some(&"COM");
        let Some(now) = self.now(time) else {
            self.not_understood += 1;
            return Taken::Yes;
        };
        if is_restart {
            self.read.recording.restart(now);
        } else if self.table.is_none() && !is_remark {
            return Taken::No;
        } else if !is_remark && !self.row(now, &words) {
            self.not_understood += 1;
        }
        Taken::Yes
    }

    /// Seconds since 1970, or since the midnight before the first line; `None` where time went back.
    fn now(&mut self, time: i64) -> Option<i64> {
        let since_midnight = match &self.table {
            Some((table, _)) => self
                .days
                .entry(table.name.clone())
                .or_default()
                .advance(time)?,
            // Before the first table there is none whose days count.
            None => time,
        };
        Some(self.midnight + since_midnight)
    }

    /// A row of the table; whether it is one.
    fn row(&mut self, now: i64, words: &[&str]) -> bool {
        let Some((table, start)) = &mut self.table else {
            return false;
        };
        let Some(row) = table.row(words) else {
            // What stands in other tables, names with blanks in them, need not be understood.
            return table.known() == 0;
        };
        if !row.figures.is_empty()
            && let Some(start) = start.take()
        {
            self.read.recording.start(now, start);
        }
        for (column, value) in row.figures {
            self.read.recording.figure(now, row.name, column, value);
        }
        true
    }

    /// Headings: of a new table, or of one that goes on.
    fn begin(&mut self, table: Table, time: Option<i64>) {
        self.widths.insert(table.width());
        let days = self.days.entry(table.name.clone()).or_default();
        let start = time.and_then(|time| days.advance(time));
        self.table = Some((table, start.map(|start| self.midnight + start)));
    }

    /// `Average:`, `Durchschnitt:`, `Moyenne :`: a word or two that end with a colon, then headings or a row of a table.
    fn is_average(&self, line: &str) -> bool {
        let words: Vec<&str> = line.split_whitespace().collect();
        let ends = |word: &&str| word.ends_with([':', '：']);
        let Some(colon) = words.iter().take(3).position(ends) else {
            return false;
        };
        let rest = &words[colon + 1..];
        self.widths.contains(&rest.len()) || Table::read(rest).is_some()
    }
}

#[cfg(test)]
mod tests;
