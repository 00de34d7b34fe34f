//! The rules as alerts of Prometheus, asked of Prometheus itself: the labelled captures are its series, and each alert fires where
//! its pathology is, in time, and on no host that only looks like it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use diagnose::{AlertMetrics, PrometheusAlert};
use export::{Exporter as _, MetricsFormat, MetricsText, Picks};
use timeline::metric::MetricNaming;
use timeline::{Entity, Source, Timeline};
use units::WallClock;

use crate::cases::{self, Case};
use crate::prometheus::{Prometheus, in_percent};
use crate::support::{has, promtool};

/// 2026-01-01: all captures begin then, so that one query asks about all.
const BEGIN: u64 = 1_767_225_600;
/// Tables that are read every ten seconds last so long.
const LASTS: &str = "12s";
/// A rate is one of a minute.
const LATE: f64 = 60.0;

/// The alerts that can fire on a capture, with the parts written out.
fn alerts() -> BTreeMap<&'static str, PrometheusAlert> {
    let all = diagnose::rules::ALL.iter();
    let mut alerts: BTreeMap<_, _> =
        all.filter_map(|rule| Some((rule.id, rule.prometheus(AlertMetrics::Memtide)?))).collect();
    for alert in alerts.values_mut() {
        // Parts that others use come first.
        for part in alert.parts.iter().rev() {
            alert.expr = alert.expr.replace(&part.name, &format!("({})", part.expr));
        }
    }
    alerts
}

/// The same source with times of its own.
fn from_the_beginning(source: &Source) -> Source {
    let mut timeline = Timeline::default();
    for index in 0..source.timeline.len() {
        let mut sample = source.timeline.sample(index).unwrap();
        let elapsed = source.timeline.times()[index].as_nanos();
        let nanos = BEGIN * 1_000_000_000 + elapsed;
        sample.stamp.wall = Some(WallClock::from_unix_nanos(i64::try_from(nanos).unwrap()));
        timeline.push(&sample).unwrap();
    }
    let mut again = source.clone();
    again.timeline = timeline;
    again
}

/// What of a metric's lines is its name.
fn name(line: &str) -> &str {
    line.split(['{', ' ']).next().unwrap_or_default()
}

/// The captures as one OpenMetrics text, each an instance, with these metrics only.
fn series(cases: &[&Case], wanted: &BTreeSet<String>) -> String {
    let mut families: BTreeMap<String, (String, String)> = BTreeMap::new();
    for case in cases {
        let source = from_the_beginning(&case.open());
        let format = MetricsText {
            tables: Entity::ALL.into_iter().filter(|it| *it != Entity::Process).collect(),
            names: MetricNaming::NodeExporter,
            format: MetricsFormat::OpenMetricsOverTime,
            entities_max: None,
            own: Vec::new(),
        };
        let mut text = Vec::new();
        format.export(&source, &Picks::default(), &mut text).unwrap();
        let mut head = String::new();
        for line in std::str::from_utf8(&text).unwrap().lines() {
            if line.starts_with("# TYPE") {
                head = format!("{line}\n");
            }
            let metric = name(line);
            if line.starts_with('#') || !wanted.contains(metric) {
                continue;
            }
            let labels = format!("{{instance=\"{}\",job=\"captures\"", case.id);
            let rest = &line[metric.len()..];
            let labelled = match rest.strip_prefix('{') {
                Some(more) => format!("{metric}{labels},{more}\n"),
                None => format!("{metric}{labels}}}{rest}\n"),
            };
            let family = families.entry(metric.to_owned());
            let (_, lines) = family.or_insert_with(|| (head.clone(), String::new()));
            lines.push_str(&labelled);
        }
    }
    let mut text = String::new();
    for (head, lines) in families.values() {
        text += head;
        text += lines;
    }
    text + "# EOF\n"
}

/// When an alert fires, in seconds from the beginning of each capture.
fn fires(
    prometheus: &Prometheus,
    alert: &PrometheusAlert,
    seconds: u64,
) -> BTreeMap<String, Vec<f64>> {
    let query = in_percent(&alert.expr);
    let form = format!("query={query}&start={BEGIN}&end={}&step=1", BEGIN + seconds);
    let body = prometheus.ask("/api/v1/query_range", &form).unwrap();
    let answer: serde_json::Value = serde_json::from_str(&body).unwrap();
    let mut all: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for series in answer["data"]["result"].as_array().unwrap() {
        let instance = series["metric"]["instance"].as_str().unwrap();
        let (mut since, mut before) = (None, None);
        for value in series["values"].as_array().unwrap() {
            let at = value[0].as_f64().unwrap() - BEGIN as f64;
            if before.is_none_or(|before| at - before > 1.5) {
                since = Some(at);
            }
            before = Some(at);
            if at - since.unwrap() >= alert.lasts.as_secs_f64() {
                all.entry(instance.to_owned()).or_default().push(at);
            }
        }
    }
    all
}

