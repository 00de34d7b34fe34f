//! What memtide says.

use std::time::Duration;

use serde_json::Value;

use crate::host::{Answer, RECORDING, root, until};

/// A command of memtide as root.
pub(crate) fn memtide(words: &[&str]) -> Answer {
    root(&[&["memtide"], words].concat())
}

/// A row of a table.
#[derive(Debug, Clone)]
pub(crate) struct OwnerRow {
    pub(crate) key: String,
    pub(crate) name: String,
    pub(crate) bytes: u64,
}

/// The rows of `where --by`, of the recording or of this moment. Without an answer one row says so, in the place of its key.
pub(crate) fn rows(by: &str, source: Option<&str>) -> Vec<OwnerRow> {
    let words: Vec<&str> =
        ["where"].into_iter().chain(source).chain(["--by", by, "--json"]).collect();
    let answer = memtide(&words);
    let Ok(table) = serde_json::from_str::<Value>(&answer.out) else {
        let key = format!("no answer: {}", answer.short());
        return vec![OwnerRow { key, name: String::new(), bytes: 0 }];
    };
    let rows = table["rows"].as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    rows.iter()
        .map(|row| OwnerRow {
            key: text(&row["key"]),
            name: text(&row["name"]),
            bytes: row["bytes"].as_u64().unwrap_or_default(),
        })
        .collect()
}

/// The rows once a command shows what is waited for, or the last of two minutes: a machine of a busy host reads rarely.
pub(crate) fn rows_once(
    by: &str,
    source: Option<&str>,
    is_so: impl Fn(&[OwnerRow]) -> bool,
) -> Vec<OwnerRow> {
    let mut last = Vec::new();
    until(Duration::from_secs(120), || {
        last = rows(by, source);
        is_so(&last)
    });
    last
}

/// The lines of an answer that have each of these words, as one.
pub(crate) fn lines_with(answer: &Answer, words: &[&str]) -> String {
    let has_all = |line: &&str| words.iter().all(|word| line.contains(word));
    let lines = answer.out.lines().filter(has_all);
    let text = lines.collect::<Vec<_>>().join(" | ");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Rows in short.
pub(crate) fn shown(rows: &[OwnerRow]) -> String {
    let rows = rows.iter().take(8).map(|row| {
        // The end of an id is as good as the whole of it.
        let at = row.key.char_indices().rev().nth(119).map_or(0, |(at, _)| at);
        format!("{} = {} ({} KiB)", &row.key[at..], row.name, row.bytes >> 10)
    });
    rows.collect::<Vec<_>>().join("; ")
}

/// Whether the recorder has kept this name.
pub(crate) fn is_kept(name: &str) -> bool {
    kept_names().contains(&format!("\"name\":\"{name}\""))
}

pub(crate) fn kept_names() -> String {
    std::fs::read_to_string(format!("{RECORDING}/names.jsonl")).unwrap_or_default()
}

/// How long the recorder takes to name a new cgroup: one reading of all cgroups, which their cost delays, and two searches.
pub(crate) fn naming_max() -> Duration {
    let status = memtide(&["record", "--status", "--json"]);
    let status: Value = serde_json::from_str(&status.out).unwrap_or_default();
    let every = status["recorder"]["seen"]["cgroups_every_s"].as_f64().unwrap_or_default();
    Duration::from_secs_f64(every) + Duration::from_secs(25)
}

/// Waits for a name to be kept.
pub(crate) fn until_kept(name: &str, max: Duration) -> Option<Duration> {
    until(max, || is_kept(name))
}

/// What the recorder says of itself, and whether that is that it is well.
pub(crate) fn recorder_state() -> (bool, String) {
    let status = memtide(&["record", "--status"]);
    (status.out.starts_with("healthy"), status.short())
}
