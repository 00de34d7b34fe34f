//! `--runtime-stats`: what Ruby, a JVM or jemalloc reports of its own memory, alone or beside the process.

use std::io::Read;
use std::path::Path;

use answers::{ProcessBeside, RUNTIME_STATS_SIZE_MAX};
use import::InputFile;
use report::model::explain::ExplainReport;
use report::model::runtime_stats::RuntimeStatsReport;

use crate::cli::Format;
use crate::command_error::{CommandError, ErrorContext};
use crate::exit::Exit;
use crate::output::Output;

/// A runtime's report as it stands in its file.
pub(super) struct RuntimeText<'a> {
    file: &'a Path,
    text: Vec<u8>,
}

impl<'a> RuntimeText<'a> {
    /// Reads a file; `-` is standard input.
    pub(super) fn read(file: &'a Path) -> Result<Self, CommandError> {
        let name = file.display();
        let most = RUNTIME_STATS_SIZE_MAX.get();
        let mut text = Vec::new();
        let input: Box<dyn Read> = if file == Path::new("-") {
            Box::new(std::io::stdin())
        } else {
            Box::new(InputFile::open(file).with_context(|| format!("cannot read {name}"))?)
        };
        let read = input.take(most.saturating_add(1)).read_to_end(&mut text);
        read.with_context(|| format!("cannot read {name}"))?;
        let text = Self { file, text };
        // A file that cannot be understood is an error before a process is watched for hours.
        text.answer(&ProcessBeside::default()).map(|_| text)
    }

    /// Prints the answer about the report alone.
    pub(super) fn print(&self, format: Format, output: &Output) -> Result<Exit, CommandError> {
        let report = self.answer(&ProcessBeside::default())?;
        output.print(&match format {
            Format::Json => report::json(&report)? + "\n",
            Format::Text => report::text::runtime_stats(&report, &output.screen()),
        })?;
        Ok(Exit::Ok)
    }

    /// Returns the answer beside what was read of the process.
    pub(super) fn beside(
        &self,
        explained: &ExplainReport,
    ) -> Result<RuntimeStatsReport, CommandError> {
        let mut alone = self.answer(&ProcessBeside::default())?;
        if let Some(remark) = answers::other_runtime(&alone, explained) {
            alone.remarks.push(remark);
            return Ok(alone);
        }
        let heap = explained.heap.as_ref();
        let process = &explained.process;
        self.answer(&ProcessBeside {
            // A report has the PID that the runtime knows.
            pid: Some(process.namespace_pid.unwrap_or(process.pid)),
            rss: Some(explained.sizes.rss_bytes),
            malloc_free: heap.map(|heap| heap.total.free_resident_bytes),
        })
    }

    fn answer(&self, process: &ProcessBeside) -> Result<RuntimeStatsReport, CommandError> {
        answers::runtime_stats(&self.text, process).with_context(|| {
            let name = self.file.display();
            format!("cannot read the runtime's report in {name}")
        })
    }
}
