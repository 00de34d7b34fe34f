//! The part of a source, for every command that reads one.

use clap::Args;
use import::OpenOptions;
use timeline::{TimePoint, TimeRange};

use answers::time_expr::parse;

/// A range of a source.
#[derive(Debug, Args)]
pub(crate) struct PartArgs {
    /// Start of the range: `2h ago`, `02:00`, `yesterday 01:30`, RFC 3339, `+1m30s` after the source's start, `-30s` before its end
    #[arg(long, value_name = "WHEN", allow_hyphen_values = true, value_parser = parse)]
    pub(crate) since: Option<TimePoint>,

    /// End of the range
    #[arg(long, value_name = "WHEN", allow_hyphen_values = true, value_parser = parse)]
    pub(crate) until: Option<TimePoint>,
}

/// A range of a source, or the minutes around a time of it.
#[derive(Debug, Args)]
pub(crate) struct AroundArgs {
    #[command(flatten)]
    pub(crate) part: PartArgs,

    /// The 5 minutes before and after a time
    #[arg(long, value_name = "WHEN", allow_hyphen_values = true, value_parser = parse, conflicts_with_all = ["since", "until"])]
    pub(crate) at: Option<TimePoint>,
}

impl PartArgs {
    /// The range that both name.
    pub(crate) const fn range(&self) -> TimeRange {
        TimeRange { since: self.since, until: self.until }
    }

    /// Options to read that range, by the minute where it is long.
    pub(crate) fn options(&self) -> OpenOptions {
        OpenOptions { range: self.range(), ..OpenOptions::default() }
    }
}
