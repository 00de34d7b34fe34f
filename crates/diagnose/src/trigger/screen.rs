//! Screens a long recording: in which of its minutes a trigger could hold.
//!
//! A minute's roll-up has the least and the most of each gauge, the rise of each counter, and its largest rise in a
//! second. A trigger that holds for some seconds leaves traces in it. An incident of `d` seconds lies in at most two
//! minutes, and its trigger holds in a part of it only ([`Condition::SUSTAINED`]): in one of the two minutes it holds
//! for at least half of that part. So if a rate reaches θ for that time, the counter rises by at least θ times it in
//! this minute, its fastest second reaches θ, and a gauge's most (or least) reaches its threshold.

use timeline::{Condition, Entity, Fact, Facts, RollUp, RollUps, SignalId};
use units::{Quantity as _, Span};

use super::reading::{Expr, Predicate, ThresholdTest};
use super::{STALL, Subjects, Trigger};
use crate::finding::ThresholdSide;

/// Bounds of a number within a minute.
#[derive(Debug, Clone, Copy, PartialEq)]
struct MinuteBounds {
    least: f64,
    most: f64,
}

/// A number minute by minute: `None` for a minute without known bounds, and `None` for all if the source does not have
/// it.
type MinuteNumbers = Option<Vec<Option<MinuteBounds>>>;

/// Whether something holds in a minute, as far as its roll-up shows. In order: the greatest of alternatives counts; for
/// parts that must hold together see [`Holds::and`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Holds {
    /// Nowhere in the minute.
    Never,
    /// The roll-up does not show it.
    Unknown,
    /// Possibly for part of the minute.
    Perhaps,
    /// For the whole minute.
    Always,
}

/// Minutes that are screened at once: where nothing holds in any of them after the first parts of a trigger, the others
/// need not be looked up, and the numbers of so many stay in the processor's cache.
const MINUTES_AT_ONCE: usize = 256;

/// Some minutes of an entity, one after the other.
#[derive(Clone, Copy)]
struct EntityMinutes<'a> {
    rolled: &'a RollUps,
    facts: &'a Facts,
    entity: Entity,
    key: &'a str,
    /// The first minute, and the one behind the last.
    begin: usize,
    end: usize,
    /// The least number of seconds for which the trigger holds in one of the minutes.
    visible_s: f64,
}

/// Returns for each minute whether this trigger could hold in it so that its samples are needed.
pub(crate) fn minutes(trigger: &Trigger, rolled: &RollUps, facts: &Facts) -> Vec<bool> {
    let mut could = vec![false; rolled.len()];
    let Some((predicate, scope)) = trigger.predicate() else {
        return could;
    };
    // Shorter bursts are counted in minutes that are opened for other reasons. Findings rest on events, and on levels
    // that a roll-up shows as well.
    let visible_s = visible_s(trigger.at_least().max(STALL));
    let is_flow = predicate.is_flow();
    let needed = |holds| match holds {
        Holds::Never => false,
        Holds::Perhaps => true,
        Holds::Unknown | Holds::Always => is_flow,
    };
    let entity = scope.entity();
    for key in keys(rolled, scope) {
        for begin in (0..rolled.len()).step_by(MINUTES_AT_ONCE) {
            let end = (begin + MINUTES_AT_ONCE).min(rolled.len());
            let minutes = EntityMinutes { rolled, facts, entity, key, begin, end, visible_s };
            for (at, holds) in (begin..).zip(minutes.holds(predicate)) {
                could[at] |= needed(holds) && rolled.was_read(entity, key, at);
            }
        }
    }
    could
}

/// Returns for how many seconds at least a trigger holds in one of the minutes of an incident of this length. An
/// incident of up to a minute lies in at most two minutes; a longer one fills others, and holds for as long in one of
/// these.
fn visible_s(lasts: Span) -> f64 {
    Condition::SUSTAINED * lasts.min(Span::from_mins(1)).as_secs_f64() / 2.0
}

