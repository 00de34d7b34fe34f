//! One printing of `free`: columns by name, rows as figures.

use super::options::{Options, Unit};
use super::sums;
use crate::figure::{Base, Figure};
use crate::times::Printed;

/// A table.
#[derive(Debug)]
pub(super) struct Table<'a> {
    columns: Vec<&'a str>,
    /// Figures of RAM with the names of their columns.
    mem: Vec<(&'a str, Figure)>,
    /// Total, used, free.
    pub(super) swap: Vec<Figure>,
    /// Limit, used, free of `-v`.
    pub(super) commit: Vec<Figure>,
    /// What figures without suffix count; all are bytes now.
    pub(super) unit: Unit,
    /// Whether it has the row `-/+ buffers/cache`.
    pub(super) has_sums: bool,
    /// The time that stands before the table or its rows.
    pub(super) time: Option<Printed>,
    /// How many lines it has.
    pub(super) lines: usize,
    /// What was wrong: line within the table, and words.
    pub(super) problems: Vec<(usize, String)>,
}

/// Columns of a row without its header, or with one in another language, as procps orders them.
const OLD: [&str; 6] = ["total", "used", "free", "shared", "buffers", "cached"];
const NEW: [&str; 6] = ["total", "used", "free", "shared", "buff/cache", "available"];
const WIDE: [&str; 7] = [
    "total",
    "used",
    "free",
    "shared",
    "buffers",
    "cache",
    "available",
];

/// Names of the row of RAM, in English and in procps' translations.
pub(super) const MEM: [&str; 8] = [
    "Mem",
    "Speicher",
    "Mém",
    "Mem.",
    "Memoria",
    "内存",
    "記憶體",
    "Память",
];
/// Names of the row of swap.
const SWAP: [&str; 8] = [
    "Swap",
    "Auslager",
    "Éch",
    "Inter",
    "交换",
    "置換空間",
    "Подкачка",
    "Partição",
];
/// Rows that are sums and parts of what is known.
const OTHERS: [&str; 5] = ["-/+ buffers/cache", "-/+", "Low", "High", "Total"];

/// Heading and rows that one printing of `free` can have, with room to spare: `Mem:` ten thousand times is no table.
const MOST_LINES: usize = 12;

