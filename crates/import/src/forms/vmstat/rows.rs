//! The rows of `vmstat` with the names of their columns, over pages and blank lines.

use super::options::Options;
use crate::times::Printed;

/// The rows of one run.
#[derive(Debug)]
pub(super) struct Rows<'a> {
    columns: Vec<&'a str>,
    /// In order.
    pub(super) rows: Vec<Row>,
    /// How many lines they take, with headings.
    pub(super) lines: usize,
    /// Rows that cannot be what the heading says.
    pub(super) not_understood: usize,
    /// What was wrong: line, and words.
    pub(super) problems: Vec<(usize, String)>,
}

/// A row.
#[derive(Debug)]
pub(super) struct Row {
    figures: Vec<u64>,
    /// Its time, if it has one.
    pub(super) time: Option<Printed>,
    /// Its line within the block.
    pub(super) at: usize,
}

/// All columns; those of memory without `-a`.
const COLUMNS: [&str; 18] = [
    "r", "b", "swpd", "free", "buff", "cache", "si", "so", "bi", "bo", "in", "cs", "us", "sy",
    "id", "wa", "st", "gu",
];
/// Tasks that are swapped out, in the headings of Linux 2.4.
const OLD: [&str; 1] = ["w"];
/// The two that `-a` prints in place of buff and cache.
const ACTIVE: [&str; 2] = ["inact", "active"];
/// Where rows without a heading keep their shares of CPU time.
const FIRST_SHARE: usize = 12;
/// A heading sooner than this is no new page of a terminal but another run, whose first row is an average since boot.
const SHORTEST_PAGE: usize = 10;
/// A row has at least tasks, swap and free memory.
const FEWEST: usize = 4;

impl<'a> Rows<'a> {
    /// The rows at the beginning of the lines.
    pub(super) fn read(lines: &[&'a str], options: &Options) -> Option<Self> {
        let mut rows = Self {
            columns: Vec::new(),
            rows: Vec::new(),
            lines: 0,
            not_understood: 0,
            problems: Vec::new(),
        };
        match heading(lines) {
            Some((columns, taken)) => {
                rows.columns = columns;
                rows.lines = taken;
            }
            None => rows.columns = without_heading(lines, options)?,
        }
        rows.take(lines);
        (!rows.rows.is_empty()).then_some(rows)
    }

    fn take(&mut self, lines: &[&'a str]) {
        let mut page_from = 0;
        let mut at = self.lines;
        while let Some(line) = lines.get(at) {
            if let Some((columns, taken)) = heading(&lines[at..]) {
                if columns != self.columns || self.rows.len() - page_from < SHORTEST_PAGE {
                    break;
                }
                page_from = self.rows.len();
                at += taken;
                continue;
            }
            let is_blank = line.is_empty() && !self.rows.is_empty();
            if is_blank && lines.get(at + 1).is_some_and(|next| !next.is_empty()) {
                at += 1;
                continue;
            }
            let Some(row) = row(line, at, self.columns.len()) else {
                break;
            };
            at += 1;
            self.lines = at;
            self.keep(row);
        }
    }

    /// Keeps a row whose shares of CPU time are 100 % in sum.
    fn keep(&mut self, row: Row) {
        let share = |column| self.figure(&row, column);
        let shares = ["us", "sy", "id", "wa", "st"].map(share);
        let sum: Option<f64> = shares.into_iter().sum();
        // Each is rounded. A machine without a CPU clock shows zeros; before there was a column for it, stolen time lacked.
        let is_right =
            |sum: f64| sum < 0.5 || (90.0..=105.0).contains(&(sum + share("gu").unwrap_or(0.0)));
        if sum.is_none_or(is_right) {
            self.rows.push(row);
            return;
        }
        if self.not_understood == 0 {
            let problem =
                "shares of CPU time do not add up to 100: columns are shifted, the row is left out";
            self.problems.push((row.at, problem.to_owned()));
        }
        self.not_understood += 1;
    }

    /// A row's figure by the name of its column.
    pub(super) fn figure(&self, row: &Row, column: &str) -> Option<f64> {
        let at = self.columns.iter().position(|name| *name == column)?;
        #[allow(clippy::cast_precision_loss)] // sizes and rates far below 2^53
        row.figures.get(at).map(|figure| *figure as f64)
    }
}

/// The names of the columns, and how many lines the heading takes: with the line of groups above it or without.
fn heading<'a>(lines: &[&'a str]) -> Option<(Vec<&'a str>, usize)> {
    let first = lines.first()?;
    let is_band = first.contains("procs") && first.contains("memory");
    let names = if is_band { lines.get(1)? } else { first };
    let text = stamped(names).1;
    let known = |word: &&str| COLUMNS.contains(word) || ACTIVE.contains(word) || OLD.contains(word);
    let columns: Vec<&str> = text
        .split(' ')
        .filter(|w| !w.is_empty())
        .take_while(known)
        .collect();
    let has = |names: &[&str]| names.iter().all(|name| columns.contains(name));
    (has(&["free", "si", "so"]) || has(&["r", "b", "swpd", "free"]))
        .then_some((columns, 1 + usize::from(is_band)))
}

/// The columns of rows whose heading was not pasted: where `vmstat` was run, or two rows in a row look like it.
fn without_heading(lines: &[&str], options: &Options) -> Option<Vec<&'static str>> {
    let looks_like_it = |line: &&str| {
        let row = row(line, 0, COLUMNS.len()).filter(|row| row.figures.len() >= 16)?;
        let sum = row.figures[FIRST_SHARE..]
            .iter()
            .try_fold(0u64, |sum, n| sum.checked_add(*n));
        sum.filter(|sum| (98..=102).contains(sum))
            .map(|_| row.figures.len())
    };
    let count = looks_like_it(lines.first()?)?;
    let is_sure = options.ran || lines.get(1).and_then(looks_like_it) == Some(count);
    let mut columns = COLUMNS[..count].to_vec();
    let memory: &[&str] = match (options.ran, options.active) {
        (_, true) => &ACTIVE,
        (true, false) => &COLUMNS[4..6],
        // With -a they would be other things.
        (false, false) => &["", ""],
    };
    columns[4..6].copy_from_slice(memory);
    is_sure.then_some(columns)
}

/// A row of figures, with a time before or behind them. `None` where it has too few or too many.
fn row(line: &str, at: usize, most: usize) -> Option<Row> {
    let (before, text) = stamped(line);
    let mut figures = Vec::new();
    let mut rest = text;
    while let Some(word) = rest.split(' ').next().filter(|word| !word.is_empty()) {
        let Ok(figure) = word.parse() else { break };
        if figures.len() == most {
            return None;
        }
        figures.push(figure);
        rest = rest.strip_prefix(word)?.trim_start();
    }
    let behind = || Printed::leading(rest).map(|(time, _)| time);
    (figures.len() >= FEWEST.min(most)).then(|| Row {
        figures,
        time: before.or_else(behind),
        at,
    })
}

/// The time at the beginning of a line, if there is one, and the rest.
fn stamped(line: &str) -> (Option<Printed>, &str) {
    match Printed::leading(line) {
        Some((time, rest)) => (Some(time), rest),
        None => (None, line.trim_start()),
    }
}
