//! `memtide convert`: what a paste, a bundle or another tool's recording holds, as a capture.

use std::path::Path;

use anyhow::{Context, bail};
use import::{Converted, Opened, Packed, SourceKind};

use crate::cli::Convert;
use crate::commands::source;
use crate::exit::Exit;
use crate::output::Output;

pub(crate) fn run(args: &Convert, output: &Output) -> anyhow::Result<Exit> {
    let (path, name) = (&args.output, args.output.display());
    let is_stdout = path == Path::new("-");
    if path.exists() && !is_stdout && !args.force {
        bail!("{name} is there already; --force overwrites it");
    }
    let opened = source::open(&args.source, output)?;
    if opened.kind == SourceKind::Capture {
        bail!("{} is a capture already", opened.name);
    }
    if opened.timeline.is_empty() {
        bail!(
            "{} has no sample: a capture of it would be empty",
            opened.name
        );
    }
    let converted = write(&opened, path).with_context(|| format!("cannot write {name}"))?;
    converted
        .in_words()
        .iter()
        .for_each(|text| output.warn(text));
    if !is_stdout {
        output.note(&format!(
            "{name}: {} samples; memtide check {name}",
            converted.samples
        ));
    }
    Ok(Exit::Ok)
}

fn write(opened: &Opened, path: &Path) -> anyhow::Result<Converted> {
    let mut packed = Packed::create(path)?;
    let converted = import::convert(opened, &mut packed)?;
    packed.finish()?;
    Ok(converted)
}
