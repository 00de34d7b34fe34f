//! `corpus/labels.json`: what each capture must show, where a diff can show it. The captures' own headers say the same.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use serde::Deserialize;

use crate::corpus::{files, without_a_case};
use crate::support::{blesses, root};

/// What is known of a capture without memtide.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct Labels {
    pub(crate) kernel: String,
    pub(crate) note: String,
    /// Ids that must be reported; `a|b` is either.
    pub(crate) expected: Vec<String>,
    /// Ids that must not be reported as more than information.
    pub(crate) not_expected: Vec<String>,
}

/// The file.
#[derive(Debug, Deserialize)]
struct File {
    captures: BTreeMap<String, Labels>,
    rules_without_a_case: Vec<String>,
}

/// The labels of each capture, by its name without ending.
static LABELS: LazyLock<BTreeMap<String, Labels>> = LazyLock::new(|| {
    if blesses() {
        headers()
    } else {
        kept().captures
    }
});

fn path() -> PathBuf {
    root().join("corpus/labels.json")
}

fn kept() -> File {
    let text = std::fs::read_to_string(path()).unwrap();
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("corpus/labels.json: {error}"))
}

fn name(path: &Path) -> String {
    let name = path.file_name().unwrap().to_str().unwrap();
    name.strip_suffix(".jsonl.gz").unwrap().to_owned()
}

/// The labels of a capture.
pub(crate) fn of(path: &Path) -> &'static Labels {
    let name = name(path);
    LABELS.get(&name).unwrap_or_else(|| {
        panic!("{name} has no labels: BLESS=1 cargo test -p memtide --test it labels takes them from its header")
    })
}

/// The labels in the first line of a capture, which memtide itself never reads.
fn header(path: &Path) -> Labels {
    let file = std::fs::File::open(path).unwrap();
    let mut line = String::new();
    BufReader::new(flate2::read::GzDecoder::new(file))
        .read_line(&mut line)
        .unwrap();
    let header: serde_json::Value = serde_json::from_str(&line).unwrap();
    let text = |key: &str| -> &str {
        let text = header[key].as_str();
        text.unwrap_or_else(|| panic!("{}: its header has no `{key}`", path.display()))
    };
    let ids = |key: &str| -> Vec<String> {
        serde_json::from_value(header[key].clone())
            .unwrap_or_else(|error| panic!("{}: `{key}` of its header: {error}", path.display()))
    };
    let kernel = text("kernel");
    let release = kernel.strip_prefix("Linux version ").unwrap_or(kernel);
    Labels {
        kernel: release.split(' ').next().unwrap_or_default().to_owned(),
        note: text("note").to_owned(),
        expected: ids("expected_findings"),
        not_expected: ids("not_expected"),
    }
}

fn headers() -> BTreeMap<String, Labels> {
    let captures = files("corpus", ".jsonl.gz");
    captures
        .iter()
        .map(|path| (name(path), header(path)))
        .collect()
}

/// One line a field, so that a changed label is a changed line.
fn written(captures: &BTreeMap<String, Labels>, without_a_case: &[&str]) -> String {
    let line = |value: serde_json::Value| value.to_string().replace("\",\"", "\", \"");
    let captures: Vec<String> = captures
        .iter()
        .map(|(name, labels)| {
            format!(
                "    {}: {{\n      \"kernel\": {},\n      \"note\": {},\n      \"expected\": {},\n      \"not_expected\": {}\n    }}",
                line(name.as_str().into()),
                line(labels.kernel.as_str().into()),
                line(labels.note.as_str().into()),
                line(labels.expected.clone().into()),
                line(labels.not_expected.clone().into()),
            )
        })
        .collect();
    let rules: Vec<String> = without_a_case
        .iter()
        .map(|id| format!("    \"{id}\""))
        .collect();
    format!(
        "{{\n  \"captures\": {{\n{}\n  }},\n  \"rules_without_a_case\": [\n{}\n  ]\n}}\n",
        captures.join(",\n"),
        rules.join(",\n")
    )
}

/// Rules that no labelled case shows are judged on made-up hosts only; the file says which.
#[test]
fn the_labels_are_those_of_the_captures() {
    let fresh = written(&headers(), &without_a_case());
    if blesses() {
        std::fs::write(path(), fresh).unwrap();
        return;
    }
    let kept = kept();
    let labels = headers();
    for (name, labels) in &labels {
        assert_eq!(kept.captures.get(name), Some(labels), "{name}");
    }
    assert_eq!(
        kept.captures.len(),
        labels.len(),
        "labels of captures that are gone"
    );
    assert_eq!(kept.rules_without_a_case, without_a_case());
    assert!(
        std::fs::read_to_string(path()).unwrap() == fresh,
        "corpus/labels.json is not as it is written: BLESS=1 cargo test -p memtide --test it labels"
    );
}

#[test]
fn every_label_is_a_rule() {
    let ids: Vec<&str> = diagnose::rules::ALL.iter().map(|rule| rule.id).collect();
    for (name, labels) in &*LABELS {
        let expected = labels.expected.iter().flat_map(|want| want.split('|'));
        for id in expected.chain(labels.not_expected.iter().map(String::as_str)) {
            assert!(ids.contains(&id), "{name}: no rule is called {id}");
        }
    }
}
