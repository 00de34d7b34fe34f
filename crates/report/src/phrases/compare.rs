//! The words of `compare`: tables of rows `label, before, after, change`, and the sentence below them.

pub(crate) mod headline;

use units::{Count, Ratio, SignedBytes, Span};

use crate::model::{
    AmountEntry, AmountKind, CauseStrength, CompareReport, Direction, FactChange, FindingEntry,
    FoundEntry, RateEntry, Side, Significance, SpreadEntry, Turn,
};
use crate::phrases::ABSENT;

/// At most 10 rows of a table, unless all are requested.
const ROWS_MAX: usize = 10;
/// At most 12 facts.
const FACTS_MAX: usize = 12;
/// At most 8 names that only one side has.
const NAMES_MAX: usize = 8;

/// How much of a table is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// The largest changes, as many as a screen fits.
    Short,
    /// Every change.
    Changed,
    /// Unchanged entries, too.
    All,
}

impl Extent {
    const fn at_most(self, most: usize) -> usize {
        match self {
            Self::Short => most,
            Self::Changed | Self::All => usize::MAX,
        }
    }
}

/// Rows under a heading.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ComparisonTable {
    pub(crate) heading: &'static str,
    pub(crate) rows: Vec<ComparisonRow>,
    /// Sentences below it: what is left out and why.
    pub(crate) below: Vec<String>,
}

/// A label, both values and their change.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct ComparisonRow {
    pub(crate) label: String,
    pub(crate) before: String,
    pub(crate) after: String,
    pub(crate) change: String,
    /// Whether the row stands out: the verdict, the cause.
    pub(crate) is_strong: bool,
    /// A line below it; empty for none.
    pub(crate) more: String,
    /// Index of the report's entry; `None` for the verdict.
    pub(crate) entry: Option<usize>,
}

/// The direction in capitals.
pub(crate) const fn word(direction: Direction) -> &'static str {
    match direction {
        Direction::Better => "BETTER",
        Direction::Same => "SAME",
        Direction::Different => "DIFFERENT",
        Direction::Worse => "WORSE",
        Direction::Unknown => "UNKNOWN",
    }
}

/// How a finding changed.
pub(crate) const fn turned(turn: Turn) -> &'static str {
    match turn {
        Turn::New => "new",
        Turn::Gone => "gone",
        Turn::Worse => "worse",
        Turn::Better => "better",
        Turn::Same => "same",
        Turn::Unknown => "unknown",
    }
}

/// The verdicts, then the findings of both sides.
pub(crate) fn findings(report: &CompareReport) -> ComparisonTable {
    let level = |side: &Side| side.verdict.word().to_owned();
    let verdict = ComparisonRow {
        label: "verdict".to_owned(),
        before: level(&report.before),
        after: level(&report.after),
        change: word(report.direction).to_lowercase(),
        is_strong: true,
        ..ComparisonRow::default()
    };
    let rows = report.findings.iter().enumerate().map(|(index, finding)| {
        let same = |other: &&FindingEntry| other.id == finding.id;
        let is_only = report.findings.iter().filter(same).count() == 1;
        found(finding, index, is_only)
    });
    ComparisonTable {
        heading: "Findings",
        rows: std::iter::once(verdict).chain(rows).collect(),
        below: Vec::new(),
    }
}

fn found(finding: &FindingEntry, index: usize, is_only: bool) -> ComparisonRow {
    let severity = |found: Option<&FoundEntry>| {
        let word = found.map_or(ABSENT, |found| found.severity.word());
        word.to_owned()
    };
    ComparisonRow {
        label: match finding.place.as_ref().filter(|_| !is_only) {
            Some(place) => format!("{} of {place}", finding.id),
            None => finding.id.clone(),
        },
        before: severity(finding.before.as_ref()),
        after: severity(finding.after.as_ref()),
        change: turned(finding.change).to_owned(),
        more: costs(finding),
        entry: Some(index),
        ..ComparisonRow::default()
    }
}

/// How often, how long and at what cost on each side; empty for a consequence, and for a finding without a start.
fn costs(finding: &FindingEntry) -> String {
    let sides = [("before", &finding.before), ("after", &finding.after)];
    let is_root = |found: &FoundEntry| found.caused_by.is_none() && found.times > 0;
    let costs = sides.into_iter().filter_map(|(side, found)| {
        let found = found.as_ref().filter(|found| is_root(found))?;
        Some(format!("{side} {}", cost(found)))
    });
    costs.collect::<Vec<_>>().join("; ")
}

