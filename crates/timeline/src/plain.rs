//! Makes text from the host harmless wherever it is shown: any user may choose the name of a process or a file.
//!
//! Characters that control the terminal (control characters, ESC), reorder the line (bidirectional marks) or hide
//! (zero-width characters) become visible escapes: `\x1b`, `\u{202e}`. A backslash stays unchanged, so that systemd's
//! `dev-disk-by\x2duuid.swap` stays readable; escaping twice therefore changes nothing.

use std::borrow::Cow;
use std::fmt::Write as _;

use unicode_width::UnicodeWidthChar;

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

/// Whether a character is shown as it is: it neither controls the terminal nor hides nor reorders.
pub fn is_plain(c: char) -> bool {
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
}
