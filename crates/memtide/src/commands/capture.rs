//! `memtide capture`: this host's kernel files over time, to bring a sick host home.

use std::path::Path;

use anyhow::Context;
use import::{Packed, Recording, Secrets};
use probe::Root;

use crate::cli::Capture;
use crate::exit::Exit;
use crate::output::Output;

pub(crate) fn run(args: &Capture, output: &Output) -> anyhow::Result<Exit> {
    let recording = Recording {
        lasts: args.lasts,
        every: args.every,
        secrets: Secrets {
            command_lines: args.cmdlines,
            hostname: args.hostname,
        },
    };
    let name = args.output.display();
    let samples =
        write(&args.output, recording, output).with_context(|| format!("cannot write {name}"))?;
    if args.output != Path::new("-") {
        output.note(&format!("{name}: {samples} samples; memtide check {name}"));
    }
    Ok(Exit::Ok)
}

fn write(path: &Path, recording: Recording, output: &Output) -> anyhow::Result<u64> {
    let mut packed = Packed::create(path)?;
    let samples = output.watching("capturing this host", recording.lasts, |progress| {
        import::record(&Root::default(), recording, &mut packed, progress)
    })?;
    packed.finish()?;
    Ok(samples)
}
