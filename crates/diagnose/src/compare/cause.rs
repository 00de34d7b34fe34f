//! Which recorded fact explains what changed; none where no fact does.
//!
//! Candidates are tried on what decides the direction, in this order: a setting that differs and that the finding
//! itself rests on; a setting or the machine's size that bears on the finding; a setting that bears on the rate or the
//! amount. A fact that explains something else is called related. A setting that merely differs explains nothing.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::Serialize;
use timeline::cgroup::ancestors;
use timeline::facts::{
    NR_HUGEPAGES, SWAPPINESS, THP_DEFRAG, THP_ENABLED, VFS_CACHE_PRESSURE, ZONE_RECLAIM_MODE,
};
use timeline::signals::{
    COMPACT_STALL, MEM_ANON_HUGE, MEM_DIRTY, MEM_SLAB_RECLAIMABLE, MEM_TOTAL, PSWPIN, PSWPOUT,
    REFAULT_FILE, SWAP_TOTAL, THP_FAULT_ALLOC, THP_FAULT_FALLBACK, ZONE_RECLAIM_FAILED,
};
use timeline::{Entity, Fact, Gauge, Signal, SignalDef};
use units::Bytes;

use super::decision::{By, Decision};
use super::differences::Differences;
use super::findings::{FindingChange, Turn};
use super::memory::AmountChange;
use super::movement::Use;
use super::rates::RateChange;
use super::settings::{RAM, SWAP, is_tighter, limit_names};
use crate::finding::Finding;
use crate::rule::{Class, DIRTY_SETTINGS, Explains};
use crate::rules;

/// How sure it is that facts explain what changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CauseStrength {
    /// The finding itself rests on them.
    Is,
    /// Nothing else that was recorded does.
    Explains,
    /// So may other things.
    May,
}

/// Facts that explain what changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Cause {
    /// Their names, as in `facts`.
    pub facts: Vec<Cow<'static, str>>,
    /// How sure that is.
    pub strength: CauseStrength,
    /// Id of the finding that they explain; null where they explain what moved.
    pub finding: Option<&'static str>,
    /// Whether they explain something beside what decides the direction, and not that.
    pub is_beside: bool,
}

/// Settings, and the names of the rates and amounts that they change.
type Moves = (&'static [Fact], Vec<&'static str>);

/// The rates and amounts that settings change.
fn of_signals() -> [Moves; 6] {
    let names = |defs: &[&'static SignalDef]| defs.iter().map(|def| def.name).collect();
    [
        (
            &[THP_ENABLED, THP_DEFRAG],
            names(&[
                MEM_ANON_HUGE.def(),
                THP_FAULT_ALLOC.def(),
                THP_FAULT_FALLBACK.def(),
                COMPACT_STALL.def(),
            ]),
        ),
        (&[ZONE_RECLAIM_MODE], names(&[ZONE_RECLAIM_FAILED.def(), REFAULT_FILE.def()])),
        (&[SWAPPINESS], names(&[PSWPIN.def(), PSWPOUT.def()])),
        (&[NR_HUGEPAGES], vec!["hugetlb_used", "hugetlb_unused"]),
        (&[VFS_CACHE_PRESSURE], names(&[MEM_SLAB_RECLAIMABLE.def()])),
        (DIRTY_SETTINGS, names(&[MEM_DIRTY.def()])),
    ]
}

fn names(facts: &[Fact]) -> Vec<&'static str> {
    facts.iter().map(|fact| fact.name).collect()
}

/// The fact that explains what changed.
pub(super) fn find(it: &Differences<'_>, decision: &Decision<'_>) -> Option<Cause> {
    let deciding = match &decision.by {
        By::Findings(findings) => it.explained(findings),
        By::Rate(rate) => it.moves(&[rate.name]),
        By::Use(used) => it.holds(used),
        By::Nothing => None,
    };
    let rest: Vec<&FindingChange> = it.turned().collect();
    let is_ill = rest.iter().any(|change| change.is_of_weight());
    let beside = || {
        it.explained(&rest).or_else(|| {
            // Where a finding that counts changed, a moved rate or amount needs no cause of its own.
            let most = it.moved_most().filter(|_| !is_ill);
            it.moves(&most.collect::<Vec<_>>())
        })
    };
    deciding.or_else(|| {
        let is_decided = !matches!(decision.by, By::Nothing);
        beside().map(|cause| Cause { is_beside: is_decided, ..cause })
    })
}

