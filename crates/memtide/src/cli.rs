//! What can be typed. Parsing does nothing; commands do.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use import::Moment;
use jiff::SpanRelativeTo;
use units::{Bytes, Quantity, Ratio, Span};

use crate::moment::moment;

/// Find where your Linux memory went, whether it is enough, and why it is slow.
#[derive(Debug, Parser)]
#[command(
    name = "memtide",
    version,
    max_term_width = 100,
    arg_required_else_help = true,
    after_help = "Start with: memtide check"
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,

    /// When to use colour, which only repeats what words say
    #[arg(long, global = true, value_enum, default_value_t = ColorChoice::Auto, value_name = "WHEN")]
    pub(crate) color: ColorChoice,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Check(Check),
    Where(Where),
    Capture(Capture),
    Convert(Convert),
    Record(Box<Record>),
    Events(Events),
    Headroom(Headroom),
    Report(Report),
    Compare(Compare),
    Export(Export),
    Rules(Rules),
    Signals(Signals),
    Completions(Completions),
    #[command(hide = true)]
    Man(Man),
}

/// Say what is wrong with a host's memory
///
/// Without FILE it watches this host for a while, and looks up in its recording (memtide record) what was before. With FILE it reads what there is of another host: a capture; text that
/// somebody pasted or saved (free, vmstat, /proc files, slabtop, ps, sar, tables), in any mix; kernel logs with OOM reports;
/// a support bundle. It prints a verdict in one sentence,
/// what RAM holds, the findings with their evidence and fix, what looks bad and is not, and what could not be told.
/// Ctrl-C ends watching early and reports what was seen.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  memtide check                        watch this host for 10 s
  memtide check --for 1m               look longer: more certain
  memtide check sick.jsonl.zst         a capture brought home
  memtide check /var/lib/memtide       a recording (memtide record)
  memtide check --since 'yesterday 22:00' --until 02:00
                                       this host's recording of that time
  memtide check --at 02:14             the minutes around it
  memtide check free.txt oom.log       what somebody sent
  dmesg | memtide check -              the kernel's own reports
  memtide check --explain-input x.txt  what was recognised in it
  memtide check --format json | jq .verdict
  ssh HOST memtide capture -o - | memtide check -

WHEN is 2h ago, 02:00 (the latest that is past), yesterday 01:30, today, mon 14:00, 2026-11-21 14:00, an RFC 3339 time,
@1795240800, or +1m30s from the source's start. What names no zone is local time.

With --format json, one FILE gives an object and several give an array with one element for each, in order;
one that cannot be read is {\"source\": {\"name\": ...}, \"error\": ...}.

Exit codes, as monitoring plugins have them:
  0 ok   1 warning   2 critical   3 unknown: bad usage, unreadable file, or too little data to say")]
pub(crate) struct Check {
    /// Captures, recordings, text, logs, sar files, bundles; `-` is standard input
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// From when on; without FILE, in this host's recording
    #[arg(long, value_name = "WHEN", value_parser = moment, allow_hyphen_values = true)]
    pub(crate) since: Option<Moment>,

    /// Until when
    #[arg(long, value_name = "WHEN", value_parser = moment, allow_hyphen_values = true)]
    pub(crate) until: Option<Moment>,

    /// The 5 minutes before and after a moment
    #[arg(long, value_name = "WHEN", value_parser = moment, allow_hyphen_values = true, conflicts_with_all = ["since", "until"])]
    pub(crate) at: Option<Moment>,

    /// Do not look into this host's recording for what was before
    #[arg(long, conflicts_with_all = ["files", "since", "until", "at"])]
    pub(crate) no_history: bool,

    /// How long to watch this host
    #[arg(long = "for", value_name = "TIME", default_value = "10s", value_parser = span)]
    pub(crate) lasts: Span,

    /// How often to look at this host
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = span)]
    pub(crate) every: Span,

    /// Also list the rules that looked and found nothing
    #[arg(long)]
    pub(crate) all: bool,

    /// Show what was recognised in the files, block by block, instead of the answer
    #[arg(long, requires = "files")]
    pub(crate) explain_input: bool,

    /// How to print the answer
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

