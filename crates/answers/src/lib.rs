//! The answers of memtide: functions from a source and options to a value of the report's model.
//!
//! All front ends call the same functions: the command line, a server, a terminal program, a lab. Three nouns: a
//! **source** ([`timeline::Source`]) is what was read; an **option** is part of the question; an **answer** is a type
//! of [`report::model`], or a [`report::html::Page`], ready to be drawn as text, JSON or HTML.
//!
//! ```
//! use report::{Screen, text};
//!
//! let pasted = b"MemTotal: 16000000 kB\nMemFree: 300000 kB\nMemAvailable: 9000000 kB\n";
//! let source = import::open_bytes("pasted.txt", pasted)?;
//! let report = answers::check(&source);
//! let screen = text::check(&report, &Screen::default());
//! assert!(screen.contains("pasted.txt") && screen.contains("UNKNOWN"), "{screen}");
//! # Ok::<(), import::OpenError>(())
//! ```

mod add_to_recording;
mod charts;
mod check;
mod compare;
pub mod coverage;
mod events;
mod explain;
mod group;
mod growth;
mod headroom;
mod kept_findings;
mod nearest;
mod open;
mod own_check;
mod page;
mod performance;
mod profile;
pub mod recording_directory;
mod runtime_stats;
mod status;
pub mod this_host;
pub mod time_expr;
mod top;
mod where_memory;

pub use add_to_recording::{add_to_recording, host_of};
pub use check::{around, check, check_about, check_now};
pub use compare::{compare, compare_pages};
pub use events::{events, open_for_events};
pub use explain::{
    ExplainError, ExplainOptions, ExplainTarget, StopProspect, WATCH_MIN, explain, explain_program,
    explain_watched, stop_prospect,
};
pub use group::{
    GroupError, GroupSelector, at_another_time, find_group, find_group_of_this_host,
    group_names_of_this_host, group_of,
};
pub use growth::growth;
pub use headroom::headroom;
pub use nearest::nearest_rules;
pub use open::{open, open_screened};
pub use own_check::{FindingNews, OWN_CHECK_RANGE, check_own, finding_changes, going_on};
pub use page::{PageSource, page, page_now};
pub use performance::performance;
pub use profile::{KeptProfile, NoKeptProfile, add_profile, kept_profile, name_cgroups};
pub use runtime_stats::{
    ProcessBeside, RUNTIME_STATS_SIZE_MAX, RuntimeStatsError, StatsKind, other_runtime,
    runtime_stats,
};
pub use status::{StatusError, status};
pub use top::{course, top};
pub use where_memory::{WhereByError, much_without_pss, part_for_where, where_by, where_memory};
