//! Arguments of `memtide lab`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use units::{Bytes, Span};

use super::typed::{size, some_size, span};
use super::{AnswerFormat, completed};

/// Make a memory pathology in a throwaway VM and check the diagnosis
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  memtide lab kernel fetch             a kernel to boot, of this system's Debian
  memtide lab list
  memtide lab run write-plateau
  memtide lab run swapdemo --arm swappiness-1 --out swapdemo
  memtide lab cure cgroup-high
  memtide lab hog 1G --limit 512M --for 30s

It needs qemu-system-x86 and a kernel (memtide lab kernel). It needs no root and changes nothing on the host.")]
pub(crate) struct LabArgs {
    #[command(subcommand)]
    pub(crate) command: LabCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum LabCommand {
    /// List scenarios, or the arms and settings of one
    List(LabListArgs),
    /// Play a scenario and compare with the article
    Run(LabRunArgs),
    /// Carry out the first fix of each finding that a scenario makes, while its load goes on, and judge the time after it
    Cure(LabCureArgs),
    /// Fetch kernels to boot, or list those that there are
    Kernel(LabKernelArgs),
    /// Start the machine with a prompt and memtide, to try things
    Shell(LabShellArgs),
    /// Play scenarios and keep a labelled capture of each arm
    Corpus(LabCorpusArgs),
    /// Score check on labelled captures: those of a directory, or made now
    Score(LabScoreArgs),
    /// Hold memory
    Hog(HogArgs),
    /// Write files through the page cache
    Write(WriteArgs),
    /// Read files again and again
    Read(ReadArgs),
    /// Move through data and read a mapped file all the while
    Map(MapArgs),
    /// Map a shared segment into many processes
    Share(ShareArgs),
    /// Hold data, fork, and write to them meanwhile
    Fork(ForkArgs),
    /// Fill a heap with small objects and free most of them
    Fragment(FragmentArgs),
    /// Look up names that do not exist
    Lookup(LookupArgs),
    /// Write files into one, compressed or not
    Archive(ArchiveArgs),
}

#[derive(Debug, Args)]
pub(crate) struct LabKernelArgs {
    #[command(subcommand)]
    pub(crate) command: LabKernelCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum LabKernelCommand {
    /// Download a Debian kernel (x86-64) with apt and unpack it into ~/.cache/memtide/kernels
    ///
    /// Nothing is installed and no root is needed. A kernel that is there already is not downloaded again.
    #[command(after_long_help = "\
Examples:
  memtide lab kernel fetch
  memtide lab kernel fetch linux-image-cloud-amd64 bullseye     5.10
  memtide lab kernel fetch linux-image-cloud-amd64 sid          the newest
  memtide lab run swapdemo --kernel 5.10

With a SUITE it comes from that suite of the Debian mirror in this system's sources, else from the system's own suite; that \
one is the kernel that the lab boots if none is named.")]
    Fetch {
        /// A kernel's package, or one that depends on it
        #[arg(default_value = lab::USUAL_PACKAGE)]
        package: String,
        /// Of Debian: bullseye, bookworm, trixie, sid
        suite: Option<String>,
    },
    /// List the kernels that can be booted; the first is booted if none is named
    List,
}

/// How a machine's instructions run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum AccelChoice {
    /// By the host's processor
    Kvm,
    /// By emulation
    Tcg,
}

impl From<AccelChoice> for lab::Accelerator {
    fn from(choice: AccelChoice) -> Self {
        match choice {
            AccelChoice::Kvm => Self::Kvm,
            AccelChoice::Tcg => Self::Tcg,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct LabListArgs {
    /// One scenario: its arms, settings and variants
    #[arg(add = completed::lab_scenarios())]
    pub(crate) name: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct LabRunArgs {
    /// The scenario: memtide lab list
    #[arg(add = completed::lab_scenarios())]
    pub(crate) name: String,
    /// One arm of the comparison only
    #[arg(long, alias = "variant", value_name = "ARM", add = completed::lab_arms())]
    pub(crate) arm: Option<String>,
    /// RAM of the machine
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) ram: Option<Bytes>,
    /// A setting of the scenario
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = setting, add = completed::lab_settings())]
    pub(crate) settings: Vec<(String, f64)>,
    /// Kernel to boot: an image with its modules beside it or in /lib/modules, or the version of one that was fetched, as 6.12
    #[arg(long, value_name = "FILE|VERSION", add = completed::lab_kernels())]
    pub(crate) kernel: Option<PathBuf>,
    /// The directory of the pages; lab-NAME if not given
    #[arg(long = "out", value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
    /// Also keep the captures in that directory
    #[arg(long)]
    pub(crate) keep: bool,
    /// Also profile the kernel's memory work in each arm
    #[arg(long)]
    pub(crate) profile: bool,
    /// Show the machine's memory live while it works, as memtide top does
    #[arg(long)]
    pub(crate) watch: bool,
    #[command(flatten)]
    pub(crate) answer: AnswerFormat,
    /// The memory controller of cgroup v1 instead of v2
    #[arg(long)]
    pub(crate) cgroup_v1: bool,
    /// Switch the kernel's multi-generational LRU on or off
    #[arg(long, value_name = "on|off", value_parser = on_or_off)]
    pub(crate) mglru: Option<bool>,
    /// How the machine's instructions run: by KVM, or by emulation; KVM where it works if not given
    #[arg(long, value_enum)]
    pub(crate) accel: Option<AccelChoice>,
    /// How long an arm may take
    #[arg(long, value_name = "TIME", default_value = "4m", value_parser = span)]
    pub(crate) timeout: Span,
}

#[derive(Debug, Args)]
pub(crate) struct LabCureArgs {
    /// A scenario: memtide lab list; all that make a finding if not given
    #[arg(value_name = "NAME", add = completed::lab_scenarios())]
    pub(crate) names: Vec<String>,
    /// One arm only
    #[arg(long, value_name = "ARM", add = completed::lab_arms())]
    pub(crate) arm: Option<String>,
    /// Kernel to boot, as for lab run; may be repeated
    #[arg(long = "kernel", value_name = "FILE|VERSION", add = completed::lab_kernels())]
    pub(crate) kernels: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) answer: AnswerFormat,
    /// The memory controller of cgroup v1 instead of v2
    #[arg(long)]
    pub(crate) cgroup_v1: bool,
    /// Keep the captures in this directory, as SCENARIO/ARM.jsonl
    #[arg(long, value_name = "DIR")]
    pub(crate) keep: Option<PathBuf>,
    /// How the machine's instructions run: by KVM, or by emulation; KVM where it works if not given
    #[arg(long, value_enum)]
    pub(crate) accel: Option<AccelChoice>,
    /// How long an arm may take
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = span)]
    pub(crate) timeout: Span,
}

