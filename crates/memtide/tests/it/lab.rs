//! `memtide lab`: a scenario is played in a virtual machine and found; what cannot be played says why.

use std::process::Command;

use crate::support::{has, root};

fn memtide(arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_memtide"))
        .args(arguments)
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (
        output.status.code(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

/// `make test-lab` runs it: it needs QEMU and a kernel.
#[test]
#[ignore = "needs QEMU and a kernel: make test-lab"]
fn a_kill_in_a_cgroup_is_made_and_found() {
    if !has("qemu-system-x86_64") {
        return;
    }
    let fetched = Command::new(root().join("scripts/kernel.sh")).status();
    assert!(fetched.unwrap().success(), "scripts/kernel.sh failed");
    let directory = tempfile::tempdir().unwrap();
    let kept = directory.path().to_str().unwrap();
    let (code, out, progress) = memtide(&["lab", "run", "cgroup-oom", "--keep", "--out", kept]);
    assert_eq!(code, Some(0), "{out}{progress}");
    assert!(out.contains("limit                   oom-cgroup"), "{out}");
    for name in ["report.html", "limit.html", "figure-1-limit.svg"] {
        assert!(directory.path().join(name).is_file(), "{name}");
    }
    assert!(progress.contains("ready"), "{progress}");
    // What is kept is an ordinary capture.
    let capture = directory.path().join("limit.jsonl");
    let (code, out, _) = memtide(&["check", capture.to_str().unwrap()]);
    assert_eq!(code, Some(2), "{out}");
}

#[test]
fn what_cannot_be_played_says_why() {
    let (code, _, error) = memtide(&["lab", "run", "nosuch"]);
    assert_eq!(code, Some(3));
    assert!(
        error.contains("there is no scenario `nosuch`; there are hogs, write-plateau"),
        "{error}"
    );
    let (code, _, error) = memtide(&["lab", "run", "swapdemo", "--variant", "x"]);
    assert_eq!(code, Some(3));
    assert!(
        error.contains("swapdemo has no arm `x`; it has swappiness-60"),
        "{error}"
    );
    let (code, _, error) = memtide(&["lab", "run", "idle", "--kernel", "/etc/passwd"]);
    assert_eq!(code, Some(3));
    assert!(
        error.contains("/etc/passwd: it is no x86 kernel image (bzImage)"),
        "{error}"
    );
}

#[test]
fn parts_work_alone() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().to_str().unwrap();
    let (code, out, _) = memtide(&["lab", "write", place, "1M", "--files", "2"]);
    assert_eq!((code, out.lines().count()), (Some(0), 2), "{out}");
    let (code, out, _) = memtide(&["lab", "read", place, "--passes", "1"]);
    assert_eq!(code, Some(0));
    assert!(out.starts_with("pass 1: 2 MiB in "), "{out}");
    let file = directory.path().join("file0");
    let file = file.to_str().unwrap();
    let (code, out, _) = memtide(&[
        "lab",
        "map",
        file,
        "1M",
        "--data",
        "3M",
        "--iterations",
        "2",
    ]);
    assert_eq!(code, Some(0));
    assert!(out.contains("2.0 of 2 steps after"), "{out}");
    let (code, _, _) = memtide(&["lab", "hog", "4M", "--content", "random", "--for", "100ms"]);
    assert_eq!(code, Some(0));
}
