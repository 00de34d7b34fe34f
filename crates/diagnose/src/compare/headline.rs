//! The headline: the cause where a recorded fact explains what changed, else what differs most.

use timeline::facts::THP_ENABLED;
use timeline::signals::{MEM_ANON_HUGE, MEM_TOTAL, THP_FAULT_ALLOC};
use units::{Count, SignedBytes, Span};

use super::cause::{Cause, CauseStrength};
use super::decision::{By, Decision};
use super::differences::Differences;
use super::findings::{FindingChange, NotComparable, Turn};
use super::memory::{AmountChange, AmountKind, least};
use super::movement::Use;
use super::rates::RateChange;
use super::settings::FactChange;
use super::spread::Significance;
use super::{Direction, figure};
use crate::evidence::Evidence;
use crate::finding::capital;
use crate::judge::Diagnosis;
use crate::judge::verdict::Level;

/// Writes the headline, one or two lines long, and the further sentences.
pub(super) fn write(
    it: &Differences<'_>,
    decision: &Decision<'_>,
    cause: Option<&Cause>,
) -> (String, Vec<String>) {
    let turned = decision.findings().first().copied().or_else(|| turned(it));
    let is_unknown = decision.direction == Direction::Unknown;
    if turned.is_none() && !differs(it) && !is_unknown && matches!(decision.by, By::Nothing) {
        return (nothing(it), Vec::new());
    }
    let sentences = Sentences {
        it,
        decision,
        cause,
        turned,
        asked: asked_for(it)
            .filter(|_| cause.is_none() && turned.is_none_or(|turned| !turned.is_of_weight())),
    };
    (sentences.lead().join(" "), sentences.more())
}

/// The parts from which the headline is written.
struct Sentences<'a> {
    it: &'a Differences<'a>,
    decision: &'a Decision<'a>,
    cause: Option<&'a Cause>,
    /// The finding that represents all that changed.
    turned: Option<&'a FindingChange>,
    /// A sentence that huge pages are the programs' choice.
    asked: Option<String>,
}