#[derive(Debug, Args)]
pub(crate) struct LabShellArgs {
    /// RAM of the machine
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "512M")]
    pub(crate) ram: Bytes,
    /// An empty disk of this size: /dev/vda, /dev/vdb, …
    #[arg(long = "disk", value_name = "SIZE", value_parser = some_size)]
    pub(crate) disks: Vec<Bytes>,
    /// NUMA nodes
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=8))]
    pub(crate) nodes: u32,
    /// Kernel to boot, as for lab run
    #[arg(long, value_name = "FILE|VERSION", add = completed::lab_kernels())]
    pub(crate) kernel: Option<PathBuf>,
    /// How the machine's instructions run: by KVM, or by emulation; KVM where it works if not given
    #[arg(long, value_enum)]
    pub(crate) accel: Option<AccelChoice>,
}

/// Which captures are made.
#[derive(Debug, Args)]
pub(crate) struct CorpusArgs {
    /// A scenario; may be repeated; all scenarios if not given
    #[arg(long = "scenario", value_name = "NAME", add = completed::lab_scenarios())]
    pub(crate) scenarios: Vec<String>,
    /// Kernel to boot, as for lab run; may be repeated
    #[arg(long = "kernel", value_name = "FILE|VERSION", add = completed::lab_kernels())]
    pub(crate) kernels: Vec<PathBuf>,
    /// Variants of each scenario: its own settings, then up to two others
    #[arg(long, value_name = "COUNT", default_value_t = 1)]
    pub(crate) variants: usize,
    /// Machines that run at the same time, each with two CPUs; more CPUs than the host has spoil measured times
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(crate) jobs: u16,
    /// Seeds of the scenario neighbours
    #[arg(long, value_name = "COUNT", default_value_t = 1)]
    pub(crate) seeds: u32,
    /// The memory controller of cgroup v1 instead of v2
    #[arg(long)]
    pub(crate) cgroup_v1: bool,
    /// Switch the kernel's multi-generational LRU on or off
    #[arg(long, value_name = "on|off", value_parser = on_or_off)]
    pub(crate) mglru: Option<bool>,
    /// How the machine's instructions run: by KVM, or by emulation; KVM where it works if not given
    #[arg(long, value_enum)]
    pub(crate) accel: Option<AccelChoice>,
    /// How long an arm may take
    #[arg(long, value_name = "TIME", default_value = "4m", value_parser = span)]
    pub(crate) timeout: Span,
}

