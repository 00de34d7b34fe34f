//! ARCHITECTURE.md is true: crate edges, and files that pages name.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

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

/// The code of a module with all below it, its tests left out.
fn code_of(source: &Path, module: &str) -> String {
    let mut files = vec![source.join(format!("{module}.rs"))];
    let mut directories = vec![source.join(module)];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).into_iter().flatten() {
            let path = entry.unwrap().path();
            let is_of_tests =
                ["tests", "testing"].iter().any(|name| path.file_stem() == Some(name.as_ref()));
            match path.is_dir() {
                _ if is_of_tests => {}
                true => directories.push(path),
                false => files.push(path),
            }
        }
    }
    let texts = files.iter().filter_map(|file| std::fs::read_to_string(file).ok());
    texts
        .map(|text| text.split("#[cfg(test)]\nmod").next().unwrap_or_default().to_owned())
        .collect()
}

#[test]
fn text_and_page_draw_without_each_other_and_words_and_model_without_both() {
    for (module, not) in [
        ("html", &["text"][..]),
        ("text", &["html"]),
        ("phrases", &["text", "html"]),
        ("model", &["text", "html"]),
    ] {
        let code = code_of(&root().join("crates/report/src"), module);
        for other in not {
            assert!(!code.contains(&format!("crate::{other}::")), "{module}: {other}");
        }
    }
}

/// The modules of a crate, each with those that it imports.
fn imports(source: &Path) -> BTreeMap<String, BTreeSet<String>> {
    let library = ["lib.rs", "main.rs"]
        .iter()
        .find_map(|name| std::fs::read_to_string(source.join(name)).ok());
    let library = library.unwrap_or_default();
    let modules: BTreeSet<String> = std::fs::read_dir(source)
        .unwrap()
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned())
        .filter(|module| !["lib", "main", "bin"].contains(&module.as_str()))
        .collect();
    // `crate::LabError` is of the module that `pub use error::LabError` names.
    let exporter = |name: &str| {
        let exports = library.split("pub use ").skip(1).filter_map(|rest| rest.split(';').next());
        let of_name = exports.filter(|export| words(export).any(|word| word == name));
        of_name.filter_map(|export| words(export).next()).next().unwrap_or_default().to_owned()
    };
    let of_module = |module: &String| {
        let code = code_of(source, module);
        let named = code.lines().filter(|line| !line.trim_start().starts_with("//"));
        let named = named.flat_map(|line| line.split("crate::").skip(1));
        let named = named.flat_map(|rest| {
            // `use crate::{a, B};` names several.
            let most = if rest.starts_with('{') { usize::MAX } else { 1 };
            words(rest).take(most)
        });
        named
            .map(|name| if modules.contains(name) { name.to_owned() } else { exporter(name) })
            .filter(|name| name != module && modules.contains(name))
            .collect()
    };
    modules.iter().map(|module| (module.clone(), of_module(module))).collect()
}

fn words(code: &str) -> impl Iterator<Item = &str> {
    code.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

/// All that a module imports, and what that imports.
fn reached<'a>(
    imports: &'a BTreeMap<String, BTreeSet<String>>,
    module: &'a str,
) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut waiting = vec![module];
    while let Some(module) = waiting.pop() {
        let next = imports[module].iter().map(String::as_str);
        waiting.extend(next.filter(|next| reached.insert(*next)));
    }
    reached
}

/// The groups of modules that import each other, each in one line.
fn circles(imports: &BTreeMap<String, BTreeSet<String>>) -> BTreeSet<String> {
    let groups = imports.keys().filter_map(|module| {
        let of_it = reached(imports, module);
        let back = |other: &&&str| reached(imports, other).contains(module.as_str());
        let group: Vec<&str> = of_it.iter().filter(back).copied().collect();
        (!group.is_empty()).then(|| group.join(" "))
    });
    groups.collect()
}

/// Circles that are there, by crate. A line may lose modules or go: none may be added.
const CIRCLES: [(&str, &str); 10] = [
    ("chart", "level pack"),
    ("diagnose", "evidence growth measures oom remedy trigger"),
    ("import", "builder plausible text"),
    ("import", "open recording"),
    ("probe", "cgroup file_places host memory_left process"),
    ("report", "clock model phrases picture"),
    ("sampler", "heaps record"),
    ("store", "directory facts files head json_lines kept_names recording segment"),
    ("timeline", "cgroup facts"),
    ("units", "rate size time"),
];

#[test]
fn a_circle_of_modules_is_found_and_what_only_leads_to_it_is_not_of_it() {
    let imports = [("a", "b"), ("b", "c"), ("c", "b d"), ("d", ""), ("e", "f"), ("f", "e")];
    let imports =
        imports.map(|(module, of)| (module.to_owned(), words(of).map(str::to_owned).collect()));
    let found: Vec<String> = circles(&imports.into()).into_iter().collect();
    assert_eq!(found, ["b c", "e f"]);
}

#[test]
fn modules_of_a_crate_import_each_other_in_no_new_circle() {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(root().join("crates")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let imports = imports(&path.join("src"));
        let is_seen = imports.len() < 2 || imports.values().any(|of| !of.is_empty());
        assert!(is_seen, "{name}: {imports:?}");
        found.extend(circles(&imports).into_iter().map(|circle| (name.clone(), circle)));
    }
    found.sort();
    let found: Vec<(&str, &str)> =
        found.iter().map(|(name, circle)| (&**name, &**circle)).collect();
    assert_eq!(found, CIRCLES);
}
