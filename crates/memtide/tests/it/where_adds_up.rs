//! Every level of `where` adds up to its parent: of every case of the corpus, of files that are handed in, and of this
//! host, live and kept in each form.

use std::path::Path;

use diagnose::Evidence;
use diagnose::accounting::account;
use serde_json::Value;
use timeline::Source;

use crate::cases::{self, on_each};
use crate::support::{json, memtide, root};

/// Samples that are tried of one source, spread over it.
const SAMPLES_MAX: usize = 12;

/// Checks a node of the JSON and all below it. Sizes are counts of bytes, so none of them is negative.
fn assert_adds_up(node: &Value, place: &str) {
    let bytes = |node: &Value| node["bytes"].as_u64().unwrap();
    let children = node["children"].as_array().unwrap();
    if children.is_empty() {
        return;
    }
    let sum: u64 = children.iter().map(bytes).sum();
    assert_eq!(sum, bytes(node), "{place}: {node:#}");
    for child in children {
        assert_adds_up(child, place);
    }
}

/// Checks a source at samples spread over it.
fn assert_source(source: &Source, place: &str) {
    let evidence = Evidence::new(&source.timeline, &source.facts);
    let step = source.timeline.len().div_ceil(SAMPLES_MAX).max(1);
    for index in (0..source.timeline.len()).rev().step_by(step) {
        let Ok(accounting) = account(&evidence, index) else {
            continue;
        };
        let report = report::model::WhereReport::new(source, &accounting);
        let report = serde_json::to_value(&report).unwrap();
        assert_adds_up(&report["tree"], &format!("{place}, sample {index}"));
    }
}

#[test]
fn of_every_case_on_every_level() {
    on_each(cases::all(), |case| {
        assert_source(&case.judged().source, &case.id);
    });
}

#[test]
fn of_every_source_that_was_handed_in() {
    // Those in `blind/` stay unread until they are measured.
    let Ok(folders) = std::fs::read_dir(root().join("corpus-incoming/opened")) else {
        return;
    };
    let pastes: Vec<_> = folders.map(|folder| folder.unwrap().path().join("paste.txt")).collect();
    on_each(&pastes, |path| {
        if let Ok(source) = import::open(path, &mut |_| ()) {
            assert_source(&source, &path.display().to_string());
        }
    });
}

/// The tree that a command prints.
fn tree(arguments: &[&str]) -> Value {
    let usual = ["where", "--format", "json"];
    json(&memtide(&[&usual, arguments].concat()))["tree"].clone()
}

#[test]
fn of_this_host_live_captured_and_recorded() {
    assert_adds_up(&tree(&[]), "live");
    assert_adds_up(&tree(&["--deep"]), "live, every PSS");
    let directory = tempfile::tempdir().unwrap();
    let place = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let (capture, recording) = (place("host.jsonl"), place("recording"));
    let taken = memtide(&["capture", "--for", "400ms", "--every", "200ms", "-o", &capture]);
    assert!(taken.status.success(), "{taken:?}");
    let kept = memtide(&["record", "--from", &capture, "--to", &recording]);
    assert!(kept.status.success(), "{kept:?}");
    for source in [&capture, &recording] {
        assert_adds_up(&tree(&[source]), source);
        assert_source(&import::open(Path::new(source), &mut |_| ()).unwrap(), source);
    }
}
