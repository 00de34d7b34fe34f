//! Arguments of `memtide export`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use timeline::Entity;

use super::{PartArgs, completed};

/// Write any source for other programs: CSV, Parquet, metrics
///
/// csv: one table, one row for each sample, or for each sample and entity. Columns have the names and units of `memtide
/// signals`, times are RFC 3339 in UTC, a missing reading is empty, and no limit is `inf`.
///
/// parquet: a directory with a file for each table, as in a recording.
///
/// prometheus: the last readings in Prometheus' text format 0.0.4, for node_exporter's textfile collector. Units are bytes and
/// seconds.
///
/// openmetrics: the same in OpenMetrics 1.0; with --all every reading with its time, for `promtool tsdb create-blocks-from
/// openmetrics`.
///
/// capture: kernel files, for memtide itself; `memtide convert` does the same.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  memtide export sick.jsonl.zst --format csv -o host.csv
  memtide export sick.jsonl.zst --format csv --table cgroup --signal 'cgroup.psi.*' | column -ts,
  memtide export --format csv --since '2h ago' --table process -o processes.csv.zst
  memtide export /var/lib/memtide --format parquet --since yesterday -o DIR
  memtide capture --for 10ms -o - |
      memtide export - --format prometheus -o TEXTFILES/memtide.prom --force
  memtide export sick.jsonl.zst --format openmetrics --names node-exporter --all -o sick.txt
  promtool tsdb create-blocks-from openmetrics sick.txt DATA

A FILE that ends in .zst or .gz is packed. FILE appears when it is complete, or not at all.")]
pub(crate) struct ExportArgs {
    /// A recording, a capture, text, a log, a bundle; `-` is standard input. Without it, this host's recording
    #[arg(value_name = "SOURCE")]
    pub(crate) source: Option<PathBuf>,

    #[arg(long, value_enum)]
    pub(crate) format: ExportFormat,

    /// Where to write: a file, for parquet a new directory; `-` is standard output
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    pub(crate) output: PathBuf,

    /// csv: which table [default: host]. Metrics: which tables, separated by commas [default: all but process and slab]
    #[arg(long = "table", value_name = "TABLE", value_delimiter = ',', value_enum)]
    pub(crate) tables: Vec<ExportTable>,

    /// Only these signals, separated by commas: names as `memtide signals` lists them; `psi.*` is all of that prefix
    #[arg(long = "signal", value_name = "NAME", value_delimiter = ',', add = completed::signals())]
    pub(crate) signals: Vec<String>,

    #[command(flatten)]
    pub(crate) part: PartArgs,

    /// openmetrics: every reading with its time, not only the last
    #[arg(long)]
    pub(crate) all: bool,

    /// prometheus, openmetrics: names of the metrics
    #[arg(long, value_enum, default_value_t = MetricNames::Memtide)]
    pub(crate) names: MetricNames,

    /// Overwrite an existing FILE
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    Csv,
    Parquet,
    Prometheus,
    Openmetrics,
    Capture,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum MetricNames {
    /// `memtide_mem_free_bytes`: Prometheus' conventions, in a namespace of its own
    Memtide,
    /// node_exporter's names where they exist, so that its dashboards work: `node_memory_MemFree_bytes`
    NodeExporter,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportTable {
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

impl From<ExportTable> for Entity {
    fn from(table: ExportTable) -> Self {
        match table {
            ExportTable::Host => Self::Host,
            ExportTable::Node => Self::Node,
            ExportTable::Zone => Self::Zone,
            ExportTable::Disk => Self::Disk,
            ExportTable::SwapArea => Self::SwapArea,
            ExportTable::Zram => Self::Zram,
            ExportTable::Slab => Self::Slab,
            ExportTable::Cgroup => Self::Cgroup,
            ExportTable::Process => Self::Process,
            ExportTable::Service => Self::Service,
        }
    }
}