/// How an alert did.
#[derive(Debug, Default)]
struct Outcome {
    fired: usize,
    late: Vec<String>,
    silent: Vec<String>,
    /// Where it is there and no reason to warn.
    mild: Vec<String>,
    wrong: Vec<String>,
    looked_alike: usize,
}

fn outcome(id: &str, fires: &BTreeMap<String, Vec<f64>>, cases: &[&Case]) -> Outcome {
    let mut outcome = Outcome::default();
    for case in cases {
        let labels = case.file.labels.as_ref().unwrap();
        let is_named = |ids: &[String]| ids.iter().any(|it| it.split('|').any(|it| it == id));
        let must = labels.must_find.iter().any(|it| it == id) && !labels.not_yet.contains_key(id);
        let may = is_named(&labels.must_find)
            || labels.may_find.as_ref().is_some_and(|ids| is_named(ids));
        let must_not =
            !may && (labels.calm || is_named(&labels.must_not_find) || labels.may_find.is_some());
        let end = case.judged().source.timeline.times().last().map_or(0.0, |end| end.as_secs_f64());
        let at = fires.get(&case.id).and_then(|at| at.first()).filter(|at| **at <= end);
        outcome.looked_alike += usize::from(must_not);
        match at {
            Some(_) if must_not => {
                // What memtide itself names without a warning is there.
                let is_named = case.judged().reported().any(|it| it.id == id);
                let list = if is_named { &mut outcome.mild } else { &mut outcome.wrong };
                list.push(case.id.clone());
            }
            Some(at) if must => {
                let findings = case.judged().reported();
                let times = case.judged().source.timeline.times();
                let last = findings.filter(|it| it.id == id).filter_map(|it| it.when);
                let last = last.map(|when| times[when.last].as_secs_f64()).fold(0.0, f64::max);
                if last > 0.0 && *at > last + LATE {
                    outcome.late.push(case.id.clone());
                } else {
                    outcome.fired += 1;
                }
            }
            None if must => outcome.silent.push(case.id.clone()),
            _ => {}
        }
    }
    outcome
}

