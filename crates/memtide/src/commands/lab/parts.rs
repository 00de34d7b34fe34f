//! `memtide lab hog`, `write`, `read`, `map` and the others: parts of workloads.

use std::fmt::Display;

use lab::parts::{
    ArchivePart, Content, ForkPart, FragmentPart, Hog, LookupPart, MapPart, ReadPart, SharePart,
    WritePart,
};
use units::{Bytes, BytesPerSecond, Count, Quantity, Span};

use crate::cli::{
    ArchiveArgs, ForkArgs, FragmentArgs, HogArgs, HogContent, LookupArgs, MapArgs, PartOfLabArgs,
    ReadArgs, ShareArgs, WriteArgs, WriteContent,
};
use crate::command_error::{CommandError, ErrorContext};
use crate::exit::Exit;
use crate::output::Output;

pub(super) fn hog(args: &HogArgs, output: &Output) -> Result<Exit, CommandError> {
    let printer = Printer::of(&args.holding.part, output);
    let hog = Hog {
        size: args.size,
        touch: args.touch,
        fill: args.fill,
        time: args.time,
        content: content(args.content),
        is_committed: args.committed,
        of_each_huge_page: args.of_each_huge_page,
        is_mergeable: args.mergeable,
        is_locked: args.locked,
    };
    let has_it = || printer.print(args.size.get(), format_args!("has {}", args.size));
    hog.run(has_it).with_context(|| format!("cannot hold {}", args.size))?;
    Ok(Exit::Ok)
}

fn content(content: HogContent) -> Content {
    match content {
        HogContent::Zero => Content::Zero,
        HogContent::Random => Content::Random,
    }
}

pub(super) fn write(args: &WriteArgs, output: &Output) -> Result<Exit, CommandError> {
    let printer = Printer::of(&args.part, output);
    let write = WritePart {
        directory: args.directory.clone(),
        size: args.size,
        files: args.files,
        content: match args.content {
            WriteContent::Random => lab::parts::WrittenContent::Random,
            WriteContent::Log => lab::parts::WrittenContent::Log,
        },
        is_synced: args.synced,
    };
    let mut file = 0;
    let written = write.run(|speed| {
        file += 1;
        let shown = BytesPerSecond::from_f64(speed);
        printer.print(speed, format_args!("file {file}: {shown}"));
    });
    written.with_context(|| format!("cannot write to {}", args.directory.display()))?;
    Ok(Exit::Ok)
}

pub(super) fn read(args: &ReadArgs, output: &Output) -> Result<Exit, CommandError> {
    let printer = Printer::of(&args.part, output);
    let read = ReadPart {
        source: args.source.clone(),
        passes: args.passes,
        time: args.time,
        is_copied: !args.no_copy,
        rest: args.rest,
        cpu: args.cpu,
    };
    let mut pass = 0;
    let read = read.run(|seconds, bytes| {
        pass += 1;
        let (time, size) = (Span::from_secs_f64(seconds), Bytes::new(bytes));
        printer.print(
            format_args!("{seconds} {bytes}"),
            format_args!("pass {pass}: {size} in {time}"),
        );
    });
    read.with_context(|| format!("cannot read {}", args.source.display()))?;
    Ok(Exit::Ok)
}

pub(super) fn map(args: &MapArgs, output: &Output) -> Result<Exit, CommandError> {
    let printer = Printer::of(&args.holding.part, output);
    let map = MapPart {
        file: args.file.clone(),
        file_size: args.size,
        data_size: args.data,
        content: content(args.content),
        iterations: args.iterations,
        time: args.time,
    };
    let all = args.iterations;
    let mapped = map.run(|steps, seconds| {
        let time = Span::from_secs_f64(seconds);
        printer.print(
            format_args!("{steps} {seconds}"),
            format_args!("{steps:.1} of {all} steps after {time}"),
        );
    });
    mapped.with_context(|| format!("cannot map {}", args.file.display()))?;
    Ok(Exit::Ok)
}

pub(super) fn share(args: &ShareArgs, output: &Output) -> Result<Exit, CommandError> {
    let printer = Printer::of(&args.holding.part, output);
    let share = SharePart {
        size: args.size,
        processes: args.processes,
        time: args.time,
        is_huge: args.huge,
    };
    let all = args.processes;
    share
        .run(|number| printer.print(number, format_args!("{number} of {all} processes")))
        .with_context(|| format!("cannot share {}", args.size))?;
    Ok(Exit::Ok)
}

pub(super) fn fork(args: &ForkArgs, output: &Output) -> Result<Exit, CommandError> {
    let printer = Printer::of(&args.holding.part, output);
    let fork = ForkPart {
        size: args.size,
        write: BytesPerSecond::from_f64(args.write.as_f64()),
        save: args.save,
        time: args.time,
    };
    let worked = fork.run(|phase, seconds| {
        let time = Span::from_secs_f64(seconds);
        printer.print(seconds, format_args!("{phase} in {time}"));
    });
    worked.with_context(|| format!("cannot hold {} and fork", args.size))?;
    Ok(Exit::Ok)
}

pub(super) fn fragment(args: &FragmentArgs, output: &Output) -> Result<Exit, CommandError> {
    let printer = Printer::of(&args.holding.part, output);
    let fragment = FragmentPart { size: args.size, keep_one_of: args.keep_one_of, time: args.time };
    fragment
        .run(|live| printer.print(live, format_args!("{} live", Bytes::new(live))))
        .with_context(|| format!("cannot hold {}", args.size))?;
    Ok(Exit::Ok)
}

pub(super) fn lookup(args: &LookupArgs, output: &Output) -> Result<Exit, CommandError> {
    let printer = Printer::of(&args.part, output);
    let lookup = LookupPart { directory: args.directory.clone(), names: args.names };
    let looked_up = lookup.run(|names| {
        let shown = Count::new(u64::from(names));
        printer.print(names, format_args!("{shown} names"));
    });
    looked_up.with_context(|| format!("cannot look up in {}", args.directory.display()))?;
    Ok(Exit::Ok)
}

pub(super) fn archive(args: &ArchiveArgs, output: &Output) -> Result<Exit, CommandError> {
    let printer = Printer::of(&args.part, output);
    let archive = ArchivePart {
        source: args.source.clone(),
        output: args.output.clone(),
        is_compressed: args.gzip,
    };
    let (read, written) = archive.run().with_context(|| {
        let (source, output) = (args.source.display(), args.output.display());
        format!("cannot archive {source} into {output}")
    })?;
    let (from, to) = (Bytes::new(read), Bytes::new(written));
    printer.print(format_args!("{read} {written}"), format_args!("{from} into {to}"));
    Ok(Exit::Ok)
}

/// Prints what a part does, as numbers for a scenario or in words.
struct Printer<'a> {
    output: &'a Output,
    is_numbers: bool,
}

impl<'a> Printer<'a> {
    fn of(part: &PartOfLabArgs, output: &'a Output) -> Self {
        Self { output, is_numbers: part.in_scenario }
    }

    /// A reader that is gone does not end a part.
    fn print(&self, numbers: impl Display, words: impl Display) {
        let line = if self.is_numbers { format!("{numbers}\n") } else { format!("{words}\n") };
        let _ = self.output.print(&line);
    }
}
