//! A whole timeline, of whatever source, becomes a recording.
//!
//! It is made beside its place and renamed, so a kill leaves no half recording.

use std::fs;
use std::path::{Path, PathBuf};

use timeline::{Facts, Timeline};
use units::Span;

use crate::identity::{self, Identity};
use crate::{StoreError, head, segment};

/// A segment reaches this far at most: as far as a recorder's.
const SEGMENT: Span = Span::from_hours(1);
/// A segment of unrelated looks, which lie at no distance that means anything.
const MOST_SAMPLES: usize = 20_000;

/// What was kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Kept {
    /// How many segments it became.
    pub segments: usize,
    /// What could not be kept, in words.
    pub problems: Vec<String>,
}

/// Makes a recording of a timeline. An existing recording of the same host is added to where the timeline is later.
///
/// # Errors
/// [`StoreError`]: the directory holds something else, or another host's recording, or cannot be written.
pub fn keep(
    directory: &Path,
    host: &Identity,
    timeline: &Timeline,
    facts: &Facts,
    every: Span,
) -> Result<Kept, StoreError> {
    let mut kept = Kept::default();
    let is_new = is_new(directory, host)?;
    let making = if is_new {
        beside(directory)
    } else {
        directory.to_owned()
    };
    if is_new {
        let _ = fs::remove_dir_all(&making);
        fs::create_dir_all(making.join(segment::SEGMENTS))
            .map_err(|e| fail("create", &making, &e))?;
        identity::write(&making, host, every)?;
    }
    let mut sequence = next_sequence(&making)?;
    for (first, end) in cuts(timeline) {
        let part = timeline.part(first, end);
        let part = with_noted(part, timeline, (first, end));
        segment::write(&making, sequence, host, &part, facts)?;
        sequence += 1;
        kept.segments += 1;
    }
    crate::facts::append_all(&making, timeline, facts)?;
    let lost = timeline
        .all_reports()
        .iter()
        .filter(|report| report.text.is_none())
        .count();
    if lost > 0 {
        kept.problems.push(format!(
            "the text of {lost} kernel reports was too long to be kept; what they show of memory is"
        ));
    }
    if is_new {
        if directory.exists() {
            fs::remove_dir(directory).map_err(|e| fail("replace", directory, &e))?;
        }
        fs::rename(&making, directory).map_err(|e| fail("rename", &making, &e))?;
    }
    Ok(kept)
}

/// Whether there is nothing yet.
fn is_new(directory: &Path, host: &Identity) -> Result<bool, StoreError> {
    if directory.join(identity::FILE).exists() {
        let (theirs, _) = identity::read(directory)?;
        if theirs.id != host.id {
            return Err(StoreError::OtherHost {
                path: directory.to_owned(),
                theirs: theirs.name,
                ours: host.name.clone(),
            });
        }
        return Ok(false);
    }
    match fs::read_dir(directory) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(true),
        Err(error) => Err(fail("read", directory, &error)),
        Ok(mut entries) => match entries.next() {
            None => Ok(true),
            Some(entry) => Err(StoreError::NotARecording {
                path: directory.to_owned(),
                found: entry.map_or_else(
                    |error| error.to_string(),
                    |entry| entry.file_name().to_string_lossy().into_owned(),
                ),
            }),
        },
    }
}

fn fail(doing: &'static str, path: &Path, reason: &std::io::Error) -> StoreError {
    StoreError::Io {
        doing,
        path: path.to_owned(),
        reason: reason.to_string(),
    }
}

/// Where a recording is made before it takes its place.
fn beside(directory: &Path) -> PathBuf {
    let mut name = directory.file_name().unwrap_or_default().to_owned();
    name.push(".unfinished");
    directory.with_file_name(name)
}

fn next_sequence(directory: &Path) -> Result<u64, StoreError> {
    let read = |e: std::io::Error| fail("read", directory, &e);
    let (segments, _) = segment::list(directory).map_err(read)?;
    let heads = head::files(directory).map_err(read)?;
    let sealed = segments.iter().map(|segment| segment.sequence);
    let numbers = sealed.chain(heads.iter().map(|head| head.sequence));
    Ok(numbers.max().map_or(1, |last| last + 1))
}

/// Where a timeline is cut into segments: first sample, and the one after the last.
fn cuts(timeline: &Timeline) -> Vec<(usize, usize)> {
    let mut cuts = Vec::new();
    let mut first = 0;
    for (at, time) in timeline.times().iter().enumerate() {
        if *time - timeline.times()[first] >= SEGMENT || at - first >= MOST_SAMPLES {
            cuts.push((first, at));
            first = at;
        }
    }
    if first < timeline.len() {
        cuts.push((first, timeline.len()));
    }
    cuts
}

/// A part with its own events only: a part of a timeline knows those of all.
fn with_noted(part: Timeline, whole: &Timeline, (first, end): (usize, usize)) -> Timeline {
    let place = |event: &timeline::Event| {
        let later = (0..whole.len()).find(|at| {
            whole
                .stamp(*at)
                .is_some_and(|stamp| match (stamp.wall, event.stamp.wall) {
                    (Some(sample), Some(event)) => sample >= event,
                    _ => stamp.boot >= event.stamp.boot,
                })
        });
        later.unwrap_or(whole.len().saturating_sub(1))
    };
    let mut part = part;
    let its = whole
        .noted()
        .iter()
        .filter(|event| (first..end).contains(&place(event)));
    part.set_noted(its.cloned().collect());
    part
}
