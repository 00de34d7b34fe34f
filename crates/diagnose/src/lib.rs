//! What is wrong with a host's memory, and where the memory went: pure functions of timeline and facts.
//!
//! Three nouns: **evidence** ([`Evidence`]) answers a rule's questions or says what is missing; a **rule**
//! ([`rules::ALL`]) turns evidence into an [`Outcome`]; a **diagnosis** ([`Diagnosis`]) is all outcomes, roots before
//! consequences, with one verdict. No rule knows where the data came from.
//!
//! ```
//! let diagnosis = diagnose::diagnose(&timeline::Timeline::default(), &timeline::Facts::default());
//! assert_eq!(diagnosis.verdict.level, diagnose::Level::Unknown);
//! ```
#![warn(clippy::disallowed_methods)]

pub mod accounting;
mod bursts;
pub mod calm;
mod causes;
pub mod compare;
mod diagnosis;
mod disk_wait;
mod evidence;
mod finding;
mod fix;
pub mod floor;
mod groups;
pub mod headroom;
mod incident;
mod judge;
mod kills;
mod known;
mod lately;
mod looks;
mod missing;
mod next;
mod oom;
mod own_limit;
mod prelude;
mod readings;
mod recent_kills;
mod rereads;
mod rise;
mod rounding;
mod rule;
pub mod rules;
pub mod slab;
mod stalls;
mod totals;
mod trigger;
mod verdict;
mod who;

pub use diagnosis::{Diagnosis, diagnose, diagnose_now};
pub use evidence::Evidence;
pub use finding::{
    Affected, Confidence, EvidenceLine, Finding, Graph, Measured, RuledOut, Severity, Threshold,
    ThresholdSide,
};
pub use fix::Fix;
pub use incident::{Bursts, Harm, Occasion, Scope};
pub use missing::{Missing, Need};
pub use next::{Step, worth_a_closer_look};
pub use own_limit::OwnLimit;
pub use rule::{Class, Outcome, Rule};
pub use trigger::{could_hold, could_hold_by_rule, screened_signals};
pub use verdict::{Level, RECENT, Verdict};
