//! A recorder that checks its own recording: what it finds in a real cgroup that reads again and again what its limit evicts,
//! what it keeps of it, and what the command of `--on-finding` gets.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::record::{Group, Running, is_root, skip, status};
use crate::support::{checked, file, json, memtide, stderr, stdout};

/// A shell that reads a file of 64 MiB again and again within 16 MiB.
struct Sick {
    shell: Child,
    group: Group,
    _place: tempfile::TempDir,
}

impl Sick {
    fn start(name: &str) -> Result<Self, String> {
        let group = Group::make(name, "16777216")?;
        let place = tempfile::tempdir().unwrap();
        let path = file(&place, "read-again", vec![7_u8; 64 << 20]);
        let read = std::fs::File::open(&path).unwrap();
        read.sync_all().unwrap();
        rustix::fs::fadvise(&read, 0, None, rustix::fs::Advice::DontNeed).unwrap();
        let script =
            format!("echo $$ > \"$0/cgroup.procs\" && while :; do cat '{path}' > /dev/null; done");
        let mut shell = Command::new("sh");
        let shell = shell.args(["-c", &script]).arg(group.path()).stdout(Stdio::null());
        Ok(Self { shell: shell.spawn().unwrap(), group, _place: place })
    }

    fn subject(&self) -> String {
        format!("/{}", self.group.name())
    }
}

impl Drop for Sick {
    fn drop(&mut self) {
        let _ = self.shell.kill();
        let _ = self.shell.wait();
    }
}

const OPTIONS: [&str; 4] = ["--no-processes", "--sync", "1s", "--check=10s"];

/// Events of one cgroup that checks kept.
fn kept(directory: &Path, subject: &str) -> Vec<Value> {
    let directory = directory.to_str().unwrap();
    let kinds = ["finding-found", "finding-changed", "finding-cleared"];
    let kinds = kinds.iter().flat_map(|kind| ["--kind", kind]);
    let typed: Vec<&str> = ["events", directory, "--json"].into_iter().chain(kinds).collect();
    let output = memtide(&typed);
    // Before the first sample is on the disk there is nothing to read.
    let report = if output.status.success() { json(&output) } else { Value::default() };
    let all = report["events"].as_array().cloned().unwrap_or_default();
    all.into_iter().filter(|event| event["subject"] == subject).collect()
}

/// What a command was given, a line each, about one cgroup.
fn notices(path: &str, subject: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let lines = text.lines().map(|line| checked(serde_json::from_str(line).unwrap()));
    lines.filter(|notice| notice["subject"] == subject).collect()
}

fn words(all: &[Value], field: &str) -> Vec<String> {
    all.iter().map(|one| one[field].as_str().unwrap_or_default().to_owned()).collect()
}

/// What a recorder says of itself.
fn recorder(directory: &Path) -> Value {
    status(directory)["recorder"].clone()
}

/// Whether its checks have something that is wrong with one cgroup.
fn is_active(directory: &Path, subject: &str) -> bool {
    let active = recorder(directory)["checks"]["active"].clone();
    active.as_array().is_some_and(|all| all.iter().any(|one| one["subject"] == subject))
}

/// Waits for what checks do, which have the lowest priority: the tests beside them come first. Looks rarely, for the same
/// reason.
fn until_at_last(what: &str, is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(480), "{what} did not come");
        std::thread::sleep(Duration::from_secs(3));
    }
}

