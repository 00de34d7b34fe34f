//! What holds for the file of every rule, and for the PromQL of all of them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use diagnose::{AlertMetrics, FixChange, SettingValue};
use export::{Exporter as _, MetricsFormat, MetricsText, Picks};
use timeline::metric::MetricNaming;
use timeline::settings::Setting;
use timeline::{Entity, Facts, Sample, SignalId, Source, SourceKind, Timeline};
use units::{PageSize, Span};

use crate::cases;
use crate::support::{file, has, memtide, promtool, root, stdout};

/// What fits on a screen.
const LINES_MAX: usize = 85;

/// Every file below `rules/`, with its text.
fn sources() -> Vec<(PathBuf, String)> {
    let mut directories = vec![root().join("crates/diagnose/src/rules")];
    let mut sources = Vec::new();
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
            } else {
                let text = std::fs::read_to_string(&path).unwrap();
                sources.push((path, text));
            }
        }
    }
    sources.sort();
    sources
}

/// The rule that a file is of: `oom_global` for `rules/oom_global/report.rs`.
fn rule_of(path: &Path) -> String {
    let rules = root().join("crates/diagnose/src/rules");
    let within = path.strip_prefix(rules).unwrap();
    let first = within.iter().next().unwrap().to_str().unwrap();
    first.trim_end_matches(".rs").to_owned()
}

/// What several rules need lies outside `rules/`, where its name says what it is; a rule can be read, changed and dropped
/// alone. Tests may ask what another rule says of their case.
#[test]
fn no_rule_knows_another() {
    for (path, text) in sources() {
        let rule = rule_of(&path);
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        if rule == "testing" {
            continue;
        }
        for (_, rest) in
            code.match_indices("rules::").map(|(at, found)| code.split_at(at + found.len()))
        {
            let other: String =
                rest.chars().take_while(|c| c.is_ascii_lowercase() || *c == '_').collect();
            assert_eq!(other, rule, "{}", path.display());
        }
        let is_part = path.parent().unwrap().ends_with(&rule);
        if !is_part {
            assert!(!code.contains("super::"), "{}: a sibling is named", path.display());
        }
        assert!(!code.contains("super::super"), "{}: a sibling is named", path.display());
    }
}

/// rustfmt leaves a whole chain as it is where one literal in it is wider than a line.
#[test]
fn rustfmt_formats_every_story() {
    let mut wide = String::new();
    for (path, text) in sources() {
        for (number, line) in text.lines().enumerate() {
            let is_code = !line.trim_start().starts_with("//");
            if is_code && line.chars().count() > 120 {
                wide += &format!("{}:{}\n", path.display(), number + 1);
            }
        }
    }
    assert_eq!(wide, "", "break a literal after \\n or a blank, with a \\ at the line's end");
}

/// Functions of formatted code with their lines: from `fn` to the brace below it.
fn functions(text: &str) -> Vec<(&str, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut functions = Vec::new();
    for (first, line) in lines.iter().enumerate() {
        let code = line.trim_start();
        let Some((before, after)) = code.split_once("fn ") else {
            continue;
        };
        let is_item =
            before.split_whitespace().all(|word| word == "const" || word.starts_with("pub"));
        if !is_item || !after.contains(['(', '<']) || code.ends_with(['}', ';']) {
            continue;
        }
        let indent = &line[..line.len() - code.len()];
        let end = lines[first..].iter().position(|line| line.strip_prefix(indent) == Some("}"));
        let name = after.split(['(', '<']).next().unwrap_or_default();
        functions.push((name, end.map_or(1, |end| end + 1)));
    }
    functions
}

#[test]
fn every_function_of_a_rule_fits_a_screen() {
    let mut long = String::new();
    for (path, text) in sources() {
        let name = path.file_name().unwrap().to_str().unwrap();
        for (function, lines) in functions(&text) {
            if lines > LINES_MAX {
                long += &format!("{}: {function} has {lines} lines\n", path.display());
            }
        }
        let is_rule = rule_of(&path) == name.trim_end_matches(".rs");
        if is_rule && name != "testing.rs" {
            let has_story = functions(&text).iter().any(|(function, _)| *function == "story");
            assert!(has_story, "{name}: no function is called story");
        }
    }
    assert!(long.is_empty(), "\n{long}");
}

