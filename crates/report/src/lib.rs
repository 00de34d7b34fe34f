//! Draws an answer as JSON, as the terminal's text or as a page. Computes nothing, opens no file, has no clock.
//!
//! Three nouns: a **report** ([`Report`]) is the whole answer as one serialisable value, with a published schema
//! ([`json_schema`]); a **screen** ([`Screen`]) is what it is drawn on: width, colour, time zone; a **catalogue**
//! ([`RuleEntry`], [`SignalEntry`]) is what memtide knows, explained. Text, JSON and HTML show the same report, so
//! they cannot disagree.
//!
//! ```
//! let source = timeline::Source::default();
//! let diagnosis = diagnose::diagnose(&source.timeline, &source.facts);
//! let report = report::Report::new(&source, &diagnosis);
//! assert!(report::text::check(&report, &report::Screen::default()).contains("UNKNOWN"));
//! assert!(report::json(&report).unwrap().contains("\"verdict\": \"unknown\""));
//! ```
#![warn(clippy::disallowed_methods)]

mod clock;
pub mod docs;
mod fix_commands;
pub mod html;
pub mod model;
mod phrases;
mod picture;
mod plain;
mod screen;
mod shell_words;
pub mod text;

pub use fix_commands::FixCommands;
pub use model::{Answer, Input, Report, RuleEntry, SignalEntry, SourceKind, json, json_schema};
pub use phrases::explain_verdict::{explain_headline, explain_verdict};
pub use picture::shown;
pub use screen::{ColourMode, Screen};
pub use shell_words::quoted;
