//! Compresses output as the file's name says.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

/// A file that is packed by its name: `.zst`, `.gz`, otherwise not at all.
pub struct Packed(Stream);

enum Stream {
    Zstd(zstd::Encoder<'static, BufWriter<File>>),
    Gzip(flate2::write::GzEncoder<BufWriter<File>>),
    Plain(BufWriter<Box<dyn Write>>),
}

impl Packed {
    /// Writes to an open file, packed as `name` says.
    ///
    /// # Errors
    /// The compressor's.
    pub fn over(file: File, name: &Path) -> std::io::Result<Self> {
        let name = name.to_string_lossy();
        Ok(Self(if name.ends_with(".zst") {
            // Level 3 is zstd's default: a sample takes a few ms, which a busy host can spare.
            Stream::Zstd(zstd::Encoder::new(BufWriter::new(file), 3)?)
        } else if name.ends_with(".gz") {
            let level = flate2::Compression::default();
            Stream::Gzip(flate2::write::GzEncoder::new(BufWriter::new(file), level))
        } else {
            Stream::Plain(BufWriter::new(Box::new(file)))
        }))
    }

    /// Ends the stream, so that it is complete.
    ///
    /// # Errors
    /// The operating system's.
    pub fn finish(self) -> std::io::Result<()> {
        match self.0 {
            Stream::Zstd(encoder) => encoder.finish()?.flush(),
            Stream::Gzip(encoder) => encoder.finish()?.flush(),
            Stream::Plain(mut writer) => writer.flush(),
        }
    }

    fn writer(&mut self) -> &mut dyn Write {
        match &mut self.0 {
            Stream::Zstd(writer) => writer,
            Stream::Gzip(writer) => writer,
            Stream::Plain(writer) => writer,
        }
    }
}

impl Write for Packed {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.writer().write(bytes)
    }

    /// Writes all pending data to the file, so that a crash loses no earlier sample.
    fn flush(&mut self) -> std::io::Result<()> {
        self.writer().flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn a_file_is_packed_as_its_name_says() {
        let directory = tempfile::tempdir().unwrap();
        for name in ["a.jsonl.zst", "a.jsonl.gz", "a.jsonl"] {
            let path = directory.path().join(name);
            let mut packed = Packed::over(File::create(&path).unwrap(), &path).unwrap();
            packed.write_all(b"one\n").unwrap();
            packed.flush().unwrap();
            packed.write_all(b"two\n").unwrap();
            packed.finish().unwrap();
            let file = File::open(&path).unwrap();
            let mut text = String::new();
            match path.extension().and_then(|name| name.to_str()) {
                Some("zst") => zstd::Decoder::new(file).unwrap().read_to_string(&mut text),
                Some("gz") => flate2::read::GzDecoder::new(file).read_to_string(&mut text),
                _ => { file }.read_to_string(&mut text),
            }
            .unwrap();
            assert_eq!(text, "one\ntwo\n", "{name}");
        }
    }
}
