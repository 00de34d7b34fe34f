//! The rows of `vmstat` and the names of their columns, across repeated headings and blank lines.

use super::options::VmstatOptions;
use crate::text::times::PrintedTime;

/// The rows of one run.
#[derive(Debug)]
pub(super) struct VmstatRows<'a> {
    columns: Vec<&'a str>,
    /// Whether a mail broke the heading, and so the rows, in two lines.
    is_wrapped: bool,
    /// Whether `pmrep :vmstat` of PCP printed them: it has no rates for the first row.
    pub(super) is_pmrep: bool,
    pub(super) rows: Vec<VmstatRow>,
    /// How many lines they have, with headings.
    pub(super) lines: usize,
    /// Rows that do not fit the heading.
    pub(super) not_understood: usize,
    /// Problems: line and text.
    pub(super) problems: Vec<(usize, String)>,
}

#[derive(Debug)]
pub(super) struct VmstatRow {
    figures: Vec<u64>,
    /// Its time, if printed.
    pub(super) time: Option<PrintedTime>,
    /// Its line within the block.
    pub(super) at: usize,
}

/// All columns without `-a`.
const COLUMNS: [&str; 18] = [
    "r", "b", "swpd", "free", "buff", "cache", "si", "so", "bi", "bo", "in", "cs", "us", "sy",
    "id", "wa", "st", "gu",
];
/// The column of swapped-out tasks, in Linux 2.4.
const OLD_COLUMNS: [&str; 1] = ["w"];
/// The columns that `-a` prints instead of buff and cache.
const ACTIVE: [&str; 2] = ["inact", "active"];
/// Index of the first share of CPU time in rows without a heading.
const FIRST_SHARE: usize = 12;
/// A heading after fewer rows starts another run, in which the first row is an average since boot.
const PAGE_MIN: usize = 10;
/// At least 4 figures a row: tasks, swap and free memory.
const FEWEST: usize = 4;

impl<'a> VmstatRows<'a> {
    /// Reads the rows at the start of the lines.
    pub(super) fn read(lines: &[&'a str], options: &VmstatOptions) -> Option<Self> {
        let mut rows = Self {
            columns: Vec::new(),
            is_wrapped: false,
            is_pmrep: false,
            rows: Vec::new(),
            lines: 0,
            not_understood: 0,
            problems: Vec::new(),
        };
        match heading(lines) {
            Some(heading) => {
                rows.columns = heading.columns;
                rows.lines = heading.lines;
                rows.is_wrapped = heading.is_wrapped;
            }
            None => rows.columns = without_heading(lines, options)?,
        }
        rows.is_pmrep = lines.get(rows.lines).is_some_and(|line| line.contains(" N/A "));
        rows.read_rows(lines);
        (!rows.rows.is_empty()).then_some(rows)
    }

    fn read_rows(&mut self, lines: &[&'a str]) {
        let mut page_from = 0;
        let mut at = self.lines;
        while let Some(line) = lines.get(at) {
            if let Some(heading) = heading(&lines[at..]) {
                if heading.columns != self.columns || self.rows.len() - page_from < PAGE_MIN {
                    break;
                }
                page_from = self.rows.len();
                at += heading.lines;
                continue;
            }
            let is_blank = line.is_empty() && !self.rows.is_empty();
            if is_blank && lines.get(at + 1).is_some_and(|next| !next.is_empty()) {
                at += 1;
                continue;
            }
            let wrapped = || self.wrapped_row(lines, at);
            let whole = || row(line, at, self.columns.len()).map(|row| (row, 1));
            let Some((row, taken)) = wrapped().or_else(whole) else {
                break;
            };
            at += taken;
            self.lines = at;
            self.add(row);
        }
    }

    /// The row in two lines, which together have all its figures.
    fn wrapped_row(&self, lines: &[&str], at: usize) -> Option<(VmstatRow, usize)> {
        let (line, next) = (lines.get(at)?, lines.get(at + 1)?);
        let joined = format!("{line} {next}");
        let row = self.is_wrapped.then(|| row(&joined, at, self.columns.len()))??;
        (row.figures.len() == self.columns.len()).then_some((row, 2))
    }

    /// Adds a row if its shares of CPU time add up to 100 %; those of `pmrep` are rates over the time on a clock, and need not.
    fn add(&mut self, row: VmstatRow) {
        let share = |column| self.figure(&row, column);
        let shares = ["us", "sy", "id", "wa", "st"].map(share);
        let sum: Option<f64> = shares.into_iter().sum();
        // Each is rounded. Old versions do not print stolen time, and some machines print zeros only.
        let is_plausible =
            |sum: f64| sum < 0.5 || (90.0..=105.0).contains(&(sum + share("gu").unwrap_or(0.0)));
        if self.is_pmrep || sum.is_none_or(is_plausible) {
            self.rows.push(row);
            return;
        }
        if self.not_understood == 0 {
            let problem = "the shares of CPU time do not add up to 100: columns are shifted, the \
                           row is not used";
            self.problems.push((row.at, problem.to_owned()));
        }
        self.not_understood += 1;
    }

    /// The figure of a row in a column.
    pub(super) fn figure(&self, row: &VmstatRow, column: &str) -> Option<f64> {
        let at = self.columns.iter().position(|name| *name == column)?;
        #[allow(clippy::cast_precision_loss)] // sizes and rates far below 2^53
        row.figures.get(at).map(|figure| *figure as f64)
    }
}

/// The heading of a run.
struct VmstatHeading<'a> {
    columns: Vec<&'a str>,
    lines: usize,
    is_wrapped: bool,
}

/// The heading at the start of the lines: the names of the columns, perhaps below a line of groups, each of them perhaps
/// broken in two.
fn heading<'a>(lines: &[&'a str]) -> Option<VmstatHeading<'a>> {
    let first = lines.first()?;
    let is_band = first.contains("procs") && first.contains("memory");
    let is_dashes = |line: &&&str| line.starts_with('-') && line.ends_with('-');
    let is_broken_band = is_band && lines.get(1).as_ref().is_some_and(is_dashes);
    let above = usize::from(is_band) + usize::from(is_broken_band);
    let mut columns: Vec<&str> = names_in(stamped(lines.get(above)?).1).collect();
    let has = |names: &[&str]| names.iter().all(|name| columns.contains(name));
    if !has(&["free", "si", "so"]) && !has(&["r", "b", "swpd", "free"]) {
        return None;
    }
    let rest: Vec<&str> = lines.get(above + 1).map_or(Vec::new(), |line| {
        let names: Vec<&str> = names_in(line.trim()).collect();
        let is_rest = names.len() == line.split_whitespace().count();
        if is_rest { names } else { Vec::new() }
    });
    let is_wrapped = !rest.is_empty() && rest.iter().all(|name| !columns.contains(name));
    if is_wrapped {
        columns.extend(rest);
    }
    Some(VmstatHeading { columns, lines: above + 1 + usize::from(is_wrapped), is_wrapped })
}

