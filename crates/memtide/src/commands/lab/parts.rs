//! `memtide lab hog`, `write`, `read` and `map`: parts of workloads.

use anyhow::Context;
use lab::parts::{Content, Hog, MapPart, ReadPart, WritePart};
use units::{Bytes, BytesPerSecond, Quantity, Span};

use crate::cli::{HogArgs, HogContent, MapArgs, PartOfLabArgs, ReadArgs, WriteArgs};
use crate::exit::Exit;
use crate::output::Output;

pub(super) fn hog(args: &HogArgs) -> anyhow::Result<Exit> {
    join(&args.part)?;
    let hog = Hog {
        size: args.size,
        touch: args.touch,
        fill: args.fill,
        time: args.time,
        content: match args.content {
            HogContent::Zero => Content::Zero,
            HogContent::Random => Content::Random,
        },
    };
    hog.run()
        .with_context(|| format!("cannot hold {}", args.size))?;
    Ok(Exit::Ok)
}

pub(super) fn write(args: &WriteArgs, output: &Output) -> anyhow::Result<Exit> {
    join(&args.part)?;
    let write = WritePart {
        directory: args.directory.clone(),
        size: args.size,
        files: args.files,
    };
    let mut file = 0;
    let mut each = |speed: f64| {
        file += 1;
        let line = if args.part.numbers {
            format!("{speed}\n")
        } else {
            format!("file {file}: {}\n", BytesPerSecond::from_f64(speed))
        };
        let _ = output.print(&line);
    };
    write
        .run(&mut each)
        .with_context(|| format!("cannot write to {}", args.directory.display()))?;
    Ok(Exit::Ok)
}

pub(super) fn read(args: &ReadArgs, output: &Output) -> anyhow::Result<Exit> {
    join(&args.part)?;
    let read = ReadPart {
        directory: args.directory.clone(),
        passes: args.passes,
        time: args.time,
        cpu: args.cpu,
    };
    let mut pass = 0;
    let mut each = |seconds: f64, bytes: u64| {
        pass += 1;
        let line = if args.part.numbers {
            format!("{seconds} {bytes}\n")
        } else {
            let (time, size) = (Span::from_secs_f64(seconds), Bytes::new(bytes));
            format!("pass {pass}: {size} in {time}\n")
        };
        let _ = output.print(&line);
    };
    read.run(&mut each)
        .with_context(|| format!("cannot read {}", args.directory.display()))?;
    Ok(Exit::Ok)
}

pub(super) fn map(args: &MapArgs, output: &Output) -> anyhow::Result<Exit> {
    join(&args.part)?;
    let map = MapPart {
        file: args.file.clone(),
        file_size: args.size,
        data_size: args.data,
        iterations: args.iterations,
        time: args.time,
    };
    let mut done = |steps: f64| {
        let line = if args.part.numbers {
            format!("{steps}\n")
        } else {
            format!("{steps:.1} of {} steps\n", args.iterations)
        };
        let _ = output.print(&line);
    };
    map.run(&mut done)
        .with_context(|| format!("cannot map {}", args.file.display()))?;
    Ok(Exit::Ok)
}

/// Moves this process into a cgroup, before it takes memory.
fn join(part: &PartOfLabArgs) -> anyhow::Result<()> {
    let Some(directory) = &part.join else {
        return Ok(());
    };
    std::fs::write(
        directory.join("cgroup.procs"),
        std::process::id().to_string(),
    )
    .with_context(|| format!("cannot join {}", directory.display()))
}
