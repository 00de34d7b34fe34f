//! Running the binary, and captures made on the spot.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The project's root.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
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
    stdout(output).split_whitespace().collect::<Vec<_>>().join(" ")
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
    checked(
        serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}", stdout(output))),
    )
}

/// JSON, checked against the schema that it names.
#[track_caller]
pub(crate) fn checked(value: serde_json::Value) -> serde_json::Value {
    if let Some(schema) = published_schema(&value) {
        let validator = jsonschema::validator_for(&schema).unwrap();
        let faults: Vec<_> = validator.iter_errors(&value).map(|e| e.to_string()).collect();
        assert_eq!(faults, Vec::<String>::new());
    }
    value
}

/// The schema that an answer names, where it is published; a file that `check` could not read has a line of its own.
fn published_schema(answer: &serde_json::Value) -> Option<serde_json::Value> {
    const PUBLISHED: [&str; 17] = [
        "report",
        "where-by",
        "explain",
        "headroom",
        "growth",
        "compare",
        "events",
        "recorder",
        "runtime-stats",
        "lab",
        "lab-score",
        "lab-cure",
        "trial",
        "profile",
        "top",
        "series",
        "finding",
    ];
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
        let files: serde_json::Map<String, serde_json::Value> =
            files.iter().map(|(path, text)| ((*path).to_owned(), text.clone().into())).collect();
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

/// Whether a program is there; where tests must not be skipped, it has to be.
pub(crate) fn has(program: &str) -> bool {
    let found = Command::new(program)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok();
    if !found {
        assert!(
            std::env::var_os("CI").is_none_or(|ci| ci != "true"),
            "{program} is missing: sh scripts/setup.sh test"
        );
        #[allow(clippy::print_stderr)] // a skipped test says why
        {
            eprintln!("skipped: {program} is not installed (sh scripts/setup.sh test)");
        }
    }
    found
}

/// What promtool says of an input, and whether it takes it.
pub(crate) fn promtool(arguments: &[&str], input: &str) -> (bool, String) {
    let mut child = Command::new("promtool")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    (output.status.success(), stdout(&output) + &stderr(&output))
}

/// What promtool minds of metrics: nothing but node_exporter's own names of memory, which are not in snake_case, is explained.
pub(crate) fn promtool_minds(metrics: &str) -> Vec<String> {
    let (is_taken, says) = promtool(&["check", "metrics"], metrics);
    let is_explained = |line: &str| {
        let name =
            line.strip_suffix(" metric names should be written in 'snake_case' not 'camelCase'");
        name.is_some_and(|name| name.starts_with("node_memory_") && !name.contains(' '))
    };
    assert!(is_taken || !says.is_empty(), "promtool says why it takes no metrics");
    says.lines().filter(|line| !is_explained(line)).map(str::to_owned).collect()
}

/// Asks this host again, a few times, until the answer is as wanted: other programs change the host between two readings,
/// and on a slow one a search has no time for all of it. Returns the last answer.
pub(crate) fn asked_until<T>(mut ask: impl FnMut() -> T, is_so: impl Fn(&T) -> bool) -> T {
    const TRIES: usize = 8;
    for _ in 1..TRIES {
        let answer = ask();
        if is_so(&answer) {
            return answer;
        }
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
    ask()
}

/// Whether generated files are to be written anew.
pub(crate) fn blesses() -> bool {
    std::env::var_os("BLESS").is_some()
}
