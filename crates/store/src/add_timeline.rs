//! Writes a whole timeline, from any source, as a recording.
//!
//! A new recording is written under a temporary name and renamed, so a kill leaves no half recording.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use timeline::{Facts, Timeline};
use units::{Span, WallClock};

use crate::directory::RecordingDirectory;
use crate::directory::identity::{self, HostIdentity};
use crate::directory::lock;
use crate::directory::pinned::PinnedDirectory;
use crate::files::{self, sync};
use crate::segment::{SegmentOrigin, names};
use crate::{Recording, StoreError, head, segment};
/// The longest segment, as for a recorder.
const SEGMENT: Span = Span::from_hours(1);
/// The most samples of a segment: snapshots of unknown order have no meaningful times.
const SAMPLES_MAX: usize = 20_000;

/// The result of adding a timeline.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AddedTimeline {
    /// How many segments were written.
    pub segments: usize,
    /// What could not be stored.
    pub problems: Vec<String>,
}

/// Writes a timeline as a new recording, or appends it to a recording of the same host that ends before it.
///
/// # Errors
/// [`StoreError`]: the directory contains something else or another host's recording, has a writer, ends after the
/// timeline begins, or cannot be written.
pub fn add_timeline(
    directory: &Path,
    host: &HostIdentity,
    timeline: &Timeline,
    facts: &Facts,
    every: Span,
) -> Result<AddedTimeline, StoreError> {
    add_timeline_with_progress(directory, host, timeline, facts, every, &mut |_| ())
}

/// Like [`add_timeline`]; `progress` receives the share that is done.
///
/// # Errors
/// As [`add_timeline`].
pub fn add_timeline_with_progress(
    directory: &Path,
    host: &HostIdentity,
    timeline: &Timeline,
    facts: &Facts,
    every: Span,
    progress: &mut dyn FnMut(f64),
) -> Result<AddedTimeline, StoreError> {
    identity::is_new(directory, host)?;
    // A new file system has `lost+found`, and its directory cannot be replaced.
    let is_begun = fs::read_dir(directory).is_ok_and(|mut entries| entries.next().is_some());
    if is_begun {
        let place = RecordingDirectory {
            pinned: PinnedDirectory::make(directory)?,
            identity: host.clone(),
            every,
        };
        let added = append(&place, timeline, facts, progress);
        return added.map_err(|error| place.pinned.named(error));
    }
    let name = create_sibling(directory)?;
    let draft =
        RecordingDirectory { pinned: PinnedDirectory::make(&name)?, identity: host.clone(), every };
    let made = fill_draft(&draft, timeline, facts, progress).and_then(|added| {
        // Replaces an empty directory, and no other.
        fs::rename(&name, directory).map_err(|e| StoreError::io("rename", &name, e))?;
        Ok(added)
    });
    if let Err(error) = made {
        let _ = fs::remove_dir_all(&name);
        return Err(draft.pinned.named(error));
    }
    let parent = parent_of(directory);
    sync(parent).map_err(|e| StoreError::io("sync", parent, e))?;
    made
}

/// Appends a timeline to a recording that has begun.
fn append(
    place: &RecordingDirectory,
    timeline: &Timeline,
    facts: &Facts,
    progress: &mut dyn FnMut(f64),
) -> Result<AddedTimeline, StoreError> {
    let _lock = place.take()?;
    // The sealer of an earlier recorder may still be running.
    let heads = head::directory_of(place.path());
    let _alone = lock::sealing(&heads).map_err(|e| StoreError::io("lock", &heads, e))?;
    is_later(place.path(), timeline)?;
    fill(place, timeline, facts, progress)
}

/// Writes a recording under its temporary name.
fn fill_draft(
    draft: &RecordingDirectory,
    timeline: &Timeline,
    facts: &Facts,
    progress: &mut dyn FnMut(f64),
) -> Result<AddedTimeline, StoreError> {
    let segments = draft.path().join(segment::SEGMENTS);
    files::create_directory(&segments).map_err(|e| StoreError::io("create", &segments, e))?;
    identity::write(draft.path(), &draft.identity, draft.every)?;
    fill(draft, timeline, facts, progress)
}

