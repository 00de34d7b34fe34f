//! The width and the length of text from the host: see [`timeline::plain`] for what makes it harmless.

use timeline::plain::escape;
use unicode_width::UnicodeWidthChar;

/// At most 400 characters of a word: a longer one is a chosen name, which its start distinguishes. Cgroup paths of
/// containers have some 220 characters.
const WORD_LEN_MAX: usize = 400;
/// At most 2,000 characters of a text: no sentence is longer.
const TEXT_LEN_MAX: usize = 2_000;

/// Returns the text with escapes and of bounded length; markup is not escaped.
pub(crate) fn harmless(text: &str) -> String {
    short(&escape(text))
}

/// Bounds the length of the words and of the text; what is cut ends with `…`.
fn short(text: &str) -> String {
    let mut kept = String::with_capacity(text.len().min(TEXT_LEN_MAX + 4));
    let (mut of_word, mut of_text) = (0, 0);
    for c in text.chars() {
        of_word = if c.is_whitespace() { 0 } else { of_word + 1 };
        if of_word > WORD_LEN_MAX + 1 {
            continue;
        }
        if of_text == TEXT_LEN_MAX {
            kept.push('…');
            break;
        }
        of_text += 1;
        kept.push(if of_word > WORD_LEN_MAX { '…' } else { c });
    }
    kept
}

/// Returns the terminal cells that the text takes after escaping.
pub fn width(text: &str) -> usize {
    escape(text).chars().map(char_width).sum()
}

pub(crate) fn char_width(c: char) -> usize {
    c.width().unwrap_or_default()
}

/// Returns the text, cut with `…` if it is wider than `most` cells.
pub(crate) fn cut(text: &str, most: usize) -> String {
    let text = escape(text);
    if width(&text) <= most {
        return text.into_owned();
    }
    let mut short = String::new();
    let mut used = 0;
    for c in text.chars() {
        if used + char_width(c) + 1 > most {
            break;
        }
        used += char_width(c);
        short.push(c);
    }
    short.push('…');
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_and_texts_are_cut() {
        let name = "x".repeat(4096);
        let shown = short(&format!("before {name} after"));
        assert_eq!(shown.chars().count(), 7 + WORD_LEN_MAX + 1 + 6);
        assert!(shown.ends_with("x… after"), "{shown}");
        let words = "word ".repeat(4096);
        let shown = short(&words);
        assert_eq!(shown.chars().count(), TEXT_LEN_MAX + 1);
        assert!(shown.ends_with('…'));
    }
}