/// The names of columns at the start of a text.
fn names_in(text: &str) -> impl Iterator<Item = &str> {
    let known =
        |word: &&str| COLUMNS.contains(word) || ACTIVE.contains(word) || OLD_COLUMNS.contains(word);
    text.split(' ').filter(|w| !w.is_empty()).take_while(known)
}

/// The columns of rows without a heading, if `vmstat` was run or two lines in a row have its form.
fn without_heading(lines: &[&str], options: &VmstatOptions) -> Option<Vec<&'static str>> {
    let columns_in = |line: &&str| {
        let row = row(line, 0, COLUMNS.len()).filter(|row| row.figures.len() >= 16)?;
        let sum = row.figures[FIRST_SHARE..].iter().try_fold(0u64, |sum, n| sum.checked_add(*n));
        sum.filter(|sum| (98..=102).contains(sum)).map(|_| row.figures.len())
    };
    let count = columns_in(lines.first()?)?;
    let is_sure = options.ran || lines.get(1).and_then(columns_in) == Some(count);
    let mut columns = COLUMNS[..count].to_vec();
    let memory: &[&str] = match (options.ran, options.active) {
        (_, true) => &ACTIVE,
        (true, false) => &COLUMNS[4..6],
        // Unknown: it may have been run with -a.
        (false, false) => &["", ""],
    };
    columns[4..6].copy_from_slice(memory);
    is_sure.then_some(columns)
}

/// Whether a line may be a row without a heading: it has many figures and little else.
pub(super) fn may_be_row(line: &str) -> bool {
    if line.len() < 31 || !line.ends_with(|c: char| c.is_ascii_digit()) {
        return false;
    }
    let (mut figures, mut others) = (0_usize, 0_usize);
    for byte in line.bytes() {
        match byte {
            b'0'..=b'9' | b' ' => figures += 1,
            _ => others += 1,
        }
    }
    figures >= 31 && figures > others
}

/// A row of figures, with a time before or after them. `None` if it has too few or too many.
fn row(line: &str, at: usize, most: usize) -> Option<VmstatRow> {
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
    let behind = || PrintedTime::leading(rest).map(|(time, _)| time);
    (figures.len() >= FEWEST.min(most)).then(|| VmstatRow {
        figures,
        time: before.or_else(behind),
        at,
    })
}

/// The time at the start of a line, if any, and the rest.
fn stamped(line: &str) -> (Option<PrintedTime>, &str) {
    match PrintedTime::leading(line) {
        Some((time, rest)) => (Some(time), rest),
        None => (None, line.trim_start()),
    }
}
