//! The screening of a long recording: in which of its minutes a trigger could hold.
//!
//! A minute's roll-up tells the least and the most of each gauge, and what each counter rose by. That a trigger holds for
//! some seconds leaves traces in it: a rate of θ for `d` seconds is a rise of θ·d/2 in one of the two minutes that these
//! seconds lie in, and a gauge's most (or least) reaches the threshold..

use timeline::{Entity, Facts, RollUp, RollUps, SignalId};
use units::Quantity as _;

use super::reading::{Comparison, Expr, Predicate};
use super::{Scope, Trigger};
use crate::finding::ThresholdSide;
use crate::rule::Rule;
use crate::rules;

/// Between what a number lies in a minute.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Bounds {
    least: f64,
    most: f64,
}

/// A number minute by minute; of a minute without bounds nothing is known. `None` where the source does not have it at all.
type Numbers = Option<Vec<Option<Bounds>>>;

/// Whether something holds in a minute, as far as its roll-up tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Holds {
    /// Nowhere in it.
    Never,
    /// Perhaps for some of it.
    Perhaps,
    /// All of the time.
    Always,
}

/// An entity's minutes.
struct Minutes<'a> {
    rolled: &'a RollUps,
    facts: &'a Facts,
    entity: Entity,
    key: &'a str,
    /// Half of the shortest incident, in seconds: a rate need not have lasted for longer in any one minute.
    visible_s: f64,
}

/// For each minute, whether the trigger of any rule could hold in it so that its samples are needed: a level that holds
/// throughout is seen by the minute as well.
pub fn could_hold(rolled: &RollUps, facts: &Facts) -> Vec<bool> {
    let mut any = vec![false; rolled.len()];
    for (_, could) in could_hold_by_rule(rolled, facts) {
        any.iter_mut()
            .zip(could)
            .for_each(|(any, could)| *any |= could);
    }
    any
}

/// The same for each rule by itself.
pub fn could_hold_by_rule<'a>(
    rolled: &'a RollUps,
    facts: &'a Facts,
) -> impl Iterator<Item = (&'static str, Vec<bool>)> {
    screened().map(|rule| (rule.id, of_rule(rule, rolled, facts)))
}

fn of_rule(rule: &Rule, rolled: &RollUps, facts: &Facts) -> Vec<bool> {
    let mut could = vec![false; rolled.len()];
    let trigger = (rule.trigger)();
    let Some((predicate, scope)) = trigger.predicate() else {
        return could;
    };
    let visible_s = trigger.at_least().as_secs_f64() / 2.0;
    let is_flow = predicate.is_flow();
    let needed = |holds| holds == Holds::Perhaps || (is_flow && holds == Holds::Always);
    for key in keys(rolled, scope) {
        let minutes = Minutes {
            rolled,
            facts,
            entity: scope.entity(),
            key,
            visible_s,
        };
        for (could, holds) in could.iter_mut().zip(minutes.holds(predicate)) {
            *could |= needed(holds);
        }
    }
    could
}

/// The signals that triggers read: no others need be rolled up.
pub fn signals() -> Vec<SignalId> {
    let mut all: Vec<SignalId> = vec![timeline::signals::MEM_TOTAL.id()];
    for rule in screened() {
        let trigger: Trigger = (rule.trigger)();
        let own = trigger
            .predicate()
            .map(|(predicate, _)| predicate.signals());
        all.extend(own.unwrap_or_default());
    }
    all.sort_unstable();
    all.dedup();
    all
}

/// What looks bad and is not is seen by the minute as well.
fn screened() -> impl Iterator<Item = &'static Rule> {
    rules::ALL.iter().filter(|rule| !rule.is_note())
}

fn keys(rolled: &RollUps, scope: Scope) -> Vec<&str> {
    match scope {
        Scope::Host => vec![""],
        Scope::Each(entity, _) => {
            let all = rolled.entities(entity).iter();
            all.map(|one| one.key.as_str()).collect()
        }
    }
}