/// The expressions of each rule that can be an alert: its own, and those of the series that it uses.
fn expressions() -> impl Iterator<Item = (&'static str, String)> {
    diagnose::rules::ALL.iter().flat_map(|rule| {
        let alert = rule.prometheus(AlertMetrics::Memtide);
        let parts = alert.iter().flat_map(|alert| &alert.parts);
        let all = alert.iter().map(|alert| &alert.expr);
        let all: Vec<_> = all.chain(parts.map(|part| &part.expr)).cloned().collect();
        all.into_iter().map(|expr| (rule.id, expr))
    })
}

/// The words of an expression: functions, operators, metrics and labels.
fn words(promql: &str) -> impl Iterator<Item = &str> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    let words = promql.split(move |c: char| !is_word(c));
    words.filter(|word| word.starts_with(|c: char| c.is_ascii_alphabetic()))
}

fn is_metric(word: &str) -> bool {
    ["node_", "memtide_", "memtide:"].iter().any(|of| word.starts_with(of))
}

/// Prometheus, VictoriaMetrics, Mimir and Thanos all have these.
#[test]
fn promql_uses_portable_functions_only() {
    const PORTABLE: [&str; 11] = [
        "rate",
        "clamp_min",
        "clamp_max",
        "sum",
        "by",
        "on",
        "group_left",
        "and",
        "or",
        "unless",
        "bool",
    ];
    const LABELS: [&str; 3] = ["instance", "job", "node"];
    let mut asked = 0;
    for (id, promql) in expressions() {
        for word in words(&promql).filter(|word| !is_metric(word)) {
            assert!(PORTABLE.contains(&word) || LABELS.contains(&word), "{id}: {word} in {promql}");
        }
        asked += 1;
    }
    assert!(asked >= 15, "{asked} expressions");
}

/// Some eight lines of a terminal.
const PROMQL_LEN_MAX: usize = 700;

#[test]
fn an_alert_fits_a_screen() {
    let long: Vec<String> = expressions()
        .filter(|(_, promql)| promql.len() > PROMQL_LEN_MAX)
        .map(|(id, promql)| format!("{id}: {} characters: {promql}", promql.len()))
        .collect();
    assert!(long.is_empty(), "{}", long.join("\n"));
}

/// The names of the metrics of a host that has everything.
fn exported() -> BTreeSet<String> {
    let mut sample = Sample::default();
    for signal in SignalId::all() {
        let entity = signal.def().entity;
        match entity {
            Entity::Host => sample.host.set_raw(signal, 1),
            _ => sample.table_mut(entity).entry("0/Normal").row.set_raw(signal, 1),
        }
    }
    let mut timeline = Timeline::default();
    timeline.push(&sample).unwrap();
    let mut facts = Facts::default();
    facts.page_size = Some(PageSize::USUAL);
    for fact in timeline::facts::ALL {
        facts.record(Span::ZERO, *fact, "1");
    }
    let source = Source::new(SourceKind::Live, "", timeline, facts);
    let writer = MetricsText {
        tables: Entity::ALL.to_vec(),
        names: MetricNaming::NodeExporter,
        format: MetricsFormat::Prometheus,
        entities_max: None,
        own: Vec::new(),
    };
    let mut text = Vec::new();
    writer.export(&source, &Picks::default(), &mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| line.split(['{', ' ']).next().unwrap().to_owned()).collect()
}

/// What `memtide serve` writes of itself, by docs/serve.md.
fn served() -> BTreeSet<String> {
    let page = std::fs::read_to_string(root().join("docs/serve.md")).unwrap();
    page.lines()
        .filter(|line| line.starts_with("| `memtide_"))
        .flat_map(|line| {
            words(line.split('|').nth(1).unwrap_or_default()).map(str::to_owned).collect::<Vec<_>>()
        })
        .filter(|word| is_metric(word))
        .collect()
}

