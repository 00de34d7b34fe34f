//! ARCHITECTURE.md is true: crate edges, and files that pages name.

use std::collections::BTreeSet;

use crate::support::root;

/// Dependencies of a crate within the workspace, tests' own left out.
fn edges(manifest: &str) -> BTreeSet<String> {
    let dependencies = manifest
        .split("\n[")
        .find_map(|section| section.strip_prefix("dependencies]\n"))
        .unwrap_or_default();
    dependencies
        .lines()
        .filter_map(|line| line.strip_suffix(".workspace = true"))
        .map(str::to_owned)
        .collect()
}

#[test]
fn crate_edges_are_those_of_the_page() {
    let page = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let mut crates = 0;
    for entry in std::fs::read_dir(root().join("crates")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let manifest = std::fs::read_to_string(path.join("Cargo.toml")).unwrap();
        let line = page
            .lines()
            .find_map(|line| line.strip_prefix(&format!("{name} →")))
            .unwrap_or_else(|| panic!("ARCHITECTURE.md does not name {name}"));
        let said: BTreeSet<String> = line.split_whitespace().map(str::to_owned).collect();
        assert_eq!(said, edges(&manifest), "{name}");
        crates += 1;
    }
    assert_eq!(
        crates,
        page.lines().filter(|l| l.contains(" →")).filter(|l| !l.contains('▶')).count()
    );
}

#[test]
fn pure_crates_touch_nothing_of_the_world() {
    for name in ["units", "timeline", "diagnose", "chart", "report", "recorder_status", "stats"] {
        let library = root().join("crates").join(name).join("src/lib.rs");
        let text = std::fs::read_to_string(library).unwrap();
        assert!(text.contains("#![warn(clippy::disallowed_methods)]"), "{name}");
    }
}

#[test]
fn commands_parse_ask_and_print() {
    let folder = root().join("crates/memtide/src/commands");
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        // Both are shared by commands.
        let is_command =
            path.is_file() && !path.ends_with("source.rs") && !path.ends_with("page.rs");
        if is_command {
            let lines = std::fs::read_to_string(&path).unwrap().lines().count();
            assert!(lines <= 60, "{}: {lines} lines", path.display());
        }
    }
}

#[test]
fn places_that_the_page_names_exist() {
    let page = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let places = page.split('`').skip(1).step_by(2);
    let places: Vec<&str> = places.filter(|place| place.contains("/src/")).collect();
    assert!(places.len() > 15, "{places:?}");
    for place in places {
        let is_there = [root(), root().join("crates")].iter().any(|base| base.join(place).exists());
        assert!(is_there, "{place}");
    }
}

#[test]
fn every_rule_has_its_file_and_every_file_its_rule() {
    let directory = root().join("crates/diagnose/src/rules");
    let files: BTreeSet<String> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter_map(|name| name.strip_suffix(".rs").map(|stem| stem.replace('_', "-")))
        .filter(|id| id != "testing")
        .collect();
    let listed: BTreeSet<String> = diagnose::rules::ALL.iter().map(|r| r.id.to_owned()).collect();
    assert_eq!(files, listed);
}

/// The code of a module with all below it.
fn code_of(module: &str) -> String {
    let source = root().join("crates/report/src");
    let mut code = std::fs::read_to_string(source.join(format!("{module}.rs"))).unwrap();
    let mut directories = vec![source.join(module)];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path)
            } else {
                code.push_str(&std::fs::read_to_string(path).unwrap())
            }
        }
    }
    code
}

#[test]
fn text_and_page_draw_without_each_other_and_words_and_model_without_both() {
    for (module, not) in [
        ("html", &["text"][..]),
        ("text", &["html"]),
        ("phrases", &["text", "html"]),
        ("model", &["text", "html"]),
    ] {
        let code = code_of(module);
        for other in not {
            assert!(!code.contains(&format!("crate::{other}::")), "{module}: {other}");
        }
    }
}
