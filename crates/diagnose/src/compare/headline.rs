//! The headline as statements: the cause where a recorded fact explains what changed, else what differs most.

use timeline::facts::THP_ENABLED;
use timeline::signals::{MEM_ANON_HUGE, MEM_TOTAL, THP_FAULT_ALLOC};
use units::Span;

use super::Direction;
use super::cause::{Cause, CauseStrength};
use super::decision::{By, Decision};
use super::differences::Differences;
use super::findings::{FindingChange, NotComparable, Turn};
use super::memory::{AmountChange, AmountKind, least};
use super::movement::Use;
use super::rates::RateChange;
use super::settings::FactChange;
use super::spread::Significance;
use super::statement::{DoubtReason, FindingDoubt, Moved, SourceSide, Statement};
use crate::evidence::Evidence;
use crate::judge::Diagnosis;
use crate::judge::verdict::Level;

/// Returns the headline, of one or two lines, and what stands below it.
pub(super) fn statements(
    it: &Differences<'_>,
    decision: &Decision<'_>,
    cause: Option<&Cause>,
) -> (Vec<Statement>, Vec<Statement>) {
    let turned = decision.findings().first().copied().or_else(|| turned(it));
    let is_unknown = decision.direction == Direction::Unknown;
    if turned.is_none() && !differs(it) && !is_unknown && matches!(decision.by, By::Nothing) {
        return (vec![nothing(it)], Vec::new());
    }
    let headline = Headline {
        it,
        decision,
        cause,
        turned,
        asked: asked_for(it)
            .filter(|_| cause.is_none() && turned.is_none_or(|turned| !turned.is_of_weight())),
    };
    (headline.lead(), headline.more())
}

/// What the headline is made of.
struct Headline<'a> {
    it: &'a Differences<'a>,
    decision: &'a Decision<'a>,
    cause: Option<&'a Cause>,
    /// The finding that represents all that changed.
    turned: Option<&'a FindingChange>,
    /// That huge pages are the programs' choice.
    asked: Option<Statement>,
}

