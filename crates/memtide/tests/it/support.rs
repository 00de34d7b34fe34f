//! Running the binary, and captures made on the spot.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The project's root.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

/// Runs memtide without a terminal and without the caller's taste in colours.
pub(crate) fn memtide(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_memtide"))
        .args(arguments)
        .env_remove("NO_COLOR")
        .env("TZ", "UTC")
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// The answer with its line breaks folded, for sentences that the terminal's width breaks.
pub(crate) fn folded(output: &Output) -> String {
    stdout(output)
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// What was wrong with a source, and what was said beside the answer, with its line breaks folded.
pub(crate) fn complaints(output: &Output) -> String {
    let all = stdout(output) + " " + &stderr(output);
    all.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The JSON that memtide printed, checked against the published schema.
pub(crate) fn json(output: &Output) -> serde_json::Value {
    let value: serde_json::Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", stdout(output)));
    if let Some(schema) = published_schema(&value) {
        let validator = jsonschema::validator_for(&schema).unwrap();
        let faults: Vec<_> = validator
            .iter_errors(&value)
            .map(|e| e.to_string())
            .collect();
        assert_eq!(faults, Vec::<String>::new());
    }
    value
}

/// The schema that an answer names, where it is published; a file that `check` could not read has a line of its own.
fn published_schema(answer: &serde_json::Value) -> Option<serde_json::Value> {
    const PUBLISHED: [&str; 4] = ["report", "headroom", "compare", "events"];
    let named = answer["schema"].as_str()?;
    let name = named.strip_prefix("memtide-")?.strip_suffix("/1")?;
    let is_failed = name == "report" && answer.get("verdict").is_none();
    if is_failed || !PUBLISHED.contains(&name) {
        return None;
    }
    let path = root().join(format!("docs/{name}.schema.json"));
    Some(serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap())
}

/// A capture of samples a second apart, each given as (path, text) pairs.
pub(crate) fn capture(samples: &[Vec<(&str, String)>]) -> String {
    let mut text = String::from("{\"interval_s\": 1.0, \"page_size\": 4096}\n");
    for (t, files) in samples.iter().enumerate() {
        let files: serde_json::Map<String, serde_json::Value> = files
            .iter()
            .map(|(path, text)| ((*path).to_owned(), text.clone().into()))
            .collect();
        text.push_str(&serde_json::json!({"t": t, "files": files}).to_string());
        text.push('\n');
    }
    text
}

/// A file with this content that lives as long as the directory.
pub(crate) fn file(directory: &tempfile::TempDir, name: &str, content: impl AsRef<[u8]>) -> String {
    let path = directory.path().join(name);
    std::fs::write(&path, content).unwrap();
    path.to_str().unwrap().to_owned()
}
