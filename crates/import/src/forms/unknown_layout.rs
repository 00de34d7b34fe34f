//! Figures of memory in a layout that memtide does not know: a bot's bullets, a program's own log, a column of sizes. Nothing of
//! them is used; the answer quotes the first, and names what to paste. Asked only where a text has nothing else that is read.

use crate::block::TextBlock;
use crate::text::figure::PrintedFigure;

/// The name of the form.
pub(crate) const NAME: &str = "unknown layout";

/// Parts of words that are about memory, in lower case.
const WORDS: &[&str] = &[
    "mem",
    "ram",
    "rss",
    "anon",
    "swap",
    "heap",
    "cache",
    "buffers",
    "actual_",
    "speicher",
    "mémoire",
    "память",
    "内存",
];
/// Names of columns of memory, as tools shorten them.
const COLUMNS: [&str; 11] =
    ["free", "buff", "buffers", "cach", "cache", "cached", "slab", "used", "swap", "swpd", "rss"];
/// So many of them in a line are the head of a table.
const COLUMNS_MIN: usize = 3;
/// Fewer figures may be prose: a laptop with 16 GB of RAM.
const FIGURES_MIN: usize = 2;
/// So many lines of a size and nothing else but a name or a time are a list.
const SIZE_LINES_MIN: usize = 3;
/// A text is searched so far.
const LINES_MAX: usize = 10_000;
/// So many characters of a line are quoted.
const QUOTED_CHARS_MAX: usize = 60;

/// The lines with figures of memory as one block, and the first of them; `None` without any.
pub(crate) fn read(lines: &[&str]) -> Option<(usize, TextBlock)> {
    let lines = &lines[..lines.len().min(LINES_MAX)];
    let figures: Vec<usize> = lines.iter().map(|line| figures_of_memory(line)).collect();
    let sizes: Vec<bool> = lines.iter().map(|line| is_size_line(line)).collect();
    let are_figures = figures.iter().sum::<usize>() >= FIGURES_MIN;
    let are_sizes = sizes.iter().filter(|is_size| **is_size).count() >= SIZE_LINES_MIN;
    let has_figure = |at: &usize| {
        (are_figures && figures[*at] > 0) || (are_sizes && sizes[*at]) || is_table_head(lines[*at])
    };
    let first = (0..lines.len()).find(has_figure)?;
    let last = (0..lines.len()).rfind(has_figure)?;
    let mut block = TextBlock {
        what: "figures in a layout that memtide does not know".to_owned(),
        lines: last + 1 - first,
        ..TextBlock::default()
    };
    block.problem(format!("not used: {}", start_of(lines[first])));
    Some((first, block))
}

/// The start of a line in backticks.
fn start_of(line: &str) -> String {
    let text = line.trim().replace('`', "");
    let start: String = text.chars().take(QUOTED_CHARS_MAX).collect();
    let dots = if start.len() < text.len() { "…" } else { "" };
    format!("`{start}{dots}`")
}

/// How many figures a line has behind its first word of memory, or before it: `anon ~145.2 MB`, `RAM, 1745160`, `free 30MiB / 37MiB`.
fn figures_of_memory(line: &str) -> usize {
    let lower = line.to_lowercase();
    let mut words = lower.split(|c: char| !(c.is_alphanumeric() || c == '_'));
    if !words.any(|word| WORDS.iter().any(|part| word.starts_with(part) || word.ends_with(part))) {
        return 0;
    }
    figures(line).max(usize::from(is_pair(line)))
}

/// `SWAP, 0`: a name, a figure and nothing else.
fn is_pair(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().take(3).collect();
    let is_number = |word: &&str| PrintedFigure::binary(word).is_some();
    words.len() == 2 && words.last().is_some_and(is_number)
}

