//! A trigger as rules of Prometheus, over the metrics of node_exporter: a screen for a fleet's monitoring.
//!
//! Names and scales are those of [`timeline::metric`]: what node_exporter does not have, `memtide export --format prometheus
//! --names node-exporter` writes. Numbers have the unit of the catalogue, as in the trigger; a factor goes down to the metrics,
//! where most vanish. Only rates over a minute, arithmetic and comparisons: functions that every engine has. A trigger about a
//! cgroup, zone or disk is joined with what its host has by `instance` and `job`.

use schemars::JsonSchema;
use serde::Serialize;
use timeline::metric::{Metric, MetricNaming, setting_name};
use timeline::signals::{
    CGROUP_CURRENT, DISK_READ_TIME, MEM_TOTAL, NODE_TOTAL, ZONE_FREE, ZRAM_DISK_SIZE,
};
use timeline::{Entity, Facts, SignalId};
use units::{PageSize, Span};

use super::Trigger;
use super::reading::{Expr, Predicate, ThresholdTest};
use crate::finding::ThresholdSide;

/// The metrics that a Prometheus has of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AlertMetrics {
    /// Those that node_exporter exports by default.
    NodeExporter,
    /// These and memtide's, of `memtide serve` or `memtide export`.
    #[default]
    Memtide,
}

/// A trigger as an alert.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrometheusAlert {
    /// Returns series where the trigger holds.
    pub expr: String,
    /// How long it must hold.
    pub lasts: Span,
    /// Parts that it uses, which become series of their own: those that others use come first.
    pub parts: Vec<RecordedPart>,
}

/// A recording rule.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[schemars(rename = "PartEntry")]
pub struct RecordedPart {
    /// The series that it makes: `memtide:swapped_in`.
    pub name: String,
    /// What it is.
    pub expr: String,
}

impl Trigger {
    /// Returns the trigger as an alert over these metrics; `None` if it rests on kernel reports, on a function, on the source,
    /// or on a metric that is not among them.
    pub(crate) fn prometheus(&self, metrics: AlertMetrics) -> Option<PrometheusAlert> {
        let Self::While(holds) = self else {
            return None;
        };
        let mut writer = PromqlWriter { entity: holds.scope.entity(), metrics, parts: Vec::new() };
        let when = match &holds.alert_if {
            Some(also) => Predicate::All(vec![holds.when.clone(), also.clone()]),
            None => holds.when.clone(),
        };
        let holds_for = writer.set(&when)?;
        Some(PrometheusAlert {
            expr: writer.of_each(holds_for, And)?.text,
            lasts: holds.at_least,
            parts: writer.parts,
        })
    }
}

/// What a text has a number for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum SeriesLevel {
    /// Nothing: it is a number.
    Number,
    /// Each host.
    Host,
    /// Each entity that the trigger is about.
    Each,
}

/// A part of an expression.
#[derive(Debug, Clone)]
struct PromqlTerm {
    text: String,
    level: SeriesLevel,
    binds: Binding,
}

/// How tightly the outermost operator binds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Binding {
    Or,
    And,
    Comparison,
    Sum,
    Product,
    Atom,
}
use Binding::{And, Atom, Comparison, Or, Product, Sum};

/// Labels that a host has alone.
const OF_HOST: &str = "on (instance, job)";

impl PromqlTerm {
    fn atom(text: impl Into<String>, level: SeriesLevel) -> Self {
        Self { text: text.into(), level, binds: Atom }
    }

    fn number(value: f64) -> Self {
        Self::atom(number(value), SeriesLevel::Number)
    }

    /// The text as an operand of an operator that binds like this; in parentheses where that one binds as tightly.
    fn within(&self, binds: Binding) -> String {
        if self.binds > binds { self.text.clone() } else { format!("({})", self.text) }
    }

    /// Like [`within`](Self::within), as the left operand of an operator that groups to the left.
    fn left_of(&self, binds: Binding) -> String {
        if self.binds == binds && binds != Comparison {
            self.text.clone()
        } else {
            self.within(binds)
        }
    }

