//! The command line: a file per command. Parsing does nothing; commands do.

mod answer_format;
mod capture;
mod catalogue;
mod check;
mod compare;
mod completed;
mod convert;
mod events;
mod explain;
mod export;
mod group;
mod groups;
mod growth;
mod headroom;
mod install;
mod job;
mod lab;
mod mcp;
mod part;
mod profile;
mod record;
mod report;
mod serve;
mod top;
mod trial;
mod typed;
mod where_memory;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};

pub(crate) use answer_format::{AnswerFormat, Format};
pub(crate) use capture::CaptureArgs;
pub(crate) use catalogue::{RulesArgs, SignalsArgs};
pub(crate) use check::CheckArgs;
pub(crate) use compare::CompareArgs;
pub(crate) use convert::ConvertArgs;
pub(crate) use events::{EventsArgs, EventsFormat};
pub(crate) use explain::ExplainArgs;
pub(crate) use export::{ExportArgs, ExportFormat, MetricNames};
pub(crate) use group::{FollowedArgs, GroupArgs};
pub(crate) use growth::GrowthArgs;
pub(crate) use headroom::{AddKind, DemandArgs, HeadroomArgs};
pub(crate) use install::{CompletionsArgs, ManArgs};
pub(crate) use job::{JobArgs, JobFormat};
pub(crate) use lab::{
    ArchiveArgs, CorpusArgs, ForkArgs, FragmentArgs, HogArgs, HogContent, HoldingPartArgs, LabArgs,
    LabCommand, LabCorpusArgs, LabCureArgs, LabKernelArgs, LabKernelCommand, LabListArgs,
    LabRunArgs, LabScoreArgs, LabShellArgs, LookupArgs, MapArgs, PartOfLabArgs, ReadArgs,
    ShareArgs, WriteArgs, WriteContent,
};
pub(crate) use mcp::McpArgs;
pub(crate) use part::{AroundArgs, PartArgs};
pub(crate) use profile::ProfileArgs;
pub(crate) use record::{RecordArgs, TasksBy};
pub(crate) use report::ReportArgs;
pub(crate) use serve::ServeArgs;
pub(crate) use top::TopArgs;
pub(crate) use trial::{TrialArgs, TrialFormat};
pub(crate) use where_memory::WhereArgs;

/// Find where your Linux memory went, whether it is enough, and why it is slow.
#[derive(Debug, Parser)]
#[command(
    name = "memtide",
    version,
    max_term_width = 100,
    arg_required_else_help = true,
    after_help = "Start with: memtide check\n\nBad usage, and no arguments, end with exit code 3 (\"unknown\" for monitoring plugins)."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,

    /// When to use colour; it only repeats what words say
    #[arg(long, global = true, value_enum, default_value_t = ColorChoice::Auto, value_name = "WHEN")]
    pub(crate) color: ColorChoice,
}

impl Cli {
    /// Reads the arguments of this process.
    ///
    /// # Errors
    /// What clap prints: help, the version, or bad usage.
    pub(crate) fn read() -> Result<Self, clap::Error> {
        let mut command = groups::in_groups(Self::command());
        let mut matches = command.try_get_matches_from_mut(std::env::args_os())?;
        Self::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Check(CheckArgs),
    Top(TopArgs),
    Where(WhereArgs),
    Profile(Box<ProfileArgs>),
    Explain(ExplainArgs),
    Capture(CaptureArgs),
    Convert(ConvertArgs),
    Record(Box<RecordArgs>),
    Events(EventsArgs),
    Headroom(HeadroomArgs),
    Growth(GrowthArgs),
    Report(ReportArgs),
    Serve(ServeArgs),
    Compare(CompareArgs),
    Trial(Box<TrialArgs>),
    Job(JobArgs),
    Export(ExportArgs),
    Rules(RulesArgs),
    Signals(SignalsArgs),
    Lab(LabArgs),
    Mcp(McpArgs),
    Completions(CompletionsArgs),
    Man(ManArgs),
}

impl Command {
    /// Whether it reads the memory of processes, each of which may keep a reader waiting for ever. The recorder has a child
    /// for that.
    pub(crate) fn reads_processes(&self) -> bool {
        match self {
            Self::Explain(_) | Self::Capture(_) => true,
            Self::Check(check) => check.files.is_empty(),
            Self::Where(asked) => asked.file.is_none(),
            Self::Top(top) => top.file.is_none() && (top.once || top.answer.get() == Format::Json),
            Self::Report(report) => report.source.is_none() || report.explain.is_some(),
            _ => false,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorChoice {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    Always,
    Never,
}

#[cfg(test)]
mod tests {
    use answers::StatsKind;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    /// clap wraps lines at the terminal's width, 100 columns at most: a paragraph that is broken by hand comes out torn, and so
    /// does an example that is wider.
    #[test]
    fn help_leaves_the_wrapping_to_clap() {
        fn is_torn(line: &str, next: &str) -> bool {
            if line.starts_with(' ') {
                // A command of another program is one line, to be copied.
                let is_foreign =
                    StatsKind::ALL.iter().any(|kind| line.trim() == kind.how_to_make());
                return line.chars().count() > 98 && !is_foreign;
            }
            let goes_on = !line.is_empty() && !line.ends_with(['.', ':']);
            goes_on && !next.is_empty() && !next.starts_with(' ')
        }
        fn torn(command: &clap::Command) -> Vec<String> {
            let help = command.get_after_long_help().map(ToString::to_string).unwrap_or_default();
            let pairs = help.lines().zip(help.lines().skip(1).chain([""]));
            let mut torn_lines: Vec<_> = pairs
                .filter(|(line, next)| is_torn(line, next))
                .map(|(line, _)| line.to_owned())
                .collect();
            torn_lines.extend(command.get_subcommands().flat_map(torn));
            torn_lines
        }
        assert_eq!(torn(&Cli::command()), Vec::<String>::new());
    }

    #[test]
    fn what_makes_no_sense_to_record_is_refused_with_the_bound() {
        for (options, says) in [
            (["--every", "0"], "100ms is the least"),
            (["--every", "10ms"], "100ms is the least"),
            (["--every", "1h"], "10m is the most"),
            (["--every", "soon"], "no duration"),
            (["--keep", "1"], "`1` has no unit; write 1d for days"),
            (["--keep", "30m"], "1h is the least"),
            (["--keep-size", "1"], "16MiB is the least"),
            (["--keep-size", "500"], "write 500MiB or 500GiB"),
            (["--keep-size", "much"], "no size"),
            (["--sync", "0"], "1s is the least"),
        ] {
            let typed = ["memtide", "record"].into_iter().chain(options);
            let error = Cli::try_parse_from(typed).unwrap_err().to_string();
            assert!(error.contains(says), "{options:?}: {error}");
        }
    }
}
