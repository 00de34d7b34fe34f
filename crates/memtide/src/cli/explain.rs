//! What can be typed after `memtide rules` and `memtide signals`.

use clap::Args;

use super::Format;

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
