//! A source becomes a recording, or a part of one.

use std::path::Path;

use store::{AddedTimeline, HostIdentity, Recording, StoreError};
use timeline::{Source, SourceKind};
use units::Span;

/// Adds the samples of a source, read from `path`, to the recording in a directory, which is created if absent. Gives the
/// host that they are of. `progress` gets the share that was written.
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
        // A source knows its host by name only; a recording of that name is continued.
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
    Ok((host, added))
}

/// The host that a source is of: as it says, else named after its file.
///
/// # Errors
/// Where a source that is a recording cannot be read again.
pub fn host_of(source: &Source, path: &Path) -> Result<HostIdentity, StoreError> {
    if source.origin.kind == SourceKind::Recording {
        return Ok(Recording::open(path)?.host().clone());
    }
    let name = match (&source.facts.hostname, path.file_name()) {
        (Some(name), _) => name.clone(),
        (None, Some(file)) if path != Path::new("-") => file.to_string_lossy().into_owned(),
        (None, _) => "standard input".to_owned(),
    };
    Ok(HostIdentity {
        id: format!("import:{name}"),
        name,
    })
}