/// Each expression of the dashboard has metrics that are written.
#[test]
fn the_dashboard_shows_what_is_exported() {
    let (exported, served) = (exported(), served());
    let text = std::fs::read_to_string(root().join("contrib/grafana/memtide.json")).unwrap();
    let dashboard: serde_json::Value = serde_json::from_str(&text).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().unwrap());
    let annotations = dashboard["annotations"]["list"].as_array().unwrap().iter();
    let mut asked = 0;
    for expr in targets.chain(annotations).map(|one| one["expr"].as_str().unwrap()) {
        for metric in words(expr).filter(|word| is_metric(word)) {
            assert!(exported.contains(metric) || served.contains(metric), "nobody writes {metric}");
            asked += 1;
        }
    }
    assert!(asked >= 20, "{asked}");
    // No two panels overlap, and each says what it shows.
    for panel in panels {
        assert!(panel["description"].as_str().is_some_and(|text| text.len() > 10), "{panel}");
    }
}

/// The plugin of node-problem-detector: only what is critical is a problem of the node.
#[test]
fn a_plugin_has_the_codes_of_its_program() {
    let plugin = root().join("contrib/node-problem-detector/memtide.sh");
    for (case, code, word) in [
        ("cgroup-cache-starved--6.12-80m", 1, "CRITICAL"),
        ("healthy--6.12-768m-container60", 0, "OK"),
    ] {
        let capture = root().join(format!("corpus/captures/{case}/capture.jsonl.gz"));
        let output = std::process::Command::new(&plugin)
            .arg(capture)
            .env("MEMTIDE", env!("CARGO_BIN_EXE_memtide"))
            .output()
            .unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert!(said.contains(word) && !said.contains('|'), "{said}");
    }
    let nothing = std::process::Command::new(&plugin)
        .arg("/nonexistent")
        .env("MEMTIDE", env!("CARGO_BIN_EXE_memtide"))
        .output()
        .unwrap();
    assert_eq!(nothing.status.code(), Some(2));
}

#[test]
fn every_metric_of_an_alert_is_exported() {
    let exported = exported();
    let parts: BTreeSet<String> = diagnose::rules::ALL
        .iter()
        .filter_map(|rule| rule.prometheus(AlertMetrics::Memtide))
        .flat_map(|alert| alert.parts)
        .map(|part| part.name)
        .collect();
    for (id, promql) in expressions() {
        for metric in words(&promql).filter(|word| is_metric(word)) {
            assert!(
                exported.contains(metric) || parts.contains(metric),
                "{id}: nobody writes {metric}"
            );
        }
    }
}

#[test]
fn prometheus_takes_the_rules_as_printed() {
    if !has("promtool") {
        return;
    }
    let output = memtide(&["rules", "--prometheus"]);
    let text = stdout(&output);
    let alerts = text.matches("- alert: ").count();
    let parts = text.matches("- record: ").count();
    assert!(alerts >= 15, "{text}");
    let directory = tempfile::tempdir().unwrap();
    let path = file(&directory, "rules.yml", text);
    let (is_fine, says) = promtool(&["check", "rules", &path], "");
    assert!(is_fine, "{says}");
    assert!(says.contains(&format!("{} rules found", alerts + parts)), "{says}");
}

