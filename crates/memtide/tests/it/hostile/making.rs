//! Makes hostile sources: piece by piece, as the memory of the test counts as that of the programs it starts.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// Where a source is made, and how large it is.
pub(crate) struct Making {
    place: tempfile::TempDir,
    part: u64,
}

/// A file in the making, packed by zstd.
pub(crate) type Packed = zstd::Encoder<'static, BufWriter<File>>;

impl Making {
    /// A directory of its own. `part`: one of how many things is made.
    pub(crate) fn new(part: u64) -> Self {
        Self { place: tempfile::tempdir().unwrap(), part }
    }

    /// How many of so many things are made.
    pub(crate) fn count(&self, whole: u64) -> u64 {
        whole.div_ceil(self.part)
    }

    /// A path in its directory.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    /// A new directory.
    pub(crate) fn directory(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(&path).unwrap();
        path
    }

    /// A file with this content.
    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }

    /// A file that is written piece by piece.
    pub(crate) fn written(&self, name: &str, write: impl FnOnce(&mut dyn Write)) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mut out = BufWriter::with_capacity(1 << 20, File::create(&path).unwrap());
        write(&mut out);
        out.flush().unwrap();
        path
    }

    /// A file that is written piece by piece and packed by zstd.
    pub(crate) fn packed(&self, name: &str, write: impl FnOnce(&mut dyn Write)) -> PathBuf {
        let path = self.path(name);
        let out = BufWriter::new(File::create(&path).unwrap());
        let mut out: Packed = zstd::Encoder::new(out, 1).unwrap();
        write(&mut out);
        out.finish().unwrap().flush().unwrap();
        path
    }

    /// A file of this length without any content.
    pub(crate) fn sparse(&self, name: &str, start: &[u8], len: u64) -> PathBuf {
        let path = self.file(name, start);
        let file = File::options().write(true).open(&path).unwrap();
        file.set_len(len).unwrap();
        path
    }
}

impl Drop for Making {
    /// A tree may be deeper than the standard library removes.
    fn drop(&mut self) {
        let _ = std::process::Command::new("rm").arg("-rf").arg(self.place.path()).status();
    }
}

/// Makes a pipe with a name.
pub(crate) fn pipe(path: &Path) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
}

/// A text that repeats.
pub(crate) fn repeat(out: &mut dyn Write, text: &[u8], times: u64) {
    let each = u64::try_from((1 << 16) / text.len().max(1)).unwrap().max(1);
    let block = text.repeat(usize::try_from(each).unwrap());
    for _ in 0..times / each {
        out.write_all(&block).unwrap();
    }
    for _ in 0..times % each {
        out.write_all(text).unwrap();
    }
}
