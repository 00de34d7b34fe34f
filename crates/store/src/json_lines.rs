//! Files of a recording with a JSON object a line, each with a checksum of its own: what is appended survives a kill at any
//! byte, and a flipped bit costs its line.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Result, Seek, SeekFrom, Write};
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;
use units::Bytes;

use crate::files;
use crate::format::{checked_json, is_unchanged};

/// The most malformed lines that are reported one by one.
const REPORTED_MAX: usize = 8;

/// A line, with its checksum once it was read.
pub(crate) trait ChecksummedLine: Serialize + DeserializeOwned {
    /// The checksum of the text before it; `None` from an earlier memtide.
    fn crc32(&self) -> Option<u32>;
}

/// Appends lines and syncs the file, which is created if absent. Returns its length.
pub(crate) fn append<T: ChecksummedLine>(path: &Path, lines: &[T]) -> Result<u64> {
    let mut text = String::new();
    for line in lines {
        text.push_str(&checked_json(line));
        text.push('\n');
    }
    let mut options = OpenOptions::new();
    options.read(true).append(true);
    let mut file = match files::open_own(&mut options, path) {
        Err(error) if error.kind() == ErrorKind::NotFound => files::create_new(&mut options, path)?,
        opened => opened?,
    };
    // A line cut short by a kill must not merge with the next one.
    if !ends_with_newline(&mut file)? {
        text.insert(0, '\n');
    }
    let before = file.metadata()?.len();
    if let Err(error) = file.write_all(text.as_bytes()) {
        // A full disk has room for a part of them.
        let _ = file.set_len(before);
        return Err(error);
    }
    file.sync_data()?;
    Ok(file.metadata()?.len())
}

fn ends_with_newline(file: &mut File) -> Result<bool> {
    if file.metadata()?.len() == 0 {
        return Ok(true);
    }
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}

/// Replaces a file by these lines, each with its line feed.
pub(crate) fn replace<'a>(
    directory: &Path,
    name: &str,
    lines: impl Iterator<Item = &'a [u8]>,
) -> Result<()> {
    let draft = directory.join(format!(".{name}"));
    let mut file = files::create_draft(&draft)?;
    for line in lines {
        file.write_all(line)?;
    }
    file.sync_all()?;
    std::fs::rename(&draft, directory.join(name))?;
    files::sync(directory)
}

/// Reads the bytes of a file, which is never a symbolic link; of one that is longer than `bytes_max`, the last complete
/// lines.
pub(crate) fn tail(path: &Path, bytes_max: u64, problems: &mut Vec<String>) -> Result<Vec<u8>> {
    let mut file = files::open_own(OpenOptions::new().read(true), path)?;
    let cut = file.metadata()?.len().saturating_sub(bytes_max);
    file.seek(SeekFrom::Start(cut))?;
    let mut bytes = Vec::new();
    file.take(bytes_max).read_to_end(&mut bytes)?;
    if cut > 0 {
        let line = bytes.iter().position(|byte| *byte == b'\n');
        bytes.drain(..line.map_or(bytes.len(), |at| at + 1));
        let name = path.file_name().unwrap_or_default().display();
        problems.push(format!("{name}: too long; its first {} are not read", Bytes::new(cut)));
    }
    Ok(bytes)
}

/// Returns the lines of a file's bytes that are whole and unchanged; the others are problems.
pub(crate) fn sound<T: ChecksummedLine>(
    name: &str,
    bytes: &[u8],
    problems: &mut Vec<String>,
) -> Vec<T> {
    let is_torn = !bytes.is_empty() && !bytes.ends_with(b"\n");
    let mut parts: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
    let torn = parts.pop().unwrap_or_default();
    if is_torn {
        problems.push(format!(
            "{name}: its last line is incomplete ({} bytes) and is ignored",
            torn.len()
        ));
    }
    let mut good = Vec::new();
    let mut bad = 0;
    for (number, part) in (1..).zip(parts).filter(|(_, part)| !part.is_empty()) {
        match sound_line(part) {
            Ok(line) => good.push(line),
            Err(error) if bad < REPORTED_MAX => {
                problems.push(format!("{name}, line {number}: {error}; left out"));
                bad += 1;
            }
            Err(_) => bad += 1,
        }
    }
    if bad > REPORTED_MAX {
        let more = bad - REPORTED_MAX;
        problems.push(format!("{name}: {more} more lines are ignored"));
    }
    good
}

pub(crate) fn sound_line<T: ChecksummedLine>(text: &[u8]) -> std::result::Result<T, String> {
    let line: T = serde_json::from_slice(text).map_err(|error| error.to_string())?;
    if line.crc32().is_some_and(|crc32| !is_unchanged(text, crc32)) {
        return Err("its checksum is wrong".to_owned());
    }
    Ok(line)
}
