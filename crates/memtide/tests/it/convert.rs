//! `memtide convert`: a capture says what its source said.

use crate::support::{file, json, memtide, stderr};

const MEMINFO: &str = "MemTotal: 16384000 kB\nMemFree: 150000 kB\nMemAvailable: 300000 kB\nBuffers: 1000 kB\n\
    Cached: 9000000 kB\nAnonPages: 6000000 kB\nShmem: 8900000 kB\nSwapTotal: 4000000 kB\nSwapFree: 100 kB\n";
const FREE_H: &str = "              total        used        free      shared  buff/cache   available\n\
    Mem:           15Gi        14Gi       180Mi       8.4Gi       8.9Gi       310Mi\n\
    Swap:         3.8Gi       3.8Gi       100Ki\n";
const VMSTAT: &str = "procs -----------memory---------- ---swap-- -----io---- -system-- ------cpu-----\n \
    r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st\n \
    2  9 3000000  90000   1000  80000   10   12   300   100  900  900  5  5 80 10  0\n \
    1 12 3010000  88000   1000  80000 9000 9500 20000  9800 4000 8000  5 20  5 70  0\n \
    1 14 3020000  89000   1000  79000 9100 9600 21000  9900 4000 8000  5 20  5 70  0\n \
    1 11 3030000  87000   1000  81000 9050 9400 22000  9700 4000 8000  5 20  5 70  0\n";
const REPORT: &str = include_str!("../../../import/benches/report.txt");

/// Findings by id, those too that only say what is not wrong.
fn ids(report: &serde_json::Value) -> Vec<&str> {
    let findings = report["findings"].as_array().unwrap().iter();
    let mut ids: Vec<&str> = findings.map(|finding| finding["id"].as_str().unwrap()).collect();
    ids.sort_unstable();
    ids
}

#[test]
fn a_converted_paste_has_the_findings_of_the_paste() {
    let directory = tempfile::tempdir().unwrap();
    for (name, paste) in [
        ("meminfo", MEMINFO.to_owned()),
        ("free", format!("$ free -h\n{FREE_H}")),
        ("vmstat", format!("$ vmstat 5\n{VMSTAT}")),
        ("report", REPORT.to_owned()),
        ("all", format!("{MEMINFO}\n$ vmstat 5\n{VMSTAT}\n{REPORT}\n{FREE_H}")),
    ] {
        let source = file(&directory, name, paste);
        let output = directory.path().join(format!("{name}.jsonl.zst"));
        let output = output.to_str().unwrap();
        let converted = memtide(&["convert", &source, "-o", output]);
        assert!(converted.status.success(), "{name}: {}", stderr(&converted));
        let before = json(&memtide(&["check", &source, "--format", "json"]));
        let after = json(&memtide(&["check", output, "--format", "json"]));
        assert_eq!(after["source"]["kind"], "capture", "{name}");
        assert_eq!(before["source"]["samples"], after["source"]["samples"], "{name}");
        assert_eq!(ids(&before), ids(&after), "{name}: {}", stderr(&converted));
        assert_eq!(before["verdict"], after["verdict"], "{name}");
        assert!(!ids(&before).is_empty(), "{name} says nothing: the comparison is empty");
    }
}

#[test]
fn unrelated_looks_stay_unrelated() {
    let directory = tempfile::tempdir().unwrap();
    let free = |used: u32| {
        format!(
            "              total        used        free      shared  buff/cache   available\n\
             Mem:        8000000     {used}     {}        1000      500000     {}\n\
             Swap:             0           0           0\n\n",
            7_500_000 - used,
            7_800_000 - used
        )
    };
    let paste = file(&directory, "two.txt", format!("{}{}", free(1_000_000), free(6_000_000)));
    let output = directory.path().join("two.jsonl");
    let converted = memtide(&["convert", &paste, "-o", output.to_str().unwrap()]);
    assert!(converted.status.success(), "{}", stderr(&converted));
    let text = std::fs::read_to_string(&output).unwrap();
    assert_eq!(text.lines().count(), 3, "{text}");
    assert_eq!(text.matches("\"unrelated\":true").count(), 1, "{text}");
    assert!(text.contains("MemTotal: 8000000 kB"), "{text}");
}

#[test]
fn a_file_that_is_there_is_not_overwritten_unless_asked() {
    let directory = tempfile::tempdir().unwrap();
    let paste = file(&directory, "paste.txt", "MemTotal: 1000 kB\nMemFree: 500 kB\n");
    let there = file(&directory, "there.jsonl", "precious");
    let refused = memtide(&["convert", &paste, "-o", &there]);
    assert_eq!(refused.status.code(), Some(3));
    assert!(stderr(&refused).contains("--force"), "{}", stderr(&refused));
    assert_eq!(std::fs::read(&there).unwrap(), b"precious");
    assert!(memtide(&["convert", &paste, "-o", &there, "--force"]).status.success());
    let again = directory.path().join("again.jsonl");
    let capture = memtide(&["convert", &there, "-o", again.to_str().unwrap()]);
    assert!(stderr(&capture).contains("is a capture already"), "{}", stderr(&capture));
    assert!(!again.exists(), "nothing is made of a source that is refused");
}
