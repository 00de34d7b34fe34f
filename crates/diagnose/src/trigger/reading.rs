//! Readings and comparisons, as data: typed while a trigger is written, stored as an untyped tree.

use std::marker::PhantomData;

use timeline::{Counter, Entity, EntitySeries, Fact, Gauge, Signal, SignalId, Track};
use units::{Bytes, BytesPerSecond, Count, Limit, Micros, Pages, PerSecond, Quantity, Ratio, Unit};

use crate::evidence::{Evidence, Missing};
use crate::finding::ThresholdSide;
use crate::trigger::Subject;

const MILLIONTHS_PER_PERCENT: u64 = 10_000;

/// A quantity at an instant.
#[derive(Debug, Clone)]
pub(crate) struct Reading<Q> {
    pub(crate) expr: Expr,
    quantity: PhantomData<fn() -> Q>,
}

/// Plain numbers; their units are known only where the tree is written.
pub(crate) type Numbers = Track<Ratio>;

/// An expression that computes a number from readings.
#[derive(Debug, Clone)]
pub(crate) enum Expr {
    /// The level of a gauge.
    Gauge(SignalId),
    /// The rise of a counter per second.
    Rate(SignalId),
    /// The number of a setting at that time.
    Fact(Fact),
    Constant(ConstantExpr),
    /// MemTotal.
    Ram,
    /// The size of a page in bytes.
    PageSize,
    /// The sum of the first and of those others that the source has.
    Sum(Vec<Expr>),
    /// The sum of two, both of which are required.
    Both(Box<Expr>, Box<Expr>),
    /// At least zero.
    Difference(Box<Expr>, Box<Expr>),
    Product(Box<Expr>, Box<Expr>),
    /// Unknown where the divisor is zero.
    Quotient(Box<Expr>, Box<Expr>),
    Least(Box<Expr>, Box<Expr>),
    Most(Box<Expr>, Box<Expr>),
    /// The first one that the source has.
    FirstOf(Vec<Expr>),
    /// The sum over the entities of a kind that have it; over the zones of a NUMA node if the trigger is about nodes.
    SumOver(Entity, Box<Expr>),
    /// The largest of all other entities of the kind that the trigger is about; zero if there is no other.
    MostOfOthers(Box<Expr>),
    /// A number that arithmetic cannot express. A screen sees only its upper bound.
    Computed(ComputedExpr),
    /// The same for an entity that takes others into account.
    ComputedOf(ComputedOf),
    /// A part with its own name: a trigger in words defines it once.
    Named(NamedExpr),
}

/// A number that stands in a trigger, with its own unit: that of the expression around it may be another.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConstantExpr {
    pub(crate) value: f64,
    /// How it is printed.
    pub(crate) print: fn(f64) -> String,
}

impl ConstantExpr {
    fn of<Q: Quantity>(value: Q) -> Self {
        Self { value: value.as_f64(), print: |value| Q::from_f64(value).to_string() }
    }

    fn factor(value: f64) -> Self {
        Self { value, print: |value| value.to_string() }
    }
}

/// A named part of a trigger.
#[derive(Debug, Clone)]
pub(crate) struct NamedExpr {
    pub(crate) name: &'static str,
    pub(crate) expr: Box<Expr>,
}

/// A number that a function computes from the samples of an entity.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ComputedOf {
    pub(crate) name: &'static str,
    pub(crate) of: fn(&Evidence<'_>, &EntitySeries) -> Result<Numbers, Missing>,
}

/// A number that a function computes from the samples.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ComputedExpr {
    pub(crate) name: &'static str,
    pub(crate) of: fn(&Evidence<'_>) -> Result<Numbers, Missing>,
    /// An arithmetic expression that it does not exceed for long: the upper bound that a screen sees.
    pub(crate) at_most: Option<fn() -> Expr>,
}

/// A condition that holds at an instant or does not.
#[derive(Debug, Clone)]
pub(crate) enum Predicate {
    Compare(ThresholdTest),
    /// All of them hold.
    All(Vec<Predicate>),
    /// At least one of them holds.
    Any(Vec<Predicate>),
    /// The same, but not evaluated where the first part is not measured: the others are special cases of it.
    Also(Vec<Predicate>),
    /// The first if the source has it, else the second; with `None` the condition then holds.
    Measured(Box<Predicate>, Option<Box<Predicate>>),
}