/// Show where memory went: a tree that adds up to MemTotal
///
/// What no counter explains is a line of its own. It also reads the PSS of the largest processes, for at most 0.2 s, and
/// the slab caches; those of other users only as root.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  memtide where                        this host, now
  memtide where --deep                 PSS of every process (those of others: as root)
  memtide where sick.jsonl.zst         the last sample of a capture
  memtide where --at 'yesterday 02:14'  in this host's recording; `memtide check --help` says how to write moments
  memtide where --format json | jq .accounting")]
pub(crate) struct Where {
    /// Capture, recording or text to read; `-` is standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,

    /// The last sample at or before this moment; without FILE, of this host's recording
    #[arg(long, value_name = "WHEN", value_parser = moment, allow_hyphen_values = true, conflicts_with = "deep")]
    pub(crate) at: Option<Moment>,

    /// Read the PSS of every process, not only of the largest; 3 ms for each GiB that they hold
    #[arg(long)]
    pub(crate) deep: bool,

    /// How to print the answer
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

/// Save this host's kernel files over time, to bring a sick host home
///
/// The file holds the kernel's own numbers, names of programs and of control groups. It never holds environments; command
/// lines and the host's name only when asked for. Ctrl-C ends it early and keeps what was taken.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  memtide capture -o sick.jsonl.zst
  memtide capture --for 10m --every 5s -o sick.jsonl.gz
  memtide capture --for 30s -o - | ssh HOME memtide check -")]
pub(crate) struct Capture {
    /// Where to write: .jsonl.zst, .jsonl.gz or .jsonl; `-` is standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,

    /// How long to watch
    #[arg(long = "for", value_name = "TIME", default_value = "60s", value_parser = span)]
    pub(crate) lasts: Span,

    /// How often to look
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = span)]
    pub(crate) every: Span,

    /// Include command lines of processes and of the kernel, which may hold secrets
    #[arg(long)]
    pub(crate) cmdlines: bool,

    /// Include the host's name
    #[arg(long)]
    pub(crate) hostname: bool,
}

/// Write what any source holds as a capture: a paste, a support bundle, a recording of another tool
///
/// A capture holds kernel files. What tools printed is written as the files that they had read; what no file can be made
/// up for is named and left out. Kernel reports are kept as they are.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  memtide convert paste.txt -o sick.jsonl.zst
  memtide convert sosreport-web.tar.xz -o web.jsonl.zst")]
pub(crate) struct Convert {
    /// What to read; `-` is standard input
    #[arg(value_name = "SOURCE")]
    pub(crate) source: PathBuf,

    /// Where to write: .jsonl.zst, .jsonl.gz or .jsonl; `-` is standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,

    /// Overwrite FILE where there is one
    #[arg(long)]
    pub(crate) force: bool,
}

/// Record this host's memory all the time: a flight recorder that every other command can look back with
///
/// It samples the host every second, control groups and processes every ten, and keeps the samples for days, in a directory
/// that survives a crash at any moment. It is small (some 5 MiB, a fraction of a percent of a CPU) and made to go on where the host
/// runs out of memory. As an ordinary user it records what it may read. Ctrl-C or SIGTERM ends it in good order, SIGHUP
/// makes what is recorded so far a file that other programs can open.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  memtide record                       until Ctrl-C, into this user's usual place
  sudo memtide record --install        as a service, now and at every start
  memtide record --install --dry-run   see its unit first
  memtide record --status              is it running, what does it cost, what can it not see
  memtide record --to DIR --every 5s --keep 30d --keep-size 500MiB
  memtide record --from sick.jsonl.zst --to DIR

TIME is 500ms, 5s, 2m, 1h or 14d; a plain number is seconds, but --keep wants a unit.
SIZE is 500MiB, 2GiB, 2GB (2 x 10^9 bytes), or a number of bytes.

Without --to it is /var/lib/memtide for root, and $XDG_STATE_HOME/memtide or ~/.local/state/memtide for others.