    /// Joins numbers by arithmetic or a comparison: what a host has stands for each of its entities.
    fn joined(&self, sign: &str, binds: Binding, other: &Self) -> Self {
        let matching = match (self.level, other.level) {
            (SeriesLevel::Each, SeriesLevel::Host) => format!(" {OF_HOST} group_left ()"),
            (SeriesLevel::Host, SeriesLevel::Each) => format!(" {OF_HOST} group_right ()"),
            _ => String::new(),
        };
        let (left, right) = (self.left_of(binds), other.within(binds));
        Self {
            text: format!("{left} {sign}{matching} {right}"),
            level: self.level.max(other.level),
            binds,
        }
    }

    /// Keeps what is in both sets, or in the first alone; the first has the entities if one does.
    fn limited(&self, word: &str, other: &Self) -> Self {
        let matching = match (self.level, other.level) {
            (SeriesLevel::Each, SeriesLevel::Host) => format!(" {OF_HOST}"),
            _ => String::new(),
        };
        let (left, right) = (self.left_of(And), other.within(And));
        Self { text: format!("{left} {word}{matching} {right}"), level: self.level, binds: And }
    }

    /// What the first has no number for comes from the other; both are of one level.
    fn or(&self, other: &Self) -> Self {
        // Readers do not remember that `and` binds more tightly.
        let shown = |term: &Self| match term.binds {
            And => format!("({})", term.text),
            _ => term.left_of(Or),
        };
        Self {
            text: format!("{} or {}", shown(self), shown(other)),
            level: self.level.max(other.level),
            binds: Or,
        }
    }

    fn function(name: &str, of: &Self, limit: &Self) -> Self {
        Self::atom(format!("{name}({}, {})", of.text, limit.text), of.level)
    }

    /// Nothing, for each that the term has a number for.
    fn none(&self) -> Self {
        self.joined("*", Product, &Self::number(0.0))
    }

    /// What is in all sets; those of entities come first, as their labels are those of the result.
    fn intersection(sets: impl IntoIterator<Item = Self>) -> Option<Self> {
        let both = |all: Self, set: Self| all.limited("and", &set);
        sets.into_iter().reduce(both)
    }
}

/// Writes a trigger.
struct PromqlWriter {
    /// What it is about.
    entity: Entity,
    metrics: AlertMetrics,
    parts: Vec<RecordedPart>,
}

impl PromqlWriter {
    /// The metric of a signal, where it is among those that the alert may use.
    fn metric(&self, signal: SignalId) -> Option<Metric> {
        metric(signal).filter(|metric| self.has(&metric.name))
    }

    fn has(&self, name: &str) -> bool {
        self.metrics == AlertMetrics::Memtide || node_exporter_has(name)
    }

    /// Of alternatives, those that the metrics have; without memtide's own, one of several is enough.
    fn those_measured<T>(&self, all: impl Iterator<Item = Option<T>>) -> Option<Vec<T>> {
        match self.metrics {
            AlertMetrics::Memtide => all.collect(),
            AlertMetrics::NodeExporter => {
                let some: Vec<T> = all.flatten().collect();
                (!some.is_empty()).then_some(some)
            }
        }
    }

    /// Whether a part that counts only where it is measured may be left out.
    fn is_absent<T>(&self, part: Option<&T>) -> bool {
        self.metrics == AlertMetrics::NodeExporter && part.is_none()
    }

    /// Returns what it holds for, as a set.
    fn set(&mut self, when: &Predicate) -> Option<PromqlTerm> {
        match when {
            Predicate::Compare(test) => self.compared(test, holding(test.side)),
            Predicate::All(parts) => self.all(parts),
            Predicate::Any(parts) => self.any(parts, Self::set),
            // Special cases are left to the recording.
            Predicate::Also(parts) => self.set(parts.first()?),
            Predicate::Measured(this, Some(other)) => {
                let measured = self.measured(this);
                if self.is_absent(measured.as_ref()) {
                    return self.set(other);
                }
                let measured = measured?;
                let (holds, other) = (self.set(this)?, self.set(other)?);
                let (other, _) = self.levelled(other, &measured)?;
                let otherwise = other.limited("unless", &measured);
                let (holds, otherwise) = self.levelled(holds, &otherwise)?;
                Some(holds.or(&otherwise))
            }
            Predicate::Measured(this, None) => {
                let refuted = self.refuted(this);
                if self.is_absent(refuted.as_ref()) {
                    return self.whole(SeriesLevel::Host);
                }
                let refuted = refuted?;
                let whole = self.whole(refuted.level)?;
                Some(whole.limited("unless", &refuted))
            }
        }
    }