#[derive(Debug, Args)]
pub(crate) struct LabCorpusArgs {
    /// The directory of captures; existing captures are kept
    #[arg(long = "out", value_name = "DIR")]
    pub(crate) output: PathBuf,
    #[command(flatten)]
    pub(crate) corpus: CorpusArgs,
}

#[derive(Debug, Args)]
pub(crate) struct LabScoreArgs {
    /// Directories of labelled cases; without one, captures are made now, as by lab corpus
    #[arg(value_name = "DIR", conflicts_with_all = ["scenarios", "kernels", "variants", "seeds", "jobs", "cgroup_v1", "mglru", "accel", "timeout"])]
    pub(crate) directories: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) corpus: CorpusArgs,
    /// Write the matrix as a page
    #[arg(short = 'o', long = "output", value_name = "FILE.html")]
    pub(crate) output: Option<PathBuf>,
    /// Exit with 2 below this precision
    #[arg(long, value_name = "SHARE", default_value_t = 0.97, value_parser = share)]
    pub(crate) min_precision: f64,
    /// Exit with 2 below this recall
    #[arg(long, value_name = "SHARE", default_value_t = 0.95, value_parser = share)]
    pub(crate) min_recall: f64,
    #[command(flatten)]
    pub(crate) answer: AnswerFormat,
}

/// The options of every part of a workload.
#[derive(Debug, Args)]
pub(crate) struct PartOfLabArgs {
    /// Join this cgroup first: its directory
    #[arg(long, value_name = "DIR")]
    pub(crate) join: Option<PathBuf>,
    /// Run in a new cgroup with this limit, without swap; needs root
    #[arg(long, value_name = "SIZE", value_parser = some_size, conflicts_with = "join")]
    pub(crate) limit: Option<Bytes>,
    /// Part of a scenario: print numbers only, and do not ask what is available
    #[arg(long, hide = true)]
    pub(crate) in_scenario: bool,
}

