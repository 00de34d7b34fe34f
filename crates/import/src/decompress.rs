//! Decompresses gzip, zstd and xz, recognised by content.

use std::cell::Cell;
use std::io::{BufRead, BufReader, Cursor, ErrorKind, Read};
use std::path::Path;
use std::rc::Rc;

use flate2::bufread::MultiGzDecoder;
use lzma_rust2::XzReader;

use crate::input_file::{InputFile, UNPACKED_TIMES_MAX, unpacked_bytes_max};

/// The compression of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Packing {
    Gzip,
    Zstd,
    Xz,
    None,
}

impl Packing {
    pub(crate) fn recognise(start: &[u8]) -> Self {
        match start {
            [0x1f, 0x8b, ..] => Self::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Self::Zstd,
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Self::Xz,
            _ => Self::None,
        }
    }

    /// Its name in messages.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
            Self::Xz => "xz",
            Self::None => "file",
        }
    }
}

/// Memory for zstd: 2^26 bytes are 64 MiB. `zstd --ultra` needs more.
const WINDOW_LOG: u32 = 26;
/// Memory for xz, in KiB: `xz -9` has a dictionary of 64 MiB, and tables. `xz --lzma2=dict=1GiB` needs more.
const XZ_KIB: u32 = 96 << 10;

/// Decompresses an input.
pub(crate) fn unpack<'a>(
    mut input: impl BufRead + 'a,
) -> std::io::Result<(Packing, Box<dyn BufRead + 'a>)> {
    const BUFFER: usize = 64 << 10;
    let packing = Packing::recognise(input.fill_buf()?);
    let packed = Rc::new(Cell::new(0));
    let input = PackedBytes { inner: input, consumed: Rc::clone(&packed) };
    let text: Box<dyn Read> = match packing {
        Packing::Gzip => Box::new(MultiGzDecoder::new(input)),
        Packing::Zstd => {
            let mut decoder = zstd::stream::read::Decoder::with_buffer(input)?;
            decoder.window_log_max(WINDOW_LOG)?;
            Box::new(decoder)
        }
        Packing::Xz => Box::new(XzReader::new_mem_limit(input, true, XZ_KIB)),
        Packing::None => return Ok((packing, Box::new(input))),
    };
    let text = UnpackedBytes { inner: text, given: 0, packed };
    Ok((packing, Box::new(BufReader::with_capacity(BUFFER, text))))
}

/// A packed input that counts what was taken of it.
struct PackedBytes<R> {
    inner: R,
    consumed: Rc<Cell<u64>>,
}

impl<R: BufRead> Read for PackedBytes<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.consumed.set(self.consumed.get() + read as u64);
        Ok(read)
    }
}

impl<R: BufRead> BufRead for PackedBytes<R> {
    fn fill_buf(&mut self) -> std::io::Result<&[u8]> {
        self.inner.fill_buf()
    }

    fn consume(&mut self, amount: usize) {
        self.consumed.set(self.consumed.get() + amount as u64);
        self.inner.consume(amount);
    }
}

/// What was unpacked. It fails where it is far more than its packed input.
struct UnpackedBytes<R> {
    inner: R,
    given: u64,
    packed: Rc<Cell<u64>>,
}

impl<R: Read> Read for UnpackedBytes<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.given > unpacked_bytes_max(self.packed.get()) {
            let what = format!("unpacks to more than {UNPACKED_TIMES_MAX} times its size");
            return Err(std::io::Error::new(ErrorKind::FileTooLarge, what));
        }
        let read = self.inner.read(buffer)?;
        self.given += read as u64;
        Ok(read)
    }
}

/// Returns the contents of a file that may be compressed with gzip, zstd or xz.
///
/// # Errors
/// The operating system's, or that of a damaged file.
pub fn read_unpacked(file: &Path) -> std::io::Result<Vec<u8>> {
    let (_, mut input) = unpack(BufReader::new(InputFile::open(file)?))?;
    let mut contents = Vec::new();
    input.read_to_end(&mut contents)?;
    Ok(contents)
}

/// An input with its first bytes, for recognition.
pub(crate) struct Started<'a> {
    /// The first bytes, without a UTF-8 byte order mark.
    pub(crate) start: Vec<u8>,
    /// All bytes, including the first ones.
    pub(crate) input: Box<dyn BufRead + 'a>,
}

impl<'a> Started<'a> {
    /// Enough for the first lines of a text, or the header of an archive.
    const START: u64 = 64 << 10;
    const BYTE_ORDER_MARK: &'static [u8] = b"\xef\xbb\xbf";

    /// Reads the start.
    ///
    /// # Errors
    /// Of the input, if nothing was read. A later error is returned after the bytes before it.
    pub(crate) fn read(mut input: impl BufRead + 'a) -> std::io::Result<Self> {
        let mut start = Vec::new();
        let end = (&mut input).take(Self::START).read_to_end(&mut start);
        if start.is_empty()
            && let Err(error) = end
        {
            return Err(error);
        }
        if start.starts_with(Self::BYTE_ORDER_MARK) {
            start.drain(..Self::BYTE_ORDER_MARK.len());
        }
        let first = Cursor::new(start.clone());
        let input: Box<dyn BufRead> = match end {
            Ok(_) => Box::new(first.chain(input)),
            Err(error) => Box::new(first.chain(BufReader::with_capacity(1, Failed(error)))),
        };
        Ok(Self { start, input })
    }
}

/// The rest of an input that failed.
struct Failed(std::io::Error);

impl Read for Failed {
    fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
        Err(std::io::Error::new(self.0.kind(), self.0.to_string()))
    }
}

/// Describes an error in packed data.
pub(crate) fn damage(packing: Packing, error: &std::io::Error) -> String {
    match error.kind() {
        ErrorKind::UnexpectedEof => format!("the {} data ends early", packing.name()),
        ErrorKind::FileTooLarge => format!("the {} data {error}", packing.name()),
        _ => format!("the {} data is damaged ({error})", packing.name()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_before_an_error_are_returned_first() {
        let failing = b"text".chain(BufReader::new(Failed(ErrorKind::UnexpectedEof.into())));
        let mut started = Started::read(failing).unwrap();
        assert_eq!(started.start, b"text");
        let mut all = Vec::new();
        let end = started.input.read_to_end(&mut all);
        assert_eq!(end.unwrap_err().kind(), ErrorKind::UnexpectedEof);
        assert_eq!(all, b"text");
    }

    #[test]
    fn a_byte_order_mark_is_dropped() {
        let mut started = Started::read(&b"\xef\xbb\xbf{}"[..]).unwrap();
        let mut all = Vec::new();
        started.input.read_to_end(&mut all).unwrap();
        assert_eq!((started.start.as_slice(), all.as_slice()), (&b"{}"[..], &b"{}"[..]));
    }
}