Exit codes: 0 done; for --status: running   3 an error; for --status: not running")]
pub(crate) struct Record {
    /// Where to record: a directory, made if it is not there
    #[arg(long, value_name = "DIR")]
    pub(crate) to: Option<PathBuf>,

    /// How often to look at the host
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = every)]
    pub(crate) every: Span,

    /// How often to look at processes, and at control groups if not more often than every 10s [default: 10s, or --every
    /// where that is longer]
    #[arg(long, value_name = "TIME", value_parser = every)]
    pub(crate) processes: Option<Span>,

    /// Do not record processes
    #[arg(long, conflicts_with = "processes")]
    pub(crate) no_processes: bool,

    /// Do not record control groups
    #[arg(long)]
    pub(crate) no_groups: bool,

    /// Which way to read processes, whatever is best here: to measure what each costs
    #[arg(long, value_enum, hide = true, conflicts_with = "no_processes")]
    pub(crate) tasks: Option<TasksBy>,

    /// How far back to keep
    #[arg(long, value_name = "TIME", default_value = "14d", value_parser = keep)]
    pub(crate) keep: Span,

    /// How much to keep; the oldest goes first
    #[arg(long, value_name = "SIZE", default_value = "2GiB", value_parser = keep_size)]
    pub(crate) keep_size: Bytes,

    /// How much may be lost when the power fails
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = sync)]
    pub(crate) sync: Span,

    #[command(flatten)]
    pub(crate) mode: RecordMode,

    /// With --install or --uninstall: show what would be done, and do nothing
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// With --status: how to print it
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

/// What to do instead of recording; at most one.
#[derive(Debug, Args)]
#[group(multiple = false)]
#[allow(clippy::struct_excessive_bools)] // As they are typed.
pub(crate) struct RecordMode {
    /// Say how the recorder of a directory is doing: what it costs, what it cannot read, what it keeps
    #[arg(long)]
    pub(crate) status: bool,

    /// Make it a systemd service with these options and start it: of the system for root, else of the user
    #[arg(long)]
    pub(crate) install: bool,

    /// Stop and remove the service; the recording stays
    #[arg(long)]
    pub(crate) uninstall: bool,

    /// Make SOURCE a recording at --to: whatever `check` reads; one of the same host that is there already goes on
    #[arg(long, value_name = "SOURCE", requires = "to")]
    pub(crate) from: Option<PathBuf>,

    /// Make full head files of DIR segments; the recorder starts this by itself
    #[arg(long, value_name = "DIR", hide = true)]
    pub(crate) seal: Option<PathBuf>,
}

/// List what happened: kills, failed allocations, limits that were met, changed settings, reboots, gaps
///
/// In order of time, one line each, whatever the source is: kernel reports and counters of a capture, a paste or a log, and
/// what a recorder noted. A kill that the kernel's log, several counters and the recorder tell of is listed once.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  memtide events                          of this host's recording
  memtide events --since yesterday --kind oom-kill,cgroup-limit
  memtide events oom.log --verbose        with the kernel's own lines
  memtide events sick.jsonl.zst --format json | jq -r '.events[].text'

docs/events.schema.json describes the answer for programs.
Exit codes: 0 also where nothing happened   3 an error")]
pub(crate) struct Events {
    /// A recording, a capture, text, a log, a bundle; `-` is standard input. Without it, this host's recording
    #[arg(value_name = "SOURCE")]
    pub(crate) source: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) part: Part,

    /// Only these kinds, separated by commas
    #[arg(long = "kind", value_name = "KIND", value_delimiter = ',', value_parser = event_kinds())]
    pub(crate) kinds: Vec<String>,

    /// Show events in full, with the kernel's lines
    #[arg(short, long, visible_alias = "report")]
    pub(crate) verbose: bool,

    /// How to print them
    #[arg(long, value_enum, default_value_t = EventsFormat::Text)]
    pub(crate) format: EventsFormat,
}

