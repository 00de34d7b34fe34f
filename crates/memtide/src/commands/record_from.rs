//! `memtide record --from SOURCE --to DIR`: anything that `check` reads becomes a recording.

use std::path::Path;

use anyhow::Context;
use import::OpenOptions;
use store::{HostIdentity, Recording, Resolution};
use timeline::{Source, SourceKind};
use units::{Count, Span};

use crate::commands::source;
use crate::exit::Exit;
use crate::output::Output;

pub(crate) fn run(from: &Path, to: &Path, output: &Output) -> anyhow::Result<Exit> {
    let wanted = OpenOptions {
        resolution: Resolution::Full,
        ..OpenOptions::default()
    };
    let opened = source::open_part(from, wanted, output)?;
    source::warn(&opened, output);
    let mut host = identity(&opened, from)?;
    if to.join("recording.json").exists() {
        host = joined(to, host)?;
    }
    let every = opened.timeline.interval().unwrap_or(Span::from_secs(1));
    let kept = output.reading("keeping", |progress| {
        store::add_timeline_with_progress(
            to,
            &host,
            &opened.timeline,
            &opened.facts,
            every,
            progress,
        )
    });
    let kept = kept.with_context(|| format!("{} was not kept", opened.origin.name))?;
    for problem in &kept.problems {
        output.warn(problem);
    }
    let count = u64::try_from(opened.timeline.len()).unwrap_or(u64::MAX);
    let to = to.display();
    output.note(&format!(
        "{to}: {} {} of {}; memtide check {to}",
        Count::new(count),
        if count == 1 { "sample" } else { "samples" },
        host.name
    ));
    Ok(if opened.origin.is_cut_short {
        Exit::Unknown
    } else {
        Exit::Ok
    })
}

/// Whose samples they are: as the source says, else its name stands for the host.
///
/// # Errors
/// Where a source that is a recording cannot be read again.
pub(crate) fn identity(opened: &Source, from: &Path) -> anyhow::Result<HostIdentity> {
    if opened.origin.kind == SourceKind::Recording {
        return Ok(Recording::open(from)?.host().clone());
    }
    let name = match (&opened.facts.hostname, from.file_name()) {
        (Some(name), _) => name.clone(),
        (None, Some(file)) if from != Path::new("-") => file.to_string_lossy().into_owned(),
        (None, _) => "standard input".to_owned(),
    };
    Ok(HostIdentity {
        id: format!("import:{name}"),
        name,
    })
}

/// The identity of the recording that a source is added to, where both are of one host by name. The store refuses others,
/// and what is not later than all that is there.
fn joined(to: &Path, host: HostIdentity) -> anyhow::Result<HostIdentity> {
    let theirs = Recording::open(to)?.host().clone();
    Ok(if theirs.name == host.name {
        theirs
    } else {
        host
    })
}
