//! A step of a backup: files into one file, compressed or not.

use std::fs::File;
use std::io::{BufWriter, Read as _, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;

/// Reads a file, or all files of a directory, and writes them into one file.
#[derive(Debug, Clone)]
pub struct ArchivePart {
    /// What is read.
    pub source: PathBuf,
    /// What is written; it must not exist.
    pub output: PathBuf,
    /// Whether it is compressed with gzip on the way.
    pub is_compressed: bool,
}

impl ArchivePart {
    /// Works; gives the bytes that were read and those that were written.
    ///
    /// # Errors
    /// The operating system's.
    pub fn run(&self) -> std::io::Result<(u64, u64)> {
        let _ = rustix::thread::set_name(c"archive");
        let files = files(&self.source)?;
        let is_output = |file: &PathBuf| {
            let found = file.canonicalize().ok();
            found.is_some() && found == self.output.canonicalize().ok()
        };
        if files.iter().any(is_output) {
            return Err(std::io::Error::other("the output is one of the files"));
        }
        let output = BufWriter::with_capacity(1 << 20, File::create_new(&self.output)?);
        let read = if self.is_compressed {
            let mut encoder = GzEncoder::new(output, Compression::fast());
            let read = copy(&files, &mut encoder)?;
            encoder.finish()?.flush()?;
            read
        } else {
            let mut output = output;
            let read = copy(&files, &mut output)?;
            output.flush()?;
            read
        };
        Ok((read, std::fs::metadata(&self.output)?.len()))
    }
}

fn copy(files: &[PathBuf], output: &mut impl Write) -> std::io::Result<u64> {
    let mut buffer = vec![0; 256 << 10];
    let mut read = 0;
    for path in files {
        let mut file = File::open(path)?;
        loop {
            let len = file.read(&mut buffer)?;
            if len == 0 {
                break;
            }
            output.write_all(buffer.get(..len).unwrap_or_default())?;
            read += len as u64;
        }
    }
    Ok(read)
}

/// The files of a directory in the order of their names, or a file itself.
pub(super) fn files(source: &Path) -> std::io::Result<Vec<PathBuf>> {
    if source.is_file() {
        return Ok(vec![source.to_owned()]);
    }
    let mut paths: Vec<PathBuf> = std::fs::read_dir(source)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.is_file())
        .collect();
    paths.sort();
    Ok(paths)
}
