//! Whether after is better or worse than before, and what decides that.

use super::Direction;
use super::differences::Differences;
use super::findings::{FindingChange, Turn};
use super::movement::{Use, waits_more};
use super::rates::RateChange;
use crate::finding::Severity;
use crate::judge::verdict::Level;

/// The direction of the change, and what decides it.
pub(super) struct Decision<'a> {
    pub(super) direction: Direction,
    pub(super) by: By<'a>,
}

/// What decides the direction.
pub(super) enum By<'a> {
    /// Roots that count and changed in this direction, the most severe ones.
    Findings(Vec<&'a FindingChange>),
    /// A rate of waiting or of reading again.
    Rate(&'a RateChange),
    /// How much memory is in use.
    Use(Use<'a>),
    /// Nothing with a name: the verdicts, or nothing at all.
    Nothing,
}

impl<'a> Decision<'a> {
    const fn new(direction: Direction, by: By<'a>) -> Self {
        Self { direction, by }
    }

    /// The findings that decide.
    pub(super) fn findings(&self) -> &[&'a FindingChange] {
        match &self.by {
            By::Findings(findings) => findings,
            _ => &[],
        }
    }

    /// Decides by the first of these that differ: the verdicts; findings that count; what findings cost; where nothing
    /// is found, waiting for memory. Else it is neither better nor worse.
    pub(super) fn from_differences(it: &'a Differences<'_>) -> Self {
        let levels = rank(it.before.verdict.level).zip(rank(it.after.verdict.level));
        let Some((before, after)) = levels else {
            return Self::new(Direction::Unknown, By::Nothing);
        };
        let (worse, better) =
            (turned(it, [Turn::New, Turn::Worse]), turned(it, [Turn::Gone, Turn::Better]));
        let severity =
            |found: &[&FindingChange]| found.first().and_then(|change| change.severity());
        if let Some(doubtful) = doubtful(it) {
            // What is certainly worse stays so, whatever the doubtful findings are.
            return if severity(&worse) >= Some(doubtful) {
                Self::new(Direction::Worse, By::Findings(worse))
            } else {
                Self::new(Direction::Unknown, By::Nothing)
            };
        }
        let by = |findings: Vec<&'a FindingChange>| {
            if findings.is_empty() { By::Nothing } else { By::Findings(findings) }
        };
        let waits = waits_more(it);
        if after > before || after == before && !worse.is_empty() {
            // A new pathology that replaces another of the same severity is no improvement.
            Self::new(Direction::Worse, by(worse))
        } else if after < before || !better.is_empty() {
            match waits {
                Some((rate, true)) => Self::new(Direction::Different, By::Rate(rate)),
                _ => Self::new(Direction::Better, by(better)),
            }
        } else {
            Self::by_amounts(it, before > 0)
        }
    }

    /// Decides between two sides on which the same was found, or nothing.
    fn by_amounts(it: &'a Differences<'_>, is_ill: bool) -> Self {
        let cost = if is_ill { by_cost(it.rates) } else { None };
        let moved = cost.or_else(|| waits_more(it));
        match (moved, Use::from_differences(it)) {
            (Some((rate, true)), _) => Self::new(Direction::Worse, By::Rate(rate)),
            (Some((rate, false)), _) => Self::new(Direction::Better, By::Rate(rate)),
            (None, Some(used)) => Self::new(Direction::Different, By::Use(used)),
            (None, None) => Self::new(Direction::Same, By::Nothing),
        }
    }
}

const fn rank(level: Level) -> Option<u8> {
    match level {
        Level::Ok => Some(0),
        Level::Warning => Some(1),
        Level::Critical => Some(2),
        Level::Unknown => None,
    }
}

/// The most severe of the roots that count and turned in one of these ways.
fn turned<'a>(it: &'a Differences<'_>, turns: [Turn; 2]) -> Vec<&'a FindingChange> {
    let so = |change: &&FindingChange| change.is_of_weight() && turns.contains(&change.turn());
    let all: Vec<&FindingChange> = it.turned().filter(so).collect();
    let worst = all.iter().filter_map(|change| change.severity()).max();
    let severe = all.into_iter().filter(|change| change.severity() == worst);
    severe.collect()
}

/// The highest severity of the roots in doubt; `None` where none is in doubt.
fn doubtful(it: &Differences<'_>) -> Option<Severity> {
    let roots = it.findings.iter().filter(|change| change.is_root());
    let unknown = roots.filter(|change| change.is_of_weight() && change.turn() == Turn::Unknown);
    unknown.filter_map(FindingChange::severity).max()
}

/// For two sides with the same findings: the largest change of stalls, swapping and refaults, and whether it rose;
/// only where all that moved agree.
fn by_cost(rates: &[RateChange]) -> Option<(&RateChange, bool)> {
    let mut costs =
        rates.iter().filter(|rate| rate.is_cost && rate.is_clear()).filter_map(|rate| {
            let (before, after) = rate.means()?;
            Some((rate, after > before))
        });
    let largest = costs.next()?;
    costs.all(|(_, rose)| rose == largest.1).then_some(largest)
}
