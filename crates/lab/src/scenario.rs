//! What a scenario is, and what came of it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use report::Report;
use timeline::Source;
use units::Span;

use crate::guest::Guest;
use crate::host::machine::{Accelerator, Machine};

/// A memory pathology that can be made, and what it must show.
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
    /// The machine.
    pub machine: fn() -> Machine,
    /// What is compared; one at least.
    pub arms: &'static [Arm],
    /// Plays an arm, inside the machine.
    pub play: fn(&mut Guest) -> Result<(), String>,
    /// What must hold, once all arms are played.
    pub claims: fn(&ArmOutcomes) -> Vec<Claim>,
}

/// A variant of a scenario.
#[derive(Debug)]
pub struct Arm {
    /// Its name: `swappiness-1`.
    pub name: &'static str,
    /// Its settings by name; the user's come on top.
    pub settings: &'static [(&'static str, &'static str)],
    /// Ids of findings or notes that `check` must report; `a|b` means either.
    pub finds: &'static [&'static str],
    /// Ids of findings that it may report besides.
    pub may_find: &'static [&'static str],
}

impl Arm {
    /// What `check` should have found and did not.
    pub fn missed(&self, report: &Report) -> Vec<&'static str> {
        let is_reported = |id: &str| {
            let mut all = report.findings.iter().chain(&report.notes);
            all.any(|finding| finding.id == id)
        };
        let is_missed = |ids: &&&str| !ids.split('|').any(is_reported);
        self.finds.iter().filter(is_missed).copied().collect()
    }

    /// What `check` found and should not have.
    pub fn wrong<'a>(&self, report: &'a Report) -> Vec<&'a str> {
        let is_expected = |id: &str| {
            let mut wanted = self.finds.iter().flat_map(|ids| ids.split('|'));
            wanted.any(|known| known == id) || self.may_find.contains(&id)
        };
        let found = report.findings.iter().map(|finding| finding.id.as_str());
        found.filter(|id| !is_expected(id)).collect()
    }
}

/// What an arm left.
#[derive(Debug)]
pub struct ArmOutcome {
    /// Numbers that the scenario measured, by name.
    pub measured: BTreeMap<String, f64>,
    /// The samples.
    pub source: Source,
    /// Where the samples are.
    pub capture: PathBuf,
    /// The answer of `check`.
    pub report: Report,
    /// How its instructions ran.
    pub accelerator: Accelerator,
}

/// What came of the arms of a scenario that were played, in their order.
#[derive(Debug, Default)]
pub struct ArmOutcomes {
    /// Arm name and outcome.
    pub arms: Vec<(&'static str, ArmOutcome)>,
}

impl ArmOutcomes {
    /// A number that an arm measured.
    pub fn measured(&self, arm: &str, name: &str) -> Option<f64> {
        let (_, outcome) = self.arms.iter().find(|(known, _)| *known == arm)?;
        outcome.measured.get(name).copied()
    }

    /// How many times larger a number is in one arm than in another.
    pub fn ratio(&self, name: &str, arm: &str, other: &str) -> Option<f64> {
        let (one, other) = (self.measured(arm, name)?, self.measured(other, name)?);
        (other > 0.0).then(|| one / other)
    }
}

/// A line of the table that compares with the article.
#[derive(Debug, Clone, PartialEq)]
pub struct Claim {
    /// What is compared.
    pub what: String,
    /// The article's figure; empty where it has none.
    pub article: String,
    /// Ours.
    pub ours: String,
    /// Whether it holds; `None` where an arm that it needs was not played, or its situation did not arise.
    pub holds: Option<bool>,
}

impl Claim {
    /// A claim about a number that must be at least this.
    pub fn at_least(
        what: &str,
        article: &str,
        value: Option<f64>,
        least: f64,
        print: fn(f64) -> String,
    ) -> Self {
        Self {
            what: what.to_owned(),
            article: article.to_owned(),
            ours: value.map_or_else(|| "–".to_owned(), print),
            holds: value.map(|value| value >= least),
        }
    }

    /// A claim about a number that must be between these.
    pub fn between(
        what: &str,
        article: &str,
        value: Option<f64>,
        (least, most): (f64, f64),
        print: fn(f64) -> String,
    ) -> Self {
        Self {
            holds: value.map(|value| (least..=most).contains(&value)),
            ..Self::at_least(what, article, value, least, print)
        }
    }
}

/// `28 ×`.
pub(crate) fn times(ratio: f64) -> String {
    if ratio < 10.0 {
        format!("{ratio:.1} ×")
    } else {
        format!("{ratio:.0} ×")
    }
}

/// `85 %`.
pub(crate) fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// A plain number.
pub(crate) fn plain(number: f64) -> String {
    if number.fract() == 0.0 {
        format!("{number:.0}")
    } else {
        format!("{number:.2}")
    }
}
