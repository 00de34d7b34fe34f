//! What memtide knows, as lists for `rules --format json` and `signals --format json`.

use diagnose::{AlertMetrics, Rule};
use schemars::JsonSchema;
use serde::Serialize;
use timeline::SignalDef;

use super::alert::AlertEntry;

/// A rule, explained.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct RuleEntry {
    /// Names the pathology.
    pub id: &'static str,
    /// memtide's version that brought it.
    pub since: &'static str,
    /// `finding` or `note`.
    pub purpose: &'static str,
    pub summary: String,
    /// Its documentation in Markdown.
    pub docs: String,
    /// Its trigger in words; null where it is found in another way: kernel reports, a level that rose.
    pub trigger: Option<String>,
    /// Its trigger as an alert of Prometheus; null where none can be given.
    pub alert: Option<AlertEntry>,
    /// What it is about: `shortage`, `limit`, `setting`, …
    pub class: &'static str,
    /// Ids of the rules that it can cause.
    pub brings_about: Vec<&'static str>,
    /// Settings that explain it.
    pub explained_by: Vec<&'static str>,
}

/// A signal, explained.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SignalEntry {
    /// Dotted name: `vm.pswpin`.
    pub name: &'static str,
    /// `gauge` or `counter`.
    pub kind: &'static str,
    /// Unit of a stored reading.
    pub unit: &'static str,
    /// What it is about: `host`, `cgroup`, …
    pub entity: &'static str,
    /// The kernel file, or `computed`.
    pub file: &'static str,
    /// The field in it, or the formula.
    pub field: &'static str,
    /// How many of `unit` one of the file's unit is.
    pub scale: u64,
    /// Kernel version that brought it; null where all kernels in use have it.
    pub since: Option<&'static str>,
    pub meaning: &'static str,
    /// Its column of `sar`.
    pub sar: Option<&'static str>,
    /// Its metric of Performance Co-Pilot.
    pub pcp: Option<&'static str>,
    /// Its metric of node_exporter.
    pub node_exporter: Option<&'static str>,
}

impl RuleEntry {
    /// All rules, in the order of their catalogue.
    pub fn all() -> Vec<Self> {
        diagnose::rules::ALL.iter().map(Self::from).collect()
    }

    /// The rule with this id.
    pub fn by_id(id: &str) -> Option<Self> {
        diagnose::rules::by_id(id).map(Self::from)
    }
}

impl SignalEntry {
    /// All signals, in the order of their catalogue.
    pub fn all() -> Vec<Self> {
        timeline::signals::ALL.iter().map(Self::from).collect()
    }

    /// The signal of this name.
    pub fn by_name(name: &str) -> Option<Self> {
        timeline::signals::by_name(name).map(|(_, def)| Self::from(def))
    }

    /// What it is about, in words: there is one host, and there are several of anything else.
    pub(crate) fn subject(&self) -> String {
        match self.entity {
            "host" => "the host".to_owned(),
            entity => format!("each {entity}"),
        }
    }
}

impl From<&Rule> for RuleEntry {
    fn from(rule: &Rule) -> Self {
        let alert = AlertEntry::of(rule, AlertMetrics::Memtide);
        Self {
            id: rule.id,
            since: rule.since,
            purpose: if rule.is_note() { "note" } else { "finding" },
            summary: rule.summary(),
            docs: with_trigger(rule, alert.as_ref()),
            trigger: rule.trigger_in_words(),
            alert,
            class: rule.class.word(),
            brings_about: rule.brings_about(),
            explained_by: rule.explained_by(),
        }
    }
}

impl From<&SignalDef> for SignalEntry {
    fn from(def: &SignalDef) -> Self {
        Self {
            name: def.name,
            kind: def.kind(),
            unit: def.unit,
            entity: def.entity.name(),
            file: def.file,
            field: def.field,
            scale: def.scale,
            since: some(def.since),
            meaning: def.meaning,
            sar: some(def.sar),
            pcp: some(def.pcp),
            node_exporter: some(def.node_exporter),
        }
    }
}

fn some(name: &'static str) -> Option<&'static str> {
    (!name.is_empty()).then_some(name)
}

/// Its documentation, with the trigger's thresholds under *How it is recognised*, as the code has them.
fn with_trigger(rule: &Rule, alert: Option<&AlertEntry>) -> String {
    let docs = markdown(&rule.docs());
    let Some(trigger) = rule.trigger_in_words() else {
        return docs;
    };
    let promql = alert.map_or_else(String::new, |alert| {
        let lines = super::alert::lines_of(rule.id, alert);
        format!("\n\nFor Prometheus:\n\n```yaml\n{lines}```\n")
    });
    docs.replacen("\n## Not this", &format!("\n\nThe trigger, {trigger}{promql}\n\n## Not this"), 1)
}

/// A doc comment's text: its lines begin with the blank behind `///`.
fn markdown(docs: &str) -> String {
    let mut text = String::with_capacity(docs.len());
    for line in docs.lines() {
        text.push_str(line.strip_prefix(' ').unwrap_or(line).trim_end());
        text.push('\n');
    }
    text
}
