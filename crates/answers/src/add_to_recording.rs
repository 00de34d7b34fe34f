//! Turns a source into a recording, or into a part of one.

use std::path::Path;

use store::{AddedTimeline, HostIdentity, NameBook, PinnedDirectory, Recording, StoreError};
use timeline::{Source, SourceKind};
use units::Span;

/// Adds the samples of a source, read from `path`, to the recording in `directory`, which is created if absent.
/// Returns the host of the samples. `progress` gets the share that was written.
///
/// # Errors
/// [`StoreError`] where the directory holds another host's recording, later samples, or cannot be written.
pub fn add_to_recording(
    source: &Source,
    path: &Path,
    directory: &Path,
    progress: &mut dyn FnMut(f64),
) -> Result<(HostIdentity, AddedTimeline), StoreError> {
    let mut host = host_of(source, path)?;
    if Recording::is_at(directory) {
        // A source knows only its host's name; a recording of that name is continued.
        let recorded = Recording::open(directory)?.host().clone();
        if recorded.name == host.name {
            host = recorded;
        }
    }
    let every = source.timeline.interval().unwrap_or(Span::from_secs(1));
    let added = store::add_timeline_with_progress(
        directory,
        &host,
        &source.timeline,
        &source.facts,
        every,
        progress,
    )?;
    let place = PinnedDirectory::make(directory)?;
    let wall = source.timeline.stamp(0).and_then(|stamp| stamp.wall);
    NameBook::open(&place).keep(&place, wall, source.facts.names.clone())?;
    Ok((host, added))
}

/// Returns the host of a source: the recorded identity, else one named after its host or its file.
///
/// # Errors
/// If a source that is a recording cannot be read again.
pub fn host_of(source: &Source, path: &Path) -> Result<HostIdentity, StoreError> {
    if source.origin.kind == SourceKind::Recording {
        return Ok(Recording::open(path)?.host().clone());
    }
    let name = match (&source.facts.hostname, path.file_name()) {
        (Some(name), _) => name.clone(),
        (None, Some(file)) if path != Path::new("-") => file.to_string_lossy().into_owned(),
        (None, _) => "standard input".to_owned(),
    };
    Ok(HostIdentity { id: format!("import:{name}"), name })
}