impl Headline<'_> {
    /// The cause for the first sentence; a cause of some other change comes below.
    fn own_cause(&self) -> Option<&Cause> {
        self.cause.filter(|cause| !cause.is_beside)
    }

    /// Whether the finding comes first: it decides, or nothing that has a name does.
    fn is_finding_first(&self) -> bool {
        matches!(self.decision.by, By::Findings(_) | By::Nothing)
    }

    fn lead(&self) -> Vec<Statement> {
        let Self { it, decision, .. } = self;
        let own = self.own_cause();
        let is_of_weight = self.turned.is_some_and(FindingChange::is_of_weight);
        let is_quiet = decision.direction == Direction::Same && own.is_none() && !is_of_weight;
        let first = [
            (decision.direction == Direction::Unknown).then(|| unknown(it)),
            own.map(|cause| explained(cause, it.facts)),
            is_quiet.then_some(Statement::NoDirection),
            self.by_amount(),
            self.asked.clone(),
            self.turned.filter(|_| own.is_none() && self.is_finding_first()).map(changed),
            // Where no finding changed, the rates and amounts that moved come first.
            self.most().filter(|_| self.is_most_first()),
        ];
        first.into_iter().flatten().collect()
    }

    /// What decides, where that is not a finding.
    fn by_amount(&self) -> Option<Statement> {
        match &self.decision.by {
            By::Rate(rate) => Some(Statement::Decides {
                rate: (*rate).clone(),
                is_mixed: self.decision.direction == Direction::Different,
            })
            .filter(|_| rate.means().is_some()),
            By::Use(used) => Some(Statement::Uses(used.found(self.it))),
            By::Findings(_) | By::Nothing => None,
        }
    }

    fn is_most_first(&self) -> bool {
        let is_unknown = self.decision.direction == Direction::Unknown;
        self.turned.is_none()
            && !is_unknown
            && self.asked.is_none()
            && matches!(self.decision.by, By::Nothing)
    }

    fn more(&self) -> Vec<Statement> {
        let own = self.own_cause();
        let mut more = Vec::new();
        if let Some(turned) = self.turned {
            if own.is_some() || !self.is_finding_first() {
                more.push(changed(turned));
            }
            if own.is_none() && self.is_finding_first() {
                more.push(unexplained(self.it, turned));
                let finding = self.it.worse(turned);
                let cause = finding.map(|finding| finding.cause.clone());
                more.extend(cause.filter(|cause| !cause.is_empty()).map(Statement::FindingCause));
            }
        }
        let is_sure = own.is_some_and(|cause| cause.strength != CauseStrength::May);
        let says_most = !self.is_most_first() && (self.turned.is_none() || !is_sure);
        more.extend(self.most().filter(|_| says_most));
        if self.is_unexplained() {
            more.push(Statement::Unexplained);
        }
        more.extend(self.apart());
        more.dedup();
        more
    }

    /// Whether to say that no fact explains the change; where a finding comes first, its own sentence says so.
    fn is_unexplained(&self) -> bool {
        let is_told = self.turned.is_some() && self.is_finding_first();
        let is_news = differs(self.it) || !matches!(self.decision.by, By::Nothing);
        self.own_cause().is_none() && !is_told && self.asked.is_none() && is_news
    }

    /// What differs most and is not mentioned yet; where a cause explains rates and amounts, only these.
    fn most(&self) -> Option<Statement> {
        let own = self.own_cause().filter(|cause| cause.finding.is_none());
        let is_told = |name: &str| match &self.decision.by {
            By::Use(used) => used.covers(name),
            By::Rate(rate) => rate.name == name,
            By::Findings(_) | By::Nothing => false,
        };
        let counts =
            |name: &str| !is_told(name) && own.is_none_or(|cause| self.it.is_of_cause(cause, name));
        let parts = differs_most(self.it, counts, own.is_none());
        (!parts.is_empty()).then_some(Statement::Most(parts))
    }

    const fn used(&self) -> Option<&Use<'_>> {
        match &self.decision.by {
            By::Use(used) => Some(used),
            _ => None,
        }
    }

    /// What the cause does not explain, and other changes that it does explain.
    fn apart(&self) -> Vec<Statement> {
        let beside = self.cause.filter(|cause| cause.is_beside);
        let mut all = Vec::from_iter(beside.map(|cause| explained(cause, self.it.facts)));
        if let Some(cause) = self.own_cause() {
            let others = self.it.turned().filter(|change| {
                let is_told = self.turned.is_some_and(|turned| std::ptr::eq(turned, *change));
                !is_told && change.is_of_weight() && !self.it.is_finding_of_cause(cause, change)
            });
            all.extend(others.map(changed));
            let used = Use::from_differences(self.it)
                .filter(|used| self.used().is_none() && !self.it.is_use_of(cause, used));
            all.extend(used.iter().map(|used| Statement::Uses(used.found(self.it))));
            if cause.finding.is_none() {
                let counts = |name: &str| {
                    let mut mentioned = self.used().into_iter().chain(&used);
                    !mentioned.any(|used| used.covers(name)) && !self.it.is_of_cause(cause, name)
                };
                let rest = differs_most(self.it, counts, self.used().is_none());
                all.extend((!rest.is_empty()).then_some(Statement::Rest(rest)));
            }
        }
        all.into_iter().map(|one| Statement::Independent(Box::new(one))).collect()
    }
}

fn changed(change: &FindingChange) -> Statement {
    Statement::Finding(change.clone())
}

fn explained(cause: &Cause, facts: &[FactChange]) -> Statement {
    let named = facts.iter().filter(|fact| cause.facts.contains(&fact.name));
    Statement::Explained(cause.clone(), named.cloned().collect())
}

fn differs(it: &Differences<'_>) -> bool {
    it.top_amount().is_some() || it.top_rate().is_some()
}

/// The most severe root that is not the same on both sides; a note only where there is nothing else.
fn turned<'a>(it: &'a Differences<'_>) -> Option<&'a FindingChange> {
    let mut of_weight = it.turned().filter(|change| change.is_of_weight());
    of_weight.next().or_else(|| it.turned().next())
}

/// A setting which the finding rests on, and which is the same on both sides, must have been changed after it was read.
fn unexplained(it: &Differences<'_>, turned: &FindingChange) -> Statement {
    let known = it.settings_of(turned);
    if known.is_empty() { Statement::Unexplained } else { Statement::SameSettings(known) }
}

fn nothing(it: &Differences<'_>) -> Statement {
    let differs = |change: &&FindingChange| change.turn() != Turn::Same;
    let others: Vec<&FindingChange> = it.findings.iter().filter(differs).collect();
    let doubt = others.iter().find_map(|change| change.doubt);
    Statement::Nothing {
        do_facts_differ: it.facts.iter().any(FactChange::differs),
        others: others.iter().map(|change| change.id).collect(),
        is_of_other_length: doubt == Some(NotComparable::TooShort),
    }
}

