//! `--runtime-stats`: what Ruby, a JVM or jemalloc reports of its own memory, alone or beside the process.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use answers::{ProcessBeside, RUNTIME_STATS_SIZE_MAX};
use anyhow::Context;
use report::model::explain::ExplainReport;
use report::model::runtime_stats::RuntimeStatsReport;
use units::Bytes;

use crate::cli::Format;
use crate::exit::Exit;
use crate::output::Output;

/// Prints the answer about a runtime's report alone.
pub(super) fn alone(file: &Path, format: Format, output: &Output) -> anyhow::Result<Exit> {
    let report = read(file, &ProcessBeside::default())?;
    output.print(&match format {
        Format::Json => report::json(&report)? + "\n",
        Format::Text => report::text::runtime_stats(&report, &output.screen()),
    })?;
    Ok(Exit::Ok)
}

/// Returns the answer beside what was read of the process.
pub(super) fn beside(file: &Path, explained: &ExplainReport) -> anyhow::Result<RuntimeStatsReport> {
    let heap = explained.heap.as_ref();
    let process = &explained.process;
    let beside = ProcessBeside {
        // A report has the PID that the runtime knows.
        pid: Some(process.namespace_pid.unwrap_or(process.pid)),
        rss: Some(Bytes::new(explained.sizes.rss_bytes)),
        malloc_free: heap.map(|heap| Bytes::new(heap.total.free_resident_bytes)),
    };
    read(file, &beside)
}

fn read(file: &Path, process: &ProcessBeside) -> anyhow::Result<RuntimeStatsReport> {
    let name = file.display();
    let most = RUNTIME_STATS_SIZE_MAX.get();
    let mut text = Vec::new();
    let input: Box<dyn Read> = if file == Path::new("-") {
        Box::new(std::io::stdin())
    } else {
        Box::new(File::open(file).with_context(|| format!("cannot read {name}"))?)
    };
    let read = input.take(most.saturating_add(1)).read_to_end(&mut text);
    read.with_context(|| format!("cannot read {name}"))?;
    answers::runtime_stats(&text, process)
        .with_context(|| format!("cannot read the runtime's report in {name}"))
}
