//! How an answer is printed, in every command that has one.

use clap::{Args, ValueEnum};

/// How an answer is printed.
#[derive(Debug, Args)]
pub(crate) struct AnswerFormat {
    /// How to print the answer
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,

    /// Short for --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Human-readable
    Text,
    /// JSON; docs/report.schema.json and its neighbours describe it
    Json,
}

impl AnswerFormat {
    pub(crate) fn get(&self) -> Format {
        if self.json { Format::Json } else { self.format }
    }
}
