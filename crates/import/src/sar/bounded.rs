//! Input with a bound on the distance between two delimiters: readers keep what lies between them in memory, and a
//! hostile file may have a name of a gigabyte.

use std::io::{self, BufRead, Read};

/// Fails if no delimiter comes for too long. Counts lines.
pub(crate) struct Bounded<'a> {
    inner: &'a mut dyn BufRead,
    delimiter: u8,
    since: usize,
    /// Line ends so far.
    pub(crate) lines: usize,
}

impl<'a> Bounded<'a> {
    /// At most 1 MiB of a line, far more than any name or text of sadf.
    const LINE_BYTES_MAX: usize = 1 << 20;

    /// Bounds an input.
    pub(crate) fn new(inner: &'a mut dyn BufRead, delimiter: u8) -> Self {
        Self { inner, delimiter, since: 0, lines: 0 }
    }
}

impl BufRead for Bounded<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.since > Self::LINE_BYTES_MAX {
            return Err(io::Error::other("a piece of it is longer than 1 MiB"));
        }
        self.inner.fill_buf()
    }

    fn consume(&mut self, amount: usize) {
        // The buffer was filled before: this reads nothing.
        if let Ok(bytes) = self.inner.fill_buf() {
            let taken = &bytes[..amount.min(bytes.len())];
            self.lines += memchr::memchr_iter(b'\n', taken).count();
            self.since = match memchr::memrchr(self.delimiter, taken) {
                Some(at) => taken.len() - at,
                None => self.since + taken.len(),
            };
        }
        self.inner.consume(amount);
    }
}

impl Read for Bounded<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let filled = self.fill_buf()?;
        let n = filled.len().min(buffer.len());
        buffer[..n].copy_from_slice(&filled[..n]);
        self.consume(n);
        Ok(n)
    }
}
