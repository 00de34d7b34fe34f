//! The head of a recording: samples that are not sealed yet, in `head/NNNNNNNN.log`.
//!
//! A file is a list of [frames](frame), each with a checksum: the [dictionary] twice, the files that could not be read,
//! and [samples](encode) in blocks of sixty, with events between them. It is append-only. After a kill at any byte, all
//! complete frames before it can be read; a damaged byte costs its block.
//!
//! A file can be read while it is written, and without other files: each begins with a complete sample.

mod bytes;
mod decode;
mod dictionary;
mod encode;
mod ends;
mod frame;
mod frames;
mod series;
mod table;
#[cfg(test)]
mod tests;
mod unknown;
mod window;

use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::{fs, io};

use timeline::{Stamp, Timeline};
use units::{Bytes, WallClock};

use crate::files;

pub(crate) use decode::kernel_file;
use dictionary::put_own as put_dictionary;
pub(crate) use encode::{Encoder, put_absent, put_end, put_event};
pub(crate) use ends::{duration, ends, first_and_last};

/// A writer begins the next file when one has this size, however large the recording may become.
const FULL_BYTES: u64 = 256 << 20;
/// A file is at most 1/40 of a recording, so that dropping one changes its size by a few percent.
const PARTS: u64 = 40;
/// Smaller files would contain little but names.
const FULL_BYTES_MIN: u64 = 256 << 10;

/// Returns the size at which a writer begins the next file of a recording of at most `keep_size`.
pub(crate) fn full_bytes(keep_size: Bytes) -> u64 {
    (keep_size.get() / PARTS).clamp(FULL_BYTES_MIN, FULL_BYTES)
}

/// The largest file that a writer makes: a full one, with the frames that were waiting when it became full. What lies
/// beyond is not a writer's, and is not read.
const FILE_BYTES_MAX: u64 = 2 * FULL_BYTES;

/// A head file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HeadFile {
    /// Its sequence number in the recording.
    pub(crate) sequence: u64,
    pub(crate) path: PathBuf,
}

/// The result of reading a head file.
#[derive(Debug, Default)]
pub(crate) struct HeadRead {
    /// Problems, in words; the rest was read.
    pub(crate) problems: Vec<String>,
    /// Whether the file system did not give all of it. That is not damage: a later attempt may succeed.
    pub(crate) is_partial: bool,
    /// Whether its writer ended it cleanly.
    pub(crate) ended: bool,
    /// Time of its first sample, in the window or not.
    pub(crate) first: Option<WallClock>,
    /// Time of its last sample, in the window or not.
    pub(crate) last: Option<WallClock>,
    /// The clocks of its first sample, in the window or not.
    pub(crate) begin: Option<Stamp>,
    /// The clocks of its last sample, in the window or not.
    pub(crate) end: Option<Stamp>,
    /// Bytes at its end that are not a complete frame: offset and length.
    pub(crate) tail: Option<(u64, u64)>,
}

/// The first and the last wall-clock time; both are included.
pub(crate) type Window = (Option<WallClock>, Option<WallClock>);

/// Returns the directory of a recording's head files.
pub(crate) fn directory_of(recording: &Path) -> PathBuf {
    recording.join("head")
}

/// Returns the path of the head file with a sequence number.
pub(crate) fn path_of(recording: &Path, sequence: u64) -> PathBuf {
    directory_of(recording).join(format!("{sequence:08}.log"))
}

/// Returns the head files of a recording, in order; none without a head.
pub(crate) fn files(recording: &Path) -> io::Result<Vec<HeadFile>> {
    let entries = match fs::read_dir(directory_of(recording)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut files = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        let number = name.and_then(|name| name.strip_suffix(".log"));
        if let Some(sequence) = number.and_then(|number| number.parse().ok()) {
            files.push(HeadFile { sequence, path });
        }
    }
    files.sort_by_key(|file| file.sequence);
    Ok(files)
}

/// Returns the beginning of each head file: the dictionary, twice, as the file cannot be read without it.
pub(crate) fn beginning() -> Vec<u8> {
    let mut bytes = Vec::new();
    put_dictionary(&mut bytes);
    put_dictionary(&mut bytes);
    bytes
}

/// Whether a head file has only its beginning, or a part of that.
pub(crate) fn is_empty(path: &Path) -> bool {
    let beginning = beginning();
    let longest = u64::try_from(beginning.len()).unwrap_or(u64::MAX);
    files::read_regular(path, longest).is_ok_and(|bytes| beginning.starts_with(&bytes))
}

/// Reads a head file into a timeline; its writer may still be running. Memory for the file itself is bounded by its
/// longest frame.
pub(crate) fn load(path: &Path, into: &mut Timeline, window: Option<Window>) -> HeadRead {
    let file = match files::open_regular(path) {
        Ok(file) => file,
        Err(error) => {
            return HeadRead {
                problems: vec![format!("cannot read {}: {error}", path.display())],
                is_partial: true,
                ..HeadRead::default()
            };
        }
    };
    let mut read = load_file(&file, into, window);
    if let Some((at, len)) = read.tail
        && !is_being_written(path)
    {
        read.problems.push(format!(
            "the last {len} bytes, from byte {at}, are an incomplete frame and are ignored"
        ));
    }
    for problem in &mut read.problems {
        *problem = format!("{}: {problem}", path.display());
    }
    read
}

/// Reads an open head file into a timeline.
fn load_file(file: &File, into: &mut Timeline, window: Option<Window>) -> HeadRead {
    let mut decoder = decode::Decoder::new(into, window);
    let is_read = length(file).and_then(|length| {
        if length > FILE_BYTES_MAX {
            decoder.note(format!(
                "it has {}, more than a recorder writes into a file: what lies beyond {} is \
                 damage, and is not read",
                Bytes::new(length),
                Bytes::new(FILE_BYTES_MAX)
            ));
        }
        feed(&mut decoder, file, 0..length.min(FILE_BYTES_MAX))
    });
    let mut read = decoder.end();
    if let Err(error) = is_read {
        read.is_partial = true;
        read.problems.push(format!("cannot read all of it: {error}"));
    }
    read
}

fn length(file: &File) -> io::Result<u64> {
    Ok(file.metadata()?.len())
}

/// Passes the frames of a range of a file to a decoder.
fn feed(decoder: &mut decode::Decoder<'_>, file: &File, range: Range<u64>) -> io::Result<()> {
    let mut frames = frames::Frames::new(file, range.start, range.end);
    while let Some(found) = frames.take_next()? {
        decoder.take(&found);
        if decoder.is_full() {
            break;
        }
    }
    Ok(())
}

/// Whether a recorder is writing a head file, the last of its recording: its end may then be a partial frame.
fn is_being_written(path: &Path) -> bool {
    let Some(recording) = path.parent().and_then(Path::parent) else {
        return false;
    };
    let files = files(recording).unwrap_or_default();
    files.last().is_some_and(|last| last.path == path)
        && crate::directory::lock::is_locked(recording)
}
