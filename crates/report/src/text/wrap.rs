//! Wraps text to terminal cells. Its output is escaped.

use crate::plain::char_width;
pub(super) use crate::plain::{cut, width};
use timeline::plain::escape;

/// Returns the text padded with blanks to `cells`.
pub(super) fn pad(text: &str, cells: usize) -> String {
    let blanks = cells.saturating_sub(width(text));
    format!("{text}{}", " ".repeat(blanks))
}

/// Returns a name in at most `most` cells: the end of a path, the begin of others.
pub(super) fn cut_name(name: &str, most: usize) -> String {
    if name.starts_with('/') { cut_front(name, most) } else { cut(name, most) }
}

/// Returns the end of a text in at most `most` cells, with `…` before it where something was cut: the end of a path says
/// most.
pub(super) fn cut_front(text: &str, most: usize) -> String {
    let text = escape(text);
    if width(&text) <= most {
        return text.into_owned();
    }
    let mut left = most.saturating_sub(1);
    let mut tail: Vec<char> = Vec::new();
    for c in text.chars().rev() {
        match left.checked_sub(char_width(c)) {
            Some(rest) => left = rest,
            None => break,
        }
        tail.push(c);
    }
    // Whole names are easier to read, if not much is lost.
    let whole = tail.iter().rposition(|c| *c == '/');
    if let Some(slash) = whole.filter(|slash| *slash > tail.len() / 2) {
        tail.truncate(slash + 1);
    }
    std::iter::once('…').chain(tail.into_iter().rev()).collect()
}

/// Returns the text in lines of at most `most` cells, broken at blanks; a word longer than a line is split. Empty text
/// gives no line.
pub(super) fn wrap(text: &str, most: usize) -> Vec<String> {
    let text = escape(text);
    fill(&glue(&text), " ", most)
}

/// Returns the items in lines of at most `most` cells, joined with `separator`.
pub(super) fn wrap_items(items: &[String], separator: &str, most: usize) -> Vec<String> {
    let items: Vec<String> = items.iter().map(|item| escape(item).into_owned()).collect();
    fill(&items, separator, most)
}

/// Splits off as much as fits in a line: if not all, up to the last blank in it, if there is one.
fn split_at_blank(text: &str, most: usize) -> (&str, &str) {
    let (head, tail) = split_at_width(text, most);
    match head.rsplit_once(' ').filter(|_| !tail.is_empty()) {
        Some((head, _)) => (head, text.strip_prefix(head).unwrap_or(tail).trim_start()),
        None => (head, tail),
    }
}

fn fill(words: &[String], separator: &str, most: usize) -> Vec<String> {
    let most = most.max(1);
    let mut lines = Vec::new();
    let mut line = String::new();
    let mut used = 0;
    for word in words {
        let cells = width(word);
        if !line.is_empty() {
            if used + width(separator) + cells <= most {
                line.push_str(separator);
                line.push_str(word);
                used += width(separator) + cells;
                continue;
            }
            lines.push(std::mem::take(&mut line));
        }
        let mut rest = word.as_str();
        loop {
            let (head, tail) = split_at_blank(rest, most);
            if tail.is_empty() {
                line.push_str(head);
                used = width(head);
                break;
            }
            lines.push(head.to_owned());
            rest = tail;
        }
    }
    if !line.is_empty() {
        lines.push(line);
    }
    lines
}

/// Splits so that the head takes at most `most` cells, but at least one character.
fn split_at_width(text: &str, most: usize) -> (&str, &str) {
    let mut used = 0;
    for (at, c) in text.char_indices() {
        used += char_width(c);
        if used > most && at > 0 {
            return text.split_at(at);
        }
    }
    (text, "")
}

/// Returns the words; a number and the word after it count as one, as that may be its unit: `9.9 MiB/s` is not split.
fn glue(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut is_after_number = false;
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        match words.last_mut().filter(|_| is_after_number) {
            Some(number) => {
                number.push(' ');
                number.push_str(word);
            }
            None => words.push(word.to_owned()),
        }
        is_after_number = word.ends_with(|c: char| c.is_ascii_digit())
            && !word.contains(|c: char| c.is_alphabetic());
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_at_blanks_and_long_words_where_they_must() {
        assert_eq!(wrap("one two three", 8), ["one two", "three"]);
        assert_eq!(wrap("a abcdefghij b", 4), ["a", "abcd", "efgh", "ij b"]);
        assert_eq!(wrap("", 10), Vec::<String>::new());
    }

    #[test]
    fn a_number_keeps_its_unit() {
        assert_eq!(
            wrap("it read 9.9 MiB/s, then less", 12),
            ["it read", "9.9 MiB/s,", "then less"]
        );
        assert_eq!(wrap("for 61 % of it", 6), ["for", "61 %", "of it"]);
        assert_eq!(wrap("about (-1.5 ms) in 3 parts", 11), ["about", "(-1.5 ms)", "in 3 parts"]);
    }

    #[test]
    fn a_name_that_ends_with_a_digit_is_no_number() {
        assert_eq!(
            wrap("it is sda1 that waits in 2022, then", 10),
            ["it is sda1", "that waits", "in 2022,", "then"]
        );
    }

    #[test]
    fn wide_letters_count_twice() {
        assert_eq!(width("日本"), 4);
        assert_eq!(wrap("日本語", 4), ["日本", "語"]);
        assert_eq!(cut("日本語", 5), "日本…");
        assert_eq!(cut("日本語", 6), "日本語");
    }

    #[test]
    fn items_stay_whole_and_no_line_ends_with_their_separator() {
        let items = ["one more".to_owned(), "two".to_owned(), "three".to_owned()];
        assert_eq!(wrap_items(&items, " · ", 14), ["one more · two", "three"]);
    }

    #[test]
    fn an_item_that_is_too_long_is_broken_at_its_blanks() {
        let items = ["7 d of a recording".to_owned(), "judged every 60 s".to_owned()];
        assert_eq!(
            wrap_items(&items, " · ", 10),
            ["7 d of a", "recording", "judged", "every 60 s"]
        );
    }
}
