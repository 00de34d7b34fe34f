//! Compression, recognised by content: gzip, zstd, or none.

use std::io::{BufRead, BufReader, Read};

use flate2::bufread::MultiGzDecoder;

/// What an input is packed with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Packing {
    Gzip,
    Zstd,
    None,
}

impl Packing {
    pub(crate) fn of(start: &[u8]) -> Self {
        match start {
            [0x1f, 0x8b, ..] => Self::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Self::Zstd,
            _ => Self::None,
        }
    }

    /// Its name in messages.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
            Self::None => "file",
        }
    }
}

/// The unpacked text of an input.
pub(crate) fn unpack<'a>(
    mut input: impl BufRead + 'a,
) -> std::io::Result<(Packing, Box<dyn BufRead + 'a>)> {
    const BUFFER: usize = 64 << 10;
    let packing = Packing::of(input.fill_buf()?);
    let text: Box<dyn Read> = match packing {
        Packing::Gzip => Box::new(MultiGzDecoder::new(input)),
        Packing::Zstd => {
            let mut decoder = zstd::stream::read::Decoder::with_buffer(input)?;
            // 2^27: 128 MiB would be needed for `zstd --ultra`; captures are written with far less.
            decoder.window_log_max(26)?;
            Box::new(decoder)
        }
        Packing::None => return Ok((packing, Box::new(input))),
    };
    Ok((packing, Box::new(BufReader::with_capacity(BUFFER, text))))
}
