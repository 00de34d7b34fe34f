//! Opens a source: recognises it by content and reads it.

use std::borrow::Cow;
use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::path::Path;

use timeline::{Facts, RollUps, SignalId, Timeline};
use units::Bytes;

use crate::content::{self, FileContent};
use crate::decompress::{Packing, Started, unpack};
use crate::input_file::InputFile;
use crate::paste::Paste;
use crate::sar::SadfError;
use crate::{bundle, capture, process_table, recording};
use store::{Resolution, StoreError};
use timeline::{Origin, OutOfRange, Source, SourceKind, TimeRange};

/// Why a source cannot be used.
// The message of a variant says what its fields are.
#[allow(missing_docs)]
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// It cannot be read.
    #[error("cannot read {name}")]
    Read { name: String, source: std::io::Error },
    /// It is a directory or an archive without a file that memtide reads.
    #[error("{name} has no file that memtide reads{}", first_of(problems))]
    EmptyBundle { name: String, problems: Vec<String> },
    /// It is a long log without a kernel report.
    #[error("{name} was searched for kernel reports: none in {searched}")]
    NoReport { name: String, searched: Bytes },
    /// It is a binary file of sysstat that cannot be read.
    #[error("cannot read {name}")]
    Sar {
        name: String,
        /// What `sadf`, which reads such files, made of it.
        source: SadfError,
    },
    /// It is a recording that cannot be read.
    #[error(transparent)]
    Recording(#[from] StoreError),
    /// It is a recording without a sample.
    #[error("{name} is a recording without a sample so far")]
    EmptyRecording { name: String },
    /// It has no sample in the requested range.
    #[error("{name} has no sample in that range")]
    OutOfRange {
        name: String,
        /// The range that it has.
        why: OutOfRange,
    },
    /// It has no bytes.
    #[error("{0} is empty")]
    Empty(String),
    /// Its content was not recognised.
    #[error("{name} has nothing that memtide reads: it starts with {start}")]
    NotRecognised {
        name: String,
        /// Its first bytes, printable, and a guess what it is.
        start: String,
    },
    /// It has no usable sample.
    #[error("{name} has no usable sample{}", first_of(problems))]
    NoSample { name: String, problems: Vec<String> },
}

impl OpenError {
    fn read(name: &str, source: std::io::Error) -> Self {
        Self::Read { name: name.to_owned(), source }
    }

    /// What to do about it.
    pub fn help(&self) -> Option<Cow<'static, str>> {
        let help = match self {
            Self::Recording(error) => return Some(error.help()),
            Self::EmptyRecording { name } => {
                let help =
                    format!("memtide record --status --to {name} shows whether the recorder runs");
                return Some(Cow::Owned(help));
            }
            Self::Read { source, .. } if source.kind() == ErrorKind::PermissionDenied => {
                "run memtide as the owner of the file or as root (sudo)"
            }
            // The range that a source has is printed with the time zone of the user.
            Self::OutOfRange { .. } => return None,
            Self::Read { .. } => "name a file or directory that exists and can be read",
            Self::Sar { source, .. } => source.help(),
            Self::Empty(_) | Self::NoSample { .. } => {
                "take a new capture: memtide capture --for 60s -o FILE.jsonl.zst"
            }
            Self::NoReport { .. } => "extract the output of free, vmstat, sar … from it",
            Self::EmptyBundle { .. } => {
                "it should have files such as proc/meminfo below any directory, logs, or output of \
                 tools"
            }
            Self::NotRecognised { .. } => {
                "memtide reads captures (memtide capture -o FILE.jsonl.zst) and text of \
                 /proc/meminfo, free, vmstat, sar, OOM reports …"
            }
        };
        Some(Cow::Borrowed(help))
    }
}

fn first_of(problems: &[String]) -> String {
    problems.first().map_or_else(String::new, |first| format!(": {first}"))
}

/// Which part of a source is read.
#[derive(Debug, Clone, Copy, Default)]
pub struct OpenOptions {
    /// The range; by default all.
    pub range: TimeRange,
    /// The resolution of a recording; other sources are read at full resolution.
    pub resolution: Resolution,
    /// Selects the minutes of a long recording that are read at full resolution; `None`: none.
    pub screen: Option<MinuteScreen>,
}

/// Selects minutes by their roll-ups: those in which a rule could hold.
#[derive(Debug, Clone, Copy)]
pub struct MinuteScreen {
    /// The signals that it needs roll-ups of.
    pub signals: &'static [SignalId],
    /// For each minute whether a rule could hold in it; with the latest facts.
    pub could_hold: fn(&RollUps, &Facts) -> Vec<bool>,
}

/// Whether a directory is a recording.
pub fn is_recording(path: &Path) -> bool {
    store::Recording::is_at(path)
}

/// Reads a part of a source; `progress` gets the share that was read.
///
/// # Errors
/// As [`open`], and if the source has no sample in the range.
pub fn open_part(
    path: &Path,
    options: OpenOptions,
    progress: &mut dyn FnMut(f64),
) -> Result<Source, OpenError> {
    if is_recording(path) {
        return recording::read(path, options, progress);
    }
    let size = std::fs::metadata(path).map_or(0, |meta| meta.len());
    #[allow(clippy::cast_precision_loss)] // a share is drawn to a percent
    let share = |read: u64| read as f64 / size.max(1) as f64;
    let opened = open(path, &mut |read| {
        progress(share(read));
    })?;
    let name = opened.origin.name.clone();
    opened.within(options.range).map_err(|why| OpenError::OutOfRange { name, why })
}