/// Say how much more fits into a host's memory, and whether a given demand does
///
/// What is available holds page cache that the workload needs and room in which writers buffer, so it is not what can be
/// added. For each sample this takes off what must stay, and answers for the worst moment and for nearly all the time, with
/// what binds, who ran then, and what the answer rests on. How much cache is needed no counter tells: it has bounds, and
/// where they decide, the answer is that nobody can tell. A good answer is confirmed only by a whole cycle of the workload: a week
/// with its nights and its weekend.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  memtide headroom                          how much more fits on this host, from its recording
  memtide headroom --add 500M               does a product of 500 MiB fit?
  memtide headroom week/ --add 8G --as cache   room to keep 8 GiB of files warm?
  memtide headroom sick.jsonl.zst --at p99  for all but one sample in a hundred
  memtide headroom week/ --format json | jq .room.least

--as says what is added: anon is memory of processes (heap, stack), cache is files that are read again and again, tmpfs is
files in a tmpfs and shared memory.
WHEN is as for `memtide check`.
docs/headroom.md teaches how the answer comes about; docs/headroom.schema.json describes the one for programs.

Exit codes:
  0 fits   1 tight: most of the time, or hardly anything is left   2 does not fit
  3 cannot tell: what decides is not known, bad usage, or an unreadable source")]
pub(crate) struct Headroom {
    /// A recording, a capture, text, a bundle; `-` is standard input. Without it, this host's recording
    #[arg(value_name = "SOURCE")]
    pub(crate) source: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) demand: Demand,

    /// For which part of the time it must fit, apart from the worst moment: p50 to p100
    #[arg(long, value_name = "PERCENTILE", default_value = "p95", value_parser = percentile)]
    pub(crate) at: Ratio,

    #[command(flatten)]
    pub(crate) part: Part,

    /// How to print the answer
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

/// Write a page that shows what happened to a host's memory: one file to be opened in a browser or mailed
///
/// The same answer as `memtide check`, drawn: the verdict, the findings with their evidence, and charts of where memory was,
/// who wanted it and what waited for it, with one cursor and zoom over all. The page holds everything that it shows, opens
/// offline and asks nobody for anything; without a script it reads as text with tables. Names of processes and control groups
/// are in it; command lines are not.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  memtide report -o report.html                 of this host's recording
  memtide report sick.jsonl.zst -o sick.html
  memtide report --since 'yesterday 22:00' --until 02:00 -o night.html
  memtide report --at 02:14 --title 'web3, the stall of Tuesday' -o web3.html
  memtide report --add 500M -o fits.html        also whether 500 MB more fit, as memtide headroom says it
  dmesg | memtide report - -o kill.html

WHEN is as for `memtide check`.

FILE appears when it is whole, or not at all; one that is there already is left alone without
--force. A FILE that ends in .gz or .zst is packed.

Exit codes: 0 written, whatever the verdict in it   3 an error, nothing is written")]
pub(crate) struct Report {
    /// A recording, a capture, text, a log, a bundle; `-` is standard input. Without it, this host's recording
    #[arg(value_name = "SOURCE")]
    pub(crate) source: Option<PathBuf>,

    /// Where to write; `-` is standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,

    #[command(flatten)]
    pub(crate) part: Part,

    /// The 5 minutes before and after a moment
    #[arg(long, value_name = "WHEN", value_parser = moment, allow_hyphen_values = true, conflicts_with_all = ["since", "until"])]
    pub(crate) at: Option<Moment>,

    /// A heading instead of the host's name
    #[arg(long, value_name = "TEXT")]
    pub(crate) title: Option<String>,

    #[command(flatten)]
    pub(crate) demand: Demand,

    /// Overwrite FILE where there is one
    #[arg(long)]
    pub(crate) force: bool,
}

/// What shall fit, and for how long it must.
#[derive(Debug, Args)]
pub(crate) struct Demand {
    /// How much shall be added: 500M, 2GiB
    #[arg(long, value_name = "SIZE", value_parser = demand)]
    pub(crate) add: Option<Bytes>,

    /// What kind of memory that is
    #[arg(long = "as", value_enum, value_name = "KIND", default_value_t = AddKind::Anon, requires = "add")]
    pub(crate) kind: AddKind,

