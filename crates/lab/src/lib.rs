//! Memory pathologies on demand, in a throwaway virtual machine, as pictures and as proof.
//!
//! Three nouns: a **scenario** ([`Scenario`]) is what is played, in one or more **arms** that differ in a setting; a **guest**
//! ([`guest::Guest`]) is the machine from inside, where this program is init ([`init`]); a **part** ([`parts`]) is a process that does
//! one thing to memory.
//!
//! ```no_run
//! let scenario = lab::scenarios::by_name("cgroup-oom").expect("a scenario");
//! let options = lab::RunOptions::default();
//! let outcomes = lab::run(scenario, &options, &mut |_| Ok(()))?;
//! for claim in lab::answer(scenario, &outcomes).claims {
//!     println!("{}: {} (article: {})", claim.what, claim.ours, claim.article);
//! }
//! # Ok::<(), lab::LabError>(())
//! ```

mod answer;
mod case;
mod claim;
mod corpus;
mod cure;
mod error;
mod figure;
pub mod guest;
mod host {
    pub(crate) mod accelerator;
    pub(crate) mod cache;
    pub(crate) mod image;
    pub(crate) mod initramfs;
    pub(crate) mod kernel;
    pub(crate) mod kernel_fetch;
    pub(crate) mod machine;
    pub(crate) mod qemu;
    pub(crate) mod share;
    pub(crate) mod terminal;
    pub(crate) mod tools;
    pub(crate) mod vm;
    pub(crate) mod work;
}
pub mod init;
mod machine_settings;
mod message;
pub mod model;
mod mounts;
mod outcome;
mod pages;
pub mod parts;
mod program;
mod progress;
mod reading;
mod run;
mod scenario;
pub mod scenarios;
mod score;
mod screens;
mod setting;
mod shell;
mod sys;
mod words;

pub use answer::answer;
pub use case::{Case, CaseFile, CaseLabels, CaseRecipe, CaseVerdict, CasesBelow, ReportedFinding};
pub use claim::{Claim, MeasuredArms};
pub use corpus::{CorpusOptions, CorpusStep, corpus};
pub use cure::cure;
pub use error::LabError;
pub use figure::panel_drawing;
pub use host::accelerator::Accelerator;
pub use host::kernel::Kernel;
pub use host::kernel::ModuleNeed;
pub use host::kernel_fetch::{FetchedKernel, USUAL_PACKAGE, fetch_kernel};
pub use host::machine::{Machine, VirtualDisk};
pub use host::work::WorkDirectory;
pub use machine_settings::{MachineSettings, MachineSwap};
pub use message::{
    GuestMessage, GuestProfile, Treatment, TreatmentOrder, TreatmentOutcome, Vitals,
};
pub use outcome::{ArmOutcome, ArmOutcomes};
pub use pages::{run_page, score_page};
pub use program::{HostMachine, MachineEnd, MachineProgram};
pub use progress::RunStep;
pub use run::{RunOptions, run};
pub use scenario::{Arm, MeasuredFigure, Scenario, ScenarioFigure};
pub use score::score;
pub use screens::{cure_screen, run_screen, score_screen};
pub use setting::{ScenarioSetting, ScenarioSettings};
pub use shell::shell;