/// Visits every sample of some host signals in a part of a recording of any length. `each` gets one part after the
/// other as a timeline that begins with the last samples of the part before. Returns problems, human-readable.
///
/// # Errors
/// [`OpenError`] if the recording cannot be read.
pub fn scan(
    recording: &Path,
    range: TimeRange,
    signals: &[SignalId],
    each: &mut dyn FnMut(&Timeline),
) -> Result<Vec<String>, OpenError> {
    recording::scan(recording, range, signals, each)
}

/// Reads a file or directory; `progress` gets the number of bytes read of a file.
///
/// # Errors
/// [`OpenError`] if nothing can be read. Lesser faults are problems of the source.
pub fn open(path: &Path, progress: &mut dyn FnMut(u64)) -> Result<Source, OpenError> {
    let name = path.display().to_string();
    let fail = |source| OpenError::read(&name, source);
    if is_recording(path) {
        let options = OpenOptions::default();
        return recording::read(path, options, &mut |_| ());
    }
    if path.is_dir() {
        let read = bundle::read_directory(path).map_err(fail)?;
        return with_a_sample(&name, read);
    }
    let file = InputFile::open(path).map_err(fail)?;
    let counted = CountingReader { inner: file, read: 0, progress };
    read(&name, BufReader::with_capacity(256 << 10, counted))
}

/// Reads standard input.
///
/// # Errors
/// As [`open`].
pub fn open_stdin() -> Result<Source, OpenError> {
    read(Origin::STANDARD_INPUT, std::io::stdin().lock())
}

/// Reads bytes in memory.
///
/// # Errors
/// As [`open`].
pub fn open_bytes(name: &str, bytes: &[u8]) -> Result<Source, OpenError> {
    read(name, bytes)
}

/// Reports how much was read.
struct CountingReader<'a> {
    inner: InputFile,
    read: u64,
    progress: &'a mut dyn FnMut(u64),
}

impl Read for CountingReader<'_> {
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
        FileContent::Capture => capture::read(&mut started.input, packing),
        FileContent::Tar => bundle::read_archive(&mut started.input, packing),
        FileContent::Sar(format) => {
            let cannot = |source| OpenError::Sar { name: name.to_owned(), source };
            let mut paste = Paste::default();
            paste.document(format.read(&mut started.input).map_err(cannot)?, "");
            paste.finish(SourceKind::Text)
        }
        FileContent::ProcessTable => process_table::read(&mut started.input, name),
        FileContent::Text => return text(name, packing, started)?.ok_or_else(nothing),
        FileContent::Other => return Err(nothing()),
    };
    with_a_sample(name, read)
}

/// The source, if it has a sample.
fn with_a_sample(name: &str, read: Source) -> Result<Source, OpenError> {
    let read = read.named(name);
    let name = name.to_owned();
    match (read.timeline.is_empty(), read.origin.kind) {
        (false, _) => Ok(read),
        (true, SourceKind::Bundle) => Err(OpenError::EmptyBundle { name, problems: read.problems }),
        (true, _) => Err(OpenError::NoSample { name, problems: read.problems }),
    }
}

fn text(name: &str, packing: Packing, started: Started<'_>) -> Result<Option<Source>, OpenError> {
    let mut paste = Paste::of_file(name);
    let searched = paste.read_stream("", packing, started);
    if !paste.is_empty() {
        return Ok(Some(paste.finish(SourceKind::Text).named(name)));
    }
    match searched {
        Some(bytes) => {
            Err(OpenError::NoReport { name: name.to_owned(), searched: Bytes::new(bytes) })
        }
        None => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One of each error. A new variant does not compile in `help` until it says what to do.
    fn every_error() -> Vec<OpenError> {
        let name = || "sick.txt".to_owned();
        let read = |kind: ErrorKind| OpenError::read("sick.txt", kind.into());
        vec![
            read(ErrorKind::PermissionDenied),
            read(ErrorKind::NotFound),
            OpenError::EmptyBundle {
                name: name(),
                problems: vec!["proc/meminfo is empty".to_owned()],
            },
            OpenError::NoReport { name: name(), searched: Bytes::from_mib(20) },
            OpenError::Sar { name: name(), source: SadfError::NotInstalled },
            OpenError::Recording(StoreError::OtherFormat {
                path: "sick.txt".into(),
                format: 9,
                known: 2,
            }),
            OpenError::EmptyRecording { name: name() },
            OpenError::OutOfRange { name: name(), why: OutOfRange::NoTime },
            OpenError::Empty(name()),
            OpenError::NotRecognised { name: name(), start: "`%PDF`".to_owned() },
            OpenError::NoSample { name: name(), problems: Vec::new() },
        ]
    }

    #[test]
    fn every_error_names_the_file_and_says_what_to_do() {
        for error in every_error() {
            let text = timeline::with_causes(&error);
            assert_eq!(text.matches("sick.txt").count(), 1, "{text}");
            assert!(!text.ends_with('.') && !text.contains("  "), "{text}");
            match error.help() {
                Some(help) => assert!(!help.ends_with('.') && help.len() > 10, "{help}"),
                // The range that is there is printed in the user's time zone, by the command line.
                None => assert!(matches!(error, OpenError::OutOfRange { .. }), "{text}"),
            }
        }
    }

    #[test]
    fn an_error_of_the_store_is_its_own_with_its_help() {
        let error =
            OpenError::from(StoreError::OtherFormat { path: "sick".into(), format: 9, known: 2 });
        assert!(error.to_string().starts_with("sick was written by another memtide"), "{error}");
        assert!(error.help().is_some_and(|help| help.contains("use that memtide")));
    }
}
