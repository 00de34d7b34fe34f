//! The sentences of a comparison's statements.

use diagnose::compare::{
    AmountChange, AmountKind, Cause, CauseStrength, Comparison, DoubtReason, FactChange,
    FindingChange, FindingDoubt, Measure, MemoryUse, Moved, RateChange, SourceSide, Statement,
    Turn, UseWaiting,
};
use units::{Bytes, Count, Ratio, SignedBytes};

use crate::phrases::capital;

/// The headline, in one or two lines.
pub(crate) fn lead(it: &Comparison) -> String {
    let sentences: Vec<String> =
        it.headline.iter().map(|one| sentence(one, it.is_other_size)).collect();
    sentences.join(" ")
}

/// What else is worth a sentence.
pub(crate) fn more(it: &Comparison) -> Vec<String> {
    let mut sentences: Vec<String> =
        it.more.iter().map(|one| sentence(one, it.is_other_size)).collect();
    sentences.dedup();
    sentences
}

fn sentence(statement: &Statement, is_other_size: bool) -> String {
    match statement {
        Statement::Nothing { do_facts_differ, others, is_of_other_length } => {
            nothing(*do_facts_differ, others, *is_of_other_length)
        }
        Statement::Unknown { unjudged, doubt } => unknown(unjudged, *doubt),
        Statement::Explained(cause, facts) => explained(cause, facts),
        Statement::NoDirection => "Neither better nor worse.".to_owned(),
        Statement::Decides { rate, is_mixed: false } => capital(&format!("{}.", moved(rate))),
        Statement::Decides { rate, is_mixed: true } => {
            format!("Less was found, and more waits: {}.", moved(rate))
        }
        Statement::Uses(used) => uses(used, is_other_size),
        Statement::HugePages { is_more, setting } => huge_pages(*is_more, setting),
        Statement::Finding(change) => finding(change),
        Statement::Most(parts) => format!("What differs most: {}.", list(parts, is_other_size)),
        Statement::Rest(parts) => format!("{}.", list(parts, is_other_size)),
        Statement::SameSettings(names) => {
            format!("As recorded, {} is not different.", names.join(" and "))
        }
        Statement::FindingCause(cause) => cause.clone(),
        Statement::Unexplained => "No fact that was recorded explains it.".to_owned(),
        Statement::Independent(statement) => apart(&sentence(statement, is_other_size)),
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

/// How the finding changed, with the first sentence of its title.
fn finding(change: &FindingChange) -> String {
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
    let names: Vec<&str> = facts.iter().map(label).collect();
    let names = match names.as_slice() {
        [one] => (*one).to_owned(),
        [one, other] => format!("{one} and {other}"),
        _ => "These settings".to_owned(),
    };
    let is_one = facts.len() == 1;
    let (what, of) = match (cause.is_beside, cause.finding) {
        (false, _) => ("it".to_owned(), String::new()),
        (true, Some(id)) => (format!("what changed of {id}"), format!(" of what changed of {id}")),
        (true, None) => ("some of the rest".to_owned(), " of some of the rest".to_owned()),
    };
    let verb = match (cause.strength, is_one) {
        (CauseStrength::Is, true) => format!("is the cause{of}"),
        (CauseStrength::Is, false) => format!("are the cause{of}"),
        (CauseStrength::Explains, true) => format!("explains {what}"),
        (CauseStrength::Explains, false) => format!("explain {what}"),
        (CauseStrength::May, _) => format!("may explain {what}"),
    };
    let value = |text: &Option<String>| text.clone().unwrap_or_default();
    let values = match facts {
        [fact] => format!("{} before, {} after", value(&fact.before), value(&fact.after)),
        _ => {
            // Of two forms of one limit, the one that is not in use is 0.
            let side = |of: fn(&FactChange) -> &Option<String>| {
                let set = facts.iter().filter(|fact| of(fact).as_deref() != Some("0"));
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
fn label(fact: &FactChange) -> &str {
    match fact.name.as_ref() {
        "ram" => "RAM",
        name => name,
    }
}

fn nothing(do_facts_differ: bool, others: &[&str], is_of_other_length: bool) -> String {
    let settings = if do_facts_differ { "though facts differ" } else { "and no fact differs" };
    let rest = format!("no amount or rate differs by more than its own noise, {settings}");
    let ids = others.join(" and ");
    match is_of_other_length {
        _ if others.is_empty() => format!("Nothing changed: the same findings, {rest}."),
        true => format!(
            "Neither better nor worse: the same roots. Of {ids}, sources of such different length \
             cannot show a change; {rest}."
        ),
        false => format!(
            "Neither better nor worse: the same roots, and {ids} beside them on one side only; \
             {rest}."
        ),
    }
}

fn unknown(unjudged: &[SourceSide], doubt: Option<FindingDoubt>) -> String {
    let blind = unjudged.iter().map(|side| format!("{} cannot be judged", word(*side)));
    let why: Vec<String> = blind.chain(doubt.map(in_doubt)).collect();
    format!("Whether it is better or worse is unknown: {}.", why.join("; "))
}

fn in_doubt(FindingDoubt { id, why }: FindingDoubt) -> String {
    match why {
        DoubtReason::ShortSide(shorter) => format!(
            "{id} is found on both sides, and {shorter} is too short to show how often it comes"
        ),
        DoubtReason::MayBeMissed { found, lasted, watched, other_watched } => {
            let lasted =
                lasted.map_or_else(|| "came".to_owned(), |lasted| format!("held for {lasted}"));
            format!(
                "{id} {lasted} of the {watched} {}, and the {other_watched} {} may have missed it",
                word(found),
                word(found.other())
            )
        }
        DoubtReason::NotChecked { found } => format!(
            "{} shows {id}, which could not be checked {}",
            word(found),
            word(found.other())
        ),
    }
}

const fn word(side: SourceSide) -> &'static str {
    match side {
        SourceSide::Before => "before",
        SourceSide::After => "after",
    }
}

fn list(parts: &[Moved], is_other_size: bool) -> String {
    let one = |part: &Moved| match part {
        Moved::Amount(amount) => sized(amount, is_other_size),
        Moved::Rate(rate) => moved(rate),
    };
    parts.iter().map(one).collect::<Vec<_>>().join("; ")
}

fn sized(amount: &AmountChange, is_other_size: bool) -> String {
    let side = |bytes: Option<i64>, share: Option<Ratio>| {
        let size = bytes.map_or_else(String::new, |bytes| SignedBytes::new(bytes).to_string());
        match share.filter(|_| is_other_size) {
            Some(share) => format!("{size} ({share} of RAM)"),
            None => size,
        }
    };
    let label = match (amount.kind, amount.before, amount.after) {
        (AmountKind::Owner, None, Some(after)) => {
            return format!("{} with {}, after only", amount.label, SignedBytes::new(after));
        }
        (AmountKind::Owner, Some(before), None) => {
            return format!("{} with {}, before only", amount.label, SignedBytes::new(before));
        }
        (AmountKind::Owner, ..) => format!("anonymous memory of {}", amount.label),
        _ => amount.label.clone(),
    };
    format!(
        "{label}, {} before and {} after",
        side(amount.before, amount.before_share),
        side(amount.after, amount.after_share)
    )
}

fn moved(rate: &RateChange) -> String {
    let (before, after) = rate.means().unwrap_or_default();
    let of = |value| rate.measure.figure(value);
    format!("{}, {} before and {} after", rate.label, of(before), of(after))
}

/// `Uses 1.8 GiB more, and nothing waits for it: …`
fn uses(used: &MemoryUse, is_other_size: bool) -> String {
    let side = |bytes: Option<i64>, share: Option<Ratio>| match share {
        Some(share) if is_other_size => share.to_string(),
        _ => SignedBytes::new(bytes.unwrap_or_default()).to_string(),
    };
    let amounts = used.amounts.iter().map(|amount| {
        let label = amount.label.split(" (").next().unwrap_or_default();
        let before = side(amount.before, amount.before_share);
        let after = side(amount.after, amount.after_share);
        format!("{label} {before} before and {after} after")
    });
    let amounts = amounts.collect::<Vec<_>>().join(", ");
    let word = if used.is_more { "more" } else { "less" };
    let first = used.amounts.first();
    let share = first.and_then(AmountChange::share_changed).filter(|_| is_other_size);
    let by = match share {
        Some(share) => format!("{} of RAM", Ratio::new(share.abs())),
        None => {
            let sides = first.and_then(|amount| amount.before.zip(amount.after));
            let by = sides.map_or(0, |(before, after)| after.abs_diff(before));
            Bytes::new(by).to_string()
        }
    };
    let waits = match used.waiting {
        UseWaiting::Unknown => {
            ", and whether tasks wait for memory is not known on both sides".to_owned()
        }
        UseWaiting::NoneAfter => ", and nothing waits for it".to_owned(),
        UseWaiting::NoneBefore => ", and nothing waited for memory before".to_owned(),
        UseWaiting::Shares(before_share, after_share) => {
            let [before, after] =
                [before_share, after_share].map(|share| Measure::Share.figure(share));
            format!(", with tasks waiting for memory {before} of the time before and {after} after")
        }
    };
    format!("Uses {by} {word}{waits}: {amounts}.")
}

fn huge_pages(is_more: bool, setting: &str) -> String {
    let name = timeline::facts::THP_ENABLED.name;
    let (with, without) = if is_more { ("after", "before") } else { ("before", "after") };
    match setting {
        "madvise" => format!(
            "Huge pages are the difference, and the programs' own choice: {name} is madvise on \
             both sides, so they asked for them {with} and not, or less, {without}."
        ),
        setting => format!(
            "Huge pages are the difference, and the programs' own choice or chance: {name} is \
             {setting} on both sides."
        ),
    }
}

#[cfg(test)]
mod tests {
    use diagnose::compare::Significance;
    use units::Span;

    use super::*;

    fn printed(statement: &Statement) -> String {
        sentence(statement, false)
    }

    #[test]
    fn facts_that_explain_are_named_with_their_values() {
        let fact = |name: &'static str, before: &str, after: &str| FactChange {
            name: name.into(),
            before: Some(before.to_owned()),
            after: Some(after.to_owned()),
            explains: true,
        };
        let cause = |strength, finding, is_beside| Cause {
            facts: vec!["vm.swappiness".into()],
            strength,
            finding,
            is_beside,
        };
        let swappiness = || vec![fact("vm.swappiness", "10", "200")];
        let may = Statement::Explained(cause(CauseStrength::May, None, false), swappiness());
        assert_eq!(printed(&may), "vm.swappiness may explain it: 10 before, 200 after.");
        let is = cause(CauseStrength::Is, Some("swap-thrash"), true);
        assert_eq!(
            printed(&Statement::Independent(Box::new(Statement::Explained(is, swappiness())))),
            "Independent of that: vm.swappiness is the cause of what changed of swap-thrash: 10 \
             before, 200 after."
        );
        let limits = vec![fact("vm.dirty_bytes", "0", "9"), fact("vm.dirty_ratio", "20", "0")];
        assert_eq!(
            printed(&Statement::Explained(cause(CauseStrength::Explains, None, false), limits)),
            "vm.dirty_bytes and vm.dirty_ratio explain it: before vm.dirty_ratio 20; after \
             vm.dirty_bytes 9."
        );
    }

    #[test]
    fn a_doubt_names_the_side_that_is_too_short() {
        let doubt = |why| Statement::Unknown {
            unjudged: Vec::new(),
            doubt: Some(FindingDoubt { id: "swap-thrash", why }),
        };
        let text = printed(&doubt(DoubtReason::ShortSide(Span::from_secs(30))));
        assert!(text.ends_with("and 30 s is too short to show how often it comes."), "{text}");
        let missed = DoubtReason::MayBeMissed {
            found: SourceSide::After,
            lasted: Some(Span::from_secs(30)),
            watched: Span::from_hours(3),
            other_watched: Span::from_secs(30),
        };
        assert_eq!(
            printed(&doubt(missed)),
            "Whether it is better or worse is unknown: swap-thrash held for 30 s of the 3 h after, \
             and the 30 s before may have missed it."
        );
    }

    #[test]
    fn memory_in_use_is_a_size_or_a_share_of_ram_where_hosts_differ() {
        let used = Statement::Uses(MemoryUse {
            amounts: vec![AmountChange {
                kind: AmountKind::Level,
                name: "mem.available".to_owned(),
                label: "available (MemAvailable)".to_owned(),
                before: Some(800 << 20),
                after: Some(500 << 20),
                before_share: Some(Ratio::new(0.8)),
                after_share: Some(Ratio::new(0.5)),
                significance: Some(Significance::Clear),
            }],
            is_more: true,
            waiting: UseWaiting::NoneAfter,
        });
        assert_eq!(
            printed(&used),
            "Uses 300 MiB more, and nothing waits for it: available 800 MiB before and 500 MiB \
             after."
        );
        assert_eq!(
            sentence(&used, true),
            "Uses 30 % of RAM more, and nothing waits for it: available 80 % before and 50 % \
             after."
        );
    }
}
