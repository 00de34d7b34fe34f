//! `memtide capture`: this host's kernel files over time, to diagnose it elsewhere.

use std::path::Path;

use ::export::Packed;
use anyhow::Context;
use probe::Root;
use sampler::{CaptureOptions, Captured, Secrets};

use crate::cli::CaptureArgs;
use crate::exit::Exit;
use crate::output::Output;

pub(crate) fn run(args: &CaptureArgs, output: &Output) -> anyhow::Result<Exit> {
    let options = CaptureOptions {
        duration: args.lasts,
        every: args.every,
        secrets: Secrets {
            command_lines: args.cmdlines,
            hostname: args.hostname,
        },
        heaps: args.explain.clone(),
    };
    let name = args.output.display();
    let captured =
        write(&args.output, &options, output).with_context(|| format!("cannot write {name}"))?;
    for problem in &captured.problems {
        output.warn(&format!("malloc heaps: {problem}"));
    }
    if args.output != Path::new("-") {
        output.note(&format!(
            "{name}: {} samples; memtide check {name}",
            captured.samples
        ));
    }
    Ok(Exit::Ok)
}

fn write(path: &Path, options: &CaptureOptions, output: &Output) -> anyhow::Result<Captured> {
    let mut packed = Packed::create(path)?;
    let captured = output.watching("capturing this host", options.duration, |progress| {
        sampler::capture(&Root::default(), options, &mut packed, progress)
    })?;
    packed.finish()?;
    Ok(captured)
}
