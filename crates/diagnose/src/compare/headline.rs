//! The sentence on top: the cause where a recorded fact explains what changed, else what differs most.

use timeline::facts::THP_ENABLED;
use timeline::signals::{MEM_ANON_HUGE, MEM_TOTAL, THP_FAULT_ALLOC};
use units::SignedBytes;

use super::cause::{Cause, Differences, Sureness};
use super::findings::{Doubt, FindingChange, Turn};
use super::memory::{AmountChange, AmountKind, least};
use super::rates::RateChange;
use super::settings::FactChange;
use super::spread::Certainty;
use super::{Direction, figure};
use crate::diagnosis::Diagnosis;
use crate::evidence::Evidence;
use crate::finding::{Finding, Severity};
use crate::verdict::Level;

/// The sentence of the verdict on two sources, of a line or two, and what else is worth a sentence.
pub(super) fn of(
    it: &Differences<'_>,
    direction: Direction,
    cause: Option<&Cause>,
) -> (String, Vec<String>) {
    let turned = turned(it);
    let most = differs_most(it);
    if turned.is_none() && most.is_none() && direction != Direction::Unknown {
        return (nothing(it), Vec::new());
    }
    let of_weight = turned.filter(|it| it.severity() > Some(Severity::Info));
    let asked = asked_for(it).filter(|_| cause.is_none() && of_weight.is_none());
    let is_quiet = direction == Direction::Same && cause.is_none() && of_weight.is_none();
    let first = [
        (direction == Direction::Unknown).then(|| unknown(it)),
        cause.map(|cause| explained(cause, it.facts)),
        is_quiet.then(|| "Neither better nor worse.".to_owned()),
        asked.clone(),
        turned.filter(|_| cause.is_none()).map(in_words),
    ];
    let mut lead: Vec<String> = first.into_iter().flatten().collect();
    // The cause alone is the sentence to remember.
    let caused = turned.filter(|_| cause.is_some()).map(in_words);
    let mut more = Vec::from_iter(caused);
    if let Some(turned) = turned.filter(|_| cause.is_none()) {
        more.push(unexplained(it, turned));
        let told = it.graver(turned.id);
        more.extend(told.and_then(|finding| first_sentence(&finding.cause)));
    }
    let is_sure = cause.is_some_and(|cause| cause.sureness > Sureness::May);
    let says_most = most.filter(|_| turned.is_none() || !is_sure);
    // Where no finding turned, what moved is the news.
    let place = match turned {
        None if direction != Direction::Unknown && asked.is_none() => &mut lead,
        _ => &mut more,
    };
    place.extend(says_most);
    if cause.is_none() && turned.is_none() && asked.is_none() && differs(it) {
        more.push(UNEXPLAINED.to_owned());
    }
    (lead.join(" "), more)
}

fn differs(it: &Differences<'_>) -> bool {
    it.top_amount().is_some() || it.top_rate().is_some()
}

const UNEXPLAINED: &str = "No fact that was recorded explains it.";

/// The gravest root that is not the same on both sides; mere notes only where there is nothing else.
fn turned<'a>(it: &'a Differences<'_>) -> Option<&'a FindingChange> {
    let of_weight = |change: &&FindingChange| change.severity() > Some(Severity::Info);
    it.turned().find(of_weight).or_else(|| it.turned().next())
}

/// Where the finding rests on a setting that is the same on both sides, it must have been changed since it was read.
fn unexplained(it: &Differences<'_>, turned: &FindingChange) -> String {
    let known = it.settings_of(turned.id);
    match known.as_slice() {
        [] => UNEXPLAINED.to_owned(),
        names => format!("As recorded, {} is not different.", names.join(" and ")),
    }
}

/// How it changed, with the beginning of its title.
fn in_words(change: &FindingChange) -> String {
    let (turn, found) = match change.turn() {
        Turn::New => ("New", &change.after),
        Turn::Gone => ("Gone", &change.before),
        Turn::Graver => ("Graver", &change.after),
        Turn::Milder => ("Milder", &change.after),
        Turn::Same | Turn::Unknown => return String::new(),
    };
    let title = found.as_ref().and_then(|found| first_clause(&found.title));
    format!("{turn} after: {}", title.unwrap_or_default())
}

