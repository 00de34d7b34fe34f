//! Words, numbers and sizes of the kernel's reports.

use units::Bytes;

use crate::text::SplitText as _;

/// Returns the words of a line. Line ends within a message are `#012` in rsyslog's files and `\x0a` in `/dev/kmsg`.
pub(super) fn words(line: &str) -> impl Iterator<Item = &str> {
    let is_plain = memchr::memchr2(b'#', b'\\', line.as_bytes()).is_none();
    let (plain, coded) = if is_plain { (Some(line), None) } else { (None, Some(line)) };
    let parts =
        coded.into_iter().flat_map(|line| line.split("#012")).flat_map(|part| part.split("\\x0a"));
    plain.into_iter().chain(parts).flat_map(str::split_whitespace)
}

/// Parses a decimal number that fills all of `word`; beyond 64 bits it becomes the largest one.
pub(super) fn number(word: &str) -> Option<u64> {
    let is_number = !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit());
    is_number.then(|| word.parse().unwrap_or(u64::MAX))
}

/// Parses an index or ID of 32 bits.
pub(super) fn small(word: &str) -> Option<u32> {
    number(word).and_then(|n| u32::try_from(n).ok())
}

/// Parses a signed number that fills all of `word`.
pub(super) fn signed(word: &str) -> Option<i32> {
    word.parse().ok()
}

/// Parses a size: `12kB`, `0KB`.
pub(super) fn size(word: &str) -> Option<Bytes> {
    let digits = word.strip_suffix("kB").or_else(|| word.strip_suffix("KB"))?;
    number(digits).map(Bytes::from_kib)
}

/// Splits off `Node 0 ` from a line; node 0 if the kernel knows no nodes and writes nothing.
pub(super) fn node(line: &str) -> (u32, &str) {
    let named = || {
        let rest = line.strip_prefix("Node ")?;
        let (id, rest) = rest.split_once(' ')?;
        Some((small(id)?, rest.trim_start()))
    };
    named().unwrap_or((0, line))
}

/// Returns the text after `name` in a list of `name=value`, up to the next comma or blank.
pub(super) fn value<'a>(list: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = list.around(name)?;
    let rest = rest.strip_prefix('=')?;
    rest.split([',', ' ']).next()
}

/// Whether a word could name a memory zone or a field: letters, digits and a few punctuation characters, not too long.
pub(super) fn is_name(word: &str) -> bool {
    (1..=40).contains(&word.len())
        && word.starts_with(|c: char| c.is_ascii_alphabetic())
        && word.bytes().all(|b| b.is_ascii_alphanumeric() || b"_()-".contains(&b))
}

/// Whether a text may be the name of a task: the kernel stores 15 bytes. A byte that is no text is a character here.
pub(super) fn is_task_name(text: &str) -> bool {
    const NAME_MAX: usize = 15;
    text.len() <= NAME_MAX || text.chars().take(NAME_MAX + 1).count() <= NAME_MAX
}

/// Cuts a text to this many characters.
pub(super) fn cut(text: &str, most: usize) -> String {
    text.chars().take(most).collect()
}
