//! Rules as alerts of Prometheus, and as the file that Prometheus reads.

use diagnose::{PrometheusAlert, RecordedPart, Rule};
use schemars::JsonSchema;
use serde::Serialize;
use units::Span;

use super::RuleEntry;

/// A rule as an alert of Prometheus.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct AlertEntry {
    /// Returns series where the trigger holds.
    pub expr: String,
    /// How long it must hold, in seconds.
    pub for_s: Span,
    /// Recording rules that it uses, in this order.
    pub parts: Vec<RecordedPart>,
}

impl AlertEntry {
    /// The alert of a rule, if it can be one.
    pub(super) fn of(rule: &Rule) -> Option<Self> {
        let PrometheusAlert { expr, lasts, parts } = rule.prometheus()?;
        Some(Self { expr, for_s: lasts, parts })
    }
}

/// Returns these rules as a file of Prometheus; those that are no alert are left out. Each recording rule stands once.
pub fn prometheus(rules: &[RuleEntry]) -> String {
    let mut text = String::from("groups:\n- name: memtide\n  rules:\n");
    let mut recorded: Vec<&str> = Vec::new();
    for (rule, alert) in rules.iter().filter_map(|rule| Some((rule, rule.alert.as_ref()?))) {
        for part in &alert.parts {
            if !recorded.contains(&part.name.as_str()) {
                recorded.push(&part.name);
                text += &indented(&recorded_by(part));
            }
        }
        text += &indented(&alert.rule(rule.id));
        text += &format!("    annotations:\n      summary: {:?}\n", rule.summary);
    }
    text
}

/// The rules of one alert: those that it uses, and itself.
pub(super) fn lines_of(id: &str, alert: &AlertEntry) -> String {
    let parts = alert.parts.iter().map(recorded_by);
    parts.chain([alert.rule(id)]).collect()
}

impl AlertEntry {
    fn rule(&self, id: &str) -> String {
        format!("- alert: {id}\n{}  for: {}s\n", expr(&self.expr), self.for_s.as_secs_f64())
    }
}

fn recorded_by(part: &RecordedPart) -> String {
    format!("- record: {}\n{}", part.name, expr(&part.expr))
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {line}\n")).collect()
}

/// An expression as a folded scalar of YAML.
fn expr(promql: &str) -> String {
    let mut text = String::from("  expr: >-\n");
    for line in lines(promql) {
        text += &format!("    {line}\n");
    }
    text
}

/// Breaks an expression before each set operator that stands in no parentheses.
fn lines(promql: &str) -> Vec<String> {
    let (mut lines, mut depth) = (vec![String::new()], 0_usize);
    for word in promql.split(' ') {
        if depth == 0 && ["and", "unless", "or"].contains(&word) {
            lines.push(String::new());
        }
        let line = lines.last_mut();
        line.into_iter().for_each(|line| {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        });
        depth += word.matches('(').count();
        depth = depth.saturating_sub(word.matches(')').count());
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expression_is_broken_where_it_is_joined() {
        assert_eq!(
            lines("a >= 1 and (b or c) unless on (x) d"),
            ["a >= 1", "and (b or c)", "unless on (x) d"]
        );
        assert_eq!(lines("a"), ["a"]);
    }

    #[test]
    fn a_part_of_two_alerts_is_recorded_once_and_before_both() {
        let all = prometheus(&RuleEntry::all());
        let names: Vec<&str> =
            all.lines().filter_map(|line| line.trim().strip_prefix("- record: ")).collect();
        let mut once = names.clone();
        once.sort_unstable();
        once.dedup();
        assert_eq!(once.len(), names.len());
        for name in names {
            let (recorded, used) = (all.find(&format!("record: {name}\n")), all.find(name));
            assert!(recorded <= used, "{name}");
        }
    }
}
