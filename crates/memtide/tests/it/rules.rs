//! What holds for the file of every rule, and for the PromQL of all of them.

use std::path::{Path, PathBuf};

use crate::support::{file, has, promtool, root};

/// What fits on a screen.
const LINES_MAX: usize = 70;

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
        for (_, rest) in code
            .match_indices("rules::")
            .map(|(at, found)| code.split_at(at + found.len()))
        {
            let other: String = rest
                .chars()
                .take_while(|c| c.is_ascii_lowercase() || *c == '_')
                .collect();
            assert_eq!(other, rule, "{}", path.display());
        }
        let is_part = path.parent().unwrap().ends_with(&rule);
        if !is_part {
            assert!(
                !code.contains("super::"),
                "{}: a sibling is named",
                path.display()
            );
        }
        assert!(
            !code.contains("super::super"),
            "{}: a sibling is named",
            path.display()
        );
    }
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
        let is_item = before
            .split_whitespace()
            .all(|word| word == "const" || word.starts_with("pub"));
        if !is_item || !after.contains(['(', '<']) || code.ends_with(['}', ';']) {
            continue;
        }
        let indent = &line[..line.len() - code.len()];
        let end = lines[first..]
            .iter()
            .position(|line| line.strip_prefix(indent) == Some("}"));
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
            let has_story = functions(&text)
                .iter()
                .any(|(function, _)| *function == "story");
            assert!(has_story, "{name}: no function is called story");
        }
    }
    assert!(long.is_empty(), "\n{long}");
}

/// Each rule that can be asked in PromQL, with its expression.
fn expressions() -> impl Iterator<Item = (&'static str, String)> {
    diagnose::rules::ALL
        .iter()
        .filter_map(|rule| Some((rule.id, rule.promql()?)))
}

/// Words before a parenthesis.
fn called(promql: &str) -> Vec<&str> {
    let before = promql.split('(').map(str::trim_end);
    let word = |text: &'_ str| {
        text.rfind(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .map_or(0, |at| at + 1)
    };
    let mut words: Vec<&str> = before.map(|text| &text[word(text)..]).collect();
    words.pop();
    words.retain(|word| !word.is_empty());
    words
}

/// Prometheus, VictoriaMetrics, Mimir and Thanos all have these.
#[test]
fn promql_uses_portable_functions_only() {
    const PORTABLE: [&str; 8] = [
        "rate",
        "clamp_min",
        "clamp_max",
        "by",
        "and",
        "or",
        "unless",
        "bool",
    ];
    let mut asked = 0;
    for (id, promql) in expressions() {
        for word in called(&promql) {
            assert!(PORTABLE.contains(&word), "{id}: {word} in {promql}");
        }
        asked += 1;
    }
    assert!(asked >= 15, "{asked} rules");
}

#[test]
fn prometheus_takes_the_promql_of_every_rule() {
    if !has("promtool") {
        return;
    }
    let mut text = String::from("groups:\n- name: memtide\n  rules:\n");
    let mut rules = 0;
    for (id, promql) in expressions() {
        assert!(!promql.contains('\n'), "{id}: {promql}");
        text += &format!("  - alert: {id}\n    expr: >-\n      {promql}\n");
        rules += 1;
    }
    let directory = tempfile::tempdir().unwrap();
    let path = file(&directory, "rules.yml", text);
    let (is_fine, says) = promtool(&["check", "rules", &path], "");
    assert!(is_fine, "{says}");
    assert!(says.contains(&format!("{rules} rules found")), "{says}");
}

/// Pages came back from swap and went out, on three hosts: one whose kernel counts that they were used again, one that
/// counts that they were not, and one that does not count it.
#[test]
fn prometheus_asks_for_the_second_sign_only_where_the_first_is_not_measured() {
    if !has("promtool") {
        return;
    }
    let (_, promql) = expressions().find(|(id, _)| *id == "swap-thrash").unwrap();
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
    input += &series("again", "memtide_vm_workingset_refault_anon", 60_000);
    input += &series("not-again", "memtide_vm_workingset_refault_anon", 0);
    let fires = |host: &str| {
        format!("      - exp_labels: {{instance: {host}}}\n        exp_annotations: {{}}\n")
    };
    let directory = tempfile::tempdir().unwrap();
    let rules = format!(
        "groups:\n- name: memtide\n  rules:\n  - alert: thrash\n    expr: >-\n      {promql}\n"
    );
    file(&directory, "rules.yml", rules);
    let tests = format!(
        "rule_files: [rules.yml]\nevaluation_interval: 1m\ntests:\n  - interval: 1m\n    input_series:\n{input}    \
         alert_rule_test:\n    - eval_time: 5m\n      alertname: thrash\n      exp_alerts:\n{}{}",
        fires("again"),
        fires("old-kernel")
    );
    let path = file(&directory, "tests.yml", tests);
    let (is_fine, says) = promtool(&["test", "rules", &path], "");
    assert!(is_fine, "{promql}\n{says}");
}
