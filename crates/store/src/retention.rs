//! What is too old, or too much, goes: the oldest first, and only whole segments.

use std::fs;
use std::path::{Path, PathBuf};

use units::{Bytes, Span, WallClock};

use crate::recording::damaged;
use crate::segment::{self, UNFINISHED};
use crate::{StoreError, head};

/// What was dropped.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dropped {
    /// How many segments and head files.
    pub parts: usize,
    /// How much they took.
    pub bytes: Bytes,
    /// What the recording takes now.
    pub left: Bytes,
}

/// A part of a recording that may be dropped.
struct Part {
    sequence: u64,
    path: PathBuf,
    bytes: u64,
    /// When its last sample was taken.
    until: Option<WallClock>,
}

/// Drops what is older than `keep`, and of the rest so much that `keep_size` holds. The last head file stays.
///
/// # Errors
/// [`StoreError::Io`]
pub fn enforce(
    directory: &Path,
    keep: Span,
    keep_size: Bytes,
    now: WallClock,
) -> Result<Dropped, StoreError> {
    let parts = parts(directory)?;
    let mut left = size(directory);
    let mut dropped = Dropped::default();
    let oldest = now
        .unix_nanos()
        .saturating_sub(i64::try_from(keep.as_nanos()).unwrap_or(i64::MAX));
    for part in parts {
        let is_old = part.until.is_some_and(|until| until.unix_nanos() < oldest);
        if !is_old && left <= keep_size.get() {
            // Only the oldest go, so that the recording has no holes.
            break;
        }
        part.remove()?;
        left = left.saturating_sub(part.bytes);
        dropped.parts += 1;
        dropped.bytes += Bytes::new(part.bytes);
    }
    dropped.left = Bytes::new(left);
    Ok(dropped)
}

/// Drops the oldest part, for a disk that is full; `false` where only the head that is written is left.
///
/// # Errors
/// [`StoreError::Io`]
pub fn drop_oldest(directory: &Path) -> Result<bool, StoreError> {
    match parts(directory)?.first() {
        Some(part) => part.remove().map(|()| true),
        None => Ok(false),
    }
}

/// All parts but the last head file, the oldest first.
fn parts(directory: &Path) -> Result<Vec<Part>, StoreError> {
    let fail = |reason: std::io::Error| StoreError::Io {
        doing: "read",
        path: directory.to_owned(),
        reason: reason.to_string(),
    };
    let (segments, _) = segment::list(directory).map_err(fail)?;
    let mut heads = head::files(directory).map_err(fail)?;
    heads.pop();
    let sealed = segments.into_iter().map(|segment| Part {
        sequence: segment.sequence,
        bytes: segment.bytes(),
        until: segment.span().map(|(_, until)| until),
        path: segment.path,
    });
    let heads = heads.into_iter().map(|head| Part {
        sequence: head.sequence,
        bytes: head.path.metadata().map_or(0, |metadata| metadata.len()),
        until: None,
        path: head.path,
    });
    let damaged = damaged::files(directory).map_err(fail)?;
    // Nothing in them can be read; the file system knows when they were written.
    let damaged = damaged.into_iter().map(|head| Part {
        sequence: head.sequence,
        bytes: head.path.metadata().map_or(0, |metadata| metadata.len()),
        until: written(&head.path),
        path: head.path,
    });
    let mut parts: Vec<Part> = sealed.chain(heads).chain(damaged).collect();
    parts.sort_by_key(|part| part.sequence);
    Ok(parts)
}

fn written(path: &Path) -> Option<WallClock> {
    let age = path.metadata().ok()?.modified().ok()?;
    let age = age.duration_since(std::time::UNIX_EPOCH).ok()?;
    Some(WallClock::from_unix_nanos(
        i64::try_from(age.as_nanos()).ok()?,
    ))
}

impl Part {
    fn remove(&self) -> Result<(), StoreError> {
        let remove = || {
            if !self.path.is_dir() {
                return fs::remove_file(&self.path);
            }
            // Renamed first: a kill in between must not leave half a segment in its place.
            let name = self.path.file_name().unwrap_or_default().to_string_lossy();
            let gone = self
                .path
                .with_file_name(format!("{UNFINISHED}{name}-dropped"));
            fs::rename(&self.path, &gone)?;
            fs::remove_dir_all(&gone)
        };
        match remove() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            result => result.map_err(|reason| StoreError::Io {
                doing: "remove",
                path: self.path.clone(),
                reason: reason.to_string(),
            }),
        }
    }
}

/// How many bytes all files below a directory have.
fn size(directory: &Path) -> u64 {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let sizes = entries.map(|entry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => size(&entry.path()),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    });
    sizes.sum()
}
