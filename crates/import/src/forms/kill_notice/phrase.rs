//! Words, quoted names and sizes in a message.

use probe::text::SplitText as _;
use units::Bytes;

use crate::text::figure::{KIB, PrintedFigure, raw};

/// At most 200 characters of a name.
const NAME_MAX: usize = 200;

/// A text cut to `most` characters, with one blank where a table has several.
pub(super) fn cut(text: &str, most: usize) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").chars().take(most).collect()
}

/// The same, with an ellipsis where something was cut off.
pub(super) fn shortened(text: &str, most: usize) -> String {
    let whole = cut(text, most + 1);
    if whole.chars().count() <= most {
        return whole;
    }
    let mut short = cut(&whole, most - 1);
    short.push('…');
    short
}

/// A name as a message gives it, without marks around it.
pub(super) fn name(text: &str) -> String {
    let is_mark = |c: char| "\"'`,;:.()[]{}*".contains(c) || c.is_whitespace();
    cut(text.trim_matches(is_mark), NAME_MAX)
}

/// The text behind a phrase.
pub(super) fn after<'a>(text: &'a str, phrase: &str) -> Option<&'a str> {
    text.around(phrase).map(|(_, rest)| rest)
}

/// The word behind a phrase, up to a blank.
pub(super) fn word_after<'a>(text: &'a str, phrase: &str) -> Option<&'a str> {
    let rest = after(text, phrase)?.trim_start();
    let word = rest.split_whitespace().next()?;
    (!word.is_empty()).then_some(word)
}

/// The word before a phrase.
pub(super) fn word_before<'a>(text: &'a str, phrase: &str) -> Option<&'a str> {
    let (front, _) = text.around(phrase)?;
    front.split_whitespace().next_back()
}

/// The text in quotation marks behind a phrase; the marks may be escaped.
pub(super) fn quoted_after<'a>(text: &'a str, phrase: &str) -> Option<&'a str> {
    let (_, rest) = after(text, phrase)?.split_once('"')?;
    let inner = rest.split('"').next()?;
    Some(inner.trim_end_matches('\\'))
}

/// The number at the start of a text.
pub(super) fn number(text: &str) -> Option<u32> {
    let text = text.trim_start();
    let end = text.find(|c: char| !c.is_ascii_digit());
    text.get(..end.unwrap_or(text.len()))?.parse().ok()
}

/// A size as Kubernetes and tools write it: `166088Ki`, `2891 MiB`, `100M`, `0`.
pub(super) fn size(text: &str) -> Option<Bytes> {
    let text = text.trim_start();
    let is_of_size = |c: char| c.is_ascii_digit() || c == '.';
    let digits = text.find(|c: char| !is_of_size(c)).unwrap_or(text.len());
    let (value, rest) = text.split_at_checked(digits)?;
    let value: f64 = value.trim_end_matches('.').parse().ok()?;
    let unit: String = rest.trim_start().chars().take_while(|c| c.is_ascii_alphabetic()).collect();
    let factor = match unit.as_str() {
        "" => 1.0,
        "k" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        "T" => 1e12,
        _ => {
            let figure = PrintedFigure::binary(&format!("1{unit}"))?;
            figure.in_bytes(KIB).value
        }
    };
    raw(value * factor).map(Bytes::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units_of_kubernetes_and_of_tools() {
        for (text, expected) in [
            ("166088Ki, which", Some(166_088 << 10)),
            ("10Mi.", Some(10 << 20)),
            ("1Gi", Some(1 << 30)),
            ("2891 MiB", Some(2891 << 20)),
            ("100M", Some(100_000_000)),
            ("0.", Some(0)),
            ("-2097758044639028Ki", None),
            ("many", None),
            ("", None),
        ] {
            assert_eq!(size(text), expected.map(Bytes::new), "{text}");
        }
    }
}