/// `vm.zone_reclaim_mode is the cause: 1 before, 0 after.`
fn explained(cause: &Cause, facts: &[FactChange]) -> String {
    let named: Vec<&FactChange> = facts
        .iter()
        .filter(|fact| cause.facts.contains(&fact.name))
        .collect();
    let names: Vec<&str> = named.iter().map(|fact| label(fact)).collect();
    let verb = match (cause.sureness, names.len()) {
        (Sureness::Is, 1) => "is the cause",
        (Sureness::Is, _) => "are the cause",
        (Sureness::Explains, 1) => "explains it",
        (Sureness::Explains, _) => "explain it",
        (Sureness::May, _) => "may explain it",
    };
    let values: Vec<String> = named
        .iter()
        .map(|fact| {
            let value = |text: &Option<String>| text.clone().unwrap_or_default();
            let pair = format!(
                "{} before, {} after",
                value(&fact.before),
                value(&fact.after)
            );
            match names.len() {
                1 => pair,
                _ => format!("{} {pair}", label(fact)),
            }
        })
        .collect();
    format!("{} {verb}: {}.", names.join(" and "), values.join("; "))
}

/// A fact as it is called in a sentence.
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
        Some(Doubt::Hidden | Doubt::Rare | Doubt::Brief) => format!(
            "Neither better nor worse: the same roots. Of {ids}, looks of such different length cannot tell; {rest}."
        ),
        _ => format!(
            "Neither better nor worse: the same roots, and {ids} beside them on one side only; {rest}."
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
    let unseen = it.findings.iter().find(is_told);
    why.extend(unseen.map(|change| in_doubt(it, change)));
    if why.is_empty() && it.is_diluted {
        why.push(
            "the longer look was ill for the smaller part of its time, so its means say little"
                .to_owned(),
        );
    }
    format!(
        "Whether it is better or worse cannot be said: {}.",
        why.join("; ")
    )
}

/// Why a finding on one side says nothing of the other.
fn in_doubt(it: &Differences<'_>, change: &FindingChange) -> String {
    let severity = |is_after| change.found(is_after).map(|found| found.severity);
    let is_after = severity(true) > severity(false);
    let (old, new) = (it.sides.0.look(), it.sides.1.look());
    let ((found, look), (other, other_look)) = match is_after {
        true => (("after", new), ("before", old)),
        false => (("before", old), ("after", new)),
    };
    let id = change.id;
    match change.doubt {
        Some(Doubt::Hidden) => format!(
            "{id} was found in the {look} {found}, and {look} of the {other_look} {other} show it as well"
        ),
        Some(Doubt::Rare) => {
            let held = it.graver(id).and_then(Finding::lasts).unwrap_or(look);
            format!(
                "{id} held for {held} of the {look} {found}, and the {other_look} {other} may have missed it"
            )
        }
        Some(Doubt::Brief) => format!(
            "{other_look} of the {look} {found} show {id}, and the {other_look} {other} do not"
        ),
        _ => format!("{found} shows {id}, which nobody could look for {other}"),
    }
}

/// The amount, its owner and the rate that moved most.
fn differs_most(it: &Differences<'_>) -> Option<String> {
    let told: Vec<String> = it
        .top_amount()
        .map(|amount| sized(amount, it))
        .into_iter()
        .chain(owner(it))
        .chain(it.top_rate().and_then(moved))
        .collect();
    (!told.is_empty()).then(|| format!("What differs most: {}.", told.join("; ")))
}

