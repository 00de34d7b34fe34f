//! Text helpers that all parsers share: lines, words, numbers. No allocation, no panic on any bytes.

/// Returns the lines of a text without their ends, counted from 1. A last line without an end counts unless it is
/// empty.
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

/// Returns the words of a line, which are separated by blanks and tabs.
pub fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|b| *b == b' ' || *b == b'\t').filter(|word| !word.is_empty())
}

/// Parses a decimal number that fills all of `word`. `None` for signs, other characters, and numbers beyond 64 bits.
pub fn number(word: &[u8]) -> Option<u64> {
    let (value, length) = leading_number(word)?;
    (length == word.len()).then_some(value)
}

/// Parses the decimal number at the start of `text`; also returns its number of digits. `None` without one, and beyond
/// 64 bits.
#[inline]
pub fn leading_number(text: &[u8]) -> Option<(u64, usize)> {
    // Numbers in kernel files are short: eight digits are parsed at a time without a branch for each.
    if let Some(eight) = text.first_chunk() {
        let (value, length) = digits_of_eight(*eight);
        if length < 8 {
            return (length > 0).then_some((value, length));
        }
        if let Some(eight) = text[8..].first_chunk() {
            let (low, more) = digits_of_eight(*eight);
            if more < 8 {
                return Some((value * TENS[more] + low, 8 + more));
            }
        }
    }
    let mut value: u64 = 0;
    let mut length = 0;
    for digit in text {
        let digit = digit.wrapping_sub(b'0');
        if digit > 9 {
            break;
        }
        value = value.checked_mul(10)?.checked_add(u64::from(digit))?;
        length += 1;
    }
    (length > 0).then_some((value, length))
}

/// Parses the hexadecimal number of at most 16 digits at the start of `text`; also returns its number of digits. `None`
/// without one, and for longer ones.
pub fn leading_hexadecimal(text: &[u8]) -> Option<(u64, usize)> {
    let digits = text.iter().take(17).take_while(|c| c.is_ascii_hexdigit());
    let length = digits.count();
    let number = std::str::from_utf8(&text[..length]).ok()?;
    Some((u64::from_str_radix(number, 16).ok()?, length))
}

/// Ten to the power of the index.
const TENS: [u64; 8] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000];

/// Parses the number at the start of eight characters; also returns its number of digits.
#[inline]
fn digits_of_eight(text: [u8; 8]) -> (u64, usize) {
    const EACH: u64 = 0x0101_0101_0101_0101;
    // The first character is the lowest byte on every machine. A digit becomes 0 to 9.
    let digits = u64::from_le_bytes(text) ^ (EACH * 0x30);
    // The high bit of each byte above 9 is set. Carries affect only bytes after such a byte, which do not count.
    let others = (digits.wrapping_add(EACH * 0x76) | digits) & (EACH * 0x80);
    let bits = others.trailing_zeros() & !7;
    if bits == 0 {
        return (0, 0);
    }
    // Leading zeros extend the number to eight digits. Then neighbours are joined: to two digits, and those at once to
    // eight.
    let eight = digits << (64 - bits);
    let twos = eight.wrapping_mul(10).wrapping_add(eight >> 8);
    const EVEN: u64 = 0x0000_00ff_0000_00ff;
    let millions = (twos & EVEN).wrapping_mul(100 + (1_000_000 << 32));
    let ones = (twos >> 16 & EVEN).wrapping_mul(1 + (10_000 << 32));
    (millions.wrapping_add(ones) >> 32, bits as usize / 8)
}