/// A comparison of a reading with its threshold.
#[derive(Debug, Clone)]
pub(crate) struct ThresholdTest {
    /// What it measures, for readers: `swapped in`.
    pub(crate) name: &'static str,
    pub(crate) left: Expr,
    pub(crate) side: ThresholdSide,
    pub(crate) right: Expr,
    /// How a value is printed.
    pub(crate) print: fn(f64) -> String,
}

impl<Q> Reading<Q> {
    const fn new(expr: Expr) -> Self {
        Self { expr, quantity: PhantomData }
    }

    fn with<R>(self, other: Self, join: fn(Box<Expr>, Box<Expr>) -> Expr) -> Reading<R> {
        Reading::new(join(Box::new(self.expr), Box::new(other.expr)))
    }
}

impl<Q: Quantity> Reading<Q> {
    /// Returns its values at the samples of the host.
    ///
    /// # Errors
    /// [`Missing`] if the source does not have what it reads.
    pub(crate) fn track(&self, cx: &Evidence<'_>) -> Result<Track<Q>, Missing> {
        Ok(self.expr.numbers(Subject { cx, of: None })?.cast())
    }

    /// Returns its values for an entity.
    ///
    /// # Errors
    /// [`Missing`] if the source does not have what it reads.
    pub(crate) fn track_of(
        &self,
        cx: &Evidence<'_>,
        of: &EntitySeries,
    ) -> Result<Track<Q>, Missing> {
        Ok(self.expr.numbers(Subject { cx, of: Some(of) })?.cast())
    }

    pub(crate) fn constant(value: Q) -> Self {
        Self::new(Expr::Constant(ConstantExpr::of(value)))
    }

    /// The sum with those others that this kernel has.
    pub(crate) fn plus(self, others: impl IntoIterator<Item = Self>) -> Self {
        let others = others.into_iter().map(|other| other.expr);
        Self::new(Expr::Sum(std::iter::once(self.expr).chain(others).collect()))
    }

    /// The sum of two that the source must have.
    pub(crate) fn and(self, other: Self) -> Self {
        self.with(other, Expr::Both)
    }

    /// The difference, never below zero.
    pub(crate) fn minus(self, other: Self) -> Self {
        self.with(other, Expr::Difference)
    }

    /// The product with a factor.
    pub(crate) fn times(self, factor: f64) -> Self {
        Self::new(product(self.expr, ConstantExpr::factor(factor)))
    }

    /// A part of it.
    pub(crate) fn share(self, share: Ratio) -> Self {
        Self::new(product(self.expr, ConstantExpr::of(share)))
    }

    /// Its ratio to another reading.
    pub(crate) fn ratio_of(self, whole: Self) -> Reading<Ratio> {
        self.with(whole, Expr::Quotient)
    }

    /// The smaller of the two.
    pub(crate) fn min(self, other: impl Into<Self>) -> Self {
        self.with(other.into(), Expr::Least)
    }

    /// The larger of the two.
    pub(crate) fn max(self, other: impl Into<Self>) -> Self {
        self.with(other.into(), Expr::Most)
    }

    /// The same with a name, which a trigger in words uses and defines once.
    pub(crate) fn named(self, name: &'static str) -> Self {
        Self::new(Expr::Named(NamedExpr { name, expr: Box::new(self.expr) }))
    }

    /// Another reading if the source does not have this one.
    pub(crate) fn or(self, other: Self) -> Self {
        Self::new(Expr::FirstOf(vec![self.expr, other.expr]))
    }

    /// Holds where it is at least the threshold.
    pub(crate) fn at_least(self, name: &'static str, threshold: impl Into<Self>) -> Predicate {
        self.compare(name, ThresholdSide::From, threshold.into())
    }

    /// Holds where it is at most the threshold.
    pub(crate) fn at_most(self, name: &'static str, threshold: impl Into<Self>) -> Predicate {
        self.compare(name, ThresholdSide::Below, threshold.into())
    }

    /// Holds where it is at most this share of another reading.
    pub(crate) fn at_most_of<R>(
        self,
        other: &Reading<R>,
        name: &'static str,
        share: f64,
    ) -> Predicate {
        let most = product(other.expr.clone(), ConstantExpr::of(Ratio::new(share)));
        self.compare(name, ThresholdSide::Below, Self::new(most))
    }

    /// Holds where it is at most so much for each that another reading counts.
    pub(crate) fn at_most_for_each<R, E: Quantity>(
        self,
        other: &Reading<R>,
        name: &'static str,
        most: E,
    ) -> Predicate {
        let most = product(other.expr.clone(), ConstantExpr::of(most));
        self.compare(name, ThresholdSide::Below, Self::new(most))
    }

