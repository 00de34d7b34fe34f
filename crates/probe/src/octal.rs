//! Paths as the kernel writes them into lines of words: blanks, tabs, newlines and backslashes as `\040`, in octal.

use std::fmt::Write as _;

/// Escapes a path as the kernel writes it into a line of words.
pub fn escaped(path: &str) -> String {
    let mut text = String::with_capacity(path.len());
    for c in path.chars() {
        match c {
            ' ' | '\t' | '\n' | '\\' => {
                // Writing to a string cannot fail.
                let _ = write!(text, "\\{:03o}", u32::from(c));
            }
            c => text.push(c),
        }
    }
    text
}

/// A part of an escaped word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Piece<'a> {
    /// Plain text.
    Plain(&'a [u8]),
    /// A byte, and the four characters that stand for it.
    Escape(u8, &'a [u8]),
}

/// Returns the parts of an escaped word, in order. An incomplete escape counts as plain text.
pub(crate) fn pieces(word: &[u8]) -> impl Iterator<Item = Piece<'_>> {
    let mut rest = word;
    std::iter::from_fn(move || {
        let (piece, behind) = first(rest)?;
        rest = behind;
        Some(piece)
    })
}

fn first(word: &[u8]) -> Option<(Piece<'_>, &[u8])> {
    if word.is_empty() {
        return None;
    }
    if let Some((escape, behind)) = word.split_at_checked(4)
        && let Some(byte) = byte(escape)
    {
        return Some((Piece::Escape(byte, escape), behind));
    }
    let next = memchr::memchr(b'\\', &word[1..]).map_or(word.len(), |at| at + 1);
    let (plain, behind) = word.split_at(next);
    Some((Piece::Plain(plain), behind))
}

/// Returns the byte that `\040` stands for; `None` for `\777`, which is not a byte.
fn byte(escape: &[u8]) -> Option<u8> {
    let [b'\\', digits @ ..] = escape else {
        return None;
    };
    let digit = |value: u32, b: &u8| {
        let is_octal = (b'0'..=b'7').contains(b);
        is_octal.then(|| value * 8 + u32::from(b - b'0'))
    };
    u8::try_from(digits.iter().try_fold(0, digit)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn unescaped(word: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for piece in pieces(word) {
            match piece {
                Piece::Plain(plain) => bytes.extend_from_slice(plain),
                Piece::Escape(byte, _) => bytes.push(byte),
            }
        }
        bytes
    }

    #[test]
    fn what_is_no_escape_stands_for_itself() {
        for (word, expected) in [
            (&br"/two\040words"[..], &b"/two words"[..]),
            (br"\134\011", b"\\\t"),
            (br"\777\8\04", br"\777\8\04"),
            (br"\\040", b"\\ "),
            (b"\\", b"\\"),
            (b"", b""),
        ] {
            assert_eq!(unescaped(word), expected);
        }
    }

    proptest! {
        #[test]
        fn what_was_escaped_comes_back(path: String) {
            let escaped = escaped(&path);
            prop_assert!(!escaped.contains([' ', '\t', '\n']));
            prop_assert_eq!(unescaped(escaped.as_bytes()), path.as_bytes());
        }

        #[test]
        fn no_word_loses_what_is_no_escape(word: Vec<u8>) {
            let all: usize = pieces(&word)
                .map(|piece| match piece {
                    Piece::Plain(raw) | Piece::Escape(_, raw) => raw.len(),
                })
                .sum();
            prop_assert_eq!(all, word.len());
        }
    }
}
