//! Makes text from the host harmless wherever it is shown: any user may choose the name of a process or a file.
//!
//! Characters that control the terminal (control characters, ESC), reorder the line (bidirectional marks) or hide
//! (zero-width characters) become visible escapes: `\x1b`, `\u{202e}`. A backslash stays unchanged, so that systemd's
//! `dev-disk-by\x2duuid.swap` stays readable; escaping twice therefore changes nothing.

use std::borrow::Cow;
use std::fmt::Write as _;

use unicode_width::UnicodeWidthChar;

/// At most 400 characters of a word: a longer one is a chosen name, which its start distinguishes. Cgroup paths of
/// containers have some 220 characters.
const WORD_LEN_MAX: usize = 400;
/// At most 2,000 characters of a text: no sentence is longer.
const TEXT_LEN_MAX: usize = 2_000;
/// At most 2 accents on one letter: no script needs more, and further ones smear over the lines above.
const ACCENTS_MAX: usize = 2;

/// Returns the text with every character that is not plainly visible written as an escape.
pub fn escape(text: &str) -> Cow<'_, str> {
    if text.bytes().all(|byte| (0x20..0x7f).contains(&byte)) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 16);
    let mut accents = 0;
    for c in text.chars() {
        accents = if c.width() == Some(0) { accents + 1 } else { 0 };
        if is_plain(c) && accents <= ACCENTS_MAX {
            safe.push(c);
            continue;
        }
        accents = 0;
        // Writing to a String cannot fail.
        let _ = match c {
            '\n' => write!(safe, "\\n"),
            '\t' => write!(safe, "\\t"),
            '\r' => write!(safe, "\\r"),
            c if u32::from(c) < 0x80 => write!(safe, "\\x{:02x}", u32::from(c)),
            c => write!(safe, "\\u{{{:x}}}", u32::from(c)),
        };
    }
    Cow::Owned(safe)
}

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
pub(crate) fn width(text: &str) -> usize {
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

/// Whether a character is shown as it is: it neither controls the terminal nor hides nor reorders.
pub(crate) fn is_plain(c: char) -> bool {
    !steers(c) && !hides(c)
}

/// Control characters (C0, DEL, C1) and line separators.
fn steers(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}')
}

/// Unicode's `Default_Ignorable_Code_Point` (version 16), which has all bidirectional and zero-width marks, and the
/// interlinear annotation marks; and the two characters that XML does not have.
fn hides(c: char) -> bool {
    matches!(
        u32::from(c),
        0x00ad
            | 0x034f
            | 0x061c
            | 0x115f..=0x1160
            | 0x17b4..=0x17b5
            | 0x180b..=0x180f
            | 0x200b..=0x200f
            | 0x202a..=0x202e
            | 0x2060..=0x206f
            | 0x3164
            | 0xfe00..=0xfe0f
            | 0xfeff
            | 0xffa0
            | 0xfff0..=0xfffb
            | 0xfffe..=0xffff
            | 0x1bca0..=0x1bca3
            | 0x1d173..=0x1d17a
            | 0xe0000..=0xe0fff
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_hides_or_reorders_becomes_visible() {
        for (text, safe) in [
            ("hog", "hog"),
            ("\u{1b}[31mred", "\\x1b[31mred"),
            ("two\nlines\r\t.", "two\\nlines\\r\\t."),
            ("bell\u{7}", "bell\\x07"),
            ("\u{9b}2J", "\\u{9b}2J"),
            ("evil\u{202e}gpj.exe", "evil\\u{202e}gpj.exe"),
            ("a\u{200b}b\u{feff}", "a\\u{200b}b\\u{feff}"),
            ("no\u{fffe}XML\u{ffff}", "no\\u{fffe}XML\\u{ffff}"),
            ("日本語", "日本語"),
            ("cafe\u{301}", "cafe\u{301}"),
            ("z\u{301}\u{301}\u{301}", "z\u{301}\u{301}\\u{301}"),
        ] {
            assert_eq!(escape(text), safe);
        }
    }

    #[test]
    fn a_systemd_name_reads_as_it_is() {
        let name = r"dev-disk-by\x2duuid.swap";
        assert_eq!(escape(name), name);
    }

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
