//! Arguments of `memtide rules` and `memtide signals`.

use clap::{Args, ValueEnum};
use diagnose::AlertMetrics;

use super::{AnswerFormat, completed};

/// Explain the rules: what a finding means, how it is recognised
#[derive(Debug, Args)]
pub(crate) struct RulesArgs {
    /// Id of one rule; without it, the list of all rules
    #[arg(value_name = "ID", add = completed::rules())]
    pub(crate) id: Option<String>,

    /// Print alerts for Prometheus: of pressure, then of each rule that can be one
    #[arg(long, conflicts_with_all = ["format", "json"])]
    pub(crate) prometheus: bool,

    /// Which metrics Prometheus has: node_exporter's alone, or those of `memtide serve` as well
    #[arg(long, value_enum, default_value_t, requires = "prometheus")]
    pub(crate) metrics: MetricsChoice,

    /// Print them as a Kubernetes object, a PrometheusRule
    #[arg(long, requires = "prometheus")]
    pub(crate) kubernetes: bool,

    /// Where the pages of docs/ are, for the link of each alert
    #[arg(long, value_name = "URL", default_value = "docs", requires = "prometheus", value_parser = runbook_url)]
    pub(crate) runbook_url: String,

    #[command(flatten)]
    pub(crate) answer: AnswerFormat,
}

/// The metrics of a Prometheus.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum MetricsChoice {
    NodeExporter,
    #[default]
    Memtide,
}

impl From<MetricsChoice> for AlertMetrics {
    fn from(choice: MetricsChoice) -> Self {
        match choice {
            MetricsChoice::NodeExporter => Self::NodeExporter,
            MetricsChoice::Memtide => Self::Memtide,
        }
    }
}

/// A part of an address, which stands in a file of YAML and becomes a link.
fn runbook_url(text: &str) -> Result<String, String> {
    let is_plain = |c: char| c.is_ascii_graphic() && !"<>\"'`{}".contains(c);
    match text {
        "" => Err("it is empty; write a directory or https://…".to_owned()),
        _ if text.chars().all(is_plain) => Ok(text.to_owned()),
        _ => Err("it is no address: spaces, quotes and brackets are not allowed".to_owned()),
    }
}

/// Explain the signals: kernel file, unit, names in other tools
#[derive(Debug, Args)]
pub(crate) struct SignalsArgs {
    /// Part of a signal's name, of its kernel field or of its name in another tool; without it, the list of all signals
    #[arg(value_name = "NAME", add = completed::signals())]
    pub(crate) name: Option<String>,

    #[command(flatten)]
    pub(crate) answer: AnswerFormat,
}
