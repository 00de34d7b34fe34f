//! One table of `free`: columns by name, rows of figures.

use super::options::FreeOptions;

use super::sums;
use crate::forms::size_unit::SizeUnit;
use crate::text::figure::{Base, PrintedFigure};
use crate::text::times::PrintedTime;

#[derive(Debug)]
pub(super) struct FreeTable<'a> {
    columns: Vec<&'a str>,
    /// Figures of RAM by column.
    mem: Vec<(&'a str, PrintedFigure)>,
    /// Total, used, free.
    pub(super) swap: Vec<PrintedFigure>,
    /// Limit, used, free (`-v`).
    pub(super) commit: Vec<PrintedFigure>,
    /// The unit of figures without a suffix. All figures are bytes already.
    pub(super) unit: SizeUnit,
    /// Whether it has the row `-/+ buffers/cache`.
    pub(super) has_sums: bool,
    /// The time before the table or its rows.
    pub(super) time: Option<PrintedTime>,
    /// How many lines it has.
    pub(super) lines: usize,
    /// Problems: line within the table, and text.
    pub(super) problems: Vec<(usize, String)>,
}

/// Columns of procps, for rows without an English header.
const OLD_COLUMNS: [&str; 6] = ["total", "used", "free", "shared", "buffers", "cached"];
const NEW_COLUMNS: [&str; 6] = ["total", "used", "free", "shared", "buff/cache", "available"];
const WIDE_COLUMNS: [&str; 7] =
    ["total", "used", "free", "shared", "buffers", "cache", "available"];

/// Names of the row of RAM, in English and in the translations of procps.
pub(super) const MEM: [&str; 15] = [
    "Mem",
    "Speicher",
    "Mém",
    "Mem.",
    "Memoria",
    "Memória",
    "Minne",
    "Pamięć",
    "Paměť",
    "Geheugen",
    "内存",
    "記憶體",
    "メモリ",
    "메모리",
    "Память",
];
/// Names of the row of swap.
pub(super) const SWAP: [&str; 17] = [
    "Swap",
    "Auslager",
    "Éch",
    "Échange",
    "Partition d'échange",
    "Inter",
    "Intercambio",
    "Växling",
    "Wymiana",
    "交换",
    "置換空間",
    "スワップ",
    "스왑",
    "Подкачка",
    "Partição",
    "Partition d’échange",
    "Partition d'échang",
];
/// Other rows: sums and parts.
const OTHERS: [&str; 5] = ["-/+ buffers/cache", "-/+", "Low", "High", "Total"];

/// At most 12 lines, more than the heading and rows of one table.
const LINES_MAX: usize = 12;

