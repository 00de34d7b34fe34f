//! A trigger as PromQL, over the metrics of node_exporter: a screen for a fleet's monitoring.
//!
//! Only rates over a minute, arithmetic and comparisons: functions that every engine has. Metrics that node_exporter
//! does not export have memtide's own names, as `memtide export --format openmetrics` writes them.

use std::fmt::Write as _;

use timeline::SignalId;

use super::Trigger;
use super::reading::{Expr, Predicate, ThresholdTest};
use crate::finding::ThresholdSide;

impl Trigger {
    /// Returns the trigger as PromQL; `None` if it rests on kernel reports, on a function, or on the source.
    pub(crate) fn promql(&self) -> Option<String> {
        match self {
            Self::While(holds) => holds.when.promql(),
            Self::Found(_) | Self::Source => None,
        }
    }
}

impl Predicate {
    /// Returns the hosts on which it holds.
    fn promql(&self) -> Option<String> {
        match self {
            Self::Compare(comparison) => comparison.promql(""),
            Self::All(parts) => all(parts),
            Self::Any(parts) => joined(parts, Self::promql, " or "),
            // Special cases are left to the recording.
            Self::Also(parts) => parts.first()?.promql(),
            Self::Measured(this, Some(other)) => Some(format!(
                "({} or ({} unless {}))",
                this.promql()?,
                other.promql()?,
                this.measured()?
            )),
            Self::Measured(this, None) => Some(format!(
                "({} unless {})",
                EVERY_HOST.promql()?,
                this.refuted()?
            )),
        }
    }

    /// Returns the hosts that have what it reads, whether it holds or not.
    fn measured(&self) -> Option<String> {
        match self {
            Self::Compare(comparison) => comparison.measured(),
            Self::All(parts) => joined(parts, Self::measured, " and "),
            Self::Any(parts) | Self::Also(parts) => joined(parts, Self::measured, " or "),
            Self::Measured(this, Some(other)) => {
                Some(format!("({} or {})", this.measured()?, other.measured()?))
            }
            Self::Measured(_, None) => EVERY_HOST.promql(),
        }
    }

    /// Returns the hosts on which it was measured and does not hold.
    fn refuted(&self) -> Option<String> {
        match self {
            Self::Compare(comparison) => comparison.refuted(),
            Self::All(parts) => joined(parts, Self::refuted, " or "),
            _ => Some(format!("({} unless {})", self.measured()?, self.promql()?)),
        }
    }
}

/// A number that every host has: node_exporter exports the size of RAM.
const EVERY_HOST: Expr = Expr::Ram;

/// Joins parts that must all hold. A plain `and` would drop hosts that lack a part which is only required if measured.
fn all(parts: &[Predicate]) -> Option<String> {
    let (asked, needed): (Vec<_>, Vec<_>) = parts
        .iter()
        .partition(|part| matches!(part, Predicate::Measured(_, None)));
    let needed: Option<Vec<String>> = needed.into_iter().map(Predicate::promql).collect();
    let mut promql = match needed?.join(" and ") {
        none if none.is_empty() => EVERY_HOST.promql()?,
        needed => needed,
    };
    for part in asked {
        if let Predicate::Measured(this, None) = part {
            promql = format!("{promql} unless {}", this.refuted()?);
        }
    }
    Some(format!("({promql})"))
}

fn joined(
    parts: &[Predicate],
    promql: fn(&Predicate) -> Option<String>,
    word: &str,
) -> Option<String> {
    let parts: Option<Vec<String>> = parts.iter().map(promql).collect();
    Some(format!("({})", parts?.join(word)))
}

impl ThresholdTest {
    /// Returns the hosts on which it holds; with the modifier `bool` all that have both sides.
    fn promql(&self, modifier: &str) -> Option<String> {
        let sign = match self.side {
            ThresholdSide::From => ">=",
            ThresholdSide::Below => "<=",
        };
        self.compared(&format!("{sign}{modifier}"))
    }

    fn refuted(&self) -> Option<String> {
        self.compared(match self.side {
            ThresholdSide::From => "<",
            ThresholdSide::Below => ">",
        })
    }

    fn measured(&self) -> Option<String> {
        match self.right {
            Expr::Constant(_) => self.left.promql(),
            _ => self.promql(" bool"),
        }
    }

    fn compared(&self, sign: &str) -> Option<String> {
        let (left, right) = (self.left.promql()?, self.right.promql()?);
        Some(format!("({left} {sign} {right})"))
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
            // node_exporter does not export it; hosts with another page size need their own rules.
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
            Self::Named(named) => named.expr.promql()?,
            Self::MostOfOthers(_) | Self::Computed(_) | Self::ComputedOf(_) => return None,
        })
    }
}

impl Expr {
    /// Returns the number as one per host: a constant alone belongs to no host, and an engine accepts no `or` with it.
    fn of_each_host(&self) -> Option<String> {
        let promql = self.promql()?;
        Some(if let Self::Constant(_) = self {
            format!("({} * 0 + {promql})", Self::Ram.promql()?)
        } else {
            promql
        })
    }
}

/// Returns whichever of two numbers the sign prefers.
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

/// Returns a rate. node_exporter counts time in seconds, the catalogue in the kernel's own unit.
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

#[cfg(test)]
mod tests {
    use timeline::signals::{MEM_AVAILABLE, MEM_FREE, MEM_SHMEM};
    use units::Bytes;

    use super::*;
    use crate::trigger::{all, any, gauge};

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

    #[test]
    fn a_fallback_is_asked_only_of_hosts_that_do_not_have_the_first() {
        let promql = available().or_without(free()).promql().unwrap();
        assert_eq!(
            promql,
            format!("(({AVAILABLE} <= 8) or (({FREE} <= 7) unless {AVAILABLE}))")
        );
        let of_ram = gauge(MEM_AVAILABLE).at_most("available", gauge(MEM_FREE));
        let promql = of_ram.or_without(free()).promql().unwrap();
        assert!(
            promql.ends_with(&format!("unless ({AVAILABLE} <= bool {FREE})))")),
            "{promql}"
        );
    }

    #[test]
    fn what_is_asked_where_it_is_measured_drops_the_hosts_where_it_does_not_hold() {
        let asked = all![available().if_measured(), free(), shared()];
        assert_eq!(
            asked.promql().unwrap(),
            format!("(({FREE} <= 7) and (node_memory_Shmem_bytes >= 9) unless ({AVAILABLE} > 8))")
        );
        let one_of = any![free(), available().if_measured()];
        assert_eq!(
            one_of.promql().unwrap(),
            format!("(({FREE} <= 7) or (node_memory_MemTotal_bytes unless ({AVAILABLE} > 8)))")
        );
    }
}