fn keys(rolled: &RollUps, scope: Subjects) -> Vec<&str> {
    match scope {
        Subjects::Host => vec![""],
        Subjects::Each(entity, _) => {
            let all = rolled.entities(entity).iter();
            all.map(|one| one.key.as_str()).collect()
        }
    }
}

/// Returns in how many ways rates can make it hold. Levels do not count: a roll-up shows a level however long it lasts.
fn alternatives(predicate: &Predicate) -> f64 {
    match predicate {
        Predicate::Any(parts) | Predicate::Also(parts) => parts.iter().map(alternatives).sum(),
        Predicate::Measured(this, Some(other)) => alternatives(this).max(alternatives(other)),
        Predicate::Measured(this, None) => alternatives(this),
        Predicate::Compare(_) | Predicate::All(_) => f64::from(u8::from(predicate.has_rate())),
    }
}

fn join(all: &mut [Holds], others: Vec<Holds>, join: fn(Holds, Holds) -> Holds) {
    for (all, other) in all.iter_mut().zip(others) {
        *all = join(*all, other);
    }
}

impl EntityMinutes<'_> {
    fn holds(&self, predicate: &Predicate) -> Vec<Holds> {
        match predicate {
            Predicate::Compare(comparison) => self.compare(comparison),
            Predicate::All(parts) => self.all(parts),
            Predicate::Any(parts) | Predicate::Also(parts) => self.any(parts),
            Predicate::Measured(this, other) => match (self.is_absent(this), other) {
                (false, _) => self.holds(this),
                (true, Some(other)) => self.holds(other),
                (true, None) => self.everywhere(Holds::Always),
            },
        }
    }

    const fn len(&self) -> usize {
        self.end - self.begin
    }

    fn everywhere(&self, holds: Holds) -> Vec<Holds> {
        vec![holds; self.len()]
    }

    /// One part may hold for some of the time and another for the rest, so each need hold only for its share of the
    /// seconds.
    fn any(&self, parts: &[Predicate]) -> Vec<Holds> {
        let all: f64 = parts.iter().map(alternatives).sum();
        let mut any = self.everywhere(Holds::Never);
        for part in parts {
            let of_part =
                Self { visible_s: self.visible_s * alternatives(part) / all.max(1.0), ..*self };
            join(&mut any, of_part.holds(part), Holds::max);
        }
        any
    }

    fn all(&self, parts: &[Predicate]) -> Vec<Holds> {
        let mut all = self.everywhere(Holds::Always);
        for part in parts {
            join(&mut all, self.holds(part), Holds::and);
            if all.iter().all(|holds| *holds == Holds::Never) {
                break;
            }
        }
        all
    }

    /// Whether the source lacks what it needs.
    fn is_absent(&self, predicate: &Predicate) -> bool {
        match predicate {
            Predicate::Compare(it) => {
                let none = Self { end: self.begin, ..*self };
                none.numbers(&it.left).is_none() || none.numbers(&it.right).is_none()
            }
            Predicate::All(parts) => parts.iter().any(|part| self.is_absent(part)),
            Predicate::Any(parts) | Predicate::Also(parts) => {
                parts.iter().all(|part| self.is_absent(part))
            }
            Predicate::Measured(this, Some(other)) => self.is_absent(this) && self.is_absent(other),
            Predicate::Measured(_, None) => false,
        }
    }

    fn compare(&self, it: &ThresholdTest) -> Vec<Holds> {
        let (Some(left), Some(right)) = (self.numbers(&it.left), self.numbers(&it.right)) else {
            return self.everywhere(Holds::Never);
        };
        let holds =
            |(left, right): (Option<MinuteBounds>, Option<MinuteBounds>)| match (left, right) {
                (Some(left), Some(right)) => match it.side {
                    ThresholdSide::From => left.reaches(right),
                    ThresholdSide::Below => right.reaches(left),
                },
                _ => Holds::Unknown,
            };
        left.into_iter().zip(right).map(holds).collect()
    }

    fn numbers(&self, expr: &Expr) -> MinuteNumbers {
        match expr {
            Expr::Gauge(signal) | Expr::Rate(signal) => self.of_signal(*signal),
            Expr::Constant(it) => self.constant(it.value),
            Expr::Ram => self.of_signal(timeline::signals::MEM_TOTAL.id()),
            Expr::PageSize => match self.facts.page_size {
                Some(size) => self.constant(size.bytes().as_f64()),
                None => self.unknown(),
            },
            Expr::Fact(fact) => self.of_fact(*fact),
            Expr::Computed(computed) => match computed.at_most {
                Some(at_most) => self.up_to(&at_most()),
                None => self.unknown(),
            },
            Expr::ComputedOf(_) => self.unknown(),
            Expr::Named(named) => self.numbers(&named.expr),
            Expr::SumOver(entity, each) => self.sum_over(*entity, each),
            Expr::MostOfOthers(each) => self.most_of_others(each),
            Expr::Sum(parts) => self.sum(parts),
            Expr::Both(a, b) => self.pair(a, b, MinuteBounds::plus),
            Expr::Difference(a, b) => self.pair(a, b, MinuteBounds::minus),
            Expr::Product(a, b) => self.pair(a, b, MinuteBounds::product),
            Expr::Quotient(a, b) => self.pair(a, b, MinuteBounds::quotient),
            Expr::Least(a, b) => self.pair(a, b, MinuteBounds::least),
            Expr::Most(a, b) => self.pair(a, b, MinuteBounds::most),
            Expr::FirstOf(parts) => parts.iter().find_map(|part| self.numbers(part)),
        }
    }

    fn constant(&self, value: f64) -> MinuteNumbers {
        let bounds = MinuteBounds { least: value, most: value };
        Some(vec![Some(bounds); self.len()])
    }

    /// The setting may have had another value then.
    #[allow(clippy::cast_precision_loss)] // settings are small
    fn of_fact(&self, fact: Fact) -> MinuteNumbers {
        self.facts.number(fact)?;
        let all = self.facts.numbers(fact);
        let bounds = all.fold(None, |bounds: Option<MinuteBounds>, number| {
            let number = number as f64;
            Some(MinuteBounds {
                least: bounds.map_or(number, |bounds| bounds.least.min(number)),
                most: bounds.map_or(number, |bounds| bounds.most.max(number)),
            })
        });
        Some(vec![bounds; self.len()])
    }

    fn unknown(&self) -> MinuteNumbers {
        Some(vec![None; self.len()])
    }

    /// Bounds a number by one that it never exceeds. It may rest on readings that are rarer than samples, so the bound
    /// covers the minutes before and after, too.
    fn up_to(&self, other: &Expr) -> MinuteNumbers {
        let begin = self.begin.saturating_sub(1);
        let end = (self.end + 1).min(self.rolled.len());
        let Some(most) = (Self { begin, end, ..*self }).numbers(other) else {
            return self.unknown();
        };
        let around = |at: usize| {
            let at = at - begin;
            let within = &most[at.saturating_sub(1)..(at + 2).min(most.len())];
            let most = within.iter().map(|bounds| bounds.map(|bounds| bounds.most));
            let most: Option<Vec<f64>> = most.collect();
            Some(MinuteBounds { least: 0.0, most: most?.into_iter().fold(0.0, f64::max) })
        };
        Some((self.begin..self.end).map(around).collect())
    }

    fn pair(
        &self,
        a: &Expr,
        b: &Expr,
        join: fn(MinuteBounds, MinuteBounds) -> MinuteBounds,
    ) -> MinuteNumbers {
        let (a, b) = (self.numbers(a)?, self.numbers(b)?);
        let pairs = a.into_iter().zip(b);
        Some(pairs.map(|(a, b)| Some(join(a?, b?))).collect())
    }

    fn sum(&self, parts: &[Expr]) -> MinuteNumbers {
        let (first, others) = parts.split_first()?;
        let mut sum = self.numbers(first)?;
        for other in others.iter().filter_map(|other| self.numbers(other)) {
            for (sum, other) in sum.iter_mut().zip(other) {
                *sum = (*sum).zip(other).map(|(a, b)| a.plus(b));
            }
        }
        Some(sum)
    }

    fn sum_over(&self, entity: Entity, each: &Expr) -> MinuteNumbers {
        let belongs =
            |key: &str| self.entity != Entity::Node || key.split('/').next() == Some(self.key);
        let all = self.rolled.entities(entity).iter();
        let numbers = all.filter(|one| belongs(&one.key)).filter_map(|one| {
            let of = Self { entity, key: &one.key, ..*self };
            of.numbers(each)
        });
        numbers.reduce(|sum, one| {
            let pairs = sum.into_iter().zip(one);
            pairs.map(|(a, b)| Some(a?.plus(b?))).collect()
        })
    }

    fn most_of_others(&self, each: &Expr) -> MinuteNumbers {
        let others = self.rolled.entities(self.entity).iter().filter(|other| other.key != self.key);
        let mut most = self.constant(0.0)?;
        for other in others {
            let of = Self { key: &other.key, ..*self };
            let numbers = of.numbers(each)?;
            for (most, other) in most.iter_mut().zip(numbers) {
                *most = most.zip(other).map(|(a, b)| a.most(b));
            }
        }
        Some(most)
    }

    fn of_signal(&self, signal: SignalId) -> MinuteNumbers {
        let entity = signal.def().entity;
        let key = if entity == Entity::Host { "" } else { self.key };
        let all = self.rolled.get(entity, key, signal)?.get(self.begin..self.end)?;
        let minutes = self.rolled.minutes().get(self.begin..self.end)?.iter();
        let bounds = |(rolled, minute): (&Option<RollUp>, &timeline::Minute)| {
            self.bounds((*rolled)?, minute.duration.as_secs_f64())
        };
        Some(all.iter().zip(minutes).map(bounds).collect())
    }

    #[allow(clippy::cast_precision_loss)] // as all quantities do
    fn bounds(&self, rolled: RollUp, lasts_s: f64) -> Option<MinuteBounds> {
        match rolled {
            RollUp::Level { min, max } => {
                Some(MinuteBounds { least: min as f64, most: max as f64 })
            }
            RollUp::Increase { by, fastest } => {
                let seconds = self.visible_s.min(lasts_s);
                let most = if seconds > 0.0 { by? as f64 / seconds } else { f64::INFINITY };
                let fastest = fastest.map_or(f64::INFINITY, |fastest| fastest as f64);
                Some(MinuteBounds { least: 0.0, most: most.min(fastest) })
            }
        }
    }
}

