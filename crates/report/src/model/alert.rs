//! Rules as alerts of Prometheus, and as the file that Prometheus reads.

use diagnose::{AlertMetrics, Class, HostAlert, PrometheusAlert, RecordedPart, Rule, Severity};
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
    /// The alert of a rule over these metrics, if it can be one.
    pub(super) fn of(rule: &Rule, metrics: AlertMetrics) -> Option<Self> {
        let PrometheusAlert { expr, lasts, parts } = rule.prometheus(metrics)?;
        Some(Self { expr, for_s: lasts, parts })
    }
}

/// Which file of alerts is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AlertFile {
    /// The metrics that Prometheus has.
    pub metrics: AlertMetrics,
    /// Whether it is a Kubernetes object, a PrometheusRule, instead of a file of Prometheus.
    pub is_object: bool,
    /// What stands before the page in the address of a runbook: `docs`, or an address on the web.
    pub runbooks: String,
}

impl AlertFile {
    /// All alerts: of hosts, pressure first, then those of rules that can be one.
    pub fn all(&self) -> String {
        let hosts = HostAlert::all(self.metrics).map(|alert| self.host_alert(alert));
        self.file(&[
            ("memtide-host", hosts.collect()),
            ("memtide-rules", self.rule_alerts(&RuleEntry::all())),
        ])
    }

    /// Those of these rules; rules that are no alert are left out.
    pub fn of(&self, rules: &[RuleEntry]) -> String {
        self.file(&[("memtide-rules", self.rule_alerts(rules))])
    }

    fn file(&self, groups: &[(&str, String)]) -> String {
        let head = "groups:\n".to_owned();
        let groups = groups.iter().filter(|(_, rules)| !rules.is_empty());
        let text = groups.fold(head, |text, (name, rules)| {
            text + &format!("- name: {name}\n  rules:\n") + &indented(rules, "  ")
        });
        if !self.is_object {
            return text;
        }
        format!(
            "apiVersion: monitoring.coreos.com/v1\nkind: PrometheusRule\nmetadata:\n  name: memtide\n  labels:\n    \
             app.kubernetes.io/name: memtide\nspec:\n{}",
            indented(&text, "  ")
        )
    }

    fn host_alert(&self, alert: &HostAlert) -> String {
        let HostAlert { name, expr: promql, lasts, severity, replaces, summary, meaning, .. } =
            alert;
        format!("- alert: {name}\n{}  for: {}s\n", expr(promql), lasts.as_secs_f64())
            + &notes(severity.word(), summary, meaning, replaces, &self.runbook("alerts.md", name))
    }

    /// The alerts of rules. Each recording rule stands once.
    fn rule_alerts(&self, rules: &[RuleEntry]) -> String {
        let (mut text, mut recorded) = (String::new(), Vec::new());
        for entry in rules {
            let rule = diagnose::rules::by_id(entry.id);
            let Some((rule, alert)) =
                rule.and_then(|rule| Some((rule, AlertEntry::of(rule, self.metrics)?)))
            else {
                continue;
            };
            for part in &alert.parts {
                if !recorded.contains(&part.name) {
                    recorded.push(part.name.clone());
                    text += &recorded_by(part);
                }
            }
            let description = format!(
                "The first reading of the trigger is {{{{ $value | humanize }}}}. `memtide rules {}` has all of it; \
                 `memtide check` on the host says what to do.",
                rule.id
            );
            let summary = format!("{{{{ $labels.instance }}}}: {}", entry.summary);
            text += &alert.rule(rule.id);
            text += &notes(
                severity(rule.class).word(),
                &summary,
                &description,
                rule.replaces,
                &self.runbook("rules.md", rule.id),
            );
        }
        text
    }

    fn runbook(&self, page: &str, anchor: &str) -> String {
        format!("{}/{page}#{anchor}", self.runbooks.trim_end_matches('/'))
    }
}

/// How much an alert of a rule matters: nobody is to be woken for one, as pressure is what wakes.
const fn severity(class: Class) -> Severity {
    match class {
        Class::Setting | Class::Growth | Class::Scarcity | Class::Note | Class::Source => {
            Severity::Info
        }
        Class::Shortage
        | Class::Stall
        | Class::Limit
        | Class::Kill
        | Class::Hardware
        | Class::Unexplained => Severity::Warning,
    }
}

fn notes(
    severity: &str,
    summary: &str,
    description: &str,
    replaces: &[&str],
    runbook: &str,
) -> String {
    let mut text = format!(
        "  labels:\n    severity: {severity}\n  annotations:\n    summary: {}\n    description: {}\n",
        scalar(summary),
        scalar(description)
    );
    if !replaces.is_empty() {
        text += &format!("    replaces: {}\n", scalar(&replaces.join(", ")));
    }
    text + &format!("    runbook_url: {}\n", scalar(runbook))
}

/// A text as a scalar of YAML in double quotes, which is one of JSON.
fn scalar(text: &str) -> String {
    serde_json::Value::from(text).to_string()
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

fn indented(text: &str, by: &str) -> String {
    text.lines().map(|line| format!("{by}{line}\n")).collect()
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
        let metrics = AlertMetrics::Memtide;
        let file = AlertFile { metrics, is_object: false, runbooks: "docs".to_owned() };
        let all = file.all();
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