#[test]
fn an_alert_fires_where_its_pathology_is_and_on_nothing_that_looks_like_it() {
    if !has("promtool") || !has("prometheus") {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let alerts = alerts();
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words = alerts.values().flat_map(|alert| alert.expr.split(|c| !is_word(c)));
    let wanted: BTreeSet<String> = words.map(str::to_owned).collect();
    let cases: Vec<&Case> = cases::captures().collect();
    let text = place.path().join("series.txt");
    std::fs::write(&text, series(&cases, &wanted)).unwrap();
    let database = place.path().join("database");
    let arguments = [
        "tsdb",
        "create-blocks-from",
        "openmetrics",
        text.to_str().unwrap(),
        database.to_str().unwrap(),
    ];
    let (is_made, says) = promtool(&arguments, "");
    assert!(is_made, "{says}");
    let prometheus = Prometheus::serving(&database, place.path(), LASTS);
    let mut table =
        String::from("alert                      fired late silent mild wrong of look-alikes\n");
    let mut faults = String::new();
    for (id, alert) in &alerts {
        let fires = fires(&prometheus, alert, 900);
        let outcome = outcome(id, &fires, &cases);
        let _ = writeln!(
            table,
            "{id:<26} {:>5} {:>4} {:>6} {:>4} {:>5} {:>14}",
            outcome.fired,
            outcome.late.len(),
            outcome.silent.len(),
            outcome.mild.len(),
            outcome.wrong.len(),
            outcome.looked_alike
        );
        for (what, which) in
            [("late", &outcome.late), ("silent", &outcome.silent), ("wrong", &outcome.wrong)]
        {
            if !which.is_empty() {
                let _ = writeln!(faults, "{id} is {what} on {}: {}", which.join(", "), alert.expr);
            }
        }
    }
    println!("{table}");
    assert!(faults.is_empty(), "{table}\n{faults}");
}

/// The file that `rules --prometheus` prints, as promtool reads it: alerts with what stands below each.
fn printed(options: &[&str]) -> String {
    let output = crate::support::memtide(&[&["rules", "--prometheus"], options].concat());
    assert_eq!(output.status.code(), Some(0), "{}", crate::support::stderr(&output));
    crate::support::stdout(&output)
}

/// What stands below each alert, up to the next rule.
fn blocks(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.split("- alert: ").skip(1).map(|block| block.split_once('\n').unwrap())
}

#[test]
fn every_alert_says_how_bad_it_is_what_it_means_and_where_to_read_on() {
    let root = crate::support::root();
    let page = |name: &str| std::fs::read_to_string(root.join("docs").join(name)).unwrap();
    let pages = BTreeMap::from([("rules.md", page("rules.md")), ("alerts.md", page("alerts.md"))]);
    let text = printed(&["--runbook-url", "https://example.org/docs/"]);
    assert!(blocks(&text).count() >= 25, "{text}");
    for (name, block) in blocks(&text) {
        let of = |key: &str| {
            let key = format!("{key}: ");
            let line = block.lines().find_map(|line| line.trim().strip_prefix(key.as_str()));
            line.unwrap_or_else(|| panic!("{name} has no {key}: {block}")).trim_matches('"')
        };
        assert!(["info", "warning", "critical"].contains(&of("severity")), "{name}");
        assert!(of("summary").starts_with("{{ $labels.instance }}: "), "{name}");
        assert!(!of("description").is_empty() && of("for").ends_with('s'), "{name}");
        let link = of("runbook_url").strip_prefix("https://example.org/docs/").unwrap();
        let (file, anchor) = link.split_once('#').unwrap();
        assert_eq!(anchor, name);
        let heading = format!("\n### {anchor}\n");
        assert!(pages[file].contains(&heading), "docs/{file} has no section {anchor}");
    }
    for stock in ["NodeMemoryMajorPagesFaults", "NodeMemoryHighUtilization", "NodeSystemSaturation"]
    {
        assert!(text.contains(stock), "{stock}");
    }
    // Of pressure first.
    assert_eq!(blocks(&text).next().map(|(name, _)| name), Some("memory-stall"));
}

#[test]
fn what_docs_say_of_an_alert_of_hosts_is_what_it_asks() {
    let page = std::fs::read_to_string(crate::support::root().join("docs/alerts.md")).unwrap();
    let page = page.split_whitespace().collect::<Vec<_>>().join(" ");
    for alert in diagnose::HostAlert::all(AlertMetrics::Memtide) {
        let docs = format!("{} {}", alert.meaning, alert.more);
        let docs = docs.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(page.contains(&docs), "{}: {docs}", alert.name);
        let expr = alert.expr.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(page.contains(&expr), "{}: {expr}", alert.name);
    }
}

#[test]
fn node_exporters_metrics_alone_are_enough_where_they_are_chosen() {
    let text = printed(&["--metrics", "node-exporter"]);
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    let exprs = text.lines().filter(|line| !line.contains(": \"") && !line.contains("name: "));
    let metrics = exprs.flat_map(|line| line.split(|c| !is_word(c)));
    let strange: Vec<&str> = metrics
        .filter(|word| {
            word.starts_with("memtide_")
                || word.starts_with("node_zoneinfo_")
                || word.starts_with("node_memory_numa_")
        })
        .collect();
    assert_eq!(strange, Vec::<&str>::new());
    for id in ["memory-stall", "memory-standstill", "swap-thrash", "no-swap-risk", "oom-kill"] {
        assert!(text.contains(&format!("- alert: {id}\n")), "{id}: {text}");
    }
}

#[test]
fn a_kubernetes_object_has_the_same_groups() {
    let (plain, object) = (printed(&[]), printed(&["--kubernetes"]));
    let head = "apiVersion: monitoring.coreos.com/v1\nkind: PrometheusRule\n";
    assert!(object.starts_with(head), "{object}");
    let (_, spec) = object.split_once("\nspec:\n").unwrap();
    let groups: String =
        spec.lines().map(|line| line.strip_prefix("  ").unwrap().to_owned() + "\n").collect();
    assert_eq!(groups, plain);
    if !has("promtool") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    for options in [&[][..], &["--metrics", "node-exporter"]] {
        let path = crate::support::file(&directory, "rules.yml", printed(options));
        let (is_fine, says) = promtool(&["check", "rules", &path], "");
        assert!(is_fine, "{says}");
    }
    let refused = crate::support::memtide(&["rules", "--prometheus", "--runbook-url", "a b"]);
    assert_eq!(refused.status.code(), Some(3));
    let alone = crate::support::memtide(&["rules", "--kubernetes"]);
    assert_eq!(alone.status.code(), Some(3));
}
