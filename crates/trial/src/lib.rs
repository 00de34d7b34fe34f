//! Tries commands and settings side by side: memory and speed together, with intervals that hold.
//!
//! Four nouns: a **variant** ([`Variant`]) is the command with some settings, the first is the baseline; a **run** ([`TrialRun`])
//! is one execution in a cgroup of its own, from which is read whether its settings were applied; a **block** is one run of
//! each variant, in a balanced order, and of the baseline once more as a control; a **verdict** ([`TrialVerdict`]) is what the
//! blocks show, which may be that they show nothing.
//!
//! ```
//! use trial::{TrialVerdict, grid};
//! let variants = grid(&["arenas=default,2".to_owned()])?;
//! assert_eq!(variants[1].name, "arenas=2");
//! # Ok::<(), trial::SettingError>(())
//! ```

mod analysis;
mod applied;
mod child;
mod command;
mod directory;
mod footprint;
mod in_machine;
mod load;
mod machine;
mod markdown;
mod model;
mod order;
mod outside;
mod page;
mod picture;
mod plan;
mod preflight;
mod ready;
mod recommend;
mod run;
mod run_once;
mod score;
mod screen;
mod session;
mod trial;
mod trial_end;
mod variant;
mod words;

pub use analysis::{
    Analysis, ControlEffect, Effect, MetricResult, TrialMeasure, TrialMetric, TrialVerdict,
    VariantState, WorkKind,
};
pub use applied::{Applied, SeenProcess};
pub use child::ANNOUNCE_VARIABLE;
pub use command::TrialCommand;
pub use directory::{DirectoryError, TrialDirectory};
pub use footprint::MemoryMean;
pub use in_machine::{NoRunHere, run_order};
pub use machine::{MachinePlan, RunMachine, SwapArea, ThpMode};
pub use markdown::markdown;
pub use model::{TRIAL_SCHEMA, TrialReport};
pub use order::Orders;
pub use page::trial_page;
pub use plan::{CONFIDENCE, Goals, PLAN_FORMAT, RunPlan, ServerPlan, TrialHost, TrialPlan};
pub use preflight::{
    DroppedVariant, NoTrial, Preflight, ReadyVariant, check_place, default_variants, preflight,
};
pub use ready::ReadyWhen;
pub use recommend::{ChoiceReason, Recommendation, VariantStanding};
pub use run::{PlaceInTrial, RunMemory, RunOutcome, RunSpeed, TrialRun};
pub use score::{Score, ScoreFormat};
pub use screen::trial_screen;
pub use trial::{Trial, TrialError, TrialEvent};
pub use trial_end::TrialEnd;
pub use variant::{
    BASELINE, MallocChoice, SettingError, Variant, VariantSetting, check_names, grid, named,
};
pub use words::{headline, ratio};