/// `3 times, 22 s of 39 s, 15 s of waiting (23 min per hour)`
fn cost(found: &FoundEntry) -> String {
    let times = match found.times {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        n => format!("{} times", Count::new(n as u64)),
    };
    let watched = found.watched_s;
    let lasted = match found.lasted_s.filter(|lasted| *lasted > Span::ZERO) {
        Some(lasted) => format!("{times}, {lasted} of {watched}"),
        None => format!("{times} in {watched}"),
    };
    let waited = found.waited_s.filter(|waited| *waited > Span::ZERO).map(|waited| {
        let an_hour = found
            .waited_s_per_hour
            .map_or_else(String::new, |an_hour| format!(" ({an_hour} per hour)"));
        format!("{waited} of waiting{an_hour}")
    });
    let killed = (found.killed > 0).then(|| format!("{} killed", Count::new(found.killed)));
    let parts = std::iter::once(lasted).chain(waited).chain(killed);
    parts.collect::<Vec<_>>().join(", ")
}

/// The amounts of memory.
pub(crate) fn memory(report: &CompareReport, extent: Extent) -> ComparisonTable {
    let is_other_size = is_other_size(report);
    let indexed = report.memory.iter().enumerate();
    let (shown, rest): (Vec<_>, Vec<_>) =
        indexed.partition(|(_, it)| extent == Extent::All || it.is_worth_a_line);
    let rows = shown.into_iter().map(|(index, it)| amount(it, index, is_other_size));
    let noise =
        rest.iter().filter(|(_, it)| it.significance.is_some() && it.kind != AmountKind::Owner);
    let (rows, left) = cut(rows.collect(), ROWS_MAX, extent);
    let same = same(
        noise.count(),
        "amounts differ by less than 1 % of RAM, or vary as much within one side",
    );
    ComparisonTable {
        heading: "Memory (typical sample of each)",
        rows,
        below: left.into_iter().chain(same).collect(),
    }
}

fn amount(amount: &AmountEntry, index: usize, is_other_size: bool) -> ComparisonRow {
    let size = |bytes: Option<SignedBytes>, share: Option<Ratio>| match (bytes, share) {
        (None, _) => ABSENT.to_owned(),
        (Some(bytes), Some(share)) if is_other_size => {
            format!("{bytes} {}", share.to_string().replace(' ', ""))
        }
        (Some(bytes), _) => bytes.to_string(),
    };
    ComparisonRow {
        label: match amount.kind {
            AmountKind::Owner => format!("by {}", amount.label),
            AmountKind::Term | AmountKind::Level => amount.label.clone(),
        },
        before: size(amount.before_bytes, amount.before_share),
        after: size(amount.after_bytes, amount.after_share),
        change: amount_change(amount, is_other_size),
        entry: Some(index),
        ..ComparisonRow::default()
    }
}

fn amount_change(amount: &AmountEntry, is_other_size: bool) -> String {
    let shares = amount.before_share.zip(amount.after_share);
    match (amount.significance, shares) {
        (Some(Significance::Noise), _) => "~".to_owned(),
        (Some(_), Some((before, after))) if is_other_size => {
            let sign = if after < before { '−' } else { '+' };
            format!("{sign}{} RAM", Ratio::new((after.get() - before.get()).abs()))
        }
        (Some(_), _) => amount.change.clone().unwrap_or_default(),
        (None, _) => one_side(amount.before_bytes.is_some()),
    }
}

pub(crate) fn rates(report: &CompareReport, extent: Extent) -> ComparisonTable {
    let indexed = report.rates.iter().enumerate();
    let (shown, rest): (Vec<_>, Vec<_>) = indexed.partition(|(_, it)| is_rate_shown(it, extent));
    let noise = rest.iter().filter(|(_, it)| it.significance.is_some()).count();
    let rows = shown.into_iter().map(|(index, it)| rate(it, index, extent));
    let (rows, left) = cut(rows.collect(), ROWS_MAX + 4, extent);
    let same = same(noise, "rates vary as much within one side as between the two");
    ComparisonTable {
        heading: "Rates (mean over the time)",
        rows,
        below: left.into_iter().chain(same).collect(),
    }
}

fn is_rate_shown(rate: &RateEntry, extent: Extent) -> bool {
    let moved =
        |spread: &Option<SpreadEntry>| spread.as_ref().is_some_and(|spread| spread.mean > 0.0);
    match rate.significance {
        Some(Significance::Clear) => true,
        Some(Significance::Noise) => extent == Extent::All,
        Some(Significance::TooFew) | None => moved(&rate.before) || moved(&rate.after),
    }
}