impl Holds {
    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Never, _) | (_, Self::Never) => Self::Never,
            (Self::Perhaps, _) | (_, Self::Perhaps) => Self::Perhaps,
            (Self::Unknown, _) | (_, Self::Unknown) => Self::Unknown,
            (Self::Always, Self::Always) => Self::Always,
        }
    }
}

/// Numbers are never below zero.
impl MinuteBounds {
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
        Self { least: self.least + other.least, most: self.most + other.most }
    }

    fn minus(self, other: Self) -> Self {
        Self { least: (self.least - other.most).max(0.0), most: (self.most - other.least).max(0.0) }
    }

    fn product(self, other: Self) -> Self {
        Self { least: self.least * other.least, most: self.most * other.most }
    }

    fn quotient(self, other: Self) -> Self {
        let divide = |a: f64, b: f64| if b > 0.0 { a / b } else { f64::INFINITY };
        Self {
            least: if other.most > 0.0 { self.least / other.most } else { 0.0 },
            most: divide(self.most, other.least),
        }
    }

    fn least(self, other: Self) -> Self {
        Self { least: self.least.min(other.least), most: self.most.min(other.most) }
    }

    fn most(self, other: Self) -> Self {
        Self { least: self.least.max(other.least), most: self.most.max(other.most) }
    }
}