/// Appends a number in decimal. The formatting of the standard library takes several times as long, which a capture of
/// thousands of processes notices.
pub(crate) fn push_number(text: &mut String, number: u64) {
    /// Of the largest number.
    const DIGITS: usize = 20;
    let mut digits = [0; DIGITS];
    let (mut rest, mut from) = (number, DIGITS);
    loop {
        from -= 1;
        digits[from] = b"0123456789"[(rest % 10) as usize];
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    text.extend(digits[from..].iter().map(|digit| char::from(*digit)));
}

/// Returns the number of the line in which `part` of the text begins, counted from 1.
pub(crate) fn line_of(text: &[u8], part: &[u8]) -> usize {
    let start = part.as_ptr().addr().saturating_sub(text.as_ptr().addr());
    let before = text.get(..start).unwrap_or_default();
    memchr::memchr_iter(b'\n', before).count() + 1
}

/// Splits a text at a phrase.
pub trait SplitText {
    /// Returns the text before and after the first occurrence of `phrase`, as [`str::split_once`] does, for a line of a log that
    /// is searched for a hundred phrases: that prepares each search, which takes longer than the search of a line.
    fn around(&self, phrase: &str) -> Option<(&str, &str)>;
}

impl SplitText for str {
    fn around(&self, phrase: &str) -> Option<(&str, &str)> {
        let at = find_in_line(self.as_bytes(), phrase.as_bytes())?;
        let (before, rest) = self.split_at_checked(at)?;
        Some((before, rest.get(phrase.len()..)?))
    }
}

/// Returns where a phrase first stands in a line, without preparing the search: by the first byte of the phrase that is rare in
/// prose, if it has one.
fn find_in_line(line: &[u8], phrase: &[u8]) -> Option<usize> {
    let is_rare = |byte: &u8| !byte.is_ascii_lowercase() && !byte.is_ascii_digit() && *byte != b' ';
    let offset = phrase.iter().position(is_rare).unwrap_or_default();
    let Some(rare) = phrase.get(offset) else {
        return Some(0);
    };
    memchr::memchr_iter(*rare, line).find_map(|at| {
        let start = at.checked_sub(offset)?;
        line.get(start..)?.starts_with(phrase).then_some(start)
    })
}

/// Returns the text without blanks and line ends around it.
pub fn trim(text: &[u8]) -> &[u8] {
    text.trim_ascii()
}

/// Returns the text as a string; invalid UTF-8 becomes replacement characters.
pub fn lossy(text: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(text)
}

/// Appends the text to a string; invalid UTF-8 becomes replacement characters. No allocation of its own.
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
    fn a_text_is_split_at_the_first_place_of_a_phrase() {
        for (text, phrase) in [
            ("[12.5] Node 0 DMA free:15360kB", "DMA "),
            ("Nov 21 db1 kernel: a kernel: b", "kernel: "),
            ("pages in swap", "in swap"),
            ("aab", "ab"),
            ("::: x", ": "),
            ("KillKilled", "Killed"),
            ("Kille", "Killed"),
            ("Killed", ""),
            ("", "a"),
            ("größer: 5", ": "),
        ] {
            assert_eq!(text.around(phrase), text.split_once(phrase), "{text}");
        }
    }

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
        for bad in [&b""[..], b"-1", b"+1", b"1 ", b"0x1", b"18446744073709551616", b"1\0"] {
            assert_eq!(number(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn a_leading_number_ends_where_its_digits_end() {
        for (text, expected) in [
            ("", None),
            ("x", None),
            (" 1", None),
            ("0", Some((0, 1))),
            ("7 kB\n", Some((7, 1))),
            ("1234567\n", Some((1_234_567, 7))),
            ("12345678", Some((12_345_678, 8))),
            ("12345678\n", Some((12_345_678, 8))),
            ("123456789\n", Some((123_456_789, 9))),
            ("12345678 9012345", Some((12_345_678, 8))),
            ("123456789\n 12345678", Some((123_456_789, 9))),
            ("123456789012345 6789", Some((123_456_789_012_345, 15))),
            ("1234567890123456 789", Some((1_234_567_890_123_456, 16))),
            ("1234567890123456789\n", Some((1_234_567_890_123_456_789, 19))),
            ("00000000000000000000012\n", Some((12, 23))),
            ("18446744073709551615 ", Some((u64::MAX, 20))),
            ("18446744073709551616 ", None),
            ("12:345678901", Some((12, 2))),
            ("12/345678901", Some((12, 2))),
            ("1\u{ff}2345678", Some((1, 1))),
        ] {
            assert_eq!(leading_number(text.as_bytes()), expected, "{text:?}");
        }
        for byte in 0..=255_u8 {
            let text = [b'4', b'2', byte, b'9', b'9', b'9', b'9', b'9', b'9'];
            let expected = match byte {
                b'0'..=b'9' => None,
                _ => Some((42, 2)),
            };
            let found = leading_number(&text).filter(|(_, length)| *length < 9);
            assert_eq!(found, expected, "{byte}");
        }
    }

    #[test]
    fn a_part_of_a_text_knows_its_line() {
        let text = b"a\nbc\n\nd";
        for (start, line) in [(0, 1), (1, 1), (2, 2), (3, 2), (6, 4), (7, 4)] {
            assert_eq!(line_of(text, &text[start..]), line, "{start}");
        }
    }

    #[test]
    fn words_skip_runs_of_blanks() {
        let all: Vec<_> = words(b"  a \t b ").collect();
        assert_eq!(all, [b"a", b"b"]);
    }
}