impl<'a> Table<'a> {
    /// The table at the beginning of the lines, with a time before it or none.
    pub(super) fn read(lines: &[&'a str], options: &Options) -> Option<Self> {
        let mut table = Self {
            columns: Vec::new(),
            mem: Vec::new(),
            swap: Vec::new(),
            commit: Vec::new(),
            unit: Unit::KIB,
            has_sums: false,
            time: Printed::whole(lines.first()?),
            lines: 0,
            problems: Vec::new(),
        };
        if table.time.is_some() {
            let blank = lines.get(1).is_some_and(|line| line.is_empty());
            table.lines = 1 + usize::from(blank);
        }
        let header = table.take_header(lines);
        let mut row = table.take_rows(lines, options.base)?;
        table.scale(&mut row, options);
        table.assign(header, row);
        Some(table)
    }

    /// The header, if the next line is one: names, and where they end.
    fn take_header(&mut self, lines: &[&'a str]) -> Vec<(&'a str, usize)> {
        let Some(line) = lines.get(self.lines) else {
            return Vec::new();
        };
        let (time, text) = stamped(line);
        let text = text.trim_start_matches(['-', ' ']);
        // A bare row may follow on a line of other words: a header has names only.
        let is_header = text.starts_with("total")
            || lines.get(self.lines + 1).is_some_and(|next| {
                let name = stamped(next).1.split([':', '：']).next();
                name.is_some_and(|name| name != "Mem" && MEM.contains(&name.trim()))
            });
        let words: Vec<_> = words(line, line.len() - text.len()).collect();
        let are_names = |(word, _): &(&str, usize)| !word.starts_with(|c: char| c.is_ascii_digit());
        if !is_header || !(3..=8).contains(&words.len()) || !words.iter().all(are_names) {
            return Vec::new();
        }
        self.time = self.time.or(time);
        self.lines += 1;
        words
    }

    /// The rows: figures of RAM, and where they end. `None` where there is no row of RAM.
    fn take_rows(&mut self, lines: &[&'a str], base: Base) -> Option<Vec<(Figure, usize)>> {
        let mut mem = Vec::new();
        while let Some(line) = lines.get(self.lines).filter(|_| self.lines < MOST_LINES) {
            let (time, text) = stamped(line);
            let Some((name, rest)) = text.split_once([':', '：']) else {
                break;
            };
            let name = name.trim();
            let is = |names: &[&str]| names.contains(&name);
            if is(&MEM) && mem.is_empty() {
                mem = self.figures(line, rest, base);
                self.time = self.time.or(time);
            } else if is(&SWAP) && self.swap.is_empty() {
                let figures = self.figures(line, rest, base);
                self.swap = figures.into_iter().map(|(figure, _)| figure).collect();
            } else if name == "Comm" && self.commit.is_empty() {
                let figures = self.figures(line, rest, base);
                self.commit = figures.into_iter().map(|(figure, _)| figure).collect();
            } else if is(&OTHERS) {
                self.has_sums |= name.starts_with("-/+");
            } else {
                break;
            }
            self.lines += 1;
        }
        // Three figures are the least that a row of memory has.
        (mem.len() >= 3).then_some(mem)
    }

    /// The figures of a row up to the first that is none.
    fn figures(&mut self, line: &str, rest: &str, base: Base) -> Vec<(Figure, usize)> {
        let mut figures = Vec::new();
        for (word, end) in words(line, line.len() - rest.len()) {
            let Some(figure) = Figure::parse(word, base) else {
                let shown: String = word.chars().take(30).collect();
                let problem = format!("`{shown}` is no size; the rest of the line is left out");
                self.problems.push((self.lines, problem));
                break;
            };
            figures.push((figure, end));
        }
        figures
    }

    /// Turns all figures into bytes.
    fn scale(&mut self, row: &mut [(Figure, usize)], options: &Options) {
        let mem = row.iter_mut().map(|(figure, _)| figure);
        let mut figures: Vec<&mut Figure> =
            mem.chain(&mut self.swap).chain(&mut self.commit).collect();
        let shown: Vec<Figure> = figures.iter().map(|figure| **figure).collect();
        self.unit = options.unit(&shown);
        for figure in &mut figures {
            **figure = figure.in_bytes(self.unit.bytes);
        }
    }

    /// Gives the figures of RAM their columns' names, and leaves out those that cannot be what their column says.
    fn assign(&mut self, header: Vec<(&'a str, usize)>, row: Vec<(Figure, usize)>) {
        let figures: Vec<Figure> = row.iter().map(|(figure, _)| *figure).collect();
        self.columns = columns(&header, &figures);
        let is_short = row.len() < header.len();
        let names = self.columns.iter().copied();
        self.mem = names.zip(figures).collect();
        if is_short {
            // A cell may be missing anywhere behind those that every version prints.
            self.mem = aligned(&header, &self.columns, &row)
                .unwrap_or_else(|| self.mem.iter().take(3).copied().collect());
        }
        let at = self.lines.saturating_sub(1);
        if let Some(doubt) = sums::doubt(&self.mem, is_short) {
            self.problems.push((at, doubt.problem));
            self.mem.retain(|(name, _)| doubt.stay.contains(name));
        }
        if let Some(doubt) = sums::doubt_of_swap(&self.swap) {
            self.problems.push((at, doubt));
            self.swap.clear();
        }
    }

    /// Whether there is such a column.
    pub(super) fn has(&self, column: &str) -> bool {
        self.columns.contains(&column)
    }

    /// A column's figure of RAM.
    pub(super) fn figure(&self, column: &str) -> Option<Figure> {
        let found = self.mem.iter().find(|(name, _)| *name == column);
        found.map(|(_, figure)| *figure)
    }

    /// Which procps, for people: it decides what "used" means.
    pub(super) fn era(&self) -> &'static str {
        if !self.has("available") {
            return "procps before 3.3.10: used contains the cache";
        }
        match sums::is_since_4(&self.mem) {
            true => "procps 4: used is total − available",
            false => "procps 3.3.10 or later: used is without cache",
        }
    }
}

/// The time at the beginning of a row, if there is one, and the rest.
pub(super) fn stamped(line: &str) -> (Option<Printed>, &str) {
    match Printed::leading(line) {
        Some((time, rest)) => (
            Some(time),
            rest.strip_prefix("- ").unwrap_or(rest).trim_start(),
        ),
        None => (None, line.trim_start()),
    }
}

/// The words of a line from an offset on, each with the column at which it ends.
fn words(line: &str, from: usize) -> impl Iterator<Item = (&str, usize)> {
    let (before, mut rest) = line.split_at_checked(from).unwrap_or((line, ""));
    let mut column = before.chars().count();
    std::iter::from_fn(move || {
        let text = rest.trim_start();
        let word = text.split(' ').next().filter(|w| !w.is_empty())?;
        let blank = rest.len() - text.len();
        column += blank + word.chars().count();
        rest = text.strip_prefix(word)?;
        Some((word, column))
    })
}

/// The names of the columns: those of the header, where they are English, else by their number and sums.
fn columns<'a>(header: &[(&'a str, usize)], figures: &[Figure]) -> Vec<&'a str> {
    let is_english = header.first().is_some_and(|(name, _)| *name == "total");
    let is_new = header.get(4).is_some_and(|(name, _)| name.contains('/'));
    match figures.len().max(header.len()) {
        _ if is_english => header.iter().map(|(name, _)| *name).collect(),
        7 => WIDE.to_vec(),
        _ if !is_new && sums::is_old(figures) => OLD.to_vec(),
        _ => NEW.to_vec(),
    }
}

/// Figures with the names that they stand under: names and figures end at the same column. `None` where one figure
/// stands under no name.
fn aligned<'a>(
    header: &[(&'a str, usize)],
    columns: &[&'a str],
    row: &[(Figure, usize)],
) -> Option<Vec<(&'a str, Figure)>> {
    let under = |(figure, end): &(Figure, usize)| {
        let at = header.iter().position(|(_, of_name)| of_name == end)?;
        Some((*columns.get(at)?, *figure))
    };
    row.iter().map(under).collect()
}