#[cfg(test)]
mod tests {
    use timeline::facts::OVERCOMMIT_MEMORY;
    use timeline::signals::{
        ALLOCSTALL, COMMIT_LIMIT, COMMITTED_AS, CPU_SYSTEM, MEM_SLAB_UNRECLAIMABLE, MEM_TOTAL,
        NODE_FREE, NODE_TOTAL, PGSCAN_KSWAPD, PGSTEAL_KSWAPD, PSI_MEMORY_SOME, PSWPOUT, ZONE_HIGH,
        ZONE_MANAGED,
    };
    use timeline::{Minute, Stamp};
    use units::{PageSize, WallClock};

    use super::*;
    use crate::could_hold_by_rule;

    const SECOND: f64 = 1e6;

    /// Creates this many minutes without data.
    fn minutes(count: i64) -> RollUps {
        let minute = |number: i64| Minute {
            end: Stamp {
                boot: Span::from_mins(number.unsigned_abs()),
                awake: None,
                wall: Some(WallClock::from_unix_nanos(number * 60_000_000_000)),
                ..Stamp::default()
            },
            duration: Span::from_mins(1),
        };
        RollUps::new((1..=count).map(minute).collect())
    }

    /// Sets the rise of a host counter in each minute, and in its fastest second if known.
    fn rises(rolled: &mut RollUps, signal: SignalId, by: &[u64], fastest: Option<u64>) {
        let cells = rolled.entry(Entity::Host, "", signal);
        for (cell, by) in cells.iter_mut().zip(by) {
            *cell = Some(RollUp::Increase { by: Some(*by), fastest });
        }
    }