    /// How long the workload takes to come round; `headroom` judges so much of a recording's end, unless --since or --until
    /// say otherwise
    #[arg(long, value_name = "TIME", default_value = "7d", value_parser = cycle)]
    pub(crate) cycle: Span,
}

/// What kind of memory shall be added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum AddKind {
    /// Memory of processes: heap, stack
    Anon,
    /// Files that are read again and again
    Cache,
    /// Files in a tmpfs, shared memory
    Tmpfs,
}

/// Which part of a source.
#[derive(Debug, Args)]
pub(crate) struct Part {
    /// From when on: `2h ago`, `02:00`, `yesterday 01:30`, RFC 3339, `+1m30s` from the source's start
    #[arg(long, value_name = "WHEN", allow_hyphen_values = true, value_parser = crate::moment::moment)]
    pub(crate) since: Option<import::Moment>,

    /// Until when
    #[arg(long, value_name = "WHEN", allow_hyphen_values = true, value_parser = crate::moment::moment)]
    pub(crate) until: Option<import::Moment>,
}

impl Part {
    /// The same, for whoever reads the source.
    pub(crate) fn wanted(&self) -> import::Wanted {
        import::Wanted {
            range: import::Range {
                since: self.since,
                until: self.until,
            },
            ..import::Wanted::default()
        }
    }
}

/// A way to read processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TasksBy {
    /// The kernel's iterator of tasks
    Bpf,
    /// Files below /proc
    Proc,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum EventsFormat {
    /// For people, times in the local zone
    Text,
    /// For programs, times in UTC
    Json,
    /// For spreadsheets, times in UTC
    Csv,
}

/// Compare two sources: before and after a fix, a good host and a bad one
///
/// Says whether it got better or worse, and which fact (a setting, the kernel, RAM) explains what changed, if one does. Then
/// what changed: findings, where memory is, rates, facts. Each side stands for its typical sample and for the distribution
/// of its intervals, not for one look: a rate has changed where it is not by chance (rank test, 1 in 100) that the intervals of one
/// side are higher, and by 10 % at least; an amount, by 1 % of RAM at least. What only one side tells is listed as such.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  memtide compare before.jsonl.zst after.jsonl.zst
  memtide compare good-host.jsonl.zst bad-host.jsonl.zst --all
  memtide compare /var/lib/memtide /var/lib/memtide --before-since 'yesterday 14:00' \\
      --before-until 'yesterday 15:00' --since 14:00 --until 15:00
  memtide compare A B -o compare.html          one page with both side by side
  memtide compare A B --format json | jq -r .headline

WHEN is as for `memtide check`. --since and --until are of both sources; --before-since and --before-until take their place
for BEFORE, --after-since and --after-until for AFTER.
docs/compare.schema.json describes the answer for programs.

Exit codes, so that a script can ask whether a change did harm:
  0 no worse: better, or the same   1 worse   3 cannot be told, or an error
This is not diff's 1 for \"differs\": two looks at a host always differ. What differs is in the answer.")]
pub(crate) struct Compare {
    /// The one: a capture, a recording, text, a log, a bundle; `-` is standard input
    #[arg(value_name = "BEFORE")]
    pub(crate) before: PathBuf,

    /// The other
    #[arg(value_name = "AFTER")]
    pub(crate) after: PathBuf,

    #[command(flatten)]
    pub(crate) part: Part,

    /// From when on in BEFORE
    #[arg(long, value_name = "WHEN", value_parser = moment, allow_hyphen_values = true)]
    pub(crate) before_since: Option<Moment>,

    /// Until when in BEFORE
    #[arg(long, value_name = "WHEN", value_parser = moment, allow_hyphen_values = true)]
    pub(crate) before_until: Option<Moment>,

    /// From when on in AFTER
    #[arg(long, value_name = "WHEN", value_parser = moment, allow_hyphen_values = true)]
    pub(crate) after_since: Option<Moment>,

    /// Until when in AFTER
    #[arg(long, value_name = "WHEN", value_parser = moment, allow_hyphen_values = true)]
    pub(crate) after_until: Option<Moment>,

    /// Also show what did not change, and how the intervals of each side lie
    #[arg(long)]
    pub(crate) all: bool,