/// How many sizes with a unit, shares, and whole numbers of a size in bytes or KiB a line has.
fn figures(line: &str) -> usize {
    let is_mark = |c: char| c.is_whitespace() || "=:|/()[]{}<>~`\"'*;".contains(c);
    let mut words = line.split(is_mark).filter(|word| !word.is_empty()).peekable();
    let mut count = 0;
    while let Some(word) = words.next() {
        let word = word.trim_matches([',', '.']);
        // `145.2 MB` has a blank.
        let joined =
            words.peek().map(|unit| format!("{word}{}", unit.trim_end_matches([',', '.'])));
        let has_unit = |text: &str| PrintedFigure::with_unit(text).is_some();
        let is_share =
            || word.strip_suffix('%').is_some_and(|share| PrintedFigure::binary(share).is_some());
        let is_large = || word.len() >= 5 && word.bytes().all(|b| b.is_ascii_digit());
        count += usize::from(
            has_unit(word) || joined.as_deref().is_some_and(has_unit) || is_share() || is_large(),
        );
    }
    count
}

/// `112.4MiB`, `postgres 79.49MiB`, `01:00:51  190,4 MB`.
fn is_size_line(line: &str) -> bool {
    /// A name or a time, a size, its unit.
    const WORDS_MAX: usize = 3;
    let words: Vec<&str> = line.split_whitespace().take(WORDS_MAX + 1).collect();
    let [.., before, last] = words.as_slice() else {
        return words.first().is_some_and(|word| PrintedFigure::with_unit(word).is_some());
    };
    words.len() <= WORDS_MAX
        && (PrintedFigure::with_unit(last).is_some()
            || PrintedFigure::with_unit(&format!("{before}{last}")).is_some())
}

/// `free buff cach inac slab`.
fn is_table_head(line: &str) -> bool {
    let words = line.split_whitespace();
    let is_column = |word: &&str| COLUMNS.contains(&word.to_ascii_lowercase().as_str());
    words.filter(is_column).count() >= COLUMNS_MIN
}

#[cfg(test)]
mod tests {
    use super::read;
    use crate::open_bytes;

    #[test]
    fn figures_in_any_layout_are_named_and_not_used() {
        for (text, quoted, lines) in [
            (
                "## State\n- `MemoryCurrent ~6.61 -> 6.62 GB`\n- (`anon ~140.2 MB`)\n",
                "- MemoryCurrent",
                (2, 3),
            ),
            ("RAM use: 431 MB / Frei: 2% = 280 MB [Host: x]\n", "RAM use", (1, 1)),
            ("<key>, <value>\nRAM, 1745160\nSWAP, 0\n", "RAM, 1745160", (2, 3)),
            ("after 2 days:\n111.4MiB \n112MiB\n* snip *\n193.1MiB\n", "111.4MiB", (2, 5)),
            ("First:\npostgres 79.1MiB\nvalkey 3.5MiB\nweb 64.1 MiB\n", "postgres 79.1MiB", (2, 4)),
            ("actual_used: 5541707776\nactual_free: 11330469888\n", "actual_used", (1, 2)),
            (
                "#cpu sys inter ctxsw free buff cach slab\n 1 0 847 12 1G 264M 3G 1G\n",
                "#cpu sys",
                (1, 1),
            ),
            ("[memory_pressure] free 30MiB / 37MiB (80.11 %)\n", "[memory_pressure]", (1, 1)),
        ] {
            let opened = open_bytes("x.txt", text.as_bytes()).unwrap();
            assert!(opened.timeline.is_empty(), "{text}");
            let [input] = opened.origin.inputs.as_slice() else {
                panic!("{text}: {:?}", opened.origin.inputs);
            };
            assert!(opened.problems[0].contains(&format!("not used: `{quoted}")));
            assert_eq!((input.first_line, input.last_line), lines, "{text}");
            for at in (0..text.len()).filter(|at| text.is_char_boundary(*at)) {
                read(&text[at..].lines().collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn prose_and_other_figures_have_no_block() {
        for text in [
            "My laptop has 16GB of RAM.\n",
            "a memory of 1998\nframes: 12345678\n",
            "1 2 3\nfree at last\n",
            "backup.tar 12GiB\n",
        ] {
            assert!(open_bytes("x.txt", text.as_bytes()).is_err(), "{text}");
        }
    }
}
