//! Recognises what a file is, by content, and reads it.

use std::fs::File;
use std::io::{BufRead, BufReader, Cursor, Read};
use std::path::Path;

use crate::capture;
use crate::decompress::{Packing, unpack};
use crate::paste::Paste;
use crate::text::Text;
use crate::{Opened, SourceKind};

/// Why a source gives nothing at all.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// It cannot be read.
    #[error("cannot read {name}: {source}")]
    Read {
        /// The file.
        name: String,
        /// The operating system's reason.
        source: std::io::Error,
    },
    /// It is a directory.
    #[error("{0} is a directory, not a capture")]
    Directory(String),
    /// It has no bytes.
    #[error("{0} is empty")]
    Empty(String),
    /// It is nothing that memtide knows.
    #[error("{name} holds nothing that memtide knows: it starts with {start}")]
    NotRecognised {
        /// The file.
        name: String,
        /// Its first bytes, printable, and what they look like.
        start: String,
    },
    /// It is a capture without one good sample.
    #[error("{name} has no sample that can be used{}", first_of(problems))]
    NoSample {
        /// The file.
        name: String,
        /// What was wrong with it.
        problems: Vec<String>,
    },
}

impl OpenError {
    /// What to do about it.
    pub fn help(&self) -> Option<&'static str> {
        match self {
            Self::Read { .. } => None,
            Self::Empty(_) | Self::NoSample { .. } => {
                Some("take another: memtide capture --for 60s -o FILE.jsonl.zst")
            }
            Self::Directory(_) => {
                Some("`memtide capture -o FILE.jsonl.zst` writes what memtide reads")
            }
            Self::NotRecognised { .. } => Some(
                "it reads captures (memtide capture -o FILE.jsonl.zst), and text of /proc/meminfo, free, vmstat, sar, OOM reports …",
            ),
        }
    }
}

fn first_of(problems: &[String]) -> String {
    problems
        .first()
        .map_or_else(String::new, |first| format!(": {first}"))
}

/// Reads a file; `progress` is told how many bytes of it were read.
///
/// # Errors
/// [`OpenError`] where it gives nothing at all; lesser faults are among the problems of what is returned.
pub fn open(path: &Path, progress: &mut dyn FnMut(u64)) -> Result<Opened, OpenError> {
    let name = path.display().to_string();
    let fail = |source| OpenError::Read {
        name: name.clone(),
        source,
    };
    if path.is_dir() {
        return Err(OpenError::Directory(name));
    }
    let file = File::open(path).map_err(fail)?;
    let counted = Counted {
        inner: file,
        read: 0,
        progress,
    };
    read(&name, BufReader::with_capacity(256 << 10, counted))
}

/// Reads standard input.
///
/// # Errors
/// As [`open`].
pub fn open_stdin() -> Result<Opened, OpenError> {
    read("standard input", std::io::stdin().lock())
}

/// Reads bytes that are in memory already.
///
/// # Errors
/// As [`open`].
pub fn open_bytes(name: &str, bytes: &[u8]) -> Result<Opened, OpenError> {
    read(name, bytes)
}

/// Tells how much was read.
struct Counted<'a> {
    inner: File,
    read: u64,
    progress: &'a mut dyn FnMut(u64),
}

impl Read for Counted<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let n = self.inner.read(buffer)?;
        self.read += n as u64;
        (self.progress)(self.read);
        Ok(n)
    }
}

fn read(name: &str, mut input: impl BufRead) -> Result<Opened, OpenError> {
    let fail = |source| OpenError::Read {
        name: name.to_owned(),
        source,
    };
    let start = input.fill_buf().map_err(fail)?.to_vec();
    if start.is_empty() {
        return Err(OpenError::Empty(name.to_owned()));
    }
    let (packing, mut text) = unpack(input).map_err(fail)?;
    let first = match text.fill_buf() {
        Ok([]) => return Err(OpenError::Empty(name.to_owned())),
        Ok(first) => first.to_vec(),
        // A packed file that cannot even begin to unpack has nothing to keep.
        Err(source) => return Err(fail(source)),
    };
    let nothing = || OpenError::NotRecognised {
        name: name.to_owned(),
        start: describe(&first, packing),
    };
    let read = if capture::looks_like(&first) {
        let read = capture::read(&mut text, packing.name());
        if read.timeline.is_empty() {
            return Err(OpenError::NoSample {
                name: name.to_owned(),
                problems: read.problems,
            });
        }
        read
    } else if is_text(&first) {
        let read = pasted(&mut text).map_err(fail)?;
        if read.inputs.is_empty() {
            return Err(nothing());
        }
        read
    } else {
        return Err(nothing());
    };
    Ok(Opened {
        name: name.to_owned(),
        ..read
    })
}

/// Text of any encoding that people paste; other files have zero bytes.
fn is_text(start: &[u8]) -> bool {
    start.starts_with(&[0xff, 0xfe]) || start.starts_with(&[0xfe, 0xff]) || !start.contains(&0)
}

/// Reads a text, as much of it as is kept in memory.
fn pasted(text: &mut dyn BufRead) -> std::io::Result<Opened> {
    let mut bytes = Vec::new();
    text.take(Text::MOST_BYTES as u64).read_to_end(&mut bytes)?;
    let mut paste = Paste::default();
    paste.read(&Text::of(&bytes), "", 1);
    Ok(paste.finish(SourceKind::Text))
}

/// The first bytes in words: for people who gave the wrong file.
fn describe(start: &[u8], packing: Packing) -> String {
    let looks = match start {
        [0xff, 0xd8, 0xff, ..] => " (a JPEG picture)",
        [0x89, b'P', b'N', b'G', ..] => " (a PNG picture)",
        [0x7f, b'E', b'L', b'F', ..] => " (a program)",
        [b'P', b'K', 3, 4, ..] => " (a zip archive)",
        [b'%', b'P', b'D', b'F', ..] => " (a PDF)",
        [b'P', b'A', b'R', b'1', ..] => " (Parquet)",
        _ => "",
    };
    let mut line = Vec::new();
    let _ = Cursor::new(start).read_until(b'\n', &mut line);
    let shown: String = String::from_utf8_lossy(&line[..line.len().min(60)])
        .chars()
        .filter(|c| !c.is_control())
        .take(30)
        .collect();
    let inside = if packing == Packing::None {
        ""
    } else {
        " inside the compression"
    };
    if shown.contains('\u{fffd}') || shown.is_empty() {
        let bytes: Vec<String> = start.iter().take(4).map(|b| format!("{b:02x}")).collect();
        format!("the bytes {}{looks}{inside}", bytes.join(" "))
    } else {
        format!("`{shown}`{looks}{inside}")
    }
}
