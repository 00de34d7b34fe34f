//! `memtide record --from SOURCE --to DIR`: anything that `check` reads becomes a recording.

use std::path::Path;

use anyhow::{Context, bail};
use import::{Opened, SourceKind, Wanted};
use store::{Identity, Recording, Resolution};
use units::{Count, Span, WallClock};

use crate::commands::source;
use crate::exit::Exit;
use crate::output::Output;

pub(crate) fn run(from: &Path, to: &Path, output: &Output) -> anyhow::Result<Exit> {
    let wanted = Wanted {
        resolution: Resolution::Full,
        ..Wanted::default()
    };
    let opened = source::open_part(from, wanted, output)?;
    let mut host = identity(&opened, from)?;
    if to.join("recording.json").exists() {
        host = joined(&opened, to, host)?;
    }
    let every = opened.timeline.interval().unwrap_or(Span::from_secs(1));
    let bar = output.busy("keeping");
    let kept = store::keep(to, &host, &opened.timeline, &opened.facts, every);
    bar.finish_and_clear();
    let kept = kept.with_context(|| format!("{} was not kept", opened.name))?;
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
    Ok(Exit::Ok)
}

/// Whose samples they are: as the source says, else its name stands for the host.
///
/// # Errors
/// Where a source that is a recording cannot be read again.
pub(crate) fn identity(opened: &Opened, from: &Path) -> anyhow::Result<Identity> {
    if opened.kind == SourceKind::Recording {
        return Ok(Recording::open(from)?.host().clone());
    }
    let name = match (&opened.facts.hostname, from.file_name()) {
        (Some(name), _) => name.clone(),
        (None, Some(file)) if from != Path::new("-") => file.to_string_lossy().into_owned(),
        (None, _) => "standard input".to_owned(),
    };
    Ok(Identity {
        id: format!("import:{name}"),
        name,
    })
}

/// The identity of the recording that a source is added to: of one host, and after all that it has.
fn joined(opened: &Opened, to: &Path, host: Identity) -> anyhow::Result<Identity> {
    let recording = Recording::open(to)?;
    let info = recording.info(false);
    if info.writer.is_some() {
        bail!(
            "{} is being recorded into; stop the recorder, or name another directory",
            to.display()
        );
    }
    if info.host.id != host.id && info.host.name != host.name {
        // The store names both in its message.
        return Ok(host);
    }
    if info.segments == 0 && info.span.is_none() {
        return Ok(info.host);
    }
    let walls = (0..opened.timeline.len()).map(|index| opened.timeline.stamp(index)?.wall);
    let begins = walls.collect::<Option<Vec<WallClock>>>();
    let (to, name) = (to.display(), &opened.name);
    let begins = begins.and_then(|walls| walls.into_iter().min());
    match begins.zip(info.span) {
        None => bail!(
            "{name} cannot be added to {to}, as one of them does not tell at what times its samples were taken; name another directory"
        ),
        Some((begins, (first, last))) if begins <= last => bail!(
            "{name} begins at {}, and {to} has {} to {} already: nothing is overwritten; name another directory",
            written(begins),
            written(first),
            written(last)
        ),
        Some(_) => Ok(info.host),
    }
}

fn written(wall: WallClock) -> String {
    import::export::rfc3339(wall).unwrap_or_else(|| "an impossible time".to_owned())
}
