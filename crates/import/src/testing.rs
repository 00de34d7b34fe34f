//! Pastes for tests.

use timeline::{Gauge, Signal, Source, Timeline};
use units::Bytes;

use crate::paste::Paste;
use crate::text::PlainText;

/// Reads a text as if it had been pasted.
pub(crate) fn paste(text: &str) -> Source {
    let mut paste = Paste::default();
    paste.read(&PlainText::from_bytes(text.as_bytes()), "", 1);
    paste.finish(timeline::SourceKind::Text)
}

/// Reads the text cut short, with lines dropped and with numbers replaced; nothing must panic. One paste reads all
/// variants, as making its parsers is most of the work.
pub(crate) fn survives(text: &str) {
    let mut into = Paste::default();
    let mut read = |text: &str| into.read(&PlainText::from_bytes(text.as_bytes()), "", 1);
    for at in (0..text.len()).filter(|at| text.is_char_boundary(*at)) {
        read(&text[..at]);
        read(&text[at..]);
    }
    let lines: Vec<&str> = text.lines().collect();
    for at in 0..lines.len() {
        read(&[&lines[..at], &lines[at + 1..]].concat().join("\n"));
    }
    for number in ["99999999999999999999", "18446744073709551615", "-1", "0", "1e308", "NaN"] {
        read(&with_numbers(text, number));
    }
    read(&text.replace(' ', ""));
    read(&text.replace(' ', "\u{3000}"));
    read(&text.to_uppercase());
    into.finish(timeline::SourceKind::Text);
}

/// Checks sizes of the host, in bytes, against the kernel's in KiB: within their rounding.
pub(crate) fn are_within_rounding(timeline: &Timeline, sizes: &[(Signal<Gauge<Bytes>>, u64)]) {
    for (signal, kib) in sizes {
        let read = timeline.last(*signal).unwrap().get();
        let error = timeline.rounding_error(signal.id()).unwrap();
        let name = signal.def().name;
        assert!(read.abs_diff(kib * 1024) <= error, "{name} {read}");
    }
}

/// The text with another number in place of each of its own.
fn with_numbers(text: &str, number: &str) -> String {
    let mut replaced = String::new();
    let mut was_digit = false;
    for c in text.chars() {
        match (c.is_ascii_digit(), was_digit) {
            (true, false) => replaced.push_str(number),
            (true, true) => {}
            (false, _) => replaced.push(c),
        }
        was_digit = c.is_ascii_digit();
    }
    replaced
}