    /// Write a page with both side by side, to be opened in a browser or mailed, instead of printing; `-` is standard output
    #[arg(short, long, value_name = "FILE", conflicts_with_all = ["format", "all"])]
    pub(crate) output: Option<PathBuf>,

    /// Overwrite FILE where there is one
    #[arg(long, requires = "output")]
    pub(crate) force: bool,

    /// How to print the answer
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

/// Write any source in a format of other programs: CSV, Parquet, metrics, a capture
///
/// csv: one table, one row for each sample, or for each sample and entity. Columns have the names and units of `memtide
/// signals`, times are RFC 3339 in UTC, what was not read is empty, and a limit that is none is `inf`.
///
/// parquet: a directory with a file for each table, as recordings have them.
///
/// openmetrics: the last readings without times, for Prometheus or node_exporter's textfile collector; with --all every
/// reading with its time, for `promtool tsdb create-blocks-from openmetrics`. Units are bytes and seconds.
///
/// capture: the kernel files, to be read by memtide; `memtide convert` does the same.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  memtide export sick.jsonl.zst --format csv -o host.csv
  memtide export sick.jsonl.zst --format csv --table cgroup --signal 'cgroup.psi.*' | column -ts,
  memtide export /var/lib/memtide --format csv --since '2h ago' --table process -o processes.csv.zst
  memtide export /var/lib/memtide --format parquet --since yesterday -o DIR
  memtide capture --for 10ms -o - | memtide export - --format openmetrics
  memtide export sick.jsonl.zst --format openmetrics --names node-exporter --all -o sick.txt
  promtool tsdb create-blocks-from openmetrics sick.txt DATA

A FILE that ends in .zst or .gz is packed. FILE appears when it is whole, or not at all.")]
pub(crate) struct Export {
    /// A recording, a capture, text, a log, a bundle; `-` is standard input
    #[arg(value_name = "SOURCE")]
    pub(crate) source: PathBuf,

    /// Which format
    #[arg(long, value_enum)]
    pub(crate) format: ExportFormat,

    /// Where to write: a file, for parquet a directory that is not there yet; `-` is standard output
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    pub(crate) output: PathBuf,

