//! Arguments of `memtide lab`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use units::{Bytes, Span};

use super::typed::{size, span};

/// Make memory pathologies in a throwaway virtual machine, and check what memtide finds in them
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  memtide lab list
  memtide lab run write-plateau
  memtide lab run swapdemo --variant swappiness-1 --out swapdemo
  memtide lab hog 1G --for 30s

It needs qemu-system-x86 and a kernel image that it may read; no root, and nothing of the host is changed.")]
pub(crate) struct LabArgs {
    #[command(subcommand)]
    pub(crate) command: LabCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum LabCommand {
    /// List scenarios: name, what each shows, RAM, time, article
    List,
    /// Play a scenario and compare with the article
    Run(LabRunArgs),
    /// Hold memory
    Hog(HogArgs),
    /// Write files through the page cache
    Write(WriteArgs),
    /// Read the files of a directory again and again
    Read(ReadArgs),
    /// Move through data and read a mapped file all the while
    Map(MapArgs),
}

#[derive(Debug, Args)]
pub(crate) struct LabRunArgs {
    /// The scenario: memtide lab list
    pub(crate) name: String,
    /// One arm of the comparison only
    #[arg(long, value_name = "ARM")]
    pub(crate) variant: Option<String>,
    /// RAM of the machine
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) ram: Option<Bytes>,
    /// A setting of the scenario
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = setting)]
    pub(crate) settings: Vec<(String, String)>,
    /// Kernel image to boot; its modules are beside it or in /lib/modules
    #[arg(long, value_name = "FILE")]
    pub(crate) kernel: Option<PathBuf>,
    /// Keep captures and the page in this directory
    #[arg(long = "out", value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
    /// How long an arm may take
    #[arg(long, value_name = "TIME", default_value = "4m", value_parser = span)]
    pub(crate) timeout: Span,
}

/// What every part of a workload takes.
#[derive(Debug, Args)]
pub(crate) struct PartOfLabArgs {
    /// Join this cgroup first: its directory
    #[arg(long, value_name = "DIR")]
    pub(crate) join: Option<PathBuf>,
    /// Print numbers only
    #[arg(long, hide = true)]
    pub(crate) numbers: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum HogContent {
    /// Zero but for a byte a page
    Zero,
    /// Noise, which does not compress
    Random,
}

#[derive(Debug, Args)]
pub(crate) struct HogArgs {
    /// How much
    #[arg(value_name = "SIZE", value_parser = size)]
    pub(crate) size: Bytes,
    /// Write every page once in this time, again and again
    #[arg(long, value_name = "TIME", value_parser = span)]
    pub(crate) touch: Option<Span>,
    /// Take this long to fill it
    #[arg(long, value_name = "TIME", value_parser = span)]
    pub(crate) fill: Option<Span>,
    /// End after this time
    #[arg(long = "for", value_name = "TIME", value_parser = span)]
    pub(crate) time: Option<Span>,
    /// What pages hold
    #[arg(long, value_enum, default_value_t = HogContent::Zero)]
    pub(crate) content: HogContent,
    #[command(flatten)]
    pub(crate) part: PartOfLabArgs,
}

#[derive(Debug, Args)]
pub(crate) struct WriteArgs {
    /// The directory
    pub(crate) directory: PathBuf,
    /// Size of each file
    #[arg(value_name = "SIZE", value_parser = size)]
    pub(crate) size: Bytes,
    /// How many files
    #[arg(long, value_name = "COUNT", default_value_t = 1)]
    pub(crate) files: u32,
    #[command(flatten)]
    pub(crate) part: PartOfLabArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ReadArgs {
    /// The directory
    pub(crate) directory: PathBuf,
    /// How often
    #[arg(long, value_name = "COUNT")]
    pub(crate) passes: Option<u32>,
    /// End after this time
    #[arg(long = "for", value_name = "TIME", value_parser = span, required_unless_present = "passes")]
    pub(crate) time: Option<Span>,
    /// Run on this CPU only
    #[arg(long, value_name = "NUMBER")]
    pub(crate) cpu: Option<u32>,
    #[command(flatten)]
    pub(crate) part: PartOfLabArgs,
}

#[derive(Debug, Args)]
pub(crate) struct MapArgs {
    /// The file that is mapped
    pub(crate) file: PathBuf,
    /// How much of it is used
    #[arg(value_name = "SIZE", value_parser = size)]
    pub(crate) size: Bytes,
    /// Data beside it
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) data: Bytes,
    /// Steps through the data
    #[arg(long, value_name = "COUNT", default_value_t = 1)]
    pub(crate) iterations: u32,
    /// End after this time
    #[arg(long = "for", value_name = "TIME", value_parser = span)]
    pub(crate) time: Option<Span>,
    #[command(flatten)]
    pub(crate) part: PartOfLabArgs,
}

fn setting(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("expected KEY=VALUE".to_owned()),
    }
}
