//! Arguments of `memtide rules` and `memtide signals`.

use std::ffi::OsStr;

use clap::Args;
use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};

use super::AnswerFormat;

/// Explain the rules: what a finding means, how it is recognised
#[derive(Debug, Args)]
pub(crate) struct RulesArgs {
    /// Id of one rule; without it, the list of all rules
    #[arg(value_name = "ID", value_parser = RuleId, hide_possible_values = true)]
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
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,

    #[command(flatten)]
    pub(crate) answer: AnswerFormat,
}

/// Any text: `memtide rules` itself suggests similar ids; completions list the ids.
#[derive(Debug, Clone)]
struct RuleId;

impl TypedValueParser for RuleId {
    type Value = String;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<String, clap::Error> {
        StringValueParser::new().parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let ids = diagnose::rules::ALL.iter().map(|rule| rule.id);
        Some(Box::new(ids.map(PossibleValue::new)))
    }
}