    /// Returns those that have what it reads, whether it holds or not.
    fn measured(&mut self, when: &Predicate) -> Option<PromqlTerm> {
        match when {
            Predicate::Compare(test) => match test.right {
                Expr::Constant(_) => self.expr(&test.left, 1.0),
                _ => self.compared(test, &format!("{} bool", holding(test.side))),
            },
            Predicate::All(parts) => {
                let sets: Option<Vec<_>> = parts.iter().map(|part| self.measured(part)).collect();
                let mut sets = sets?;
                sets.sort_by_key(|set| std::cmp::Reverse(set.level));
                PromqlTerm::intersection(sets)
            }
            Predicate::Any(parts) | Predicate::Also(parts) => self.any(parts, Self::measured),
            Predicate::Measured(this, Some(other)) => {
                let this = self.measured(this);
                if self.is_absent(this.as_ref()) {
                    return self.measured(other);
                }
                let (this, other) = (this?, self.measured(other)?);
                let (this, other) = self.levelled(this, &other)?;
                Some(this.or(&other))
            }
            Predicate::Measured(_, None) => self.whole(SeriesLevel::Host),
        }
    }

    /// Returns those for which it was measured and does not hold.
    fn refuted(&mut self, when: &Predicate) -> Option<PromqlTerm> {
        match when {
            Predicate::Compare(test) => self.compared(test, failing(test.side)),
            Predicate::All(parts) => self.any(parts, Self::refuted),
            _ => {
                let (measured, holds) = (self.measured(when)?, self.set(when)?);
                let (measured, holds) = self.levelled(measured, &holds)?;
                Some(measured.limited("unless", &holds))
            }
        }
    }

    /// Joins parts that must all hold. A plain `and` would drop those that lack a part which is only required if measured. What a
    /// host has is joined first, and then once with its entities.
    fn all(&mut self, parts: &[Predicate]) -> Option<PromqlTerm> {
        let (mut needed, mut refuted) = (Vec::new(), Vec::new());
        for part in flat(parts) {
            match part {
                Predicate::Measured(this, None) => {
                    let part = self.refuted(this);
                    if !self.is_absent(part.as_ref()) {
                        refuted.push(part?);
                    }
                }
                part => needed.push(self.set(part)?),
            }
        }
        let (each, host): (Vec<_>, Vec<_>) =
            needed.into_iter().partition(|set| set.level == SeriesLevel::Each);
        let mut of_each = PromqlTerm::intersection(each);
        let mut of_host = PromqlTerm::intersection(host);
        for refuted in &refuted {
            let from = match refuted.level {
                SeriesLevel::Each => &mut of_each,
                _ if of_host.is_none() && of_each.is_some() => &mut of_each,
                _ => &mut of_host,
            };
            let set = match from.take() {
                Some(set) => set,
                None => self.whole(refuted.level)?,
            };
            *from = Some(set.limited("unless", refuted));
        }
        match (of_each, of_host) {
            (Some(each), Some(host)) => Some(each.limited("and", &host)),
            (each, host) => each.or(host),
        }
    }

    fn any(
        &mut self,
        parts: &[Predicate],
        of: fn(&mut Self, &Predicate) -> Option<PromqlTerm>,
    ) -> Option<PromqlTerm> {
        let sets: Vec<Option<PromqlTerm>> = parts.iter().map(|part| of(self, part)).collect();
        let mut sets = self.those_measured(sets.into_iter())?.into_iter();
        let first = sets.next()?;
        sets.try_fold(first, |either, set| {
            let (either, set) = self.levelled(either, &set)?;
            Some(either.or(&set))
        })
    }