/// Refuses a timeline that does not begin after the recording's end: nothing is overwritten.
fn is_later(directory: &Path, timeline: &Timeline) -> Result<(), StoreError> {
    let recording = Recording::open(directory)?;
    let info = recording.info(false);
    if info.segments == 0 && info.span.is_none() || timeline.is_empty() {
        return Ok(());
    }
    let walls = (0..timeline.len()).map(|index| timeline.stamp(index)?.wall);
    let walls: Option<Vec<WallClock>> = walls.collect();
    let begins = walls.and_then(|walls| walls.into_iter().min());
    let path = || directory.to_owned();
    match begins.zip(info.span) {
        None => Err(StoreError::Undated { path: path() }),
        Some((begins, (first, last))) if begins <= last => Err(StoreError::NotLater {
            path: path(),
            begins: names::utc(begins),
            first: names::utc(first),
            last: names::utc(last),
        }),
        Some(_) => Ok(()),
    }
}

/// Appends a timeline to a recording, segment by segment.
fn fill(
    place: &RecordingDirectory,
    timeline: &Timeline,
    facts: &Facts,
    progress: &mut dyn FnMut(f64),
) -> Result<AddedTimeline, StoreError> {
    let mut added = AddedTimeline::default();
    let directory = place.path();
    let next = place.next_sequence();
    let next = next.map_err(|e| StoreError::io("read", directory, e))?;
    let noted = placed(timeline);
    for (sequence, (first, end)) in (next..).zip(cuts(timeline)) {
        let mut part = timeline.part(first, end);
        // A part of a timeline has the events of the whole.
        let its = noted.iter().filter(|(at, _)| (first..end).contains(at));
        part.set_recorder_events(its.map(|(_, event)| (*event).clone()).collect());
        segment::write(
            directory,
            sequence,
            &place.identity,
            &part,
            facts,
            &SegmentOrigin::default(),
        )?;
        added.segments += 1;
        #[allow(clippy::cast_precision_loss)] // a share for a progress bar
        progress(end as f64 / timeline.len() as f64);
    }
    crate::facts::append_all(directory, timeline, facts)?;
    let lost = timeline.all_reports().iter().filter(|report| report.text.is_none()).count();
    if lost > 0 {
        added.problems.push(format!(
            "kernel reports with a text too long to store: {lost}; their memory readings are"
        ));
    }
    Ok(added)
}

/// Creates a directory with a new name next to `directory`; nothing that exists is changed.
fn create_sibling(directory: &Path) -> Result<PathBuf, StoreError> {
    const TRIES: u32 = 1000;
    let parent = parent_of(directory);
    fs::create_dir_all(parent).map_err(|e| StoreError::io("create", parent, e))?;
    let mut number = 0;
    loop {
        let mut name = directory.file_name().unwrap_or_default().to_owned();
        name.push(format!(".unfinished-{}-{number}", std::process::id()));
        let draft = directory.with_file_name(name);
        match fs::DirBuilder::new().mode(files::OWNER).create(&draft) {
            Ok(()) => return Ok(draft),
            Err(e) if e.kind() == ErrorKind::AlreadyExists && number < TRIES => number += 1,
            Err(e) => return Err(StoreError::io("create", &draft, e)),
        }
    }
}

/// The parent of a relative name without a directory is the current directory.
fn parent_of(directory: &Path) -> &Path {
    let parent = directory.parent().filter(|path| !path.as_os_str().is_empty());
    parent.unwrap_or(Path::new("."))
}

/// Returns where a timeline is cut into segments: first sample, and the one after the last.
fn cuts(timeline: &Timeline) -> Vec<(usize, usize)> {
    let mut cuts = Vec::new();
    let mut first = 0;
    for (at, time) in timeline.times().iter().enumerate() {
        if *time - timeline.times()[first] >= SEGMENT || at - first >= SAMPLES_MAX {
            cuts.push((first, at));
            first = at;
        }
    }
    if first < timeline.len() {
        cuts.push((first, timeline.len()));
    }
    cuts
}

/// Returns the events that a recorder noted, each with its sample: the first that is not earlier, else the last.
fn placed(timeline: &Timeline) -> Vec<(usize, &timeline::Event)> {
    let place = |event: &timeline::Event| {
        if let Some(at) = timeline.first_of_boot_from(event.stamp) {
            return at.min(timeline.len().saturating_sub(1));
        }
        let later = (0..timeline.len()).find(|at| {
            timeline.stamp(*at).is_some_and(|stamp| match (stamp.wall, event.stamp.wall) {
                (Some(sample), Some(event)) => sample >= event,
                _ => stamp.boot >= event.stamp.boot,
            })
        });
        later.unwrap_or(timeline.len().saturating_sub(1))
    };
    let noted = timeline.recorder_events().iter();
    noted.map(|event| (place(event), event)).collect()
}
