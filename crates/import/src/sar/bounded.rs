//! Input whose pieces have an end: a hostile file may hold one name of a gigabyte, and readers keep a name in memory.

use std::io::{self, BufRead, Read};

/// Fails where a mark does not come for too long, and counts lines.
pub(crate) struct Bounded<'a> {
    inner: &'a mut dyn BufRead,
    mark: u8,
    since: usize,
    /// Line ends so far.
    pub(crate) lines: usize,
}

impl<'a> Bounded<'a> {
    /// The longest piece: no name, text or tag of sadf comes near.
    const LONGEST: usize = 1 << 20;

    /// The same input; `mark` ends its pieces.
    pub(crate) fn new(inner: &'a mut dyn BufRead, mark: u8) -> Self {
        Self {
            inner,
            mark,
            since: 0,
            lines: 0,
        }
    }
}

impl BufRead for Bounded<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.since > Self::LONGEST {
            return Err(io::Error::other("a piece of it is longer than 1 MiB"));
        }
        self.inner.fill_buf()
    }

    fn consume(&mut self, amount: usize) {
        // What is consumed was filled before: this reads nothing.
        if let Ok(bytes) = self.inner.fill_buf() {
            let taken = &bytes[..amount.min(bytes.len())];
            self.lines += memchr::memchr_iter(b'\n', taken).count();
            self.since = match memchr::memrchr(self.mark, taken) {
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
