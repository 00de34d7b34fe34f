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
mod history;
mod known;
mod lately;
mod looks;
mod missing;
mod next;
mod oom;
mod own_limit;
mod rise;
mod rounding;
mod rule;
pub mod rules;
pub mod slab;
mod stalls;
mod verdict;
mod who;

pub use diagnosis::{Diagnosis, diagnose};
pub use evidence::Evidence;
pub use finding::{
    Affected, Confidence, EvidenceLine, Finding, Graph, Measured, RuledOut, Severity, Threshold,
    ThresholdSide,
};
pub use fix::Fix;
pub use history::with_history;
pub use missing::{Missing, Need};
pub use next::{Step, worth_a_closer_look};
pub use own_limit::OwnLimit;
pub use rule::{Outcome, Purpose, Rule};
pub use verdict::{Level, Verdict};