#[test]
fn a_disease_is_found_once_and_cleared_once_also_after_a_restart() {
    if !is_root() {
        return skip("making a cgroup needs root");
    }
    let sick = match Sick::start("check") {
        Ok(sick) => sick,
        Err(why) => return skip(&why),
    };
    let subject = sick.subject();
    let (recording, place) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let log = place.path().join("notices").to_str().unwrap().to_owned();
    let open = place.path().join("open").to_str().unwrap().to_owned();
    let command = format!("cat >> '{log}'; ls -l /proc/self/fd > '{open}'");
    let options: Vec<&str> =
        OPTIONS.into_iter().chain(["--on-finding", command.as_str()]).collect();
    let running = Running::started(recording.path(), &options);
    let settings = recorder(recording.path())["settings"].clone();
    assert_eq!(settings["checks_s"], 10.0);
    assert_eq!(settings["on_finding"], command.as_str());
    until_at_last("a finding", || !kept(recording.path(), &subject).is_empty());
    until_at_last("its notice", || !notices(&log, &subject).is_empty());
    until_at_last("the status", || is_active(recording.path(), &subject));
    // Input, output and errors, and the directory that `ls` reads.
    let open = std::fs::read_to_string(open).unwrap();
    assert_eq!(open.lines().filter(|line| line.contains(" -> ")).count(), 4, "{open}");
    let ended = running.end();
    assert_eq!(ended.status.code(), Some(0), "{}", stderr(&ended));

    // What is wrong when it ends is not found anew by the next recorder.
    let running = Running::started(recording.path(), &options);
    let done = || recorder(recording.path())["checks"]["done"].as_u64().unwrap_or(0);
    until_at_last("two checks", || done() >= 2);
    let before = kept(recording.path(), &subject);
    assert!(words(&before, "kind").iter().all(|kind| kind != "finding-cleared"), "{before:?}");
    drop(sick);
    // A finding is over a minute after the last sample that shows it.
    let is_cleared = || {
        let kinds = words(&kept(recording.path(), &subject), "kind");
        kinds.last().is_some_and(|kind| kind == "finding-cleared")
    };
    until_at_last("its end", is_cleared);
    until_at_last("the notice of its end", || {
        notices(&log, &subject).last().is_some_and(|last| last["state"] == "cleared")
    });
    let late = recorder(recording.path())["samples"].clone();
    let ended = running.end();
    assert_eq!(ended.status.code(), Some(0), "{}", stderr(&ended));
    // On a host that others keep busy a sample may be late, but none is left out.
    assert_eq!(late["missed"], 0, "{late}");

    let kept = kept(recording.path(), &subject);
    let noticed = notices(&log, &subject);
    let mut kinds = words(&kept, "kind");
    assert_eq!(words(&noticed, "state").len(), kept.len(), "{kept:?} {noticed:?}");
    // How bad it is may change meanwhile; it is found and cleared once.
    kinds.retain(|kind| kind != "finding-changed");
    assert_eq!(kinds, ["finding-found", "finding-cleared"]);
    let first = &noticed[0];
    assert_eq!((&first["state"], &first["scope"]), (&"found".into(), &"cgroup".into()));
    assert!(first["fix"].as_array().is_some_and(|fixes| !fixes.is_empty()), "{first}");
    assert_eq!(first["recording"], recording.path().to_str().unwrap());
    assert_eq!(noticed.last().unwrap()["fix"], serde_json::json!([]));

    let directory = recording.path().to_str().unwrap();
    let text = stdout(&memtide(&["events", directory]));
    assert!(text.contains(" found (") && text.contains(" cleared, "), "{text}");
    let remarks = json(&memtide(&["check", directory, "--json"]))["remarks"].to_string();
    assert!(remarks.contains("The recorder's own checks"), "{remarks}");
}

/// A command that hangs, fails or is not there is named once, and neither checks nor samples wait for it.
#[test]
fn a_command_that_fails_is_named_and_stops_nothing() {
    if !is_root() {
        return skip("making a cgroup needs root");
    }
    let sick = match Sick::start("hook") {
        Ok(sick) => sick,
        Err(why) => return skip(&why),
    };
    let subject = sick.subject();
    let cases = [
        ("echo to nobody >&2; exit 7", "60s", "the command ended with exit code 7: to nobody"),
        ("/nonexistent/program", "60s", "the command ended with exit code 127"),
        ("sleep 600", "1s", "the command took longer than 1 s and was killed"),
    ];
    let all: Vec<_> = cases
        .iter()
        .map(|(command, timeout, expected)| {
            let recording = tempfile::tempdir().unwrap();
            let more = ["--on-finding", command, "--on-finding-timeout", timeout];
            let options: Vec<&str> = OPTIONS.into_iter().chain(more).collect();
            (Running::started(recording.path(), &options), recording, expected)
        })
        .collect();
    for (running, recording, expected) in all {
        until_at_last("a finding", || !kept(recording.path(), &subject).is_empty());
        until_at_last("a failure", || {
            recorder(recording.path())["checks"]["commands_failed"]
                .as_u64()
                .is_some_and(|failed| failed > 0)
        });
        let shown =
            stdout(&memtide(&["record", "--status", "--to", recording.path().to_str().unwrap()]));
        assert!(shown.contains("checks") && shown.contains("and failed"), "{shown}");
        let ended = running.end();
        assert_eq!(ended.status.code(), Some(0));
        let log = stderr(&ended);
        assert_eq!(log.matches(*expected).count(), 1, "{log}");
        assert!(log.contains("warning: --on-finding: "), "{log}");
    }
}

#[test]
fn what_makes_no_sense_is_refused_with_the_bound() {
    for (typed, expected) in [
        (&["--check", "1s"][..], "10s is the least"),
        (&["--check", "1h"], "10m is the most"),
        (&["--on-finding", "true"], "--check"),
        (&["--check", "1m", "--on-finding", " "], "the command is empty"),
        (&["--check", "1m", "--on-finding-timeout", "5s"], "--on-finding"),
        (
            &["--check", "1m", "--on-finding", "true", "--on-finding-timeout", "1h"],
            "5m is the most",
        ),
    ] {
        let output = memtide(&[&["record"], typed].concat());
        assert_eq!(output.status.code(), Some(3));
        assert!(stderr(&output).contains(expected), "{}", stderr(&output));
    }
    let unit = memtide(&[
        "record",
        "--install",
        "--dry-run",
        "--check",
        "1m",
        "--on-finding",
        "logger -t x",
    ]);
    let unit = stdout(&unit);
    assert!(unit.contains(" --check 60000ms --on-finding \"logger -t x\""), "{unit}");
}
