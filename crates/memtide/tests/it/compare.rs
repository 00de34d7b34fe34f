//! `memtide compare`: what people see of three pairs, and what scripts read.

use crate::support::{capture, file, folded, json, memtide, root, stderr, stdout};

fn corpus(name: &str) -> String {
    let path = root().join("corpus").join(name);
    path.to_str().unwrap().to_owned()
}

fn compared(before: &str, after: &str, more: &[&str]) -> std::process::Output {
    let (before, after) = (corpus(before), corpus(after));
    memtide(&[&["compare", &before, &after], more].concat())
}

const RECLAIM: &str = "node-reclaim--dist21.jsonl.gz";
const NO_RECLAIM: &str = "healthy--numa-mode0.jsonl.gz";
const IDLE: &str = "healthy--idle.jsonl.gz";
const THRASH: &str = "swap-thrash--512m-swapdisk.jsonl.gz";

#[test]
fn a_fix_names_the_setting_that_was_the_cause() {
    let output = compared(RECLAIM, NO_RECLAIM, &[]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let said = "vm.zone_reclaim_mode is the cause: 1 before, 0 after.";
    assert!(folded(&output).contains(said), "{}", stdout(&output));
    insta::assert_snapshot!(stdout(&output));
    let back = compared(NO_RECLAIM, RECLAIM, &[]);
    assert_eq!(back.status.code(), Some(1));
    let said = "vm.zone_reclaim_mode is the cause: 0 before, 1 after.";
    assert!(folded(&back).contains(said), "{}", stdout(&back));
}

#[test]
fn more_load_is_told_by_what_differs_most() {
    let output = compared(IDLE, THRASH, &[]);
    assert_eq!(output.status.code(), Some(1));
    insta::assert_snapshot!(stdout(&output));
}

#[test]
fn huge_pages_under_another_setting() {
    let output = compared(
        "healthy--thp-never.jsonl.gz",
        "thp-bloat--always.jsonl.gz",
        &[],
    );
    assert_eq!(output.status.code(), Some(0));
    insta::assert_snapshot!(stdout(&output));
}

#[test]
fn a_recording_against_itself_shows_no_change() {
    for case in [IDLE, THRASH, RECLAIM] {
        let output = compared(case, case, &["--format", "json"]);
        assert_eq!(output.status.code(), Some(0), "{case}");
        let answer = json(&output);
        assert_eq!(
            answer["direction"], "same",
            "{case}: {}",
            answer["headline"]
        );
        let headline = answer["headline"].as_str().unwrap();
        assert!(
            headline.starts_with("Nothing changed"),
            "{case}: {headline}"
        );
        assert_eq!(answer["facts"].as_array().map(Vec::len), Some(0));
    }
}

#[test]
fn lines_fit_into_eighty_columns() {
    for (before, after) in [(RECLAIM, NO_RECLAIM), (IDLE, THRASH), (IDLE, RECLAIM)] {
        for more in [&[][..], &["--all"]] {
            let text = stdout(&compared(before, after, more));
            for line in text.lines() {
                assert!(line.chars().count() <= 80, "{line}");
            }
        }
    }
}

#[test]
fn parts_of_one_source_are_compared() {
    let same = corpus(THRASH);
    let output = memtide(&[
        "compare",
        &same,
        &same,
        "--before-until",
        "+9s",
        "--after-since",
        "+11s",
        "--format",
        "json",
    ]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let answer = json(&output);
    assert_eq!(answer["schema"], "memtide-compare/1");
    assert_eq!(answer["after"]["verdict"], "critical");
    let samples = |side: &str| answer[side]["source"]["samples"].as_u64().unwrap();
    assert!(samples("before") < 12 && samples("after") > 20);
}

#[test]
fn single_looks_cannot_be_told_and_say_why() {
    let directory = tempfile::tempdir().unwrap();
    let look = |name: &str, free: u64| {
        let meminfo =
            format!("MemTotal: 1000000 kB\nMemFree: {free} kB\nMemAvailable: {free} kB\n");
        file(
            &directory,
            name,
            capture(&[vec![("/proc/meminfo", meminfo)]]),
        )
    };
    let (one, other) = (look("a.jsonl", 600_000), look("b.jsonl", 200_000));
    let output = memtide(&["compare", &one, &other]);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    let text = folded(&output);
    assert!(
        text.contains("There is one look only before: levels, and no rates."),
        "{text}"
    );
    assert!(text.contains("-391 MiB"), "{text}");
}

#[test]
fn names_from_the_host_steer_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let look = |name: &str, program: &str| {
        let meminfo = "MemTotal: 1000000 kB\nMemFree: 600000 kB\nAnonPages: 300000 kB\n".to_owned();
        let stat =
            format!("7 ({program}) S 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 100 900000 75000");
        let status = "RssAnon: 300000 kB\n".to_owned();
        let files = vec![
            ("/proc/meminfo", meminfo),
            ("/proc/7/stat", stat),
            ("/proc/7/status", status),
        ];
        file(&directory, name, capture(&[files.clone(), files]))
    };
    let one = look("a.jsonl", "calm");
    let other = look("b.jsonl", "\u{1b}[2Jevil\u{202e}<script>");
    let output = memtide(&["compare", &one, &other]);
    let text = stdout(&output);
    assert!(text.contains("evil"), "{text}");
    assert!(
        !text.contains('\u{1b}') && !text.contains('\u{202e}'),
        "{text}"
    );
}

#[test]
fn a_source_that_cannot_be_read_is_an_error_that_names_it() {
    let output = memtide(&["compare", &corpus(IDLE), "/no/such/file"]);
    assert_eq!(
        (output.status.code(), stdout(&output).as_str()),
        (Some(3), "")
    );
    assert!(stderr(&output).contains("/no/such/file"));
    let both = memtide(&["compare", "-", "-"]);
    assert_eq!(both.status.code(), Some(3));
    assert!(stderr(&both).contains("not both"), "{}", stderr(&both));
}