    fn could(rule: &str, rolled: &RollUps) -> Vec<bool> {
        let mut facts = Facts::default();
        facts.page_size = PageSize::from_bytes(4096);
        let mut all = could_hold_by_rule(rolled, &facts);
        let found = all.find(|(id, _)| *id == rule);
        found.map(|(_, could)| could).unwrap_or_default()
    }

    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // seconds of a minute
    fn micros(seconds: f64) -> u64 {
        (seconds * SECOND).round() as u64
    }

    #[test]
    fn an_incident_that_two_minutes_share_and_that_holds_for_seven_tenths_is_seen() {
        // The shortest incident, 10 s from 5 s before a minute's end on: tasks wait exactly as long as required, with
        // gaps.
        let stalled = 0.7 * 10.0 * 0.1001;
        let mut rolled = minutes(3);
        let halves = [0.0, stalled / 2.0, stalled / 2.0].map(micros);
        rises(&mut rolled, PSI_MEMORY_SOME.id(), &halves, None);
        assert_eq!(could("unexplained-stall", &rolled), [false, true, true]);
        let mut less = minutes(1);
        rises(&mut less, PSI_MEMORY_SOME.id(), &[micros(0.49 * stalled)], None);
        assert_eq!(could("unexplained-stall", &less), [false]);
    }

    #[test]
    fn what_rises_evenly_all_minute_is_no_stall() {
        // Less than half of the threshold all minute is more than an incident of 10 s needs.
        let even = [micros(60.0 * 0.04)];
        let mut rolled = minutes(1);
        rises(&mut rolled, PSI_MEMORY_SOME.id(), &even, Some(micros(0.04)));
        assert_eq!(could("unexplained-stall", &rolled), [false]);
        for fastest in [None, Some(micros(0.1001))] {
            rises(&mut rolled, PSI_MEMORY_SOME.id(), &even, fastest);
            assert_eq!(could("unexplained-stall", &rolled), [true]);
        }
    }

    /// Creates a full node that swaps out in some seconds and stalls in others, with this much free on another node.
    fn nodes(swapped_out: u64, stalls: u64, free_elsewhere: Option<u64>) -> RollUps {
        let level = |level| Some(RollUp::Level { min: level, max: level });
        let mut rolled = minutes(1);
        rises(&mut rolled, PSWPOUT.id(), &[swapped_out], None);
        rises(&mut rolled, ALLOCSTALL.id(), &[stalls], None);
        let full = Some(("0", 20));
        for (key, free) in full.into_iter().chain(free_elsewhere.map(|free| ("1", free))) {
            rolled.entry(Entity::Node, key, NODE_FREE.id())[0] = level(free << 20);
            rolled.entry(Entity::Node, key, NODE_TOTAL.id())[0] = level(500 << 20);
            let zone = format!("{key}/Normal");
            rolled.entry(Entity::Zone, &zone, ZONE_HIGH.id())[0] = level(20 << 8);
            rolled.entry(Entity::Zone, &zone, ZONE_MANAGED.id())[0] = level(500 << 8);
        }
        rolled
    }