    fn compared(&mut self, test: &ThresholdTest, sign: &str) -> Option<PromqlTerm> {
        // In the unit of the metric, if there is one.
        let by = factor(&test.left).map_or(1.0, |factor| 1.0 / factor);
        let (left, right) = (self.expr(&test.left, by)?, self.expr(&test.right, by)?);
        Some(left.joined(sign, Comparison, &right))
    }

    /// Every host, or every entity: a number that each has.
    fn whole(&self, level: SeriesLevel) -> Option<PromqlTerm> {
        let signal = match (level, self.entity) {
            (SeriesLevel::Number | SeriesLevel::Host, _) | (_, Entity::Host) => MEM_TOTAL.id(),
            (SeriesLevel::Each, Entity::Cgroup) => CGROUP_CURRENT.id(),
            (SeriesLevel::Each, Entity::Zone) => ZONE_FREE.id(),
            (SeriesLevel::Each, Entity::Node) => NODE_TOTAL.id(),
            (SeriesLevel::Each, Entity::Disk) => DISK_READ_TIME.id(),
            (SeriesLevel::Each, Entity::Zram) => ZRAM_DISK_SIZE.id(),
            (SeriesLevel::Each, _) => return None,
        };
        let level = level.max(SeriesLevel::Host);
        Some(PromqlTerm::atom(self.metric(signal)?.name, level))
    }

    /// Brings two to one level, which set operators with labels of both sides need.
    fn levelled(&self, one: PromqlTerm, other: &PromqlTerm) -> Option<(PromqlTerm, PromqlTerm)> {
        let level = one.level.max(other.level);
        let lifted = |term: PromqlTerm| match (level, term.level) {
            (SeriesLevel::Each, SeriesLevel::Host) => self.of_each(term, Comparison),
            _ => Some(term),
        };
        Some((lifted(one)?, lifted(other.clone())?))
    }

    /// What a host has, for each of its entities: as a number, or as a set (`And`).
    fn of_each(&self, term: PromqlTerm, as_what: Binding) -> Option<PromqlTerm> {
        if self.entity == Entity::Host || term.level == SeriesLevel::Each {
            return Some(term);
        }
        let whole = self.whole(SeriesLevel::Each)?;
        if as_what == And || term.binds <= Comparison {
            return Some(whole.limited("and", &term));
        }
        Some(whole.none().joined("+", Sum, &term))
    }

    /// Returns the expression, multiplied.
    fn expr(&mut self, expr: &Expr, by: f64) -> Option<PromqlTerm> {
        Some(match expr {
            Expr::Gauge(signal) => self.reading(*signal, by, |name| name)?,
            Expr::Rate(signal) => self.reading(*signal, by, |name| format!("rate({name}[1m])"))?,
            Expr::Constant(it) => PromqlTerm::number(it.value * by),
            Expr::Ram => self.reading(MEM_TOTAL.id(), by, |name| name)?,
            Expr::PageSize => PromqlTerm::number(PAGE * by),
            Expr::Fact(fact) => {
                let name = setting_name(*fact);
                if !self.has(&name) {
                    return None;
                }
                times(PromqlTerm::atom(name, SeriesLevel::Host), by)
            }
            Expr::Sum(parts) => self.sum(parts, by)?,
            Expr::Both(a, b) => {
                let (a, b) = self.pair(a, b, by)?;
                a.joined("+", Sum, &b)
            }
            Expr::Difference(a, b) => {
                let (a, b) = self.pair(a, b, by)?;
                let difference = a.joined("-", Sum, &b);
                PromqlTerm::function("clamp_min", &difference, &PromqlTerm::number(0.0))
            }
            Expr::Product(a, b) => match (constant(a), constant(b)) {
                (_, Some(factor)) => self.expr(a, by * factor)?,
                (Some(factor), _) => self.expr(b, by * factor)?,
                _ => {
                    let (a, b) = (self.expr(a, by)?, self.expr(b, 1.0)?);
                    a.joined("*", Product, &b)
                }
            },
            Expr::Quotient(a, b) => {
                let (a, b) = (self.expr(a, by)?, self.expr(b, 1.0)?);
                // Unknown, where an engine says infinite.
                let divisor = b.joined(">", Comparison, &PromqlTerm::number(0.0));
                a.joined("/", Product, &divisor)
            }
            Expr::Least(a, b) => self.preferred(a, b, by, ("clamp_max", "<="))?,
            Expr::Most(a, b) => self.preferred(a, b, by, ("clamp_min", ">="))?,
            Expr::FirstOf(parts) => {
                let terms: Vec<Option<PromqlTerm>> =
                    parts.iter().map(|it| self.expr(it, by)).collect();
                let mut terms = self.those_measured(terms.into_iter())?.into_iter();
                let mut first = terms.next()?;
                for other in terms {
                    let other = self.of_those(other, first.level)?;
                    let (one, other) = self.levelled(first, &other)?;
                    first = one.or(&other);
                }
                first
            }
            Expr::SumOver(entity, each) => self.sum_over(*entity, each, by)?,
            Expr::Named(named) => {
                let part = self.expr(&named.expr, 1.0)?;
                let name = format!("memtide:{}", named.name.replace([' ', '-'], "_"));
                let level = part.level;
                if !self.parts.iter().any(|known| known.name == name) {
                    self.parts.push(RecordedPart { name: name.clone(), expr: part.text });
                }
                times(PromqlTerm::atom(name, level), by)
            }
            Expr::MostOfOthers(_) | Expr::Computed(_) | Expr::ComputedOf(_) => return None,
        })
    }