    /// csv: which table [default: host]. openmetrics: which tables, separated by commas [default: all but process and slab]
    #[arg(
        long = "table",
        value_name = "TABLE",
        value_delimiter = ',',
        value_enum
    )]
    pub(crate) tables: Vec<Table>,

    /// Only these signals, separated by commas: names as `memtide signals` lists them; `psi.*` is all that begin so
    #[arg(long = "signal", value_name = "NAME", value_delimiter = ',')]
    pub(crate) signals: Vec<String>,

    #[command(flatten)]
    pub(crate) part: Part,

    /// openmetrics: every reading with its time, not only the last
    #[arg(long)]
    pub(crate) all: bool,

    /// openmetrics: whose names metrics have
    #[arg(long, value_enum, default_value_t = MetricNames::Memtide)]
    pub(crate) names: MetricNames,

    /// Overwrite FILE where there is one
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    Csv,
    Parquet,
    Openmetrics,
    Capture,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum MetricNames {
    /// `memtide_mem_free_bytes`: by Prometheus' conventions, and clashes with nothing
    Memtide,
    /// node_exporter's where it has one, so that dashboards made for it work: `node_memory_MemFree_bytes`
    NodeExporter,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Table {
    Host,
    Node,
    Zone,
    Disk,
    SwapArea,
    Zram,
    Slab,
    Cgroup,
    Process,
    Service,
}

/// Explain the rules: what each finding means and how it is recognised
#[derive(Debug, Args)]
pub(crate) struct Rules {
    /// One rule, by id; without it, all are listed
    #[arg(value_name = "ID")]
    pub(crate) id: Option<String>,

    /// How to print the answer
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

/// Explain the signals: what is read, from where, and what other tools call it
#[derive(Debug, Args)]
pub(crate) struct Signals {
    /// Signals whose name, kernel field or name in another tool contains this; without it, all are listed
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,

    /// How to print the answer
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

/// Print a completion script for a shell
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  memtide completions bash > /etc/bash_completion.d/memtide
  memtide completions zsh > \"${fpath[1]}/_memtide\"
  memtide completions fish > ~/.config/fish/completions/memtide.fish")]
pub(crate) struct Completions {
    pub(crate) shell: clap_complete::Shell,
}

/// Write man pages into a directory
#[derive(Debug, Args)]
pub(crate) struct Man {
    pub(crate) directory: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    Text,
    /// For programs: docs/report.schema.json and its neighbours describe it
    Json,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorChoice {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    Always,
    Never,
}

/// `500ms`, `10s`, `2m`, `1h 30m`, `14d`; a plain number is seconds.
fn span(text: &str) -> Result<Span, String> {
    let wrong = || format!("`{text}` is no length of time; write 500ms, 10s, 2m, 1h or 14d");
    let seconds = match text.parse::<f64>() {
        Ok(seconds) => seconds,
        Err(_) => seconds_in(text).ok_or_else(wrong)?,
    };
    if !seconds.is_finite() || seconds < 0.0 {
        return Err(wrong());
    }
    if seconds < 0.01 {
        return Err(format!("`{text}` is too short; 10ms is the least"));
    }
    if seconds > 366.0 * 86_400.0 {
        return Err(format!("`{text}` is longer than a year"));
    }
    Ok(Span::from_secs_f64(seconds))
}

/// Hours and days alike: a day is 24 hours here, whatever the clock does.
fn seconds_in(text: &str) -> Option<f64> {
    let span: jiff::Span = text.parse().ok()?;
    let length = span.to_duration(SpanRelativeTo::days_are_24_hours()).ok()?;
    Some(length.as_secs_f64())
}

/// A length of time between bounds, each with why it is one.
fn span_within(
    text: &str,
    (least, why_least): (Span, &str),
    (most, why_most): (Span, &str),
) -> Result<Span, String> {
    // What is too short for any purpose is said with this one's bound.
    let span = match text.trim().parse::<f64>() {
        Ok(seconds) if (0.0..0.01).contains(&seconds) => Span::ZERO,
        _ => span(text)?,
    };
    if span < least {
        return Err(format!("`{text}` is too short: {why_least}"));
    }
    if span > most {
        return Err(format!("`{text}` is too long: {why_most}"));
    }
    Ok(span)
}

/// How often a recorder looks. At 10 Hz the host's files alone take 0.3 % of a CPU; with minutes between two samples, rules
/// that look for a minute of trouble see nothing.
fn every(text: &str) -> Result<Span, String> {
    span_within(
        text,
        (
            Span::from_millis(100),
            "100ms is the least, ten times the cost of 1s",
        ),
        (
            Span::from_mins(10),
            "10m is the most, as trouble of minutes would be missed",
        ),
    )
}

/// How long a recorder keeps. Times are seconds where no unit is named, as for `sleep`; here hardly anybody means them.
fn keep(text: &str) -> Result<Span, String> {
    let typed = text.trim();
    let is_plain = typed.starts_with(|c: char| matches!(c, '1'..='9'));
    if is_plain && typed.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(format!(
            "`{typed}` has no unit; write {typed}d for days, {typed}h for hours or {typed}w for weeks"
        ));
    }
    span_within(
        text,
        (
            Span::from_hours(1),
            "1h is the least that can be looked back on",
        ),
        (Span::from_hours(24 * 366), "366d is the most"),
    )
}

/// What a recorder may lose.
fn sync(text: &str) -> Result<Span, String> {
    span_within(
        text,
        (
            Span::from_secs(1),
            "1s is the least, as each time the disk is made to write",
        ),
        (Span::from_mins(10), "10m is the most"),
    )
}

/// The smallest recording: below this, heads alone would be most of it.
const LEAST_KEPT: Bytes = Bytes::from_mib(16);

fn keep_size(text: &str) -> Result<Bytes, String> {
    let size = size(text)?;
    if size < LEAST_KEPT {
        let typed = text.trim();
        let help = match typed.parse::<f64>() {
            Ok(_) => format!(" (a plain number is bytes); write {typed}MiB or {typed}GiB"),
            Err(_) => String::new(),
        };
        return Err(format!("`{typed}` is too small: 16MiB is the least{help}"));
    }
    Ok(size)
}

/// `500MiB`, `2GiB`, `1.5G` (all binary), `2GB` (decimal); a plain number is bytes.
fn size(text: &str) -> Result<Bytes, String> {
    let wrong = || format!("`{text}` is no size; write 500MiB, 2GiB or a number of bytes");
    let typed = text.trim();
    let digits = typed.find(|c: char| !(c.is_ascii_digit() || c == '.'));
    let (number, unit) = typed.split_at(digits.unwrap_or(typed.len()));
    let number: f64 = number.parse().map_err(|_| wrong())?;
    let (letter, base) = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => return Ok(Bytes::from_f64(number)),
        unit => {
            let (letter, rest) = unit.split_at_checked(1).ok_or_else(wrong)?;
            let base = match rest {
                "" | "i" | "ib" => 1024_f64,
                "b" => 1000_f64,
                _ => return Err(wrong()),
            };
            (letter.to_owned(), base)
        }
    };
    let power = "kmgtp".find(&letter).ok_or_else(wrong)?;
    let power = i32::try_from(power + 1).map_err(|_| wrong())?;
    Ok(Bytes::from_f64(number * base.powi(power)))
}

/// A size that is not nothing.
fn demand(text: &str) -> Result<Bytes, String> {
    let size = size(text)?;
    match size > Bytes::ZERO {
        true => Ok(size),
        false => Err("nothing is added; write 500M or 2GiB".to_owned()),
    }
}

/// How long a workload takes to come round.
fn cycle(text: &str) -> Result<Span, String> {
    span_within(
        text,
        (Span::from_secs(1), "1s is the least"),
        (Span::from_hours(24 * 366), "366d is the most"),
    )
}

/// `p99`, or 99.
fn percentile(text: &str) -> Result<Ratio, String> {
    let typed = text.trim();
    let number = typed.trim_start_matches(['p', 'P']).trim_end_matches('%');
    match number.parse::<f64>() {
        Ok(percent) if (50.0..=100.0).contains(&percent) => Ok(Ratio::from_percent(percent)),
        Ok(_) => Err(format!("`{typed}` is not between p50 and p100")),
        Err(_) => Err(format!("`{typed}` is no percentile; write p95")),
    }
}

/// The names of all kinds of events.
fn event_kinds() -> clap::builder::PossibleValuesParser {
    timeline::EventKind::ALL
        .map(timeline::EventKind::name)
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn times_are_written_as_people_write_them() {
        for (text, seconds) in [
            ("10s", 10.0),
            ("500ms", 0.5),
            ("2m", 120.0),
            ("1h", 3600.0),
            ("1h 30m", 5400.0),
            ("15", 15.0),
            ("2d", 172_800.0),
            ("1w", 604_800.0),
        ] {
            assert_eq!(span(text), Ok(Span::from_secs_f64(seconds)), "{text}");
        }
        for text in ["", "-1s", "soon", "0", "nan", "1e300", "500y"] {
            assert!(span(text).is_err(), "{text}");
        }
    }
    #[test]
    fn sizes_are_written_as_people_write_them() {
        for (text, bytes) in [
            ("2GiB", 2 << 30),
            ("1.5G", 3 << 29),
            ("500 MiB", 500 << 20),
            ("500m", 500 << 20),
            ("2GB", 2_000_000_000),
            ("64k", 64 << 10),
            ("4096", 4096),
        ] {
            assert_eq!(size(text), Ok(Bytes::new(bytes)), "{text}");
        }
        for text in ["", "GiB", "2 gallons", "-1G", "1.2.3M", "2é"] {
            assert!(size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_makes_no_sense_to_record_is_refused_with_the_bound() {
        for (options, says) in [
            (["--every", "0"], "100ms is the least"),
            (["--every", "10ms"], "100ms is the least"),
            (["--every", "1h"], "10m is the most"),
            (["--every", "soon"], "no length of time"),
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
