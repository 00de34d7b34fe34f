//! Diagnoses a host's memory: what is wrong and where the memory went. Pure functions of timeline and facts.
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
pub mod activity;
mod applied_fix;
pub mod compare;
mod evidence;
mod finding;
pub mod group;
pub mod growth;
pub mod headroom;
mod host_alert;
mod judge;
mod measures;
mod oom;
mod prelude;
pub mod process_memory;
mod remedy;
mod rule;
pub mod rules;
mod screening;
mod story;
mod trigger;

pub use applied_fix::{AppliedFix, FixError, FixTarget};
pub use evidence::{Evidence, Missing, Need};
pub use finding::{
    Affected, Bursts, Confidence, EvidenceLine, Finding, Fix, FixChange, Graph, Harm, Inspection,
    Lasting, LimitChange, LimitFile, Measured, Occasion, Outcome, RuledOut, Scope, SettingChange,
    SettingValue, Severity, ShellCommand, SmallLimit, Sureness, Threshold, ThresholdSide, Title,
};
pub use group::GroupDiagnosis;
pub use host_alert::HostAlert;
pub use judge::next_steps::{NextStep, worth_full_detail};
pub use judge::verdict::{Level, RECENT, Verdict};
pub use judge::{Diagnosis, diagnose, diagnose_about, diagnose_now};
pub use measures::available::least_available;
pub use measures::floor::Floor;
pub use measures::own_limit::{OwnLimit, is_limited};
pub use measures::{baselines, slab};
pub use rule::{Class, Rule};
pub use screening::{could_hold, could_hold_by_rule, screened_signals};
pub use trigger::{AlertMetrics, PrometheusAlert, RecordedPart};
