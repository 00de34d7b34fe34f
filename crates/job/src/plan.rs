//! A planned job: steps that read, write and remove files, as a text in TOML. Its touches are those that a job makes that is
//! observed, in pieces of a power of two, so one model answers for both.

mod run;
mod text;

pub use run::{JobPlanRun, PlannedStep};
pub use text::PlanError;

use units::{Bytes, BytesPerSecond, Span};

/// A file that a step reads.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PlannedRead {
    file: usize,
    /// How much of it, each time; from its beginning, or anywhere in it.
    bytes: Bytes,
    times: u32,
    is_random: bool,
}

/// One program of a job.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StepPlan {
    name: String,
    reads: Vec<PlannedRead>,
    /// Files with how much of them is written.
    writes: Vec<(usize, Bytes)>,
    removes: Vec<usize>,
    cpu: Option<BytesPerSecond>,
    /// It runs at the same time as the step before it.
    is_beside: bool,
    /// It reads what the step before it writes into a pipe.
    is_fed: bool,
}

/// A job or another way to do the same.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PlanVariant {
    name: String,
    steps: Vec<StepPlan>,
}

/// A plan: a job, and other ways to do the same.
#[derive(Debug, Clone, PartialEq)]
pub struct JobPlan {
    /// Sizes of the cache to answer for.
    pub caches: Vec<Bytes>,
    /// How fast the disk is.
    pub disk: Option<BytesPerSecond>,
    dirty_background: Option<Bytes>,
    dirty_expire: Option<Span>,
    files: Vec<(String, Bytes)>,
    variants: Vec<PlanVariant>,
}

impl JobPlan {
    /// Reads a plan. `name` is that of the job where its text has none.
    ///
    /// # Errors
    /// The text is no TOML, has an unknown key, a size that is none, or a file of unknown size.
    pub fn read(text: &str, name: &str) -> Result<Self, PlanError> {
        text::read(text, name)
    }

    /// Runs each variant; the first is the job itself.
    pub fn run(&self) -> Vec<JobPlanRun> {
        self.variants.iter().map(|variant| run::run(self, variant)).collect()
    }
}
