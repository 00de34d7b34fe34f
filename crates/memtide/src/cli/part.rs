//! Which part of a source is meant, in every command that reads one.

use clap::Args;
use import::OpenOptions;
use timeline::{TimePoint, TimeRange};

use answers::time_expr::parse;

/// Which part of a source.
#[derive(Debug, Args)]
pub(crate) struct Part {
    /// From when on: `2h ago`, `02:00`, `yesterday 01:30`, RFC 3339, `+1m30s` from the source's start
    #[arg(long, value_name = "WHEN", allow_hyphen_values = true, value_parser = parse)]
    pub(crate) since: Option<TimePoint>,

    /// Until when
    #[arg(long, value_name = "WHEN", allow_hyphen_values = true, value_parser = parse)]
    pub(crate) until: Option<TimePoint>,
}

/// Which part of a source, or the minutes around a moment of it.
#[derive(Debug, Args)]
pub(crate) struct Around {
    #[command(flatten)]
    pub(crate) part: Part,

    /// The 5 minutes before and after a moment
    #[arg(long, value_name = "WHEN", allow_hyphen_values = true, value_parser = parse, conflicts_with_all = ["since", "until"])]
    pub(crate) at: Option<TimePoint>,
}

impl Part {
    /// The same, for whoever reads the source.
    pub(crate) const fn range(&self) -> TimeRange {
        TimeRange {
            since: self.since,
            until: self.until,
        }
    }

    /// The same, as closely as it is kept.
    pub(crate) fn wanted(&self) -> OpenOptions {
        OpenOptions {
            range: self.range(),
            ..OpenOptions::default()
        }
    }
}
