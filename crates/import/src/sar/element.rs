//! One element of `statistics` in `sadf -j` and `sadf -x`: a time, an interval, and figures by group and name.

use super::columns::{self, ColumnIndex};
use super::recording::Recording;
use super::stamp;

/// An element in the reading; its memory is reused.
#[derive(Debug, Default)]
pub(super) struct Element {
    date: String,
    time: String,
    interval: Option<i64>,
    /// Names of CPUs and disks.
    rows: Vec<String>,
    /// Whose figures come now.
    row: Option<usize>,
    figures: Vec<(Option<usize>, ColumnIndex, f64)>,
}

impl Element {
    /// No host has more; a hostile file must not fill memory.
    const MOST: usize = 100_000;

    /// Takes a word.
    pub(super) fn text(&mut self, group: &str, name: &str, text: &str) {
        match (group, name) {
            ("timestamp", "date") => text.clone_into(&mut self.date),
            ("timestamp", "time") => text.clone_into(&mut self.time),
            ("disk", "disk-device") | ("cpu-load" | "cpu-load-all", "cpu") => self.row(text),
            _ => {
                if let Ok(number) = text.parse() {
                    self.number(group, name, number);
                }
            }
        }
    }

    /// Takes a number.
    pub(super) fn number(&mut self, group: &str, name: &str, number: f64) {
        if (group, name) == ("timestamp", "interval") {
            #[allow(clippy::cast_possible_truncation)] // checked
            let whole = (0.5..1e9).contains(&number).then_some(number as i64);
            self.interval = whole;
            return;
        }
        let group = match group {
            "cpu-load-all" => "cpu-load",
            group => group,
        };
        if let Some(column) = columns::by_name(group, name)
            && self.figures.len() < Self::MOST
        {
            self.figures.push((self.row, column, number));
        }
    }

    /// What follows is of this CPU or disk.
    fn row(&mut self, name: &str) {
        if self.rows.len() < Self::MOST {
            self.row = Some(self.rows.len());
            self.rows.push(name.to_owned());
        }
    }

    /// What follows is of something else.
    pub(super) fn next_row(&mut self) {
        self.row = None;
    }

    /// Adds the figures, and is empty for the next one.
    pub(super) fn finish(&mut self, recording: &mut Recording) {
        if let Some(time) = stamp::seconds(&self.date, &self.time) {
            recording.is_dated = true;
            if let Some(interval) = self.interval {
                recording.start(time, time - interval);
            }
            for (row, column, value) in &self.figures {
                let row = row.and_then(|row| self.rows.get(row));
                let row = row.map_or("", String::as_str);
                recording.figure(time, row, *column, *value);
            }
        }
        self.clear();
    }

    /// Adds the restart that it tells of.
    pub(super) fn finish_restart(&mut self, recording: &mut Recording) {
        if let Some(time) = stamp::seconds(&self.date, &self.time) {
            recording.restart(time);
        }
        self.clear();
    }

    fn clear(&mut self) {
        self.date.clear();
        self.time.clear();
        self.interval = None;
        self.rows.clear();
        self.row = None;
        self.figures.clear();
    }
}