    /// The sum of the first and of those others that a host has.
    fn sum(&mut self, parts: &[Expr], by: f64) -> Option<PromqlTerm> {
        let (first, others) = parts.split_first()?;
        let mut sum = self.expr(first, by)?;
        let none = match first {
            Expr::Gauge(_) | Expr::Rate(_) => self.expr(first, 0.0)?,
            _ => sum.none(),
        };
        for other in others {
            let other = self.expr(other, by);
            if self.is_absent(other.as_ref()) {
                continue;
            }
            let (other, none) = self.levelled(other?, &none)?;
            sum = sum.joined("+", Sum, &other.or(&none));
        }
        Some(sum)
    }

    fn pair(&mut self, a: &Expr, b: &Expr, by: f64) -> Option<(PromqlTerm, PromqlTerm)> {
        Some((self.expr(a, by)?, self.expr(b, by)?))
    }

    /// A number alone belongs to no host, and an engine accepts no `or` with it.
    fn of_those(&self, term: PromqlTerm, level: SeriesLevel) -> Option<PromqlTerm> {
        if term.level != SeriesLevel::Number {
            return Some(term);
        }
        Some(self.whole(level)?.none().joined("+", Sum, &term))
    }

    /// Whichever of two numbers the sign prefers.
    fn preferred(
        &mut self,
        a: &Expr,
        b: &Expr,
        by: f64,
        (clamp, sign): (&str, &str),
    ) -> Option<PromqlTerm> {
        let (a, b) = self.pair(a, b, by)?;
        match (a.level, b.level) {
            (SeriesLevel::Number, SeriesLevel::Number) => None,
            (_, SeriesLevel::Number) => Some(PromqlTerm::function(clamp, &a, &b)),
            (SeriesLevel::Number, _) => Some(PromqlTerm::function(clamp, &b, &a)),
            _ => {
                let (a, b) = self.levelled(a, &b)?;
                Some(a.joined(sign, Comparison, &b).or(&b))
            }
        }
    }

    /// The sum over the entities of a host, or over the zones of a NUMA node.
    fn sum_over(&mut self, entity: Entity, each: &Expr, by: f64) -> Option<PromqlTerm> {
        let of_node = self.entity == Entity::Node && entity == Entity::Zone;
        let outer = std::mem::replace(&mut self.entity, entity);
        let each = self.expr(each, by);
        self.entity = outer;
        let (labels, level) = if of_node {
            ("instance, job, node", SeriesLevel::Each)
        } else {
            ("instance, job", SeriesLevel::Host)
        };
        Some(PromqlTerm::atom(format!("sum by ({labels}) ({})", each?.text), level))
    }

