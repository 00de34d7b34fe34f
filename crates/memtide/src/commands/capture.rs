//! `memtide capture`: this host's kernel files over time, to diagnose it elsewhere.

use std::path::Path;

use ::export::Packed;
use anyhow::Context;
use probe::Root;
use sampler::{CaptureOptions, Secrets};

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
    };
    let name = args.output.display();
    let samples =
        write(&args.output, options, output).with_context(|| format!("cannot write {name}"))?;
    if args.output != Path::new("-") {
        output.note(&format!("{name}: {samples} samples; memtide check {name}"));
    }
    Ok(Exit::Ok)
}

fn write(path: &Path, options: CaptureOptions, output: &Output) -> anyhow::Result<u64> {
    let mut packed = Packed::create(path)?;
    let samples = output.watching("capturing this host", options.duration, |progress| {
        sampler::capture(&Root::default(), options, &mut packed, progress)
    })?;
    packed.finish()?;
    Ok(samples)
}
