//! Recognises what a file is, by content, and reads it.

use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::path::Path;

use timeline::{Facts, RollUps, SignalId, Timeline};
use units::Bytes;

use crate::content::{self, FileContent};
use crate::decompress::{Packing, Started, unpack};
use crate::paste::Paste;
use crate::{bundle, capture, recording, sar};
use store::Resolution;
use timeline::{OutOfRange, Source, SourceKind, TimeRange};

/// Why a source gives nothing at all.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// It cannot be read.
    #[error("cannot read {name}: {reason}")]
    Read {
        /// The file.
        name: String,
        /// The operating system's reason; in words, as an error's source would be shown a second time.
        reason: String,
        /// Whether it may be read by others.
        is_denied: bool,
    },
    /// It is a directory or an archive without anything that memtide knows.
    #[error("{name} holds no file that memtide knows{}", first_of(problems))]
    EmptyBundle {
        /// The directory or archive.
        name: String,
        /// What was wrong with it.
        problems: Vec<String>,
    },
    /// It is a long log without a kernel report.
    #[error("{name} was searched for kernel reports: there is none in its {searched}")]
    NoReport {
        /// The log.
        name: String,
        /// How long it is.
        searched: Bytes,
    },
    /// It is a binary file of sysstat that cannot be read here.
    #[error("cannot read {name}: {reason}")]
    Sar {
        /// The file.
        name: String,
        /// Why, in words.
        reason: String,
        /// What to do about it.
        help: &'static str,
    },
    /// It is a recording that cannot be read.
    #[error("cannot read {name}: {reason}")]
    Recording {
        /// The recording.
        name: String,
        /// Why, in words.
        reason: String,
    },
    /// It is a recording without a sample so far.
    #[error("{name} is a recording without a sample so far")]
    EmptyRecording {
        /// The recording.
        name: String,
    },
    /// It has nothing in the range that was asked for.
    #[error("{name} has no sample in that range")]
    OutOfRange {
        /// The source.
        name: String,
        /// What it has instead.
        why: OutOfRange,
    },
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
    fn read(name: &str, source: std::io::Error) -> Self {
        Self::Read {
            name: name.to_owned(),
            reason: source.to_string(),
            is_denied: source.kind() == ErrorKind::PermissionDenied,
        }
    }

    /// What to do about it.
    pub fn help(&self) -> Option<&'static str> {
        match self {
            Self::Read {
                is_denied: true, ..
            } => Some("its owner and root may: run memtide with sudo"),
            // What a source covers is for whoever knows in which zone people read clocks.
            Self::Read { .. } | Self::Recording { .. } | Self::OutOfRange { .. } => None,
            Self::EmptyRecording { .. } => {
                Some("memtide record --status says whether it is running")
            }
            Self::Sar { help, .. } => Some(help),
            Self::Empty(_) | Self::NoSample { .. } => {
                Some("take another: memtide capture --for 60s -o FILE.jsonl.zst")
            }
            Self::NoReport { .. } => {
                Some("cut what is to be read out of it: output of free, vmstat, sar …")
            }
            Self::EmptyBundle { .. } => Some(
                "it looks for proc/meminfo and its kin below any directory, for logs and output of tools",
            ),
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

/// What is wanted of a source.
#[derive(Debug, Clone, Copy, Default)]
pub struct OpenOptions {
    /// Which part; all where not said. Of a recording, only this part is read.
    pub range: TimeRange,
    /// How finely a recording is read; other sources are read whole.
    pub resolution: Resolution,
    /// What tells in which minutes of a long recording every sample is read; `None`: in none.
    pub screen: Option<Screen>,
}

/// Tells in which minutes something could hold, where all that is known of them are roll-ups.
#[derive(Debug, Clone, Copy)]
pub struct Screen {
    /// The signals whose roll-ups it asks for.
    pub signals: &'static [SignalId],
    /// For each minute whether something could hold in it; facts are those that held last.
    pub could_hold: fn(&RollUps, &Facts) -> Vec<bool>,
}

/// Whether a directory is what `memtide record` wrote.
pub fn is_recording(path: &Path) -> bool {
    store::Recording::is_at(path)
}

/// Reads a part of a source; `progress` is told what share of it was read.
///
/// # Errors
/// As [`open`], and where the source has nothing in the range.
pub fn open_part(
    path: &Path,
    wanted: OpenOptions,
    progress: &mut dyn FnMut(f64),
) -> Result<Source, OpenError> {
    if is_recording(path) {
        return recording::read(path, wanted, progress);
    }
    let size = std::fs::metadata(path).map_or(0, |meta| meta.len());
    #[allow(clippy::cast_precision_loss)] // a share is drawn to a percent
    let share = |read: u64| read as f64 / size.max(1) as f64;
    let opened = open(path, &mut |read| {
        progress(share(read));
    })?;
    let name = opened.origin.name.clone();
    let within = opened.within(wanted.range);
    within.map_err(|why| OpenError::OutOfRange { name, why })
}

/// Passes over every sample of some host signals of a part of a recording, however long it is: each part of it is given once,
/// in order, as a timeline of its own, which begins with the last samples of the one before. Gives what was wrong, in words.
///
/// # Errors
/// [`OpenError`] where it is no recording that can be read.
pub fn scan(
    recording: &Path,
    range: TimeRange,
    signals: &[SignalId],
    each: &mut dyn FnMut(&Timeline),
) -> Result<Vec<String>, OpenError> {
    recording::scan(recording, range, signals, each)
}

/// Reads a file or directory; `progress` is told how many bytes of a file were read.
///
/// # Errors
/// [`OpenError`] where it gives nothing at all; lesser faults are among the problems of what is returned.
pub fn open(path: &Path, progress: &mut dyn FnMut(u64)) -> Result<Source, OpenError> {
    let name = path.display().to_string();
    let fail = |source| OpenError::read(&name, source);
    if is_recording(path) {
        let wanted = OpenOptions::default();
        return recording::read(path, wanted, &mut |_| ());
    }
    if path.is_dir() {
        let read = bundle::read_directory(path).map_err(fail)?;
        return with_a_sample(&name, read);
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
pub fn open_stdin() -> Result<Source, OpenError> {
    read("standard input", std::io::stdin().lock())
}

/// Reads bytes that are in memory already.
///
/// # Errors
/// As [`open`].
pub fn open_bytes(name: &str, bytes: &[u8]) -> Result<Source, OpenError> {
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

fn read(name: &str, mut input: impl BufRead) -> Result<Source, OpenError> {
    let fail = |source| OpenError::read(name, source);
    if input.fill_buf().map_err(fail)?.is_empty() {
        return Err(OpenError::Empty(name.to_owned()));
    }
    let (packing, unpacked) = unpack(input).map_err(fail)?;
    // A packed file that cannot even begin to unpack has nothing to keep.
    let mut started = Started::read(unpacked).map_err(fail)?;
    if started.start.is_empty() {
        return Err(OpenError::Empty(name.to_owned()));
    }
    let start = started.start.clone();
    let nothing = || OpenError::NotRecognised {
        name: name.to_owned(),
        start: content::describe(&start, packing),
    };
    let read = match FileContent::recognise(&start) {
        FileContent::Capture => capture::read(&mut started.input, packing.name()),
        FileContent::Tar => bundle::read_archive(&mut started.input, packing),
        FileContent::Sar(stored) => {
            let cannot = |why: sar::SadfError| OpenError::Sar {
                name: name.to_owned(),
                reason: why.to_string(),
                help: why.help(),
            };
            let mut paste = Paste::default();
            paste.document(stored.read(&mut started.input).map_err(cannot)?, "");
            paste.finish(SourceKind::Text)
        }
        FileContent::Text => return text(name, packing, started)?.ok_or_else(nothing),
        FileContent::Other => return Err(nothing()),
    };
    with_a_sample(name, read)
}

/// What was read, if anything of it can be used.
fn with_a_sample(name: &str, read: Source) -> Result<Source, OpenError> {
    let read = read.named(name);
    let name = name.to_owned();
    match (read.timeline.is_empty(), read.origin.kind) {
        (false, _) => Ok(read),
        (true, SourceKind::Bundle) => Err(OpenError::EmptyBundle {
            name,
            problems: read.problems,
        }),
        (true, _) => Err(OpenError::NoSample {
            name,
            problems: read.problems,
        }),
    }
}

fn text(name: &str, packing: Packing, started: Started<'_>) -> Result<Option<Source>, OpenError> {
    let mut paste = Paste::default();
    let searched = paste.read_stream("", packing, started);
    if !paste.is_empty() {
        return Ok(Some(paste.finish(SourceKind::Text).named(name)));
    }
    match searched {
        Some(bytes) => Err(OpenError::NoReport {
            name: name.to_owned(),
            searched: Bytes::new(bytes),
        }),
        None => Ok(None),
    }
}
