//! What docs/ holds is what the code says: `BLESS=1 cargo test -p memtide-report` writes it, otherwise stale files fail.

use report::model::explain::ExplainReport;
use report::model::growth::GrowthReport;
use report::model::headroom::HeadroomReport;
use report::model::runtime_stats::RuntimeStatsReport;
use report::model::series::SeriesReport;
use report::model::status::StatusReport;
use report::model::top::TopReport;
use report::model::{
    CompareReport, EventsReport, FindingNotice, RuleEntry, SignalEntry, WhereByReport, schema_of,
};

/// The five headings of a rule's documentation.
const HEADINGS: [&str; 5] =
    ["What it means", "How it is recognised", "Not this", "What to do", "References"];

#[track_caller]
fn fresh(name: &str, text: &str) {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/").to_owned() + name;
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(path, text).unwrap();
        return;
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == text, "docs/{name} is stale: BLESS=1 cargo test -p memtide-report writes it");
}

#[test]
fn the_published_schemas_are_fresh() {
    for (name, schema) in [
        ("report", schema_of::<report::Report>()),
        ("explain", schema_of::<ExplainReport>()),
        ("headroom", schema_of::<HeadroomReport>()),
        ("growth", schema_of::<GrowthReport>()),
        ("compare", schema_of::<CompareReport>()),
        ("events", schema_of::<EventsReport>()),
        ("where-by", schema_of::<WhereByReport>()),
        ("recorder", schema_of::<StatusReport>()),
        ("top", schema_of::<TopReport>()),
        ("series", schema_of::<SeriesReport>()),
        ("runtime-stats", schema_of::<RuntimeStatsReport>()),
        ("finding", schema_of::<FindingNotice>()),
    ] {
        fresh(&format!("{name}.schema.json"), &(schema.unwrap() + "\n"));
    }
}

#[test]
fn the_list_of_rules_is_fresh() {
    fresh("rules.md", &report::docs::rules(&RuleEntry::all()));
}

#[test]
fn the_list_of_signals_and_settings_is_fresh() {
    let text = report::docs::signals(&SignalEntry::all()) + &report::docs::settings();
    fresh("signals.md", &text);
}

#[test]
fn every_rule_is_documented_under_the_five_headings() {
    for rule in RuleEntry::all() {
        let headings: Vec<&str> =
            rule.docs.lines().filter_map(|line| line.strip_prefix("## ")).collect();
        assert_eq!(headings, HEADINGS, "{}", rule.id);
        assert!(rule.summary.ends_with('.'), "{}: {}", rule.id, rule.summary);
        let sections = rule.docs.split("\n## ").skip(1);
        for section in sections {
            let (heading, text) = section.split_once('\n').unwrap_or((section, ""));
            assert!(!text.trim().is_empty(), "{}: {heading} is empty", rule.id);
        }
    }
}