    fn compare(self, name: &'static str, side: ThresholdSide, threshold: Self) -> Predicate {
        let (left, mut right) = (self.expr, threshold.expr);
        let mut print: fn(f64) -> String = |value| Q::from_f64(value).to_string();
        // A percentage of the kernel is stored in millionths.
        if matches!(&left, Expr::Gauge(signal) if signal.def().scale == MILLIONTHS_PER_PERCENT) {
            print = |value| Ratio::new(value / 1e6).to_string();
            if let Expr::Constant(constant) = &mut right {
                constant.print = print;
            }
        }
        Predicate::Compare(ThresholdTest { name, left, side, right, print })
    }
}

impl<Q: Quantity> From<Q> for Reading<Q> {
    fn from(value: Q) -> Self {
        Self::constant(value)
    }
}

impl Reading<Pages> {
    /// The same in bytes.
    pub(crate) fn bytes(self) -> Reading<Bytes> {
        Reading::new(in_bytes(self.expr))
    }
}

impl Reading<PerSecond<Pages>> {
    /// The same in bytes.
    pub(crate) fn bytes(self) -> Reading<BytesPerSecond> {
        Reading::new(in_bytes(self.expr))
    }
}

impl Reading<Count> {
    /// The product of a count and a size.
    pub(crate) fn of_size(self, size: Reading<Bytes>) -> Reading<Bytes> {
        Reading::new(Expr::Product(Box::new(self.expr), Box::new(size.expr)))
    }
}

fn product(expr: Expr, factor: ConstantExpr) -> Expr {
    Expr::Product(Box::new(expr), Box::new(Expr::Constant(factor)))
}

fn in_bytes(pages: Expr) -> Expr {
    Expr::Product(Box::new(pages), Box::new(Expr::PageSize))
}

impl Predicate {
    /// The other predicate if the source lacks this one.
    pub(crate) fn or_without(self, other: Self) -> Self {
        Self::Measured(Box::new(self), Some(Box::new(other)))
    }

    /// This predicate, which holds if the source lacks its readings.
    pub(crate) fn if_measured(self) -> Self {
        Self::Measured(Box::new(self), None)
    }
}

impl Predicate {
    /// Whether it requires movement: rates, not only levels and settings. It does not if a level alone is enough, or if
    /// rates are only required if measured.
    pub(crate) fn is_flow(&self) -> bool {
        match self {
            Self::Compare(it) => it.left.has_rate() || it.right.has_rate(),
            Self::All(parts) => parts.iter().any(Self::is_flow),
            Self::Any(parts) | Self::Also(parts) => parts.iter().all(Self::is_flow),
            Self::Measured(_, None) => false,
            Self::Measured(this, Some(other)) => this.is_flow() || other.is_flow(),
        }
    }

    /// Whether any part of it reads a rate.
    pub(crate) fn has_rate(&self) -> bool {
        let mut has_rate = false;
        self.visit(&mut |expr| has_rate |= matches!(expr, Expr::Rate(_)));
        has_rate
    }

    /// Returns the signals that it reads.
    pub(crate) fn signals(&self) -> Vec<SignalId> {
        let mut all = Vec::new();
        self.visit(&mut |expr| match expr {
            Expr::Gauge(signal) | Expr::Rate(signal) if !all.contains(signal) => all.push(*signal),
            _ => {}
        });
        all
    }

    /// Returns the signals that a screen reads in place of functions that it cannot compute.
    pub(crate) fn signals_in_place(&self) -> Vec<SignalId> {
        let mut all = Vec::new();
        self.visit(&mut |expr| {
            if let Expr::Computed(ComputedExpr { at_most, .. }) = expr {
                all.extend(at_most.iter().flat_map(|at_most| at_most().signals()));
            }
        });
        all
    }

    pub(super) fn visit(&self, see: &mut impl FnMut(&Expr)) {
        match self {
            Self::Compare(comparison) => {
                comparison.left.visit(see);
                comparison.right.visit(see);
            }
            Self::All(parts) | Self::Any(parts) | Self::Also(parts) => {
                parts.iter().for_each(|part| part.visit(see))
            }
            Self::Measured(this, other) => {
                this.visit(see);
                other.iter().for_each(|other| other.visit(see));
            }
        }
    }
}

impl Expr {
    fn has_rate(&self) -> bool {
        let mut has_rate = false;
        self.visit(&mut |expr| has_rate |= matches!(expr, Self::Rate(_)));
        has_rate
    }

