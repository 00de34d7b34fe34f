//! Lines of any input in bounded memory.

use std::io::{BufRead, ErrorKind};

/// What the next line turned out to be.
#[derive(Debug)]
pub(crate) enum Line {
    /// It is in the buffer, without its end. `whole` is false where the input stopped before the line's end.
    Read {
        /// Whether the line's end was seen.
        whole: bool,
    },
    /// It was longer than allowed and was passed over; its length in bytes.
    TooLong(u64),
    /// There is none.
    End,
}

/// Reads lines of at most `most` bytes.
#[derive(Debug)]
pub(crate) struct Lines<R> {
    input: R,
    most: usize,
    /// The line last read.
    pub(crate) text: Vec<u8>,
    /// Lines read so far.
    pub(crate) count: usize,
    /// Bytes read so far.
    pub(crate) bytes: u64,
}

impl<R: BufRead> Lines<R> {
    pub(crate) fn new(input: R, most: usize) -> Self {
        Self {
            input,
            most,
            text: Vec::new(),
            count: 0,
            bytes: 0,
        }
    }

    /// The next line. An error is the input's; what was read of the line before it is in the buffer.
    pub(crate) fn next(&mut self) -> std::io::Result<Line> {
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
                    return Ok(Line::End);
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

    fn classify(&mut self, length: u64, whole: bool) -> Line {
        if length > self.most as u64 {
            self.text = Vec::new();
            Line::TooLong(length)
        } else {
            Line::Read { whole }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_too_long_is_passed_over_and_the_next_is_read() {
        let text = format!("{}\nshort\nlast", "x".repeat(100));
        let mut lines = Lines::new(std::io::BufReader::with_capacity(7, text.as_bytes()), 10);
        assert!(matches!(lines.next().unwrap(), Line::TooLong(100)));
        assert!(matches!(lines.next().unwrap(), Line::Read { whole: true }));
        assert_eq!(lines.text, b"short");
        assert!(matches!(lines.next().unwrap(), Line::Read { whole: false }));
        assert!(matches!(lines.next().unwrap(), Line::End));
        assert_eq!(lines.count, 3);
        assert_eq!(lines.bytes, 111);
    }
}