impl Differences<'_> {
    fn differing(&self, names: &[&str]) -> Vec<Cow<'static, str>> {
        let differing = self.facts.iter().filter(|fact| fact.differs());
        let named = differing.filter(|fact| names.contains(&fact.name.as_ref()));
        named.map(|fact| fact.name.clone()).collect()
    }

    /// The finding on the side where it is worse.
    pub(super) fn worse(&self, change: &FindingChange) -> Option<&Finding> {
        let side = if change.is_worse_after().unwrap_or(true) { self.after } else { self.before };
        let title = &change.found(std::ptr::eq(side, self.after))?.title;
        let mut findings = side.findings.iter();
        findings.find(|finding| finding.id == change.id && finding.title == *title)
    }

    /// The differing settings that the finding shows as evidence.
    fn rests_on(&self, change: &FindingChange) -> Option<Cause> {
        let names = self.settings_of(change);
        self.cause(self.differing(&names), CauseStrength::Is, Some(change.id))
    }

    /// The limits around the cgroup of a finding about a limit that are lower on the side where it is worse.
    fn tighter_limits(&self, change: &FindingChange) -> Vec<Cow<'static, str>> {
        let is_about_limits =
            rules::by_id(change.id).is_some_and(|rule| rule.class == Class::Limit);
        let scope = self.worse(change).map(|finding| &finding.scope);
        let Some(scope) = scope.filter(|scope| is_about_limits && scope.entity == Entity::Cgroup)
        else {
            return Vec::new();
        };
        let (poor, rich) = if change.is_worse_after().unwrap_or_default() {
            (self.sides.1, self.sides.0)
        } else {
            (self.sides.0, self.sides.1)
        };
        let around = ancestors(&scope.key).filter(|key| is_tighter(poor, rich, key));
        let names: Vec<String> = around.flat_map(limit_names).collect();
        self.differing(&names.iter().map(String::as_str).collect::<Vec<_>>())
    }

    fn bears_on(&self, change: &FindingChange, strength: CauseStrength) -> Option<Cause> {
        let rule = rules::by_id(change.id);
        let explained_by = rule.map_or(&[][..], |rule| rule.explained_by);
        let bearing = explained_by.iter().filter_map(|explains| match (explains, strength) {
            (Explains::Surely(fact), CauseStrength::Explains)
            | (Explains::Maybe(fact), CauseStrength::May) => Some(fact.name),
            _ => None,
        });
        let mut names: Vec<&str> = bearing.collect();
        if strength == CauseStrength::May {
            names.extend(self.shortage(change));
        }
        let mut facts = self.differing(&names);
        if strength == CauseStrength::Explains {
            facts.extend(self.tighter_limits(change));
        }
        self.cause(facts, strength, Some(change.id))
    }

    /// RAM or swap, where the side on which the finding is worse has less of it, and less makes the finding likelier.
    fn shortage(&self, change: &FindingChange) -> Vec<&'static str> {
        let (poor, rich) = if change.is_worse_after().unwrap_or_default() {
            (self.sides.1, self.sides.0)
        } else {
            (self.sides.0, self.sides.1)
        };
        let less = |signal: Signal<Gauge<Bytes>>| {
            let (poor, rich) = (poor.timeline.last(signal), rich.timeline.last(signal));
            poor.zip(rich).is_some_and(|(poor, rich)| poor < rich)
        };
        let Some(rule) = rules::by_id(change.id) else {
            return Vec::new();
        };
        let mut names = Vec::new();
        if matches!(rule.class, Class::Shortage | Class::Scarcity) && less(MEM_TOTAL) {
            names.push(RAM);
        }
        if rule.explained_by.contains(&Explains::LittleSwap) && less(SWAP_TOTAL) {
            names.push(SWAP);
        }
        names
    }

    /// The cause of one of these findings; notes get no guess.
    fn explained(&self, findings: &[&FindingChange]) -> Option<Cause> {
        let all = || findings.iter();
        all()
            .find_map(|finding| self.rests_on(finding))
            .or_else(|| all().find_map(|change| self.bears_on(change, CauseStrength::Explains)))
            .or_else(|| {
                let mut of_weight = all().filter(|change| change.is_of_weight());
                of_weight.find_map(|change| self.bears_on(change, CauseStrength::May))
            })
    }

    /// A setting that differs and that changes one of these rates and amounts.
    fn moves(&self, moved: &[&str]) -> Option<Cause> {
        of_signals().iter().find_map(|(facts, signals)| {
            signals.iter().find(|name| moved.contains(*name))?;
            self.cause(self.differing(&names(facts)), CauseStrength::Explains, None)
        })
    }

    /// A setting that differs and that changes the amount which makes up most of the difference in use.
    fn holds(&self, used: &Use<'_>) -> Option<Cause> {
        let mostly = self.amounts.iter().filter(|amount| used.is_mostly(amount));
        let mostly: Vec<&str> = mostly.map(|amount| amount.name.as_str()).collect();
        self.moves(&mostly)
    }

    /// Whether a cause is known to change the amount which makes up most of the difference in use.
    pub(super) fn is_use_of(&self, cause: &Cause, used: &Use<'_>) -> bool {
        let mut amounts = self.amounts.iter();
        amounts.any(|amount| used.is_mostly(amount) && self.is_of_cause(cause, &amount.name))
    }

    /// The amount and the rate that differ most.
    fn moved_most(&self) -> impl Iterator<Item = &str> {
        let amount = self.top_amount().map(|amount| amount.name.as_str());
        let rate = self.top_rate().map(|rate| rate.name);
        amount.into_iter().chain(rate)
    }

    /// Whether a cause is known to bear on a rate or an amount of this name.
    pub(super) fn is_of_cause(&self, cause: &Cause, name: &str) -> bool {
        of_signals().iter().any(|(facts, signals)| {
            let bears = names(facts).iter().any(|fact| cause.facts.iter().any(|name| name == fact));
            bears && signals.contains(&name)
        })
    }

    /// Whether a cause bears on a finding.
    pub(super) fn is_finding_of_cause(&self, cause: &Cause, change: &FindingChange) -> bool {
        let causes = [
            self.rests_on(change),
            self.bears_on(change, CauseStrength::Explains),
            self.bears_on(change, CauseStrength::May),
        ];
        let mut facts = causes.iter().flatten().flat_map(|cause| &cause.facts);
        facts.any(|fact| cause.facts.contains(fact))
    }

    /// Roots that only one side shows, or that are worse on one side; the most severe first.
    pub(super) fn turned(&self) -> impl Iterator<Item = &FindingChange> {
        let roots = self.findings.iter().filter(|change| change.is_root());
        roots.filter(|change| !matches!(change.turn(), Turn::Same | Turn::Unknown))
    }

    /// The amount of memory that differs most.
    pub(super) fn top_amount(&self) -> Option<&AmountChange> {
        let mut amounts = self.amounts.iter();
        amounts.find(|amount| amount.is_clear() && amount.holds_memory())
    }

    /// The rate that differs most.
    pub(super) fn top_rate(&self) -> Option<&RateChange> {
        self.rates.iter().find(|rate| rate.is_clear())
    }

    /// Settings that a finding shows as evidence.
    pub(super) fn settings_of(&self, change: &FindingChange) -> Vec<&'static str> {
        let evidence = self.worse(change).map(|finding| finding.evidence.iter());
        let measured = evidence.into_iter().flatten().filter_map(|line| line.measured.as_ref());
        let settings = measured.filter(|measured| measured.unit == Finding::SETTING);
        settings.map(|measured| measured.signal).collect()
    }

    fn cause(
        &self,
        facts: Vec<Cow<'static, str>>,
        strength: CauseStrength,
        finding: Option<&'static str>,
    ) -> Option<Cause> {
        (!facts.is_empty()).then_some(Cause { facts, strength, finding, is_beside: false })
    }
}