/// Pages came back from swap and went out, on three hosts: one whose kernel counts that they were used again, one that
/// counts that they were not, and one that does not count it.
#[test]
fn prometheus_asks_for_the_second_sign_only_where_the_first_is_not_measured() {
    if !has("promtool") {
        return;
    }
    let alert =
        diagnose::rules::by_id("swap-thrash").unwrap().prometheus(AlertMetrics::Memtide).unwrap();
    let series = |host: &str, metric: &str, each_minute: u32| {
        format!(
            "    - series: '{metric}{{instance=\"{host}\"}}'\n      values: '0+{each_minute}x10'\n"
        )
    };
    let mut input = String::new();
    for host in ["again", "not-again", "old-kernel"] {
        input += &series(host, "node_vmstat_pswpin", 60_000);
        input += &series(host, "node_vmstat_pswpout", 60_000);
    }
    let refaulted = "memtide_vm_workingset_refault_anon_bytes_total";
    input += &series("again", refaulted, 60_000 << 12);
    input += &series("not-again", refaulted, 0);
    let fires = |host: &str| {
        format!("      - exp_labels: {{instance: {host}}}\n        exp_annotations: {{}}\n")
    };
    let directory = tempfile::tempdir().unwrap();
    let mut rules = "groups:\n- name: memtide\n  rules:\n".to_owned();
    for part in &alert.parts {
        rules += &format!("  - record: {}\n    expr: {:?}\n", part.name, part.expr);
    }
    rules += &format!("  - alert: thrash\n    expr: {:?}\n", alert.expr);
    file(&directory, "rules.yml", rules.clone());
    let tests = format!(
        "rule_files: [rules.yml]\nevaluation_interval: 1m\ntests:\n  - interval: 1m\n    input_series:\n{input}    \
         alert_rule_test:\n    - eval_time: 5m\n      alertname: thrash\n      exp_alerts:\n{}{}",
        fires("again"),
        fires("old-kernel")
    );
    let path = file(&directory, "tests.yml", tests);
    let (is_fine, says) = promtool(&["test", "rules", &path], "");
    assert!(is_fine, "{rules}\n{says}");
}

/// Constants of facts with their names: `("SWAPPINESS", "vm.swappiness")`.
fn facts_by_constant() -> BTreeMap<String, &'static str> {
    let text = std::fs::read_to_string(root().join("crates/timeline/src/facts.rs")).unwrap();
    let constant = |name: &str| {
        let (before, _) = text.split_once(&format!(" = \"{name}\","))?;
        before.split_whitespace().next_back().map(str::to_owned)
    };
    let known = timeline::facts::ALL.iter().map(|fact| fact.name);
    let mut all: BTreeMap<_, _> = known.filter_map(|name| Some((constant(name)?, name))).collect();
    all.insert("SYSRQ".to_owned(), timeline::facts::SYSRQ.name);
    all
}

/// The arguments of each call: what stands behind its name up to the bracket that closes it.
fn arguments<'a>(code: &'a str, call: &'a str) -> impl Iterator<Item = &'a str> {
    code.match_indices(call).map(move |(at, _)| {
        let rest = &code[at + call.len()..];
        let mut depth = 1;
        let end = rest.find(|c| {
            depth += i32::from(c == '(') - i32::from(c == ')');
            depth == 0
        });
        &rest[..end.unwrap_or(rest.len())]
    })
}

/// A fix that cannot be applied, read back and undone is no advice: the lab tries each, `memtide lab run fixes`.
#[test]
fn every_setting_that_a_rule_changes_is_tried_in_the_lab() {
    let tried: BTreeSet<&str> = lab::scenarios::fixes::settings().collect();
    let facts = facts_by_constant();
    let mut changed = BTreeSet::new();
    for (path, text) in sources() {
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        let calls = ["Fix::tunable(", "Fix::file(", "SettingChange::new("];
        for arguments in calls.iter().flat_map(|call| arguments(code, call)) {
            let words = arguments.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            let names = words.filter_map(|word| facts.get(word)).collect::<Vec<_>>();
            // A call in a function that is given the fact names none; its callers do.
            for name in names {
                assert!(tried.contains(name), "{}: {name}", path.display());
                changed.insert(*name);
            }
        }
    }
    assert!(changed.len() >= 20, "{changed:?}");
    let findings = cases::all().iter().flat_map(|case| case.judged().reported());
    for change in findings.flat_map(|finding| &finding.fixes).flat_map(|fix| &fix.changes) {
        if let FixChange::Setting(change) = change {
            let SettingValue { fact, value } = &change.to;
            assert!(tried.contains(fact.name), "{}", fact.name);
            let setting = Setting::of(*fact).unwrap();
            assert!(setting.values_on(None).allow(value), "{} = {value}", fact.name);
        }
    }
}
