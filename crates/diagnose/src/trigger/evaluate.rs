//! The exact evaluation of a trigger, over samples.

use timeline::{Condition, Entity, EntitySeries, SignalId, Stretch};
use units::{Quantity as _, Ratio, Span};

use super::reading::{Expr, Numbers, Predicate, ThresholdTest};
use crate::evidence::{Evidence, Missing, Need};
use crate::finding::ThresholdSide;

/// What a trigger is evaluated on: a source, and the host or one of its entities.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Subject<'a> {
    pub(crate) cx: &'a Evidence<'a>,
    pub(crate) of: Option<&'a EntitySeries>,
}

impl Predicate {
    /// Returns the longest time that it held without a break, about a stretch of the host.
    pub(crate) fn longest_in(&self, cx: &Evidence<'_>, stretch: &Stretch) -> Span {
        let runs = self.holds(Subject { cx, of: None });
        let runs = runs.map_or_else(|_| Vec::new(), |holds| holds.bridged_runs());
        let inside = runs.iter().filter(|run| run.overlaps(stretch));
        inside.map(Stretch::duration).max().unwrap_or(Span::ZERO)
    }

    /// Returns where it holds.
    ///
    /// # Errors
    /// [`Missing`] if the source lacks what it reads, and no other part rules it out.
    pub(crate) fn holds(&self, subject: Subject<'_>) -> Result<Condition, Missing> {
        match self {
            Self::Compare(comparison) => comparison.holds(subject),
            Self::All(parts) => all(parts, subject),
            Self::Any(parts) => any(parts, subject),
            Self::Also(parts) => {
                parts.first().map(|first| first.holds(subject)).transpose()?;
                any(parts, subject)
            }
            Self::Measured(this, other) => match (this.holds(subject), other) {
                (Ok(holds), _) => Ok(holds),
                (Err(_), Some(other)) => other.holds(subject),
                (Err(_), None) => Ok(subject.cx.timeline.always()),
            },
        }
    }
}

/// Joins parts that must all hold. If one cannot be evaluated, the result is unknown, unless another part rules it out:
/// with `vm.overcommit_memory` 0, no file is missing.
fn all(parts: &[Predicate], subject: Subject<'_>) -> Result<Condition, Missing> {
    let mut joined = subject.cx.timeline.always();
    let mut lacks = None;
    for part in parts {
        match part.holds(subject) {
            Ok(holds) => joined = joined.and(&holds),
            Err(missing) => lacks = lacks.or(Some(missing)),
        }
        // No other part can make it hold, and what it lacks does not count.
        if !joined.could_hold() {
            break;
        }
    }
    match lacks {
        Some(missing) if joined.could_hold() => Err(missing),
        _ => Ok(joined),
    }
}

/// Joins alternatives. A part that cannot be evaluated holds nowhere, as long as another one can be evaluated.
fn any(parts: &[Predicate], subject: Subject<'_>) -> Result<Condition, Missing> {
    let mut joined: Option<Condition> = None;
    let mut lacks = None;
    for part in parts {
        match (part.holds(subject), &joined) {
            (Ok(holds), Some(others)) => joined = Some(others.or(&holds)),
            (Ok(holds), None) => joined = Some(holds),
            (Err(missing), _) => lacks = lacks.or(Some(missing)),
        }
    }
    joined.ok_or_else(|| lacks.unwrap_or_else(|| Missing::because(Vec::new(), Need::SameTime)))
}

impl ThresholdTest {
    fn holds(&self, subject: Subject<'_>) -> Result<Condition, Missing> {
        let (left, right) = self.sides(subject)?;
        Ok(self.holds_where(&left, &right))
    }

    /// Returns the values of its left side, and what it compares them with.
    pub(super) fn sides(
        &self,
        subject: Subject<'_>,
    ) -> Result<(Numbers, ThresholdValues), Missing> {
        let left = self.left.numbers(subject)?;
        let right = match &self.right {
            Expr::Constant(it) => ThresholdValues::Fixed(Ratio::new(it.value)),
            right => ThresholdValues::Varying(right.numbers(subject)?),
        };
        Ok((left, right))
    }

    /// Returns where it holds, by the values of its sides.
    pub(super) fn holds_where(&self, left: &Numbers, right: &ThresholdValues) -> Condition {
        match (self.side, right) {
            (ThresholdSide::From, ThresholdValues::Fixed(value)) => left.at_least(*value),
            (ThresholdSide::From, ThresholdValues::Varying(right)) => left.at_least_track(right),
            (ThresholdSide::Below, ThresholdValues::Fixed(value)) => left.at_most(*value),
            (ThresholdSide::Below, ThresholdValues::Varying(right)) => left.at_most_track(right),
        }
    }
}

/// A threshold at each sample. Most are constants, and need no number for each.
#[derive(Debug)]
pub(super) enum ThresholdValues {
    Fixed(Ratio),
    Varying(Numbers),
}

impl ThresholdValues {
    /// Returns what it is at a sample, or else at the last one at which it is known.
    pub(super) fn at(&self, index: usize) -> Option<f64> {
        let number = match self {
            Self::Fixed(value) => Some(*value),
            Self::Varying(numbers) => numbers.at(index).or_else(|| numbers.last()),
        };
        number.map(|number| number.as_f64())
    }
}