impl Sentences<'_> {
    /// The cause for the first sentence; a cause of some other change comes below.
    fn own_cause(&self) -> Option<&Cause> {
        self.cause.filter(|cause| !cause.is_beside)
    }

    /// Whether the finding comes first: it decides, or nothing that has a name does.
    fn is_finding_first(&self) -> bool {
        matches!(self.decision.by, By::Findings(_) | By::Nothing)
    }

    fn lead(&self) -> Vec<String> {
        let Self { it, decision, .. } = self;
        let own = self.own_cause();
        let is_of_weight = self.turned.is_some_and(FindingChange::is_of_weight);
        let is_quiet = decision.direction == Direction::Same && own.is_none() && !is_of_weight;
        let first = [
            (decision.direction == Direction::Unknown).then(|| unknown(it)),
            own.map(|cause| explained(cause, it.facts)),
            is_quiet.then(|| "Neither better nor worse.".to_owned()),
            self.by_amount(),
            self.asked.clone(),
            self.turned.filter(|_| own.is_none() && self.is_finding_first()).map(in_words),
            // Where no finding changed, the rates and amounts that moved come first.
            self.most().filter(|_| self.is_most_first()),
        ];
        first.into_iter().flatten().collect()
    }

    /// What decides, where that is not a finding.
    fn by_amount(&self) -> Option<String> {
        match &self.decision.by {
            By::Rate(rate) => {
                let moved = moved(rate)?;
                let is_mixed = self.decision.direction == Direction::Different;
                let but = if is_mixed { "Less was found, and more waits: " } else { "" };
                Some(capital(&format!("{but}{moved}.")))
            }
            By::Use(used) => Some(used.in_words(self.it)),
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

    fn more(&self) -> Vec<String> {
        let own = self.own_cause();
        let mut more = Vec::new();
        if let Some(turned) = self.turned {
            if own.is_some() || !self.is_finding_first() {
                more.push(in_words(turned));
            }
            if own.is_none() && self.is_finding_first() {
                more.push(unexplained(self.it, turned));
                let finding = self.it.worse(turned);
                let cause = finding.map(|finding| finding.cause.clone());
                more.extend(cause.filter(|cause| !cause.is_empty()));
            }
        }
        let is_sure = own.is_some_and(|cause| cause.strength != CauseStrength::May);
        let says_most = !self.is_most_first() && (self.turned.is_none() || !is_sure);
        more.extend(self.most().filter(|_| says_most));
        if self.is_unexplained() {
            more.push(UNEXPLAINED.to_owned());
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
    fn most(&self) -> Option<String> {
        let own = self.own_cause().filter(|cause| cause.finding.is_none());
        let is_told = |name: &str| match &self.decision.by {
            By::Use(used) => used.covers(name),
            By::Rate(rate) => rate.name == name,
            By::Findings(_) | By::Nothing => false,
        };
        let counts =
            |name: &str| !is_told(name) && own.is_none_or(|cause| self.it.is_of_cause(cause, name));
        let parts = differs_most(self.it, counts, own.is_none());
        (!parts.is_empty()).then(|| format!("What differs most: {}.", parts.join("; ")))
    }

    const fn used(&self) -> Option<&Use<'_>> {
        match &self.decision.by {
            By::Use(used) => Some(used),
            _ => None,
        }
    }

    /// What the cause does not explain, and other changes that it does explain.
    fn apart(&self) -> Vec<String> {
        let beside = self.cause.filter(|cause| cause.is_beside);
        let explained = beside.map(|cause| {
            let what = match cause.finding {
                Some(id) => format!("what changed of {id}"),
                None => "some of the rest".to_owned(),
            };
            apart(&explains(cause, self.it.facts, &what))
        });
        let mut all = Vec::from_iter(explained);
        let Some(cause) = self.own_cause() else {
            return all;
        };
        let others = self.it.turned().filter(|change| {
            let is_told = self.turned.is_some_and(|turned| std::ptr::eq(turned, *change));
            !is_told && change.is_of_weight() && !self.it.is_finding_of_cause(cause, change)
        });
        all.extend(others.map(|change| apart(&in_words(change))));
        let used = Use::from_differences(self.it)
            .filter(|used| self.used().is_none() && !self.it.is_use_of(cause, used));
        all.extend(used.iter().map(|used| apart(&used.in_words(self.it))));
        if cause.finding.is_none() {
            let counts = |name: &str| {
                let mut mentioned = self.used().into_iter().chain(&used);
                !mentioned.any(|used| used.covers(name)) && !self.it.is_of_cause(cause, name)
            };
            let rest = differs_most(self.it, counts, self.used().is_none());
            all.extend((!rest.is_empty()).then(|| apart(&format!("{}.", rest.join("; ")))));
        }
        all
    }
}

/// `Independent of that: …`
fn apart(sentence: &str) -> String {
    let mut letters = sentence.chars();
    let first = letters.next().map(|first| first.to_lowercase().to_string());
    // A word that looks like a name keeps its capital.
    let is_word = letters.clone().next().is_some_and(char::is_lowercase);
    let rest = match first.filter(|_| is_word) {
        Some(first) => first + letters.as_str(),
        None => sentence.to_owned(),
    };
    format!("Independent of that: {rest}")
}

fn differs(it: &Differences<'_>) -> bool {
    it.top_amount().is_some() || it.top_rate().is_some()
}

const UNEXPLAINED: &str = "No fact that was recorded explains it.";

/// The most severe root that is not the same on both sides; a note only where there is nothing else.
fn turned<'a>(it: &'a Differences<'_>) -> Option<&'a FindingChange> {
    let mut of_weight = it.turned().filter(|change| change.is_of_weight());
    of_weight.next().or_else(|| it.turned().next())
}

/// Says that a setting which the finding rests on, and which is the same on both sides, must have been changed after
/// it was read.
fn unexplained(it: &Differences<'_>, turned: &FindingChange) -> String {
    let known = it.settings_of(turned);
    match known.as_slice() {
        [] => UNEXPLAINED.to_owned(),
        names => format!("As recorded, {} is not different.", names.join(" and ")),
    }
}

/// How the finding changed, with the first sentence of its title.
fn in_words(change: &FindingChange) -> String {
    let (turn, found) = match change.turn() {
        Turn::New => ("New", &change.after),
        Turn::Gone => ("Gone", &change.before),
        Turn::Worse => ("Worse", &change.after),
        Turn::Better => ("Better", &change.after),
        Turn::Same | Turn::Unknown => return String::new(),
    };
    let title = found.as_ref().map(|found| found.title.first());
    let cost = costs(change).map_or_else(String::new, |costs| format!(" ({costs})"));
    format!("{turn} after{cost}: {}", title.unwrap_or_default())
}

/// What decides between two sides with the same finding: `15 min of waiting per hour before, 40 min after`.
fn costs(change: &FindingChange) -> Option<String> {
    let (before, after) = (change.before.as_ref()?, change.after.as_ref()?);
    if before.severity != after.severity {
        return None;
    }
    let (old, new) = (before.cost, after.cost);
    let waited = old.waited_an_hour().zip(new.waited_an_hour());
    let share = old.share().zip(new.share());
    Some(match (waited, share) {
        _ if old.killed.max(new.killed) > 0 => {
            let [old, new] = [old.killed, new.killed].map(Count::new);
            format!("{old} killed before, {new} after")
        }
        (Some((old, new)), _) => format!("{old} of waiting per hour before, {new} after"),
        (None, Some((old, new))) => format!("{old} of the time before, {new} after"),
        (None, None) => return None,
    })
}

/// `vm.zone_reclaim_mode is the cause: 1 before, 0 after.`
fn explained(cause: &Cause, facts: &[FactChange]) -> String {
    explains(cause, facts, "it")
}

/// The same sentence for `what`, a finding or an amount; `it` is left out after "is the cause".
fn explains(cause: &Cause, facts: &[FactChange], what: &str) -> String {
    let all = facts.iter().filter(|fact| cause.facts.contains(&fact.name));
    let named: Vec<&FactChange> = all.collect();
    let names: Vec<&str> = named.iter().map(|fact| label(fact)).collect();
    let names = match names.as_slice() {
        [one] => (*one).to_owned(),
        [one, other] => format!("{one} and {other}"),
        _ => "These settings".to_owned(),
    };
    let is_one = named.len() == 1;
    let of = if what == "it" { String::new() } else { format!(" of {what}") };
    let verb = match (cause.strength, is_one) {
        (CauseStrength::Is, true) => format!("is the cause{of}"),
        (CauseStrength::Is, false) => format!("are the cause{of}"),
        (CauseStrength::Explains, true) => format!("explains {what}"),
        (CauseStrength::Explains, false) => format!("explain {what}"),
        (CauseStrength::May, _) => format!("may explain {what}"),
    };
    let value = |text: &Option<String>| text.clone().unwrap_or_default();
    let values = match named.as_slice() {
        [fact] => format!("{} before, {} after", value(&fact.before), value(&fact.after)),
        _ => {
            // Of two forms of one limit, the one that is not in use is 0.
            let side = |of: fn(&FactChange) -> &Option<String>| {
                let set = named.iter().filter(|fact| of(fact).as_deref() != Some("0"));
                let set: Vec<String> =
                    set.map(|fact| format!("{} {}", label(fact), value(of(fact)))).collect();
                if set.is_empty() { "all 0".to_owned() } else { set.join(", ") }
            };
            let (before, after) = (side(|fact| &fact.before), side(|fact| &fact.after));
            format!("before {before}; after {after}")
        }
    };
    format!("{names} {verb}: {values}.")
}

/// The name of a fact in a sentence.
fn label(fact: &FactChange) -> &'static str {
    match fact.name {
        super::settings::RAM => "RAM",
        name => name,
    }
}

fn nothing(it: &Differences<'_>) -> String {
    let facts = it.facts.iter().filter(|fact| fact.differs()).count();
    let settings = match facts {
        0 => "and no fact differs",
        _ => "though facts differ",
    };
    let rest = format!("no amount or rate differs by more than its own noise, {settings}");
    let differs = |change: &&FindingChange| change.turn() != Turn::Same;
    let others: Vec<&FindingChange> = it.findings.iter().filter(differs).collect();
    let ids: Vec<&str> = others.iter().map(|change| change.id).collect();
    let ids = ids.join(" and ");
    match others.iter().find_map(|change| change.doubt) {
        _ if others.is_empty() => format!("Nothing changed: the same findings, {rest}."),
        Some(NotComparable::TooShort) => format!(
            "Neither better nor worse: the same roots. Of {ids}, sources of such different length \
             cannot show a change; {rest}."
        ),
        _ => format!(
            "Neither better nor worse: the same roots, and {ids} beside them on one side only; \
             {rest}."
        ),
    }
}

fn unknown(it: &Differences<'_>) -> String {
    let blind = |name: &str, side: &Diagnosis| {
        let level = side.verdict.level;
        (level == Level::Unknown).then(|| format!("{name} cannot be judged"))
    };
    let mut why: Vec<String> = [("before", it.before), ("after", it.after)]
        .into_iter()
        .filter_map(|(name, side)| blind(name, side))
        .collect();
    let is_told = |it: &&FindingChange| it.turn() == Turn::Unknown && it.is_root();
    let mut unseen = it.findings.iter().filter(is_told);
    why.extend(unseen.next().map(|change| in_doubt(it, change)));
    format!("Whether it is better or worse is unknown: {}.", why.join("; "))
}

/// Why a finding on one side does not apply to the other.
fn in_doubt(it: &Differences<'_>, change: &FindingChange) -> String {
    let id = change.id;
    let (old, new) = (it.sides.0.recorded(), it.sides.1.recorded());
    let severity = |is_after| change.found(is_after).map(|found| found.severity);
    let is_after = severity(true) > severity(false);
    let ((found, there), (other, elsewhere)) = if is_after {
        (("after", new), ("before", old))
    } else {
        (("before", old), ("after", new))
    };
    let cost = change.found(is_after).map(|found| found.cost);
    match (change.doubt, cost) {
        (Some(NotComparable::TooShort), _) if severity(true) == severity(false) => format!(
            "{id} is found on both sides, and {} is too short to show how often it comes",
            old.min(new)
        ),
        (Some(NotComparable::TooShort), Some(cost)) => {
            let lasted = match cost.lasted.filter(|lasted| *lasted > Span::ZERO) {
                Some(lasted) => format!("held for {lasted}"),
                None => "came".to_owned(),
            };
            format!(
                "{id} {lasted} of the {there} {found}, and the {elsewhere} {other} may have missed \
                 it"
            )
        }
        _ => format!("{found} shows {id}, which could not be checked {other}"),
    }
}

/// The amount, its owner and the rate that moved most, of those that `counts` admits by name.
fn differs_most(
    it: &Differences<'_>,
    counts: impl Fn(&str) -> bool,
    with_owner: bool,
) -> Vec<String> {
    let clear = |amount: &&AmountChange| amount.is_clear() && amount.holds_memory();
    let mut amounts = it.amounts.iter().filter(clear);
    let amount = amounts.find(|amount| counts(&amount.name));
    let mut rates = it.rates.iter().filter(|rate| rate.is_clear());
    let rate = rates.find(|rate| counts(rate.name));
    amount
        .map(|amount| sized(amount, it))
        .into_iter()
        .chain(owner(it).filter(|_| with_owner))
        .chain(rate.and_then(moved))
        .collect()
}

/// The owner with the largest difference in anonymous memory.
fn owner(it: &Differences<'_>) -> Option<String> {
    let share = |share: Option<units::Ratio>| share.map_or(0.0, units::Ratio::get);
    let moved = |a: &AmountChange| (share(a.after_share) - share(a.before_share)).abs();
    let owners = it.amounts.iter().filter(|a| a.kind == AmountKind::Owner);
    let owner = owners.max_by(|a, b| moved(a).total_cmp(&moved(b)))?;
    let ram = |cx: &Evidence<'_>| cx.timeline.last(MEM_TOTAL);
    let ram = ram(it.sides.0).max(ram(it.sides.1)).unwrap_or_default();
    // The amount of programs of one name is known at one sample only.
    let is_shown = owner.significance != Some(Significance::Noise) && moved(owner) >= least(ram);
    is_shown.then(|| match (owner.before, owner.after) {
        (None, Some(after)) => {
            format!("{} with {}, after only", owner.label, SignedBytes::new(after))
        }
        (Some(before), None) => {
            format!("{} with {}, before only", owner.label, SignedBytes::new(before))
        }
        _ => sized(owner, it),
    })
}

fn sized(amount: &AmountChange, it: &Differences<'_>) -> String {
    let is_other_size = it.is_other_size();
    let side = |bytes: Option<i64>, share: Option<units::Ratio>| {
        let size = bytes.map_or_else(String::new, |bytes| SignedBytes::new(bytes).to_string());
        match share.filter(|_| is_other_size) {
            Some(share) => format!("{size} ({share} of RAM)"),
            None => size,
        }
    };
    let label = match amount.kind {
        AmountKind::Owner => format!("anonymous memory of {}", amount.label),
        _ => amount.label.clone(),
    };
    format!(
        "{label}, {} before and {} after",
        side(amount.before, amount.before_share),
        side(amount.after, amount.after_share)
    )
}

fn moved(rate: &RateChange) -> Option<String> {
    let (before, after) = rate.means()?;
    let of = |value| figure::Measure::figure(rate.measure, value);
    Some(format!("{}, {} before and {} after", rate.label, of(before), of(after)))
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
fn asked_for(it: &Differences<'_>) -> Option<String> {
    let more = huge_pages_moved(it)?;
    let (before, after) =
        (it.sides.0.choice(THP_ENABLED).ok()?, it.sides.1.choice(THP_ENABLED).ok()?);
    let (with, without) = if more { ("after", "before") } else { ("before", "after") };
    (before == after).then(|| match before {
        "madvise" => format!(
            "Huge pages are the difference, and the programs' own choice: {} is madvise on both \
             sides, so they asked for them {with} and not, or less, {without}.",
            THP_ENABLED.name
        ),
        setting => format!(
            "Huge pages are the difference, and the programs' own choice or chance: {} is \
             {setting} on both sides.",
            THP_ENABLED.name
        ),
    })
}
