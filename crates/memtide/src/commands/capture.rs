//! `memtide capture`: this host's kernel files over time, to bring a sick host home.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Instant;

use anyhow::Context;
use import::capture::{Header, SampleLine, Writer};
use import::{Collector, Pace, Secrets};
use probe::Root;
use timeline::Facts;
use units::Span;

use crate::cli::Capture;
use crate::exit::Exit;
use crate::output::Output;

pub(crate) fn run(args: &Capture, output: &Output) -> anyhow::Result<Exit> {
    let root = Root::default();
    let secrets = Secrets {
        command_lines: args.cmdlines,
        hostname: args.hostname,
    };
    let sink = Packed::create(&args.output)
        .with_context(|| format!("cannot write {}", args.output.display()))?;
    let written = take(args, &root, secrets, sink, output);
    match written {
        Ok(samples) => {
            if args.output != Path::new("-") {
                output.note(&format!(
                    "{}: {samples} samples; memtide check {0}",
                    args.output.display()
                ));
            }
            Ok(Exit::Ok)
        }
        Err(error) => Err(error.context(format!("cannot write {}", args.output.display()))),
    }
}

fn take(
    args: &Capture,
    root: &Root,
    secrets: Secrets,
    sink: Packed,
    output: &Output,
) -> anyhow::Result<u64> {
    let mut collector = Collector::new(root.clone(), secrets);
    let mut writer = Writer::new(sink, &header(args, root))?;
    let total = args.lasts.as_nanos();
    let bar = output.progress("capturing this host", total);
    let pace = Pace::new(args.every, args.lasts);
    let started = Instant::now();
    let mut samples = 0;
    loop {
        let begun = started.elapsed();
        let files = collector.sample();
        let taken = started.elapsed();
        writer.sample(&SampleLine {
            t: begun.as_secs_f64(),
            wall_ns: i64::try_from(jiff::Timestamp::now().as_nanosecond()).ok(),
            awake: None,
            cost_ms: Some((taken - begun).as_secs_f64() * 1e3),
            files,
        })?;
        samples += 1;
        let Some(next) = pace.after(started.elapsed()) else {
            break;
        };
        bar.set_position(u64::try_from(begun.as_nanos()).unwrap_or(total));
        std::thread::sleep(next.saturating_sub(started.elapsed()));
    }
    bar.finish_and_clear();
    writer.into_inner().finish()?;
    Ok(samples)
}

fn header(args: &Capture, root: &Root) -> Header {
    let mut facts = Facts::default();
    probe::host_facts::read(root, Span::ZERO, &mut facts);
    Header {
        format: Some("memtide-capture/1".to_owned()),
        kernel: facts
            .text(timeline::facts::KERNEL_VERSION)
            .map(str::to_owned),
        interval_s: Some(args.every.as_secs_f64()),
        page_size: facts.page_size.map(|page| page.bytes().get()),
        user_hz: facts.ticks_per_second,
        cpus: facts.cpus,
        hostname: None,
        own_cgroup: facts.own_cgroup,
        container: facts.container.map(|container| container.signs),
    }
}

/// A file, packed as its name says.
enum Packed {
    Zstd(zstd::Encoder<'static, BufWriter<File>>),
    Gzip(flate2::write::GzEncoder<BufWriter<File>>),
    Plain(BufWriter<Box<dyn Write>>),
}

impl Packed {
    fn create(path: &Path) -> std::io::Result<Self> {
        if path == Path::new("-") {
            return Ok(Self::Plain(BufWriter::new(Box::new(std::io::stdout()))));
        }
        let name = path.to_string_lossy();
        let file = File::create(path)?;
        Ok(if name.ends_with(".zst") {
            Self::Zstd(zstd::Encoder::new(BufWriter::new(file), 3)?)
        } else if name.ends_with(".gz") {
            let level = flate2::Compression::default();
            Self::Gzip(flate2::write::GzEncoder::new(BufWriter::new(file), level))
        } else {
            Self::Plain(BufWriter::new(Box::new(file)))
        })
    }

    /// Ends the stream, so that it unpacks without complaint.
    fn finish(self) -> std::io::Result<()> {
        match self {
            Self::Zstd(encoder) => encoder.finish()?.flush(),
            Self::Gzip(encoder) => encoder.finish()?.flush(),
            Self::Plain(mut writer) => writer.flush(),
        }
    }

    fn writer(&mut self) -> &mut dyn Write {
        match self {
            Self::Zstd(writer) => writer,
            Self::Gzip(writer) => writer,
            Self::Plain(writer) => writer,
        }
    }
}

impl Write for Packed {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.writer().write(bytes)
    }

    /// Pushes what was written to the file, so that a crash costs no earlier sample.
    fn flush(&mut self) -> std::io::Result<()> {
        self.writer().flush()
    }
}