fn unknown(it: &Differences<'_>) -> Statement {
    let sides = [(SourceSide::Before, it.before), (SourceSide::After, it.after)];
    let is_unjudged = |(_, side): &(_, &Diagnosis)| side.verdict.level == Level::Unknown;
    let is_in_doubt = |it: &&FindingChange| it.turn() == Turn::Unknown && it.is_root();
    let doubtful = it.findings.iter().find(is_in_doubt);
    Statement::Unknown {
        unjudged: sides.into_iter().filter(is_unjudged).map(|(side, _)| side).collect(),
        doubt: doubtful.map(|change| FindingDoubt { id: change.id, why: in_doubt(it, change) }),
    }
}

/// Why a finding on one side does not apply to the other.
fn in_doubt(it: &Differences<'_>, change: &FindingChange) -> DoubtReason {
    let (old, new) = (it.sides.0.recorded(), it.sides.1.recorded());
    let severity = |is_after| change.found(is_after).map(|found| found.severity);
    let is_after = severity(true) > severity(false);
    let (found, watched, other_watched) =
        if is_after { (SourceSide::After, new, old) } else { (SourceSide::Before, old, new) };
    let cost = change.found(is_after).map(|found| found.cost);
    match (change.doubt, cost) {
        (Some(NotComparable::TooShort), _) if severity(true) == severity(false) => {
            DoubtReason::ShortSide(old.min(new))
        }
        (Some(NotComparable::TooShort), Some(cost)) => DoubtReason::MayBeMissed {
            found,
            lasted: cost.lasted.filter(|lasted| *lasted > Span::ZERO),
            watched,
            other_watched,
        },
        _ => DoubtReason::NotChecked { found },
    }
}

/// The amount, its owner and the rate that moved most, of those that `counts` admits by name.
fn differs_most(
    it: &Differences<'_>,
    counts: impl Fn(&str) -> bool,
    with_owner: bool,
) -> Vec<Moved> {
    let clear = |amount: &&AmountChange| amount.is_clear() && amount.holds_memory();
    let mut amounts = it.amounts.iter().filter(clear);
    let amount = amounts.find(|amount| counts(&amount.name));
    let mut rates = it.rates.iter().filter(|rate| rate.is_clear());
    let rate = rates.find(|rate| counts(rate.name)).filter(|rate| rate.means().is_some());
    let amounts = amount.into_iter().chain(owner(it).filter(|_| with_owner));
    let rate = rate.cloned().map(Moved::Rate);
    amounts.cloned().map(Moved::Amount).chain(rate).collect()
}

/// The owner with the largest difference in anonymous memory.
fn owner<'a>(it: &'a Differences<'_>) -> Option<&'a AmountChange> {
    let share = |share: Option<units::Ratio>| share.map_or(0.0, units::Ratio::get);
    let moved = |a: &AmountChange| (share(a.after_share) - share(a.before_share)).abs();
    let owners = it.amounts.iter().filter(|a| a.kind == AmountKind::Owner);
    let owner = owners.max_by(|a, b| moved(a).total_cmp(&moved(b)))?;
    let ram = |cx: &Evidence<'_>| cx.timeline.last(MEM_TOTAL);
    let ram = ram(it.sides.0).max(ram(it.sides.1)).unwrap_or_default();
    // The amount of programs of one name is known at one sample only.
    let is_shown = owner.significance != Some(Significance::Noise) && moved(owner) >= least(ram);
    is_shown.then_some(owner)
}

/// Whether there are more huge pages after; `None` where they did not change, or only with the memory that they back.
fn huge_pages_moved(it: &Differences<'_>) -> Option<bool> {
    let moved = |amount: &AmountChange| amount.share_changed();
    let anonymous = it.amounts.iter().find(|amount| amount.name == "anon");
    let anonymous = anonymous.and_then(moved).map_or(0.0, f64::abs);
    let name = MEM_ANON_HUGE.def().name;
    let huge = it.amounts.iter().find(|a| a.name == name && a.is_clear());
    let huge = huge.and_then(moved).filter(|m| m.abs() > 2.0 * anonymous);
    let given = it.top_rate().filter(|r| r.name == THP_FAULT_ALLOC.def().name);
    let given = given.and_then(RateChange::means).map(|(b, a)| a - b);
    huge.or(given).map(|more| more > 0.0)
}

/// Where huge pages changed although the setting is the same, the programs themselves chose them.
fn asked_for(it: &Differences<'_>) -> Option<Statement> {
    let is_more = huge_pages_moved(it)?;
    let (before, after) =
        (it.sides.0.choice(THP_ENABLED).ok()?, it.sides.1.choice(THP_ENABLED).ok()?);
    (before == after).then(|| Statement::HugePages { is_more, setting: before.to_owned() })
}