    /// Returns the signals that it reads.
    pub(crate) fn signals(&self) -> Vec<SignalId> {
        let mut all = Vec::new();
        self.visit(&mut |expr| match expr {
            Self::Gauge(signal) | Self::Rate(signal) if !all.contains(signal) => all.push(*signal),
            _ => {}
        });
        all
    }

    fn visit(&self, see: &mut impl FnMut(&Self)) {
        see(self);
        match self {
            Self::Sum(parts) | Self::FirstOf(parts) => {
                parts.iter().for_each(|part| part.visit(see));
            }
            Self::Both(a, b)
            | Self::Difference(a, b)
            | Self::Product(a, b)
            | Self::Quotient(a, b)
            | Self::Least(a, b)
            | Self::Most(a, b) => {
                a.visit(see);
                b.visit(see);
            }
            Self::SumOver(_, of) | Self::MostOfOthers(of) => of.visit(see),
            Self::Named(named) => named.expr.visit(see),
            Self::Gauge(_)
            | Self::Rate(_)
            | Self::Fact(_)
            | Self::Constant(_)
            | Self::Ram
            | Self::PageSize
            | Self::Computed(_)
            | Self::ComputedOf(_) => {}
        }
    }
}

/// The level of a gauge.
pub(crate) fn gauge<U: Unit>(signal: Signal<Gauge<U>>) -> Reading<U> {
    Reading::new(Expr::Gauge(signal.id()))
}

/// The total of a counter since boot.
pub(crate) fn total<U: Unit>(signal: Signal<Counter<U>>) -> Reading<U> {
    Reading::new(Expr::Gauge(signal.id()))
}

/// The sum over all entities of a kind that have it; for a NUMA node, over its zones.
pub(crate) fn over<Q: Quantity>(entity: Entity, reading: Reading<Q>) -> Reading<Q> {
    Reading::new(Expr::SumOver(entity, Box::new(reading.expr)))
}

/// The largest of all other entities of the kind that the trigger is about; zero if there is no other.
pub(crate) fn most_of_others<Q: Quantity>(reading: Reading<Q>) -> Reading<Q> {
    Reading::new(Expr::MostOfOthers(Box::new(reading.expr)))
}

/// A limit; without a limit it is larger than any number.
pub(crate) fn limit(signal: Signal<Gauge<Limit>>) -> Reading<Bytes> {
    Reading::new(Expr::Gauge(signal.id()))
}

/// The rise of a counter per second.
pub(crate) fn rate<U: Unit>(signal: Signal<Counter<U>>) -> Reading<PerSecond<U>> {
    Reading::new(Expr::Rate(signal.id()))
}

/// The share of time that tasks waited, from a pressure total in microseconds.
pub(crate) fn stall(signal: Signal<Counter<Micros>>) -> Reading<Ratio> {
    let share = product(Expr::Rate(signal.id()), ConstantExpr::factor(1e-6));
    let whole = Expr::Constant(ConstantExpr::of(Ratio::new(1.0)));
    Reading::new(Expr::Least(Box::new(share), Box::new(whole)))
}

/// MemTotal.
pub(crate) fn ram() -> Reading<Bytes> {
    Reading::new(Expr::Ram)
}

/// The number of a setting at that time.
pub(crate) fn fact(fact: Fact) -> Reading<Count> {
    Reading::new(Expr::Fact(fact))
}

/// A number that arithmetic cannot express.
pub(crate) fn computed<Q: Quantity>(
    name: &'static str,
    of: fn(&Evidence<'_>) -> Result<Numbers, Missing>,
) -> Reading<Q> {
    Reading::new(Expr::Computed(ComputedExpr { name, of, at_most: None }))
}

/// The same, with a reading of the host as upper bound, taken over the time between two readings of its own.
pub(crate) fn computed_within<Q: Quantity>(
    name: &'static str,
    of: fn(&Evidence<'_>) -> Result<Numbers, Missing>,
    at_most: fn() -> Expr,
) -> Reading<Q> {
    Reading::new(Expr::Computed(ComputedExpr { name, of, at_most: Some(at_most) }))
}

/// A number of an entity that arithmetic cannot express.
pub(crate) fn computed_of<Q: Quantity>(
    name: &'static str,
    of: fn(&Evidence<'_>, &EntitySeries) -> Result<Numbers, Missing>,
) -> Reading<Q> {
    Reading::new(Expr::ComputedOf(ComputedOf { name, of }))
}