impl Minutes<'_> {
    fn holds(&self, predicate: &Predicate) -> Vec<Holds> {
        match predicate {
            Predicate::Compare(comparison) => self.compare(comparison),
            Predicate::All(parts) => self.joined(parts, Holds::Always, Holds::min),
            Predicate::Any(parts) => self.joined(parts, Holds::Never, Holds::max),
            Predicate::Measured(this, other) => match (self.is_absent(this), other) {
                (false, _) => self.holds(this),
                (true, Some(other)) => self.holds(other),
                (true, None) => self.everywhere(Holds::Always),
            },
        }
    }

    fn everywhere(&self, holds: Holds) -> Vec<Holds> {
        vec![holds; self.rolled.len()]
    }

    fn joined(
        &self,
        parts: &[Predicate],
        start: Holds,
        join: fn(Holds, Holds) -> Holds,
    ) -> Vec<Holds> {
        let mut all = self.everywhere(start);
        for part in parts {
            let holds = self.holds(part);
            all.iter_mut()
                .zip(holds)
                .for_each(|(all, holds)| *all = join(*all, holds));
        }
        all
    }

    /// Whether the source cannot evaluate it.
    fn is_absent(&self, predicate: &Predicate) -> bool {
        match predicate {
            Predicate::Compare(it) => {
                self.numbers(&it.left).is_none() || self.numbers(&it.right).is_none()
            }
            Predicate::All(parts) => parts.iter().any(|part| self.is_absent(part)),
            Predicate::Any(parts) => parts.iter().all(|part| self.is_absent(part)),
            Predicate::Measured(this, Some(other)) => self.is_absent(this) && self.is_absent(other),
            Predicate::Measured(_, None) => false,
        }
    }

    fn compare(&self, it: &Comparison) -> Vec<Holds> {
        let (Some(left), Some(right)) = (self.numbers(&it.left), self.numbers(&it.right)) else {
            return self.everywhere(Holds::Never);
        };
        let holds = |(left, right): (Option<Bounds>, Option<Bounds>)| match (left, right) {
            (Some(left), Some(right)) => match it.side {
                ThresholdSide::From => left.reaches(right),
                ThresholdSide::Below => right.reaches(left),
            },
            // What a roll-up does not tell decides nothing: the other parts of the trigger do.
            _ => Holds::Always,
        };
        left.into_iter().zip(right).map(holds).collect()
    }

    fn numbers(&self, expr: &Expr) -> Numbers {
        match expr {
            Expr::Gauge(signal) | Expr::Rate(signal) => self.of_signal(*signal),
            Expr::Constant(value) => self.constant(*value),
            Expr::Ram => self.of_signal(timeline::signals::MEM_TOTAL.id()),
            Expr::PageSize => match self.facts.page_size {
                Some(size) => self.constant(size.bytes().as_f64()),
                None => self.unknown(),
            },
            // A setting may have had another value in between.
            Expr::Fact(fact) => self.facts.number(*fact).and_then(|_| self.unknown()),
            Expr::Computed(_) | Expr::ComputedOf(_) => self.unknown(),
            Expr::SumOver(entity, each) => self.sum_over(*entity, each),
            Expr::Sum(parts) => self.sum(parts),
            Expr::Both(a, b) => self.pair(a, b, Bounds::plus),
            Expr::Difference(a, b) => self.pair(a, b, Bounds::minus),
            Expr::Product(a, b) => self.pair(a, b, Bounds::product),
            Expr::Quotient(a, b) => self.pair(a, b, Bounds::quotient),
            Expr::Least(a, b) => self.pair(a, b, Bounds::least),
            Expr::Most(a, b) => self.pair(a, b, Bounds::most),
            Expr::FirstOf(parts) => parts.iter().find_map(|part| self.numbers(part)),
        }
    }

    fn constant(&self, value: f64) -> Numbers {
        let bounds = Bounds {
            least: value,
            most: value,
        };
        Some(vec![Some(bounds); self.rolled.len()])
    }

    fn unknown(&self) -> Numbers {
        Some(vec![None; self.rolled.len()])
    }

    fn pair(&self, a: &Expr, b: &Expr, join: fn(Bounds, Bounds) -> Bounds) -> Numbers {
        let (a, b) = (self.numbers(a)?, self.numbers(b)?);
        let pairs = a.into_iter().zip(b);
        Some(pairs.map(|(a, b)| Some(join(a?, b?))).collect())
    }

    fn sum(&self, parts: &[Expr]) -> Numbers {
        let (first, others) = parts.split_first()?;
        let mut sum = self.numbers(first)?;
        for other in others.iter().filter_map(|other| self.numbers(other)) {
            for (sum, other) in sum.iter_mut().zip(other) {
                *sum = (*sum).zip(other).map(|(a, b)| a.plus(b));
            }
        }
        Some(sum)
    }

    fn sum_over(&self, entity: Entity, each: &Expr) -> Numbers {
        let belongs =
            |key: &str| self.entity != Entity::Node || key.split('/').next() == Some(self.key);
        let all = self.rolled.entities(entity).iter();
        let numbers = all.filter(|one| belongs(&one.key)).filter_map(|one| {
            let of = Self {
                entity,
                key: &one.key,
                ..*self
            };
            of.numbers(each)
        });
        numbers.reduce(|sum, one| {
            let pairs = sum.into_iter().zip(one);
            pairs.map(|(a, b)| Some(a?.plus(b?))).collect()
        })
    }

    fn of_signal(&self, signal: SignalId) -> Numbers {
        let entity = signal.def().entity;
        let key = if entity == Entity::Host { "" } else { self.key };
        let all = self.rolled.get(entity, key, signal)?;
        let minutes = self.rolled.minutes().iter();
        let bounds = |(rolled, minute): (&Option<RollUp>, &timeline::Minute)| {
            self.bounds((*rolled)?, minute.lasts.as_secs_f64())
        };
        Some(all.iter().zip(minutes).map(bounds).collect())
    }

    #[allow(clippy::cast_precision_loss)] // as all quantities do
    fn bounds(&self, rolled: RollUp, lasts_s: f64) -> Option<Bounds> {
        match rolled {
            RollUp::Level { min, max } => Some(Bounds {
                least: min as f64,
                most: max as f64,
            }),
            RollUp::Increase(increase) => {
                let seconds = self.visible_s.min(lasts_s);
                let increase = increase? as f64;
                let most = if seconds > 0.0 {
                    increase / seconds
                } else {
                    f64::INFINITY
                };
                Some(Bounds { least: 0.0, most })
            }
        }
    }
}