impl Expr {
    /// Returns its value at each sample.
    ///
    /// # Errors
    /// [`Missing`] if the source does not have what it reads.
    pub(crate) fn numbers(&self, subject: Subject<'_>) -> Result<Numbers, Missing> {
        let Subject { cx, of } = subject;
        let pair = |a: &Self, b: &Self| Ok((a.numbers(subject)?, b.numbers(subject)?));
        let constant = |value: f64| Ok(cx.timeline.constant(Ratio::new(value)));
        match self {
            Self::Gauge(signal) => gauge(cx, of, *signal),
            Self::Rate(signal) => rate(cx, of, *signal),
            Self::Fact(fact) => {
                cx.number(*fact)?;
                let times = cx.timeline.times().iter().copied();
                let numbers = cx.facts.numbers_at(*fact, times);
                let values = numbers.map(|number| number.map(as_f64));
                Ok(cx.timeline.track(values.collect()))
            }
            Self::Constant(it) => constant(it.value),
            Self::Ram => constant(cx.ram()?.as_f64()),
            Self::PageSize => constant(cx.page_size()?.bytes().as_f64()),
            Self::Sum(parts) => sum(parts, subject),
            Self::Both(a, b) => pair(a, b).map(|(a, b)| a.plus(&b)),
            Self::Difference(a, b) => pair(a, b).map(|(a, b)| a.minus(&b)),
            Self::Product(a, b) => pair(a, b).map(|(a, b)| a.zip(&b, |a, b| a * b)),
            Self::Quotient(a, b) => pair(a, b).map(|(a, b)| a.ratio_of(&b)),
            Self::Least(a, b) => pair(a, b).map(|(a, b)| a.lower(&b)),
            Self::Most(a, b) => pair(a, b).map(|(a, b)| a.zip(&b, f64::max)),
            Self::FirstOf(parts) => first_of(parts, subject),
            Self::SumOver(entity, each) => sum_over(*entity, each, subject),
            Self::MostOfOthers(each) => most_of_others(each, subject),
            Self::Named(named) => named.expr.numbers(subject),
            Self::Computed(computed) => (computed.of)(cx),
            Self::ComputedOf(computed) => match of {
                Some(of) => (computed.of)(cx, of),
                None => Err(Missing::because(Vec::new(), Need::SameTime)),
            },
        }
    }
}

/// Returns the sum over entities; those that lack the number are left out, as zones without pages are.
fn sum_over(entity: Entity, each: &Expr, subject: Subject<'_>) -> Result<Numbers, Missing> {
    let Subject { cx, of } = subject;
    let belongs = |one: &&EntitySeries| match of {
        Some(node) if node.entity == Entity::Node => {
            one.key.split('/').next() == Some(node.key.as_str())
        }
        _ => true,
    };
    let all = cx.timeline.entities(entity).filter(belongs);
    let numbers = all.filter_map(|one| each.numbers(Subject { cx, of: Some(one) }).ok());
    numbers.reduce(|a, b| a.plus(&b)).ok_or_else(|| {
        let signals = each.signals();
        let own = signals.iter().map(|signal| signal.def());
        match own.into_iter().find(|def| def.entity == entity) {
            Some(def) => Missing::because(vec![def.name], Need::File(def.file)),
            None => Missing::because(Vec::new(), Need::SameTime),
        }
    })
}

/// Returns the largest of the other entities, all of which must have the number.
fn most_of_others(each: &Expr, subject: Subject<'_>) -> Result<Numbers, Missing> {
    let Subject { cx, of } = subject;
    let of = of.ok_or_else(|| Missing::because(Vec::new(), Need::SameTime))?;
    let others = cx.timeline.entities(of.entity).filter(|other| other.key != of.key);
    let numbers = others.map(|other| {
        let of = Some(other);
        each.numbers(Subject { cx, of })
    });
    let numbers: Result<Vec<Numbers>, Missing> = numbers.collect();
    let most = numbers?.into_iter().reduce(|a, b| a.zip(&b, f64::max));
    Ok(most.unwrap_or_else(|| cx.timeline.constant(Ratio::new(0.0))))
}

fn sum(parts: &[Expr], subject: Subject<'_>) -> Result<Numbers, Missing> {
    let mut parts = parts.iter();
    let first = parts.next().map(|first| first.numbers(subject));
    let mut sum = first.unwrap_or_else(|| Err(Missing::because(Vec::new(), Need::SameTime)))?;
    for part in parts {
        if let Ok(part) = part.numbers(subject) {
            sum = sum.plus(&part);
        }
    }
    Ok(sum)
}

fn first_of(parts: &[Expr], subject: Subject<'_>) -> Result<Numbers, Missing> {
    let mut lacks = None;
    for part in parts {
        match part.numbers(subject) {
            Ok(numbers) => return Ok(numbers),
            Err(missing) => lacks = lacks.or(Some(missing)),
        }
    }
    Err(lacks.unwrap_or_else(|| Missing::because(Vec::new(), Need::SameTime)))
}

/// Returns the entity, if the signal belongs to entities and not to the host.
fn own(of: Option<&EntitySeries>, signal: SignalId) -> Option<&EntitySeries> {
    of.filter(|_| signal.def().entity != Entity::Host)
}

fn gauge(
    cx: &Evidence<'_>,
    of: Option<&EntitySeries>,
    signal: SignalId,
) -> Result<Numbers, Missing> {
    let levels = cx.timeline.levels(own(of, signal), signal);
    levels.ok_or_else(|| cx.lacks_signal(signal))
}

fn rate(
    cx: &Evidence<'_>,
    of: Option<&EntitySeries>,
    signal: SignalId,
) -> Result<Numbers, Missing> {
    let rates = cx.timeline.increases(own(of, signal), signal);
    let rates = rates.ok_or_else(|| cx.lacks_signal(signal))?;
    if rates.is_empty() {
        return Err(Missing::because(vec![signal.def().name], Need::TwoSamples));
    }
    Ok(rates)
}

#[allow(clippy::cast_precision_loss)] // settings are small
fn as_f64(value: u64) -> f64 {
    value as f64
}
