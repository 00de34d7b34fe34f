//! One element of `statistics` in `sadf -j` and `sadf -x`: a time, an interval, and figures by group and name.

use super::columns::{self, ColumnIndex};
use super::series::SarSeries;
use super::stamp;

/// An element while it is read; its memory is reused for the next.
#[derive(Debug, Default)]
pub(super) struct Element {
    date: String,
    time: String,
    interval: Option<i64>,
    /// Names of CPUs and disks.
    rows: Vec<String>,
    /// The row that the next figures belong to.
    row: Option<usize>,
    figures: Vec<(Option<usize>, ColumnIndex, f64)>,
}

impl Element {
    /// At most 100,000 figures and rows, more than any host has, so that a hostile file cannot fill memory.
    const ELEMENTS_MAX: usize = 100_000;

    /// Adds a string.
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

    /// Adds a number.
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
            && self.figures.len() < Self::ELEMENTS_MAX
        {
            self.figures.push((self.row, column, number));
        }
    }

    /// Starts the row of a CPU or disk.
    fn row(&mut self, name: &str) {
        if self.rows.len() < Self::ELEMENTS_MAX {
            self.row = Some(self.rows.len());
            self.rows.push(name.to_owned());
        }
    }

    /// Ends the row.
    pub(super) fn end_row(&mut self) {
        self.row = None;
    }

    /// Adds the figures to the series and clears the element.
    pub(super) fn finish(&mut self, series: &mut SarSeries) {
        if let Some(time) = stamp::seconds(&self.date, &self.time) {
            series.is_dated = true;
            if let Some(interval) = self.interval {
                series.start(time, time - interval);
            }
            for (row, column, value) in &self.figures {
                let row = row.and_then(|row| self.rows.get(row));
                series.figure(time, row.map_or("", String::as_str), *column, *value);
            }
        }
        self.clear();
    }

    /// Adds the restart to the series and clears the element.
    pub(super) fn finish_restart(&mut self, series: &mut SarSeries) {
        if let Some(time) = stamp::seconds(&self.date, &self.time) {
            series.restart(time);
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