    /// A reading in the unit of the catalogue, multiplied.
    fn reading(
        &self,
        signal: SignalId,
        by: f64,
        of: impl FnOnce(String) -> String,
    ) -> Option<PromqlTerm> {
        let entity = signal.def().entity;
        let level = match entity {
            Entity::Host => SeriesLevel::Host,
            entity if entity == self.entity => SeriesLevel::Each,
            _ => return None,
        };
        let metric = self.metric(signal)?;
        Some(times(
            PromqlTerm::atom(of(metric.name.clone()), level),
            by * metric.reading_per_value()?,
        ))
    }
}

/// The usual page size: node_exporter does not export it, and hosts with another need their own rules.
const PAGE: f64 = 4096.0;

/// Whether node_exporter exports a metric by default: its collectors of NUMA nodes and zones are off, and of
/// `/proc/vmstat` it has the fields of its pattern (`--collector.vmstat.fields`).
fn node_exporter_has(name: &str) -> bool {
    const OTHER: [&str; 3] = ["node_memory_", "node_pressure_", "node_disk_"];
    const FIELDS: [&str; 4] = ["oom_kill", "pgpg", "pswp", "fault"];
    match name.strip_prefix("node_vmstat_") {
        Some(field) => FIELDS.iter().any(|part| field.contains(part)),
        None => {
            OTHER.iter().any(|it| name.starts_with(it)) && !name.starts_with("node_memory_numa_")
        }
    }
}

/// Returns a signal as the exporters write it.
fn metric(signal: SignalId) -> Option<Metric> {
    let mut facts = Facts::default();
    facts.page_size = Some(PageSize::USUAL);
    Metric::new(signal, MetricNaming::NodeExporter, &facts)
}

/// The parts, with those of parts that must all hold as well.
fn flat(parts: &[Predicate]) -> Vec<&Predicate> {
    let each = parts.iter().flat_map(|part| match part {
        Predicate::All(parts) => flat(parts),
        part => vec![part],
    });
    each.collect()
}

/// What a single metric is multiplied with, if the expression is nothing else.
fn factor(expr: &Expr) -> Option<f64> {
    match expr {
        Expr::Gauge(signal) | Expr::Rate(signal) => metric(*signal)?.reading_per_value(),
        Expr::Product(a, b) => match (constant(a), constant(b)) {
            (_, Some(by)) => Some(factor(a)? * by),
            (Some(by), _) => Some(factor(b)? * by),
            _ => None,
        },
        _ => None,
    }
}

fn constant(expr: &Expr) -> Option<f64> {
    match expr {
        Expr::Constant(it) => Some(it.value),
        Expr::PageSize => Some(PAGE),
        _ => None,
    }
}

fn times(term: PromqlTerm, by: f64) -> PromqlTerm {
    // Of a page and a page's inverse nothing remains.
    if number(by) == "1" {
        return term;
    }
    let parts = 1.0 / by;
    if parts > 1.5 && (parts - parts.round()).abs() < 1e-6 {
        return term.joined("/", Product, &PromqlTerm::number(parts.round()));
    }
    term.joined("*", Product, &PromqlTerm::number(by))
}

const fn holding(side: ThresholdSide) -> &'static str {
    match side {
        ThresholdSide::From => ">=",
        ThresholdSide::Below => "<=",
    }
}

const fn failing(side: ThresholdSide) -> &'static str {
    match side {
        ThresholdSide::From => "<",
        ThresholdSide::Below => ">",
    }
}

/// A number with nine digits, which is more than any threshold has.
fn number(value: f64) -> String {
    let short: f64 = format!("{value:.8e}").parse().unwrap_or(value);
    short.to_string()
}

#[cfg(test)]
mod tests {
    use timeline::signals::{
        CGROUP_MAX, CGROUP_REFAULT_FILE, MEM_AVAILABLE, MEM_FREE, MEM_SHMEM, PGPGIN, REFAULT_FILE,
    };
    use units::{Bytes, BytesPerSecond};

    use super::*;
    use crate::trigger::{Subjects, all, any, gauge, limit, rate};

