//! What a scenario is: a machine, what is played in it, in which arms, and what must come of it.

use chart::ChartUnit;
use units::Span;

use crate::case::CaseLabels;
use crate::claim::{Claim, MeasuredArms};
use crate::guest::Guest;
use crate::host::kernel::ModuleNeed;
use crate::host::machine::Machine;
use crate::setting::{ScenarioSetting, ScenarioSettings};

/// A memory pathology that can be made, and what it must show.
#[allow(missing_docs)] // names say it
#[derive(Debug)]
pub struct Scenario {
    /// Its name: `swapdemo`.
    pub name: &'static str,
    /// What it shows, in a sentence.
    pub shows: &'static str,
    /// Which article's experiment it repeats; empty where none.
    pub article: &'static str,
    /// About how long an arm takes under emulation.
    pub time: Span,
    pub machine: fn() -> Machine,
    /// Modules that it needs beside those of every machine.
    pub modules: &'static [ModuleNeed],
    /// Whether the multi-generational LRU is switched on or off; `None`: as the kernel has it. The articles are older than
    /// it, and with it reclaim chooses differently.
    pub mglru: Option<bool>,
    /// What can be set, with what holds if neither the arm nor the user sets it.
    pub settings: &'static [ScenarioSetting],
    /// What is compared; one at least.
    pub arms: &'static [Arm],
    /// Other settings under which all of it must hold, too: sizes and speeds.
    pub variants: &'static [&'static [(&'static str, f64)]],
    /// Arms in which the first fix is words, with the settings that these ask for: fewer programs, more RAM.
    pub advised: &'static [(&'static str, &'static [(&'static str, f64)])],
    /// Arms with the reason that `profile` must name first; `a|b` means either, and an empty text that nothing is hot.
    pub hot: &'static [(&'static str, &'static str)],
    /// What `check` must and may find with these settings, where that is not the same for every run of an arm.
    pub expects: Option<fn(&ScenarioSettings) -> CaseLabels>,
    /// Counts changes of what is played, or of the machine: a kept case of another revision is made again.
    pub revision: u32,
    /// Plays an arm, inside the machine.
    pub play: fn(&mut Guest) -> Result<(), String>,
    /// What must hold, once all arms are played.
    pub claims: fn(&dyn MeasuredArms) -> Vec<Claim>,
    /// What is drawn.
    pub figures: &'static [ScenarioFigure],
}

impl Scenario {
    /// What most scenarios leave as it is.
    pub(crate) const DEFAULT: Self = Self {
        name: "",
        shows: "",
        article: "",
        time: Span::from_secs(20),
        machine: || Machine::with_mib(512),
        modules: &[],
        mglru: None,
        settings: &[],
        arms: &[],
        variants: &[],
        advised: &[],
        hot: &[],
        expects: None,
        revision: 1,
        play: |_| Ok(()),
        claims: |_| Vec::new(),
        figures: &[ScenarioFigure::Chart("where")],
    };

    /// The settings that the words of an arm's first fix ask for, if they can be set.
    pub(crate) fn advised_in(&self, arm: &str) -> Option<&'static [(&'static str, f64)]> {
        let advised = self.advised.iter().find(|(name, _)| *name == arm);
        advised.map(|(_, settings)| *settings)
    }

    /// What `check` must and may find in an arm.
    pub(crate) fn expected(&self, arm: &Arm, settings: &ScenarioSettings) -> CaseLabels {
        let computed = self.expects.map(|expects| expects(settings));
        computed.unwrap_or_else(|| CaseLabels::exactly(arm.finds, arm.may_find))
    }
}

/// One side of the comparison that a scenario makes.
#[derive(Debug)]
pub struct Arm {
    /// Its name: `swappiness-1`.
    pub name: &'static str,
    /// Its settings by name; the user's come on top.
    pub settings: &'static [(&'static str, f64)],
    /// Ids of findings or notes that `check` must report; `a|b` means either.
    pub finds: &'static [&'static str],
    /// Ids of findings that it may report besides.
    pub may_find: &'static [&'static str],
}

/// A picture of a scenario; each arm has one, on the same scale.
#[derive(Debug, Clone, Copy)]
pub enum ScenarioFigure {
    /// A chart of the report, by its id: `where`, `swap`.
    Chart(&'static str),
    /// Curves that the scenario measured.
    Measured(MeasuredFigure),
}

/// A picture of curves that a scenario measured.
#[derive(Debug, Clone, Copy)]
pub struct MeasuredFigure {
    /// Its heading.
    pub title: &'static str,
    /// What to see in it, in a sentence.
    pub help: &'static str,
    /// What the horizontal axis counts: `file`, `s`.
    pub x: &'static str,
    /// The unit of the vertical axis; `None` for a plain number.
    pub unit: Option<ChartUnit>,
    /// Whether each point is a bar.
    pub is_bars: bool,
    /// The curves by their names.
    pub curves: &'static [&'static str],
}
