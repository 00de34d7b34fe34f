//! Tables of `free` that a page, a document or a table of facts laid out anew: all rows in one line, wrapped anywhere, with a
//! blank line after each, or cells between bars. The rows are restored; the reader of tables reads them.

use super::table::{MEM, SWAP};
use crate::text::figure::PrintedFigure;

/// At most 3 lines of a wrapped line of all rows, and 8 of a table with bars.
const WRAPPED_MAX: usize = 3;
const BARRED_MAX: usize = 8;
/// At most a heading, the row of RAM, that of sums and that of swap.
const SPACED_MAX: usize = 4;
/// The rows of a longer line are not searched for.
const LINE_LEN_MAX: usize = 4096;

/// A table as `free` prints it.
#[derive(Debug)]
pub(super) struct RelaidTable {
    /// The heading if there is an English one, and the rows.
    pub(super) rows: Vec<String>,
    /// How many lines of the text they took.
    pub(super) lines: usize,
}

impl RelaidTable {
    /// The table that begins in the first line.
    pub(super) fn of(lines: &[&str]) -> Option<Self> {
        Self::flattened(lines).or_else(|| Self::barred(lines)).or_else(|| Self::spaced(lines))
    }

    /// The heading, a blank line, and rows with a blank line between them.
    fn spaced(lines: &[&str]) -> Option<Self> {
        let is_blank = |at: usize| lines.get(at).is_some_and(|line| line.trim().is_empty());
        let heading = lines.first()?.trim();
        if !heading.starts_with("total") || !is_blank(1) {
            return None;
        }
        let mut rows = vec![heading.to_owned()];
        let mut taken = 1;
        while rows.len() < SPACED_MAX && is_blank(taken) {
            let Some(row) = lines.get(taken + 1).map(|line| line.trim()) else {
                break;
            };
            let name = row.split([':', '：']).next().unwrap_or_default();
            if !(MEM.contains(&name) || SWAP.contains(&name) || name.starts_with("-/+")) {
                break;
            }
            rows.push(row.to_owned());
            taken += 2;
        }
        (rows.len() >= 2).then_some(Self { rows, lines: taken })
    }

    /// `total used free shared buff/cache available Mem: 2038576 670716 … Swap: 1557568 769096 788472`.
    fn flattened(lines: &[&str]) -> Option<Self> {
        let first = *lines.first().filter(|line| line.len() <= LINE_LEN_MAX)?;
        let at = row_start(first, &MEM)?;
        let heading = heading_before(first.get(..at)?);
        let is_row = |text: &str| figures(text, &MEM).1 >= 3;
        // A row alone is a table with its rows in lines.
        if heading.is_none() && row_start(first.get(at..)?, &SWAP).is_none() {
            return None;
        }
        let mut joined = first.get(at..)?.to_owned();
        let mut taken = 1;
        // A wrapped line goes on with the figures that are missing.
        while taken < WRAPPED_MAX && !is_complete(&joined) {
            let next = lines.get(taken).map(|line| line.trim_start());
            let starts = |line: &str| {
                let is_figure = line
                    .split_whitespace()
                    .next()
                    .is_some_and(|word| PrintedFigure::binary(word).is_some());
                is_figure || row_start(line, &SWAP) == Some(0)
            };
            let Some(next) = next.filter(|line| line.len() <= LINE_LEN_MAX && starts(line)) else {
                break;
            };
            joined.push(' ');
            joined.push_str(next);
            taken += 1;
        }
        if !is_row(&joined) {
            return None;
        }
        let mut rows: Vec<String> = heading.map(str::to_owned).into_iter().collect();
        let (end, _) = figures(&joined, &MEM);
        rows.push(joined.get(..end)?.to_owned());
        let rest = joined.get(end..)?;
        if let Some(swap) = row_start(rest, &SWAP).and_then(|at| rest.get(at..)) {
            let (end, count) = figures(swap, &SWAP);
            rows.extend(swap.get(..end).filter(|_| count >= 3).map(str::to_owned));
        }
        Some(Self { rows, lines: taken })
    }

    /// `| | total | used | …`, `|---|---|`, `| Mem: | 31G | …`.
    fn barred(lines: &[&str]) -> Option<Self> {
        let mut rows = Vec::new();
        let mut taken = 0;
        for line in lines.iter().take(BARRED_MAX) {
            if !line.contains('|') || line.len() > LINE_LEN_MAX {
                break;
            }
            taken += 1;
            if line.bytes().all(|byte| b" |-+:=".contains(&byte)) {
                // One rule, below the heading.
                if rows.len() != 1 || taken > 2 {
                    break;
                }
                continue;
            }
            let plain = line.replace(['*', '`'], "");
            let mut cells = plain.trim().trim_matches('|').split('|').map(str::trim);
            let first = cells.next()?;
            let name = first.trim_end_matches([':', '：']);
            let is_row = MEM.contains(&name) || SWAP.contains(&name);
            let rest = cells.collect::<Vec<_>>().join(" ");
            rows.push(if is_row {
                format!("{name}: {rest}")
            } else {
                format!("{first} {rest}").trim().to_owned()
            });
        }
        (rows.len() >= 2).then_some(Self { rows, lines: taken })
    }
}

/// The English heading at the end of a text.
fn heading_before(text: &str) -> Option<&str> {
    let heading = text.get(text.rfind("total")?..)?.trim_end();
    let mut words = heading.split_whitespace();
    let is_one = ["total", "used", "free"].iter().all(|name| words.next() == Some(name));
    (is_one && words.count() <= 4).then_some(heading)
}

/// Where a row with one of the names begins: at the start of a word, with a colon behind the name.
fn row_start(text: &str, names: &[&str]) -> Option<usize> {
    let begins = |name: &&str| {
        text.match_indices(*name).find_map(|(at, _)| {
            let is_word = text.get(..at)?.chars().next_back().is_none_or(|c| !c.is_alphanumeric());
            let has_colon = text.get(at + name.len()..)?.starts_with([':', '：']);
            (is_word && has_colon).then_some(at)
        })
    };
    names.iter().filter_map(begins).min()
}

/// Where the figures of the row at the start of a text end, and how many there are.
fn figures(text: &str, names: &[&str]) -> (usize, usize) {
    let rest_behind = |name: &&str| {
        let rest = text.strip_prefix(*name)?;
        rest.strip_prefix([':', '：'])
    };
    let Some(mut rest) = names.iter().find_map(rest_behind) else {
        return (0, 0);
    };
    let mut count = 0;
    // `free` has at most 7 columns.
    while count < 7 {
        let from = rest.trim_start();
        let word = from.split_whitespace().next().unwrap_or_default();
        let Some(after) = from.strip_prefix(word).filter(|_| !word.is_empty()) else {
            break;
        };
        if PrintedFigure::binary(word).is_none() {
            break;
        }
        rest = after;
        count += 1;
    }
    (text.len() - rest.len(), count)
}

/// Whether a line has all rows: six figures of RAM, three of swap.
fn is_complete(line: &str) -> bool {
    let (end, count) = figures(line, &MEM);
    let swap = || {
        let rest = line.get(end..)?;
        let swap = rest.get(row_start(rest, &SWAP)?..)?;
        Some(figures(swap, &SWAP).1)
    };
    count >= 6 && swap().is_some_and(|count| count >= 3)
}
