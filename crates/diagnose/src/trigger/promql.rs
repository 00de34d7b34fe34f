//! A trigger as PromQL, over the metrics of node_exporter: what a fleet's engine can screen for.
//!
//! Only rates over a minute, arithmetic and comparisons: functions that every engine has. Metrics that node_exporter does
//! not export go by memtide's own names, as `memtide export --format openmetrics` writes them.

use std::fmt::Write as _;

use timeline::SignalId;

use super::Trigger;
use super::reading::{Comparison, Expr, Predicate};
use crate::finding::ThresholdSide;
use crate::rule::Rule;

impl Rule {
    /// Its trigger in PromQL; `None` where none can be given: it rests on kernel reports, on a function, or on the source.
    pub fn promql(&self) -> Option<String> {
        let trigger = (self.trigger)();
        let Trigger::While(it) = &trigger else {
            return None;
        };
        it.when.promql()
    }
}

impl Predicate {
    fn promql(&self) -> Option<String> {
        match self {
            Self::Compare(comparison) => comparison.promql(),
            Self::All(parts) => joined(parts, " and "),
            Self::Any(parts) => joined(parts, " or "),
            // An engine drops what it does not have: then the other decides.
            Self::Measured(this, Some(other)) => {
                Some(format!("({} or {})", this.promql()?, other.promql()?))
            }
            Self::Measured(this, None) => this.promql(),
        }
    }
}

fn joined(parts: &[Predicate], word: &str) -> Option<String> {
    let parts: Option<Vec<String>> = parts.iter().map(Predicate::promql).collect();
    Some(format!("({})", parts?.join(word)))
}

impl Comparison {
    fn promql(&self) -> Option<String> {
        let sign = match self.side {
            ThresholdSide::From => ">=",
            ThresholdSide::Below => "<=",
        };
        Some(format!(
            "({} {sign} {})",
            self.left.promql()?,
            self.right.promql()?
        ))
    }
}

impl Expr {
    fn promql(&self) -> Option<String> {
        let pair = |a: &Self, sign: &str, b: &Self| {
            Some(format!("({} {sign} {})", a.promql()?, b.promql()?))
        };
        Some(match self {
            Self::Gauge(signal) => metric(*signal),
            Self::Rate(signal) => rate(*signal),
            Self::Constant(value) => number(*value),
            Self::Ram => metric(timeline::signals::MEM_TOTAL.id()),
            // node_exporter does not export it; hosts with other pages need their own rules.
            Self::PageSize => "4096".to_owned(),
            Self::Fact(fact) => format!("memtide_{}", fact.name.replace(['.', '-'], "_")),
            Self::Sum(parts) => {
                let parts: Option<Vec<String>> = parts.iter().map(Self::promql).collect();
                let (first, others) = parts.as_ref()?.split_first()?;
                others.iter().fold(first.clone(), |mut sum, other| {
                    sum = format!("({sum} + ({other} or {first} * 0))");
                    sum
                })
            }
            Self::Both(a, b) => pair(a, "+", b)?,
            Self::Difference(a, b) => format!("clamp_min({}, 0)", pair(a, "-", b)?),
            Self::Product(a, b) => pair(a, "*", b)?,
            Self::Quotient(a, b) => pair(a, "/", b)?,
            Self::Least(a, b) => smaller(a, "<=", b)?,
            Self::Most(a, b) => smaller(a, ">=", b)?,
            Self::FirstOf(parts) => {
                let parts: Option<Vec<String>> = parts.iter().map(Self::of_each_host).collect();
                format!("({})", parts?.join(" or "))
            }
            Self::SumOver(_, each) => format!("sum by (instance, job) ({})", each.promql()?),
            Self::MostOfOthers(_) | Self::Computed(_) | Self::ComputedOf(_) => return None,
        })
    }
}

impl Expr {
    /// A number alone has no hosts, and an engine takes no `or` with one.
    fn of_each_host(&self) -> Option<String> {
        let promql = self.promql()?;
        Some(if let Self::Constant(_) = self {
            format!("({} * 0 + {promql})", Self::Ram.promql()?)
        } else {
            promql
        })
    }
}

/// The one of two that the sign prefers.
fn smaller(a: &Expr, sign: &str, b: &Expr) -> Option<String> {
    if let Expr::Constant(value) = b {
        let clamp = if sign == "<=" {
            "clamp_max"
        } else {
            "clamp_min"
        };
        return Some(format!("{clamp}({}, {})", a.promql()?, number(*value)));
    }
    let (a, b) = (a.promql()?, b.promql()?);
    Some(format!("(({a} {sign} {b}) or {b})"))
}

/// node_exporter counts time in seconds, where the catalogue has the kernel's own unit.
fn rate(signal: SignalId) -> String {
    let (def, metric) = (signal.def(), metric(signal));
    let per_second = match def.unit {
        _ if !metric.ends_with("_seconds_total") => return format!("rate({metric}[1m])"),
        "us" => 1_000_000,
        "ms" => 1_000,
        _ => 1,
    };
    format!("(rate({metric}[1m]) * {per_second})")
}

fn metric(signal: SignalId) -> String {
    let def = signal.def();
    if def.node_exporter.is_empty() {
        return format!("memtide_{}", def.name.replace(['.', '-'], "_"));
    }
    def.node_exporter.to_owned()
}

fn number(value: f64) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = write!(text, "{value}");
    text
}
