//! Pasted text as plain lines: one encoding, no terminal escapes, no quotation marks, no carriage returns, a message of
//! a log on each ([`records`]).

pub(crate) mod bounded_lines;
pub(crate) mod figure;
pub(crate) mod kernel_words;
pub(crate) mod line_scan;
pub(crate) mod log_search;
pub(crate) mod prompt;
mod quoted_printable;
mod records;
pub(crate) mod times;

use std::borrow::Cow;

use records::{Carried, RecordReader};

/// The plain lines of a text.
#[derive(Debug)]
pub(crate) struct PlainText {
    plain: String,
    lines: Vec<PlainLine>,
    truncated: usize,
}

/// Where a line is in the plain text.
#[derive(Debug, Clone, Copy)]
struct PlainLine {
    from: u32,
    to: u32,
    /// The line of the text that it comes from, from 0.
    source: u32,
    /// Whether it stands behind a quotation mark of mail.
    is_quoted: bool,
}

impl PlainText {
    /// At most 16 MiB; longer input is searched for kernel reports only.
    pub(crate) const BYTES_MAX: usize = 16 << 20;
    /// At most 4,000,000 lines; further ones are ignored, so that a text of line ends does not fill memory.
    const LINES_MAX: usize = 4_000_000;
    /// At most 64 KiB of a line: no tool prints longer ones, and forms read a line more than once.
    const LINE_LEN_MAX: usize = 64 << 10;

    /// Reads at most [`BYTES_MAX`](Self::BYTES_MAX).
    pub(crate) fn from_bytes(bytes: &[u8]) -> Self {
        let bytes = &bytes[..bytes.len().min(Self::BYTES_MAX)];
        let decoded = quoted_printable::decode(decode(bytes));
        let mut text =
            Self { plain: String::with_capacity(decoded.len()), lines: Vec::new(), truncated: 0 };
        let mut records = RecordReader::default();
        for (source, line) in decoded.lines().take(Self::LINES_MAX).enumerate() {
            // A crash and a rotation leave zero bytes in a log, before its next line.
            let line = line.trim_start_matches('\0');
            let is_quoted = line.trim_start().starts_with('>');
            match records.read(unquoted(line)) {
                Carried::Line => text.push(unquoted(line), source, is_quoted),
                Carried::Messages(messages) => {
                    messages.iter().for_each(|line| text.push(line, source, is_quoted));
                }
            }
        }
        text
    }

    /// The lines, in order.
    pub(crate) fn lines(&self) -> Vec<&str> {
        self.lines
            .iter()
            .map(|line| self.plain.get(line.from as usize..line.to as usize))
            .map(Option::unwrap_or_default)
            .collect()
    }

    /// The lines in a row, without line ends.
    pub(crate) fn as_str(&self) -> &str {
        &self.plain
    }

    /// The line of the text, from 0, that a plain line comes from; of a plain line behind the last, that of the last.
    pub(crate) fn source_line(&self, plain_line: usize) -> usize {
        let line = self.lines.get(plain_line).or_else(|| self.lines.last());
        line.map_or(0, |line| line.source as usize)
    }

    /// Whether a plain line stands behind a quotation mark of mail (`> `).
    pub(crate) fn is_quoted(&self, plain_line: usize) -> bool {
        self.lines.get(plain_line).is_some_and(|line| line.is_quoted)
    }

    /// How many lines were too long and were truncated.
    pub(crate) fn truncated(&self) -> usize {
        self.truncated
    }

    /// A line up to the longest length; notes whether it is longer.
    fn truncated_line<'a>(&mut self, line: &'a str) -> &'a str {
        let start = timeline::start_of(line, Self::LINE_LEN_MAX);
        self.truncated += usize::from(start.len() < line.len());
        start
    }

    fn push(&mut self, line: &str, source: usize, is_quoted: bool) {
        let from = self.plain.len();
        let line = without_markup(self.truncated_line(line));
        push_plain(&line, &mut self.plain);
        // Only this line can end in a blank: the lines before it were trimmed.
        let to = self.plain.trim_end().len().max(from);
        self.plain.truncate(to);
        // A text is far smaller than 4 GiB.
        let offset = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        self.lines.push(PlainLine {
            from: offset(from),
            to: offset(to),
            source: offset(source),
            is_quoted,
        });
    }
}

/// UTF-16 if it has a byte order mark, else UTF-8. Invalid sequences become U+FFFD.
fn decode(bytes: &[u8]) -> Cow<'_, str> {
    let wide = |bytes: &[u8], read: fn([u8; 2]) -> u16| {
        let units = bytes.chunks_exact(2).map(|pair| read([pair[0], pair[1]]));
        char::decode_utf16(units)
            .map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER))
            .collect::<String>()
    };
    match bytes {
        [0xff, 0xfe, rest @ ..] => wide(rest, u16::from_le_bytes).into(),
        [0xfe, 0xff, rest @ ..] => wide(rest, u16::from_be_bytes).into(),
        [0xef, 0xbb, 0xbf, rest @ ..] => utf8(rest),
        _ => utf8(bytes),
    }
}

