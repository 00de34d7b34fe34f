//! A trial as it was planned: written once, and never changed by what comes of it.

use std::path::PathBuf;

use probe::{Root, host_facts};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::BlockDesign;
use timeline::Facts;
use units::{Bytes, Ratio, Span};

use crate::command::TrialCommand;
use crate::machine::MachinePlan;
use crate::outside::HostGauge;
use crate::preflight::{DroppedVariant, Preflight, ReadyVariant};
use crate::ready::ReadyWhen;
use crate::score::ScoreFormat;
use crate::variant::{Variant, VariantSetting};

/// The format of `plan.json`.
pub const PLAN_FORMAT: &str = "memtide-trial-plan/1";

/// The confidence with which all intervals of a metric hold together, at all looks.
pub const CONFIDENCE: f64 = 0.95;

/// A trial before its first run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrialPlan {
    /// Always [`PLAN_FORMAT`] here.
    pub format: String,
    /// Distinguishes it from other trials: each run has it.
    pub id: String,
    /// What is run, unless a variant has a command of its own.
    pub command: TrialCommand,
    /// What is tried; the first is the baseline.
    pub variants: Vec<Variant>,
    /// Variants that were asked for and are not run.
    pub left_out: Vec<DroppedVariant>,
    /// What the figures cannot show.
    pub notes: Vec<String>,
    /// Where the commands are run.
    pub working_directory: PathBuf,
    /// Whether the baseline runs twice in each block: as a control, and so that every comparison is closer.
    pub has_control: bool,
    /// After how many blocks the results are looked at, ascending. With a single look, no block is saved and no limit is
    /// widened for looking.
    pub looks: Vec<usize>,
    /// The confidence of each look, with which all of them hold together with [`CONFIDENCE`].
    pub confidence: f64,
    /// Decides the order of runs.
    pub seed: u64,
    /// What decides the verdicts and the recommendation.
    pub goals: Goals,
    /// How each run is made.
    pub runs: RunPlan,
    /// No block is begun after this time.
    pub time_limit: Option<Span>,
    /// Where it was planned: results of another machine are not mixed with it. No block has runs of two boots.
    pub host: TrialHost,
}

/// What counts as a difference, and what is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Goals {
    /// What counts as a difference: a smaller one is the same.
    pub margin: Ratio,
    /// How much slower the recommended variant may be.
    pub max_slowdown: Ratio,
    /// How much memory it may have at its peak.
    pub memory_budget: Option<Bytes>,
}

/// How each run is made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunPlan {
    /// A run that takes longer is ended.
    pub timeout: Span,
    /// Memory is measured again so long after the work, where the program still runs.
    pub idle: Span,
    /// A command to run before each run, unmeasured, as a shell reads it.
    pub prepare: Option<String>,
    /// For a server: when it is ready, and its load.
    pub server: Option<ServerPlan>,
    /// The virtual machine that each run has; `None`: it runs on this host.
    pub machine: Option<MachinePlan>,
}

/// A server under a load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ServerPlan {
    /// When it is ready.
    pub ready: ReadyWhen,
    /// The command that makes the load, as a shell reads it.
    pub load: String,
    /// Whether the load is run once before, unmeasured.
    pub has_warm_up: bool,
    /// How operations, throughput and latency are read from what the load prints.
    pub score: Option<ScoreFormat>,
}

/// The machine that a trial runs on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TrialHost {
    /// As `hostname` prints it.
    pub name: String,
    /// The kernel's release.
    pub kernel: String,
    /// Its boot, by the kernel's random number.
    pub boot: String,
    /// CPUs that are online.
    pub cpus: u64,
    /// RAM that the kernel manages.
    pub ram: Bytes,
}

impl TrialHost {
    /// Reads those of this machine.
    pub fn here() -> Self {
        let root = Root::default();
        let mut facts = Facts::default();
        host_facts::read(&root, Span::ZERO, &mut facts);
        let release = rustix::system::uname();
        Self {
            name: host_facts::hostname(&root).unwrap_or_default(),
            kernel: release.release().to_string_lossy().into_owned(),
            boot: probe::boot_id(&root).map(|id| id.to_string()).unwrap_or_default(),
            cpus: facts.cpus.map(u64::from).unwrap_or_default(),
            ram: HostGauge::open().read().ram.unwrap_or_default(),
        }
    }
}

impl TrialPlan {
    /// The same with the variants that can be run.
    #[must_use]
    pub fn with(mut self, checked: Preflight) -> (Self, Vec<ReadyVariant>) {
        self.variants = checked.ready.iter().map(|one| one.variant.clone()).collect();
        self.left_out.extend(checked.dropped);
        self.notes.extend(checked.notes);
        let baselines = self.baselines();
        let design = BlockDesign { baselines, treatments: self.columns().len() - baselines };
        self.confidence = design.confidence_of_each_look(&self.looks, CONFIDENCE);
        (self, checked.ready)
    }

    /// The variant of each column of a block: the baseline first, and again where there is a control.
    pub fn columns(&self) -> Vec<usize> {
        let again = std::iter::repeat_n(0, self.baselines() - 1);
        again.chain(0..self.variants.len()).collect()
    }

    /// How many of the columns are the baseline.
    pub fn baselines(&self) -> usize {
        if self.has_control { 2 } else { 1 }
    }

    /// The most blocks that are run.
    pub fn blocks_max(&self) -> usize {
        self.looks.last().copied().unwrap_or(0)
    }

    /// What is wrong with a plan that was changed by hand; `None` where it can be followed.
    pub fn fault(&self) -> Option<&'static str> {
        let is_ascending = self.looks.windows(2).all(|pair| pair[0] < pair[1]);
        let (first, last) = (self.looks.first(), self.looks.last());
        let goals = [self.goals.margin, self.goals.max_slowdown];
        let mut settings = self.variants.iter().flat_map(|one| &one.settings);
        let needs_machine = settings.any(VariantSetting::is_of_machine);
        if needs_machine && self.runs.machine.is_none() {
            Some("it has settings of a whole machine, and runs have none")
        } else if self.variants.len() < 2 {
            Some("it has fewer than two variants")
        } else if !is_ascending || first.is_none_or(|first| *first < 2) || last > Some(&1000) {
            Some("its looks are not numbers of blocks from 2 to 1000, ascending")
        } else if !(0.5..1.0).contains(&self.confidence) {
            Some("its confidence is no probability near 1")
        } else if goals.iter().any(|goal| !(0.0..10.0).contains(&goal.get())) {
            Some("its margin or slowdown is no share")
        } else {
            None
        }
    }

    /// Whether it tries settings of a whole machine. They change how long tasks wait: time decides, and what is faster is
    /// chosen before what is smaller.
    pub fn is_about_machine(&self) -> bool {
        self.variants.iter().flat_map(|one| &one.settings).any(VariantSetting::is_of_machine)
    }

    /// The command of a variant.
    pub fn command_of(&self, variant: &Variant) -> TrialCommand {
        let mut settings = variant.settings.iter();
        let own = settings.find_map(|setting| match setting {
            VariantSetting::Command(line) => Some(TrialCommand::Line(line.clone())),
            _ => None,
        });
        own.unwrap_or_else(|| self.command.clone())
    }
}