impl<'a> FreeTable<'a> {
    /// Reads the table at the start of the lines, after a time if there is one.
    pub(super) fn read(lines: &[&'a str], options: &FreeOptions) -> Option<Self> {
        let mut table = Self {
            columns: Vec::new(),
            mem: Vec::new(),
            swap: Vec::new(),
            commit: Vec::new(),
            unit: SizeUnit::KIB,
            has_sums: false,
            time: PrintedTime::whole(lines.first()?),
            lines: 0,
            problems: Vec::new(),
        };
        if table.time.is_some() {
            let blank = lines.get(1).is_some_and(|line| line.is_empty());
            table.lines = 1 + usize::from(blank);
        }
        let header = table.read_header(lines);
        let mut row = table.read_rows(lines, options.base)?;
        table.scale(&mut row, options);
        table.assign(header, row);
        Some(table)
    }

    /// Reads the header if there is one: names, and the columns in which they end.
    fn read_header(&mut self, lines: &[&'a str]) -> Vec<(&'a str, usize)> {
        let Some(line) = lines.get(self.lines) else {
            return Vec::new();
        };
        let (time, text) = stamped(line);
        let text = text.trim_start_matches(['-', ' ']);
        // Before a row in another language any line of names is a header.
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

    /// Reads the rows. Returns the figures of RAM and the columns in which they end; `None` without a row of RAM.
    fn read_rows(&mut self, lines: &[&'a str], base: Base) -> Option<Vec<(PrintedFigure, usize)>> {
        let mut mem = Vec::new();
        while let Some(line) = lines.get(self.lines).filter(|_| self.lines < LINES_MAX) {
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
        // Total, used and free.
        (mem.len() >= 3).then_some(mem)
    }

    /// The figures of a row, up to the first word that is none.
    fn figures(&mut self, line: &str, rest: &str, base: Base) -> Vec<(PrintedFigure, usize)> {
        let mut figures = Vec::new();
        for (word, end) in words(line, line.len() - rest.len()) {
            let Some(figure) = PrintedFigure::parse(word, base) else {
                let shown: String = word.chars().take(30).collect();
                let problem = format!("`{shown}` is not a size; the rest of the line is not used");
                self.problems.push((self.lines, problem));
                break;
            };
            figures.push((figure, end));
        }
        figures
    }

    /// Converts all figures to bytes.
    fn scale(&mut self, row: &mut [(PrintedFigure, usize)], options: &FreeOptions) {
        let mem = row.iter_mut().map(|(figure, _)| figure);
        let mut figures: Vec<&mut PrintedFigure> =
            mem.chain(&mut self.swap).chain(&mut self.commit).collect();
        let shown: Vec<PrintedFigure> = figures.iter().map(|figure| **figure).collect();
        self.unit = options.unit(&shown);
        for figure in &mut figures {
            **figure = figure.in_bytes(self.unit.bytes);
        }
    }

    /// Assigns the figures of RAM to columns, and drops those that are not plausible.
    fn assign(&mut self, header: Vec<(&'a str, usize)>, row: Vec<(PrintedFigure, usize)>) {
        let figures: Vec<PrintedFigure> = row.iter().map(|(figure, _)| *figure).collect();
        self.columns = columns(&header, &figures);
        let is_truncated = row.len() < header.len();
        let names = self.columns.iter().copied();
        self.mem = names.zip(figures).collect();
        if is_truncated {
            // Any cell may be missing after the first three, which all versions print.
            self.mem = aligned(&header, &self.columns, &row)
                .unwrap_or_else(|| self.mem.iter().take(3).copied().collect());
        }
        let at = self.lines.saturating_sub(1);
        if let Some(fault) = sums::check(&self.mem, is_truncated) {
            self.problems.push((at, fault.problem));
            self.mem.retain(|(name, _)| fault.keep.contains(name));
        }
        if let Some(problem) = sums::check_swap(&self.swap) {
            self.problems.push((at, problem));
            self.swap.clear();
        }
    }

    /// Whether it has a column.
    pub(super) fn has(&self, column: &str) -> bool {
        self.columns.contains(&column)
    }

    /// The figure of RAM in a column.
    pub(super) fn figure(&self, column: &str) -> Option<PrintedFigure> {
        sums::figure(&self.mem, column)
    }

    /// The version of procps, human-readable, and its meaning of "used".
    pub(super) fn version(&self) -> &'static str {
        if !self.has("available") {
            return "procps before 3.3.10: used includes the cache";
        }
        if sums::is_since_4(&self.mem) {
            "procps 4: used is total − available"
        } else {
            "procps 3.3.10 or later: used is without cache"
        }
    }
}

/// The time at the start of a row, if any, and the rest.
pub(super) fn stamped(line: &str) -> (Option<PrintedTime>, &str) {
    match PrintedTime::leading(line) {
        Some((time, rest)) => (Some(time), rest.strip_prefix("- ").unwrap_or(rest).trim_start()),
        None => (None, line.trim_start()),
    }
}

/// The words of a line from an offset, each with the column in which it ends.
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

/// The names of the columns: those of an English header, else by their number and sums.
fn columns<'a>(header: &[(&'a str, usize)], figures: &[PrintedFigure]) -> Vec<&'a str> {
    // `total` is the first name in French and Spanish, too.
    let is_english = header.len() > 2
        && header
            .iter()
            .zip(["total", "used", "free"])
            .all(|((name, _), english)| *name == english);
    let is_new = header.get(4).is_some_and(|(name, _)| name.contains('/'));
    match figures.len().max(header.len()) {
        _ if is_english => header.iter().map(|(name, _)| *name).collect(),
        7 => WIDE_COLUMNS.to_vec(),
        _ if !is_new && sums::is_before_3_3_10(figures) => OLD_COLUMNS.to_vec(),
        _ => NEW_COLUMNS.to_vec(),
    }
}

/// Assigns figures to the names above them: both end in the same column. `None` if a figure has no name above it.
fn aligned<'a>(
    header: &[(&'a str, usize)],
    columns: &[&'a str],
    row: &[(PrintedFigure, usize)],
) -> Option<Vec<(&'a str, PrintedFigure)>> {
    let under = |(figure, end): &(PrintedFigure, usize)| {
        let at = header.iter().position(|(_, of_name)| of_name == end)?;
        Some((*columns.get(at)?, *figure))
    };
    row.iter().map(under).collect()
}