/// The options of parts that hold memory.
#[derive(Debug, Args)]
pub(crate) struct HoldingPartArgs {
    /// Take more than the host has available: it may swap, and the kernel may kill programs
    #[arg(long)]
    pub(crate) beyond_available: bool,
    #[command(flatten)]
    pub(crate) part: PartOfLabArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum HogContent {
    /// Zero, except one byte a page
    Zero,
    /// Noise, which does not compress
    Random,
}

#[derive(Debug, Args)]
pub(crate) struct HogArgs {
    /// How much
    #[arg(value_name = "SIZE", allow_negative_numbers = true, value_parser = some_size)]
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
    /// Contents of the pages
    #[arg(long, value_enum, default_value_t = HogContent::Zero)]
    pub(crate) content: HogContent,
    /// Count it in Committed_AS, as memory of malloc is
    #[arg(long)]
    pub(crate) committed: bool,
    /// Use only this much of every 2 MiB
    #[arg(long, value_name = "SIZE", value_parser = some_size)]
    pub(crate) of_each_huge_page: Option<Bytes>,
    /// Offer its pages to kernel samepage merging (KSM)
    #[arg(long)]
    pub(crate) mergeable: bool,
    /// Lock it: the kernel evicts none of it
    #[arg(long)]
    pub(crate) locked: bool,
    #[command(flatten)]
    pub(crate) holding: HoldingPartArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum WriteContent {
    /// Noise, which does not compress
    Random,
    /// Lines of a log, which gzip packs to a tenth
    Log,
}

#[derive(Debug, Args)]
pub(crate) struct WriteArgs {
    pub(crate) directory: PathBuf,
    /// Size of each file
    #[arg(value_name = "SIZE", allow_negative_numbers = true, value_parser = some_size)]
    pub(crate) size: Bytes,
    /// How many files
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) files: u32,
    /// Contents of the files
    #[arg(long, value_enum, default_value_t = WriteContent::Random)]
    pub(crate) content: WriteContent,
    /// Wait for the disk after each MiB
    #[arg(long)]
    pub(crate) synced: bool,
    #[command(flatten)]
    pub(crate) part: PartOfLabArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ReadArgs {
    /// A file, or a directory of files
    pub(crate) source: PathBuf,
    /// How often
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) passes: Option<u32>,
    /// End after this time
    #[arg(long = "for", value_name = "TIME", value_parser = span, required_unless_present = "passes")]
    pub(crate) time: Option<Span>,
    /// Make files present in the page cache without copying them out of it
    #[arg(long)]
    pub(crate) no_copy: bool,
    /// Rest between two passes
    #[arg(long, value_name = "TIME", value_parser = span)]
    pub(crate) rest: Option<Span>,
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
    #[arg(value_name = "SIZE", allow_negative_numbers = true, value_parser = some_size)]
    pub(crate) size: Bytes,
    /// Data beside it
    #[arg(long, value_name = "SIZE", value_parser = some_size)]
    pub(crate) data: Bytes,
    /// Contents of the data
    #[arg(long, value_enum, default_value_t = HogContent::Zero)]
    pub(crate) content: HogContent,
    /// Steps through the data
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) iterations: u32,
    /// End after this time
    #[arg(long = "for", value_name = "TIME", value_parser = span)]
    pub(crate) time: Option<Span>,
    #[command(flatten)]
    pub(crate) holding: HoldingPartArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ShareArgs {
    /// Size of the segment
    #[arg(value_name = "SIZE", allow_negative_numbers = true, value_parser = some_size)]
    pub(crate) size: Bytes,
    /// How many processes map and read it
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) processes: u32,
    /// Map it with huge pages; they must be reserved (vm.nr_hugepages)
    #[arg(long)]
    pub(crate) huge: bool,
    /// End after this time
    #[arg(long = "for", value_name = "TIME", value_parser = span)]
    pub(crate) time: Option<Span>,
    #[command(flatten)]
    pub(crate) holding: HoldingPartArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ForkArgs {
    /// Size of the data
    #[arg(value_name = "SIZE", allow_negative_numbers = true, value_parser = some_size)]
    pub(crate) size: Bytes,
    /// How much is written to random pages a second
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) write: Bytes,
    /// How long the child lives
    #[arg(long, value_name = "TIME", value_parser = span)]
    pub(crate) save: Span,
    /// How long it works before the fork, and again after the child's end
    #[arg(long = "for", value_name = "TIME", value_parser = span)]
    pub(crate) time: Span,
    #[command(flatten)]
    pub(crate) holding: HoldingPartArgs,
}

#[derive(Debug, Args)]
pub(crate) struct FragmentArgs {
    /// Size of all objects at first
    #[arg(value_name = "SIZE", allow_negative_numbers = true, value_parser = some_size)]
    pub(crate) size: Bytes,
    /// Keep one object in this many
    #[arg(long, value_name = "COUNT", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) keep_one_of: u32,
    /// End after this time
    #[arg(long = "for", value_name = "TIME", value_parser = span)]
    pub(crate) time: Option<Span>,
    #[command(flatten)]
    pub(crate) holding: HoldingPartArgs,
}

#[derive(Debug, Args)]
pub(crate) struct LookupArgs {
    pub(crate) directory: PathBuf,
    /// How many names
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) names: u32,
    #[command(flatten)]
    pub(crate) part: PartOfLabArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ArchiveArgs {
    /// A file, or a directory of files
    pub(crate) source: PathBuf,
    /// The file that is written; it must not exist
    pub(crate) output: PathBuf,
    /// Compress it with gzip
    #[arg(long)]
    pub(crate) gzip: bool,
    #[command(flatten)]
    pub(crate) part: PartOfLabArgs,
}

fn setting(text: &str) -> Result<(String, f64), String> {
    let (name, value) =
        text.split_once('=').filter(|(name, _)| !name.is_empty()).ok_or("expected KEY=VALUE")?;
    let number = value.parse::<f64>().ok().filter(|value| value.is_finite());
    let number = number.ok_or_else(|| format!("`{value}` is no number"))?;
    Ok((name.to_owned(), number))
}

fn share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "expected a number from 0 to 1".to_owned())
}

fn on_or_off(text: &str) -> Result<bool, String> {
    match text {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err("expected on or off".to_owned()),
    }
}
