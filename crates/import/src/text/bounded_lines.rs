//! Reads lines in bounded memory.

use std::io::{BufRead, ErrorKind};

/// The result of reading a line.
#[derive(Debug)]
pub(crate) enum LineRead {
    /// The line is in the buffer, without its line feed.
    Read {
        /// Whether it has a line feed; false at the end of a truncated input.
        whole: bool,
    },
    /// The line was too long and was skipped; its length in bytes.
    TooLong(u64),
    /// There are no more lines.
    End,
}

/// Reads lines of at most `most` bytes.
#[derive(Debug)]
pub(crate) struct BoundedLines<R> {
    input: R,
    most: usize,
    /// The last line.
    pub(crate) text: Vec<u8>,
    /// Lines read so far.
    pub(crate) count: usize,
    /// Bytes read so far.
    pub(crate) bytes: u64,
}

impl<R: BufRead> BoundedLines<R> {
    pub(crate) fn new(input: R, most: usize) -> Self {
        Self { input, most, text: Vec::new(), count: 0, bytes: 0 }
    }

    /// Reads the next line. After an error of the input, the buffer has the start of the line.
    pub(crate) fn next(&mut self) -> std::io::Result<LineRead> {
        self.text.clear();
        let mut length: u64 = 0;
        self.count += 1;
        loop {
            let chunk = match self.input.fill_buf() {
                Ok(chunk) => chunk,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if chunk.is_empty() {
                if length == 0 {
                    self.count -= 1;
                    return Ok(LineRead::End);
                }
                return Ok(self.classify(length, false));
            }
            let end = memchr::memchr(b'\n', chunk);
            let taken = end.unwrap_or(chunk.len());
            let used = end.map_or(taken, |end| end + 1);
            if length + taken as u64 <= self.most as u64 {
                self.text.extend_from_slice(&chunk[..taken]);
            }
            length += taken as u64;
            self.bytes += used as u64;
            self.input.consume(used);
            if end.is_some() {
                return Ok(self.classify(length, true));
            }
        }
    }

    fn classify(&mut self, length: u64, whole: bool) -> LineRead {
        if length > self.most as u64 {
            self.text = Vec::new();
            LineRead::TooLong(length)
        } else {
            LineRead::Read { whole }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_too_long_is_skipped() {
        let text = format!("{}\nshort\nlast", "x".repeat(100));
        let mut lines =
            BoundedLines::new(std::io::BufReader::with_capacity(7, text.as_bytes()), 10);
        assert!(matches!(lines.next().unwrap(), LineRead::TooLong(100)));
        assert!(matches!(lines.next().unwrap(), LineRead::Read { whole: true }));
        assert_eq!(lines.text, b"short");
        assert!(matches!(lines.next().unwrap(), LineRead::Read { whole: false }));
        assert!(matches!(lines.next().unwrap(), LineRead::End));
        assert_eq!(lines.count, 3);
        assert_eq!(lines.bytes, 111);
    }
}