/// Whose anonymous memory differs most.
fn owner(it: &Differences<'_>) -> Option<String> {
    let share = |share: Option<units::Ratio>| share.map_or(0.0, units::Ratio::get);
    let moved = |a: &AmountChange| (share(a.after_share) - share(a.before_share)).abs();
    let owners = it.amounts.iter().filter(|a| a.kind == AmountKind::Owner);
    let owner = owners.max_by(|a, b| moved(a).total_cmp(&moved(b)))?;
    let ram = |cx: &Evidence<'_>| cx.timeline.last(MEM_TOTAL);
    let ram = ram(it.sides.0).max(ram(it.sides.1)).unwrap_or_default();
    // Of a name the amount is known to the sample only.
    let told = owner.certainty != Some(Certainty::Noise) && moved(owner) >= least(ram);
    told.then(|| match (owner.before, owner.after) {
        (None, Some(after)) => format!(
            "{} with {}, after only",
            owner.label,
            SignedBytes::new(after)
        ),
        (Some(before), None) => format!(
            "{} with {}, before only",
            owner.label,
            SignedBytes::new(before)
        ),
        _ => sized(owner, it),
    })
}

fn sized(amount: &AmountChange, it: &Differences<'_>) -> String {
    let is_other_size = it
        .facts
        .iter()
        .any(|f| f.name == super::settings::RAM && f.differs());
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
    let of = |value| figure::Measure::of(rate.measure, value);
    Some(format!(
        "{}, {} before and {} after",
        rate.label,
        of(before),
        of(after)
    ))
}

/// Whether there are more huge pages after; `None` where they did not change, or only with the memory that they hold.
fn huge_pages_moved(it: &Differences<'_>) -> Option<bool> {
    let moved = |amount: &AmountChange| amount.share_changed();
    let anonymous = it.amounts.iter().find(|amount| amount.name == "anon");
    let anonymous = anonymous.and_then(moved).map_or(0.0, f64::abs);
    let name = MEM_ANON_HUGE.def().name;
    let huge = it.amounts.iter().find(|a| a.name == name && a.is_clear());
    let huge = huge.and_then(moved).filter(|m| m.abs() > 2.0 * anonymous);
    let given = it
        .top_rate()
        .filter(|r| r.name == THP_FAULT_ALLOC.def().name);
    let given = given.and_then(RateChange::means).map(|(b, a)| a - b);
    huge.or(given).map(|more| more > 0.0)
}

/// Huge pages that came or went although the setting is the same are the programs' own choice.
fn asked_for(it: &Differences<'_>) -> Option<String> {
    let more = huge_pages_moved(it)?;
    let (before, after) = (
        it.sides.0.choice(THP_ENABLED).ok()?,
        it.sides.1.choice(THP_ENABLED).ok()?,
    );
    let (with, without) = match more {
        true => ("after", "before"),
        false => ("before", "after"),
    };
    (before == after).then(|| match before {
        "madvise" => format!(
            "Huge pages are the difference, and the programs' own choice: {} is madvise on both sides, so they asked for them {with} and not, or less, {without}.",
            THP_ENABLED.name
        ),
        setting => format!(
            "Huge pages are the difference, and the programs' own choice or chance: {} is {setting} on both sides.",
            THP_ENABLED.name
        ),
    })
}

fn first_sentence(text: &str) -> Option<String> {
    let end = text.find(". ").map_or(text.len(), |at| at + 1);
    let sentence = text.get(..end)?.trim();
    (!sentence.is_empty()).then(|| sentence.to_owned())
}

/// What stands before the first semicolon of the first sentence.
fn first_clause(text: &str) -> Option<String> {
    let sentence = first_sentence(text)?;
    Some(match sentence.split_once("; ") {
        Some((clause, _)) => format!("{clause}."),
        None => sentence,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_first_sentence_ends_at_its_stop_and_not_in_a_number() {
        let first = first_sentence("Kernel 6.1 keeps 0.5 of it. More.");
        assert_eq!(first.as_deref(), Some("Kernel 6.1 keeps 0.5 of it."));
        assert_eq!(first_sentence(""), None);
        let clause = first_clause("Huge pages hold 602 MiB; how much is in use. More.");
        assert_eq!(clause.as_deref(), Some("Huge pages hold 602 MiB."));
    }
}
