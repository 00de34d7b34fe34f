//! Small pieces of text that all parsers share: lines, words, numbers. No allocation, no panic on any bytes.

/// The lines of a text without their ends, counted from 1. A last line without an end counts; an empty one does not.
pub fn lines(text: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let mut rest = text;
    let mut count = 0;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
        let line = &rest[..end];
        rest = rest.get(end + 1..).unwrap_or_default();
        count += 1;
        Some((count, line))
    })
}

/// The words of a line: what stands between blanks and tabs.
pub fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|b| *b == b' ' || *b == b'\t')
        .filter(|word| !word.is_empty())
}

/// A decimal number that fills all of `word`. `None` for signs, other characters, and numbers beyond 64 bits.
pub fn number(word: &[u8]) -> Option<u64> {
    if word.is_empty() {
        return None;
    }
    let mut value: u64 = 0;
    for digit in word {
        let digit = digit.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value.checked_mul(10)?.checked_add(u64::from(digit))?;
    }
    Some(value)
}

/// The text without blanks and line ends around it.
pub fn trim(text: &[u8]) -> &[u8] {
    text.trim_ascii()
}

/// The text as a string; bytes that are no UTF-8 become replacement characters.
pub fn lossy(text: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(text)
}

/// Appends the text to a string; bytes that are no UTF-8 become replacement characters. No allocation of its own.
pub fn push_lossy(string: &mut String, text: &[u8]) {
    for chunk in text.utf8_chunks() {
        string.push_str(chunk.valid());
        if !chunk.invalid().is_empty() {
            string.push(char::REPLACEMENT_CHARACTER);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_count_from_one_and_the_last_needs_no_end() {
        let all: Vec<_> = lines(b"a\n\nb").collect();
        assert_eq!(all, [(1, &b"a"[..]), (2, b""), (3, b"b")]);
        assert_eq!(lines(b"").count(), 0);
        assert_eq!(lines(b"a\n").count(), 1);
    }

    #[test]
    fn numbers_are_digits_that_fit() {
        assert_eq!(number(b"18446744073709551615"), Some(u64::MAX));
        for bad in [
            &b""[..],
            b"-1",
            b"+1",
            b"1 ",
            b"0x1",
            b"18446744073709551616",
            b"1\0",
        ] {
            assert_eq!(number(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn words_skip_runs_of_blanks() {
        let all: Vec<_> = words(b"  a \t b ").collect();
        assert_eq!(all, [b"a", b"b"]);
    }
}