/// UTF-8. Nearly all texts are valid, and the check for that is several times as fast as a conversion.
fn utf8(bytes: &[u8]) -> Cow<'_, str> {
    std::str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)
}

/// A line without the quotation marks of mail and forums (`> > MemFree: …`). A prompt `> ` is dropped as well; its
/// command stays.
fn unquoted(line: &str) -> &str {
    let mut rest = line;
    while let Some(inner) = rest.trim_start().strip_prefix('>') {
        rest = inner.strip_prefix(' ').unwrap_or(inner);
    }
    rest
}

/// A line without the markup of HTML for a line break at its end and for brackets.
fn without_markup(line: &str) -> Cow<'_, str> {
    let end = line.trim_end();
    let line = match end.strip_suffix('>').and_then(|rest| rest.rsplit_once('<')) {
        Some((before, "br" | "br/" | "br /")) => before,
        _ => line,
    };
    if memchr::memchr2(b'*', b'&', line.as_bytes()).is_none() {
        return line.into();
    }
    // Emphasis of a figure in Markdown.
    let is_emphasised = memchr::memmem::find(line.as_bytes(), b"**").is_some();
    if !is_emphasised && memchr::memchr(b'&', line.as_bytes()).is_none() {
        return line.into();
    }
    let entities = [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&nbsp;", " "),
        ("&amp;", "&"),
        ("**", ""),
    ];
    let plain =
        entities.iter().fold(line.to_owned(), |text, (entity, plain)| text.replace(entity, plain));
    plain.into()
}

/// Appends a line without terminal escapes and control characters; white space becomes spaces.
fn push_plain(line: &str, plain: &mut String) {
    // To the end, whatever is found: so the compiler checks many bytes at once.
    let is_plain = |is_plain, byte: u8| is_plain & (b' '..=b'~').contains(&byte);
    if line.bytes().fold(true, is_plain) {
        plain.push_str(line);
        return;
    }
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' => skip_escape(&mut chars),
            // The one-byte form of ESC [.
            '\u{9b}' => skip_parameters(&mut chars),
            // Marks of a line that goes on, of books and editors.
            '↪' | '↩' | '↵' | '⏎' => {}
            '\t' => plain.push_str("        "),
            c if c.is_whitespace() => plain.push(' '),
            c if c.is_control() || c == '\u{feff}' => {}
            c => plain.push(c),
        }
    }
}

fn skip_escape(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    match chars.next() {
        Some('[') => skip_parameters(chars),
        // A title or a link: up to BEL or ESC \.
        Some(']') => {
            while let Some(c) = chars.next() {
                if c == '\u{7}' {
                    break;
                }
                if c == '\u{1b}' {
                    chars.next_if_eq(&'\\');
                    break;
                }
            }
        }
        _ => {}
    }
}

/// Skips up to the letter that ends a control sequence.
fn skip_parameters(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    let _ = chars.find(|c| ('\u{40}'..='\u{7e}').contains(c));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(bytes: &[u8]) -> Vec<String> {
        let text = PlainText::from_bytes(bytes);
        text.lines().into_iter().map(str::to_owned).collect()
    }

    #[test]
    fn escapes_quotes_and_line_ends_are_removed() {
        assert_eq!(
            plain(b"\x1b[1;31mMemFree:\x1b[0m 7 kB\r\n> > Mem:\t8\n\x1b]0;title\x07Swap: 0  \n"),
            ["MemFree: 7 kB", "Mem:        8", "Swap: 0"]
        );
    }

    #[test]
    fn utf16_and_byte_order_marks_are_read() {
        let wide: Vec<u8> = "MemFree: 7 kB\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(plain(&[b"\xff\xfe", wide.as_slice()].concat()), ["MemFree: 7 kB"]);
        assert_eq!(plain(b"\xef\xbb\xbfMemFree: 7 kB"), ["MemFree: 7 kB"]);
    }

    #[test]
    fn a_line_that_is_too_long_is_truncated() {
        let text = PlainText::from_bytes("é".repeat(100_000).as_bytes());
        assert_eq!((text.truncated(), text.lines()[0].len()), (1, 64 << 10));
    }

    #[test]
    fn an_endless_escape_ends_with_its_line() {
        assert_eq!(plain(b"\x1b[\nMemFree: 7 kB"), ["", "MemFree: 7 kB"]);
        assert_eq!(plain(b"\x1b]0;\nMemFree: 7 kB"), ["", "MemFree: 7 kB"]);
    }
}