    #[test]
    fn a_node_is_compared_with_the_others_and_a_single_one_with_none() {
        let swapping = |free| could("numa-imbalance", &nodes(100_000, 0, free));
        assert_eq!(swapping(None), [false]);
        assert_eq!(swapping(Some(50)), [false]);
        assert_eq!(swapping(Some(400)), [true]);
    }

    #[test]
    fn what_a_roll_up_does_not_tell_hides_no_level_that_is_crossed() {
        let slab = |min: u64, max: u64| {
            let mut rolled = minutes(1);
            let mut level = |signal, min: u64, max: u64| {
                let (min, max) = (min << 20, max << 20);
                rolled.entry(Entity::Host, "", signal)[0] = Some(RollUp::Level { min, max });
            };
            level(MEM_TOTAL.id(), 10_000, 10_000);
            level(MEM_SLAB_UNRECLAIMABLE.id(), min, max);
            could("slab-leak", &rolled)
        };
        // Growth is unknown, and could be enough at any time: whether the level is high decides.
        assert_eq!(slab(600, 700), [false]);
        assert_eq!(slab(900, 2_600), [true]);
        assert_eq!(slab(2_600, 2_700), [false], "seen by the minute as well");
    }

    #[test]
    fn one_thread_uses_no_more_than_all_in_its_minute_or_beside_it() {
        for (fastest, expected) in [
            ([30, 30, 30, 30], [false; 4]),
            ([90, 30, 30, 30], [true, true, false, false]),
            ([30, 30, 30, 90], [false, false, true, true]),
        ] {
            let mut rolled = minutes(4);
            rises(&mut rolled, PGSCAN_KSWAPD.id(), &[60_000; 4], None);
            rises(&mut rolled, PGSTEAL_KSWAPD.id(), &[50_000; 4], None);
            let cells = rolled.entry(Entity::Host, "", CPU_SYSTEM.id());
            for (cell, fastest) in cells.iter_mut().zip(fastest) {
                *cell = Some(RollUp::Increase { by: Some(1_200), fastest: Some(fastest) });
            }
            assert_eq!(could("kswapd-saturated", &rolled), expected);
        }
    }

    #[test]
    fn a_setting_is_one_of_those_that_it_had() {
        let mut rolled = minutes(1);
        for (signal, least, most) in [(COMMITTED_AS, 50, 110), (COMMIT_LIMIT, 100, 100)] {
            let level = RollUp::Level { min: least << 30, max: most << 30 };
            rolled.entry(Entity::Host, "", signal.id())[0] = Some(level);
        }
        for (modes, expected) in
            [(&["0"][..], false), (&["2"], true), (&["2", "0"], true), (&["1", "0"], false)]
        {
            let mut facts = Facts::default();
            for (at, mode) in (0..).zip(modes) {
                facts.record(Span::from_secs(at), OVERCOMMIT_MEMORY, mode);
            }
            let mut all = could_hold_by_rule(&rolled, &facts);
            let (_, could) = all.find(|(id, _)| *id == "overcommit-limit").unwrap();
            assert_eq!(could, [expected], "{modes:?}");
        }
    }

    #[test]
    fn what_one_of_several_reasons_shows_in_a_part_of_the_time_is_seen() {
        // Of at least 1.4 s in this minute, swap-out need be only a quarter; the rest may have other reasons.
        assert_eq!(could("numa-imbalance", &nodes(50, 0, Some(400))), [true]);
        assert_eq!(could("numa-imbalance", &nodes(20, 0, Some(400))), [false]);
    }
}