    const FREE: &str = "node_memory_MemFree_bytes";
    const AVAILABLE: &str = "node_memory_MemAvailable_bytes";

    fn free() -> Predicate {
        gauge(MEM_FREE).at_most("free", Bytes::new(7))
    }

    fn available() -> Predicate {
        gauge(MEM_AVAILABLE).at_most("available", Bytes::new(8))
    }

    fn shared() -> Predicate {
        gauge(MEM_SHMEM).at_least("shared", Bytes::new(9))
    }

    fn on_host(when: Predicate) -> String {
        let trigger = Trigger::on_host(Span::from_secs(1), when);
        trigger.prometheus(AlertMetrics::Memtide).unwrap().expr
    }

    fn on_cgroups(when: Predicate) -> String {
        let trigger = Trigger::on(Subjects::each_cgroup(), Span::from_secs(1), when);
        trigger.prometheus(AlertMetrics::Memtide).unwrap().expr
    }

    #[test]
    fn a_fallback_is_asked_only_of_hosts_that_do_not_have_the_first() {
        assert_eq!(
            on_host(available().or_without(free())),
            format!("{AVAILABLE} <= 8 or ({FREE} <= 7 unless {AVAILABLE})")
        );
        let of_ram = gauge(MEM_AVAILABLE).at_most("available", gauge(MEM_FREE));
        let promql = on_host(of_ram.or_without(free()));
        let measured = format!("unless {AVAILABLE} <= bool {FREE})");
        assert!(promql.ends_with(&measured), "{promql}");
    }

    #[test]
    fn what_is_asked_where_it_is_measured_drops_the_hosts_where_it_does_not_hold() {
        let asked = all![available().if_measured(), free(), shared()];
        assert_eq!(
            on_host(asked),
            format!("{FREE} <= 7 and node_memory_Shmem_bytes >= 9 unless {AVAILABLE} > 8")
        );
        let one_of = any![free(), available().if_measured()];
        assert_eq!(
            on_host(one_of),
            format!("{FREE} <= 7 or (node_memory_MemTotal_bytes unless {AVAILABLE} > 8)")
        );
    }

    #[test]
    fn readings_have_the_exporters_names_and_the_catalogues_units() {
        let read = rate(PGPGIN).at_least("read", BytesPerSecond::from_mib(1.0));
        assert_eq!(on_host(read), "rate(node_vmstat_pgpgin[1m]) >= 1024");
        let refaulted = rate(REFAULT_FILE).bytes();
        let refaulted = refaulted.at_least("refaulted", BytesPerSecond::from_mib(1.0));
        assert_eq!(
            on_host(refaulted),
            "rate(memtide_vm_workingset_refault_file_bytes_total[1m]) >= 1048576"
        );
    }

    #[test]
    fn a_cgroup_is_joined_with_its_host() {
        let most = gauge(CGROUP_CURRENT).at_least("memory", limit(CGROUP_MAX).times(0.95));
        let of_host = gauge(CGROUP_CURRENT).at_least("memory", crate::trigger::ram().times(0.5));
        let refaults = rate(CGROUP_REFAULT_FILE).bytes();
        let refaults = refaults.at_least("refaulted", BytesPerSecond::from_mib(1.0));
        assert_eq!(
            on_cgroups(all![free(), most, refaults.or_without(shared())]),
            "memtide_cgroup_current_bytes >= memtide_cgroup_max_bytes * 0.95 and \
             (rate(memtide_cgroup_refault_file_bytes_total[1m]) >= 1048576 or \
             (memtide_cgroup_current_bytes and on (instance, job) node_memory_Shmem_bytes >= 9 \
             unless rate(memtide_cgroup_refault_file_bytes_total[1m]))) and on (instance, job) \
             node_memory_MemFree_bytes <= 7"
        );
        assert_eq!(
            on_cgroups(of_host),
            "memtide_cgroup_current_bytes >= on (instance, job) group_left () \
             node_memory_MemTotal_bytes / 2"
        );
        assert_eq!(
            on_cgroups(free()),
            "memtide_cgroup_current_bytes and on (instance, job) node_memory_MemFree_bytes <= 7"
        );
    }
}
