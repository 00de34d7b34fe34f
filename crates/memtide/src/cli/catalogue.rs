//! Arguments of `memtide rules` and `memtide signals`.

use clap::Args;

use super::{AnswerFormat, completed};

/// Explain the rules: what a finding means, how it is recognised
#[derive(Debug, Args)]
pub(crate) struct RulesArgs {
    /// Id of one rule; without it, the list of all rules
    #[arg(value_name = "ID", add = completed::rules())]
    pub(crate) id: Option<String>,

    /// Print the rules as Prometheus rules, for the metrics of node_exporter and of
    /// `memtide export --format prometheus --names node-exporter`
    #[arg(long, conflicts_with_all = ["format", "json"])]
    pub(crate) prometheus: bool,

    #[command(flatten)]
    pub(crate) answer: AnswerFormat,
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
