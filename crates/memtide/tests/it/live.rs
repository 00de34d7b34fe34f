//! This machine, live.

use crate::record::until;
use crate::support::{json, memtide, stdout};

#[test]
fn check_watches_this_machine_and_answers() {
    let output = memtide(&["check", "--for", "1s", "--every", "200ms", "--format", "json"]);
    let code = output.status.code().unwrap();
    let report = json(&output);
    // Too short to call it enough, whatever the machine does.
    assert!((1..=3).contains(&code), "{}", stdout(&output));
    assert_eq!(report["source"]["kind"], "live");
    // A busy machine may be late for a beat or two.
    let samples = report["source"]["samples"].as_u64().unwrap();
    assert!((2..=6).contains(&samples), "{samples}");
}

/// Whether a process has a handler for SIGINT: until then the signal ends it.
fn catches_sigint(pid: u32) -> bool {
    const SIGINT: u64 = 2;
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let caught = u64::from_str_radix(caught.unwrap().trim(), 16).unwrap();
    caught >> (SIGINT - 1) & 1 == 1
}

#[test]
fn an_interrupted_check_reports_what_it_saw() {
    let child = std::process::Command::new(env!("CARGO_BIN_EXE_memtide"))
        .args(["check", "--for", "10m", "--every", "100ms", "--format", "json"])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    until("that it can be interrupted", || catches_sigint(child.id()));
    // The shell's own kill: a minimal machine has no other.
    let interrupted = std::process::Command::new("sh")
        .args(["-c", "kill -INT \"$0\"", &child.id().to_string()])
        .status()
        .unwrap();
    assert!(interrupted.success());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.code().is_some(), "{:?}", output.status);
    assert!(json(&output)["source"]["samples"].as_u64().unwrap() >= 1);
}

#[test]
fn the_hosts_name_is_in_a_capture_that_was_asked_for_it_and_in_its_report() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("host.jsonl");
    let path = path.to_str().unwrap();
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    for (option, expected) in [(&["--hostname"][..], Some(name.trim())), (&[], None)] {
        let usual = ["capture", "--for", "100ms", "--every", "100ms", "--force", "-o", path];
        assert!(memtide(&[&usual[..], option].concat()).status.success());
        let report = json(&memtide(&["check", path, "--format", "json"]));
        assert_eq!(report["host"]["hostname"].as_str(), expected);
    }
}

#[test]
fn where_adds_up_on_this_machine() {
    let report = json(&memtide(&["where", "--format", "json"]));
    let accounting = &report["accounting"];
    let total = accounting["total_bytes"].as_i64().unwrap();
    let rest = accounting["unaccounted_bytes"].as_i64().unwrap();
    let terms: i64 = accounting["terms"]
        .as_array()
        .unwrap()
        .iter()
        .map(|term| term["bytes"].as_i64().unwrap())
        .sum();
    assert_eq!(terms + rest, total);
    // The remainder of an ordinary host is below 1 %; a busy or virtual one may have drivers that hold more.
    assert!(rest.abs() < total / 20, "{rest} of {total}");
}

#[test]
fn a_capture_of_this_machine_can_be_checked() {
    let directory = tempfile::tempdir().unwrap();
    for name in ["host.jsonl", "host.jsonl.gz", "host.jsonl.zst"] {
        let path = directory.path().join(name);
        let path = path.to_str().unwrap();
        let taken = memtide(&["capture", "--for", "600ms", "--every", "200ms", "-o", path]);
        assert_eq!(taken.status.code(), Some(0), "{taken:?}");
        let report = json(&memtide(&["check", path, "--format", "json"]));
        assert_eq!(report["source"]["kind"], "capture");
        // A busy machine may be late for a beat or two.
        let samples = report["source"]["samples"].as_u64().unwrap();
        assert!((2..=4).contains(&samples), "{name}: {samples}");
    }
}

#[test]
fn a_capture_keeps_secrets_out() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("host.jsonl");
    // The secret is on the command line and in the environment of a process that lives during the capture.
    let mut secretive = std::process::Command::new("sleep")
        .arg("31.4159")
        .env("TOKEN", "hunter2hunter2")
        .spawn()
        .unwrap();
    let taken =
        memtide(&["capture", "--for", "200ms", "--every", "200ms", "-o", path.to_str().unwrap()]);
    secretive.kill().unwrap();
    secretive.wait().unwrap();
    assert_eq!(taken.status.code(), Some(0));
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(!text.contains("hunter2hunter2") && !text.contains("31.4159"));
    assert!(!text.contains("/environ") && !text.contains("cmdline"));
}

#[test]
fn a_capture_to_a_full_or_missing_place_says_so() {
    for place in ["/dev/full", "/no/such/directory/host.jsonl"] {
        let taken = memtide(&["capture", "--for", "100ms", "--every", "100ms", "-o", place]);
        assert_eq!(taken.status.code(), Some(3), "{place}");
        let message = crate::support::stderr(&taken);
        assert!(message.contains(&format!("cannot write {place}")), "{message}");
    }
}
