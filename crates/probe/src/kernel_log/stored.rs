//! Lines of reports as recordings store them: a text, a message on each line.
//!
//! A name in a message may have line ends, as any process chooses its own (prctl PR_SET_NAME). They are escaped as in
//! `/dev/kmsg`, `\x0a`, with the other control characters; other backslashes stay as they are, as in `dmesg`, so that
//! systemd's `dev-disk-by\x2duuid.swap` stays readable.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Returns a message as a line.
pub(super) fn line(message: &str) -> Cow<'_, str> {
    let is_plain = |c: char| !(c.is_ascii_control() || c == '\\');
    if message.chars().all(is_plain) {
        return message.into();
    }
    let mut line = String::with_capacity(message.len() + 16);
    let mut rest = message.chars();
    while let Some(c) = rest.next() {
        // A backslash that would be read as the start of an escape is escaped itself.
        let is_ambiguous = c == '\\' && escaped(rest.as_str()).is_some();
        if is_ambiguous || c.is_ascii_control() {
            // Writing to a String cannot fail.
            let _ = write!(line, "\\x{:02x}", u32::from(c));
        } else {
            line.push(c);
        }
    }
    line.into()
}

/// Returns the message that was stored as a line.
pub fn message(line: &str) -> Cow<'_, str> {
    let mut parts = line.split('\\');
    let first = parts.next().unwrap_or_default();
    if first.len() == line.len() {
        return line.into();
    }
    let mut message = first.to_owned();
    for part in parts {
        match escaped(part) {
            Some((c, rest)) => {
                message.push(c);
                message.push_str(rest);
            }
            None => {
                message.push('\\');
                message.push_str(part);
            }
        }
    }
    message.into()
}

/// The character of the escape behind a backslash, and the text after it.
fn escaped(text: &str) -> Option<(char, &str)> {
    let digits = text.strip_prefix('x')?;
    let (digits, rest) = digits.split_at_checked(2)?;
    let is_lower = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
    let code = u8::from_str_radix(digits, 16).ok()?;
    let is_escape = digits.bytes().all(is_lower) && (code.is_ascii_control() || code == b'\\');
    is_escape.then_some((char::from(code), rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_line_shows_a_message_as_dmesg_does_but_for_line_ends() {
        for (message, stored) in [
            ("Killed process 8 (java)", "Killed process 8 (java)"),
            ("(\nghost)", r"(\x0aghost)"),
            ("(a\r)", r"(a\x0d)"),
            (r"dev-disk-by\x2duuid.swap", r"dev-disk-by\x2duuid.swap"),
            (r"a\b\", r"a\b\"),
            (r"(\x0aghost)", r"(\x5cx0aghost)"),
            (r"\x5c", r"\x5cx5c"),
            ("日本\u{1b}[31m", r"日本\x1b[31m"),
        ] {
            assert_eq!(line(message), stored);
            assert_eq!(super::message(stored), message);
        }
    }

    proptest! {
        #[test]
        fn every_message_is_one_line_and_comes_back(message in r"[\\x05caé\n\r\t \x1b]{0,20}") {
            let stored = line(&message).into_owned();
            prop_assert!(stored.lines().count() <= 1 && !stored.ends_with('\r'));
            prop_assert_eq!(super::message(&stored), message);
        }
    }
}