/// Numbers are never below zero.
impl Bounds {
    /// Whether it is at least the other.
    fn reaches(self, other: Self) -> Holds {
        if self.most < other.least {
            Holds::Never
        } else if self.least >= other.most {
            Holds::Always
        } else {
            Holds::Perhaps
        }
    }

    fn plus(self, other: Self) -> Self {
        Self {
            least: self.least + other.least,
            most: self.most + other.most,
        }
    }

    fn minus(self, other: Self) -> Self {
        Self {
            least: (self.least - other.most).max(0.0),
            most: (self.most - other.least).max(0.0),
        }
    }

    fn product(self, other: Self) -> Self {
        Self {
            least: self.least * other.least,
            most: self.most * other.most,
        }
    }

    fn quotient(self, other: Self) -> Self {
        let divide = |a: f64, b: f64| if b > 0.0 { a / b } else { f64::INFINITY };
        Self {
            least: if other.most > 0.0 {
                self.least / other.most
            } else {
                0.0
            },
            most: divide(self.most, other.least),
        }
    }

    fn least(self, other: Self) -> Self {
        Self {
            least: self.least.min(other.least),
            most: self.most.min(other.most),
        }
    }

    fn most(self, other: Self) -> Self {
        Self {
            least: self.least.max(other.least),
            most: self.most.max(other.most),
        }
    }
}