fn rate(rate: &RateEntry, index: usize, extent: Extent) -> ComparisonRow {
    let text = |spread: &Option<SpreadEntry>| match spread {
        Some(spread) => spread.text.clone(),
        None => ABSENT.to_owned(),
    };
    ComparisonRow {
        label: rate.label.clone(),
        before: text(&rate.before),
        after: text(&rate.after),
        change: match (rate.significance, &rate.change) {
            (Some(Significance::TooFew), _) => "too few".to_owned(),
            (Some(Significance::Noise), _) => "~".to_owned(),
            (Some(Significance::Clear), Some(change)) => change.clone(),
            _ => one_side(rate.before.is_some()),
        },
        more: match (&rate.before, &rate.after, rate.lead) {
            (Some(before), Some(after), Some(lead)) if extent == Extent::All => {
                spreads(before, after, lead)
            }
            _ => String::new(),
        },
        entry: Some(index),
        ..ComparisonRow::default()
    }
}

fn spreads(before: &SpreadEntry, after: &SpreadEntry, lead: f64) -> String {
    let higher = Ratio::new(f64::midpoint(1.0, lead));
    format!(
        "8 of 10 intervals: {} before, {} after; after is higher in {higher} of {} × {} pairs",
        before.range_text,
        after.range_text,
        Count::new(before.intervals as u64),
        Count::new(after.intervals as u64)
    )
}

/// Facts that differ between the sides; below, facts that only one side has.
pub(crate) fn facts(report: &CompareReport, extent: Extent) -> ComparisonTable {
    let indexed = report.facts.iter().enumerate();
    let is_of_both = |fact: &FactChange| fact.before.is_some() && fact.after.is_some();
    let (differ, one): (Vec<_>, Vec<_>) = indexed.partition(|(_, fact)| is_of_both(fact));
    let explains = match report.cause.as_ref().map(|cause| cause.strength) {
        Some(CauseStrength::May) => "may explain",
        _ => "explains",
    };
    let rows = differ.into_iter().map(|(index, it)| fact(it, index, explains));
    let (rows, left) = cut(rows.collect(), FACTS_MAX, extent);
    let (before, after): (Vec<_>, Vec<_>) =
        one.into_iter().map(|(_, fact)| fact).partition(|fact| fact.before.is_some());
    let one_sided = [("before", before), ("after", after)]
        .into_iter()
        .filter_map(|(side, facts)| known_to_one(side, &facts, extent));
    ComparisonTable {
        heading: "Facts that differ",
        rows,
        below: left.into_iter().chain(one_sided).collect(),
    }
}

fn fact(fact: &FactChange, index: usize, explains: &str) -> ComparisonRow {
    ComparisonRow {
        label: fact.name.clone().into_owned(),
        before: fact.before.clone().unwrap_or_default(),
        after: fact.after.clone().unwrap_or_default(),
        change: if fact.explains { explains } else { "" }.to_owned(),
        is_strong: fact.explains,
        entry: Some(index),
        ..ComparisonRow::default()
    }
}

fn known_to_one(side: &str, facts: &[&FactChange], extent: Extent) -> Option<String> {
    if facts.is_empty() {
        return None;
    }
    let most = extent.at_most(NAMES_MAX);
    let shown = facts.iter().take(most).map(|fact| fact.name.as_ref());
    let shown = shown.collect::<Vec<_>>().join(", ");
    let more = match facts.len().saturating_sub(most) {
        0 => String::new(),
        n => format!(" and {} more", Count::new(n as u64)),
    };
    Some(format!("Known {side} only, so not compared: {shown}{more}."))
}

/// Whether the hosts' RAM differs, so that amounts alone say little.
fn is_other_size(report: &CompareReport) -> bool {
    let mut facts = report.facts.iter();
    facts.any(|fact| fact.name == "ram" && fact.before.is_some() && fact.after.is_some())
}

fn one_side(is_before: bool) -> String {
    if is_before { "before only" } else { "after only" }.to_owned()
}

fn same(n: usize, what: &str) -> Option<String> {
    (n > 0).then(|| format!("{} {what}.", Count::new(n as u64)))
}

/// Returns at most `most` rows, and a sentence on the rest.
fn cut(
    mut rows: Vec<ComparisonRow>,
    most: usize,
    extent: Extent,
) -> (Vec<ComparisonRow>, Option<String>) {
    let most = extent.at_most(most);
    let left = rows.len().saturating_sub(most);
    rows.truncate(most);
    let text = "smaller changes are left out; --all shows them";
    (rows, same(left, text))
}
