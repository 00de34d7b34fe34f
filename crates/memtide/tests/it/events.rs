//! `memtide events`: what happened, of whatever source.

use crate::support::{capture, file, json, memtide, root, stderr, stdout};

fn case(name: &str) -> String {
    crate::cases::path(name)
}

fn events(source: &str, more: &[&str]) -> String {
    let output = memtide(&[&["events", source], more].concat());
    assert!(output.status.success(), "{source}: {}", stderr(&output));
    stdout(&output)
}

#[test]
fn labelled_captures_show_what_their_labels_say() {
    for (name, line) in [
        ("cgroup-oom--96m", "OOM kill in /app"),
        ("cgroup-oom--96m", "/app hit its limit of 96 MiB"),
        ("oom-cgroup--6.18-640m-64m", "OOM kill in /pod"),
        ("global-oom--512m", "OOM kill, by the host's counter"),
        (
            "cgroup-high-throttle--6.12-1g-200m",
            "/batch was throttled at memory.high of 200 MiB",
        ),
    ] {
        let text = events(&case(name), &[]);
        assert!(text.contains(line), "{name}: {text}");
        assert!(
            text.lines().all(|line| line.chars().count() <= 80),
            "{text}"
        );
    }
    let quiet = events(&case("healthy--idle"), &[]);
    assert_eq!(quiet, "Nothing happened that memtide counts as an event.\n");
}

#[test]
fn every_kernel_report_that_is_no_dump_is_an_event_with_the_kernels_lines() {
    let logs = root().join("crates/probe/tests/kernel_reports");
    let mut kills = 0;
    for entry in std::fs::read_dir(logs).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|ending| ending != "log") {
            continue;
        }
        let output = memtide(&["events", path.to_str().unwrap(), "--format", "json"]);
        assert!(output.status.success(), "{path:?}: {}", stderr(&output));
        let all = json(&output);
        for event in all["events"].as_array().unwrap() {
            let is_failure = path.to_str().unwrap().contains("failure");
            kills += usize::from(event["kind"] == "oom-kill");
            assert!(
                !is_failure || event["kind"] == "allocation-failure",
                "{path:?}"
            );
            assert!(!event["report"].as_str().unwrap().is_empty(), "{path:?}");
        }
    }
    assert!(kills > 20, "{kills}");
}

#[test]
fn events_are_chosen_by_kind_and_time() {
    let source = case("cgroup-oom--96m");
    let kinds = events(&source, &["--kind", "cgroup-limit"]);
    assert_eq!(kinds.lines().count(), 1, "{kinds}");
    let late = events(
        &source,
        &["--since", "+6s", "--kind", "oom-kill", "--format", "csv"],
    );
    assert_eq!(late.lines().count(), 2, "{late}");
}

/// Kills at 10 s and at 20 min.
#[test]
fn events_are_those_of_the_minutes_around_a_moment() {
    let directory = tempfile::tempdir().unwrap();
    let sample = |second: u32| {
        let kills = u32::from(second >= 10) + u32::from(second >= 1200);
        vec![
            (
                "/proc/meminfo",
                "MemTotal: 1000 kB\nMemFree: 500 kB\n".to_owned(),
            ),
            ("/proc/vmstat", format!("oom_kill {kills}\n")),
        ]
    };
    let samples: Vec<_> = (0..1_600).map(sample).collect();
    let source = file(&directory, "kills.jsonl", capture(&samples));
    let kills = |more: &[&str]| events(&source, &[&["--format", "csv"], more].concat());
    assert_eq!(kills(&[]).matches("oom-kill").count(), 2);
    let around = kills(&["--at", "+20m"]);
    assert_eq!(around.matches("oom-kill").count(), 1, "{around}");
    assert_eq!(kills(&["--at", "+10m"]).matches("oom-kill").count(), 0);
}

#[test]
fn a_hostile_group_is_shown_harmless_to_people_and_whole_to_programs() {
    let name = "/evil\u{1b}[2J,\"x";
    let path = |file: &str| format!("/sys/fs/cgroup{name}/{file}");
    let (current, counts) = (path("memory.current"), path("memory.events"));
    let sample = |kills: u32| {
        vec![
            (
                "/proc/meminfo",
                "MemTotal: 1000 kB\nMemFree: 500 kB\n".to_owned(),
            ),
            (current.as_str(), "4096\n".to_owned()),
            (
                counts.as_str(),
                format!("low 0\nhigh 0\nmax 0\noom 0\noom_kill {kills}\n"),
            ),
        ]
    };
    let directory = tempfile::tempdir().unwrap();
    let source = file(&directory, "a.jsonl", capture(&[sample(0), sample(1)]));
    let text = events(&source, &[]);
    assert_eq!(text, "0:01  OOM kill in /evil\\x1b[2J,\"x\n");
    let output = memtide(&["events", &source, "--format", "json"]);
    assert_eq!(json(&output)["events"][0]["subject"], name);
    let csv = events(&source, &["--format", "csv"]);
    assert!(csv.contains(",oom-kill,\"/evil\u{1b}[2J,\"\"x\","), "{csv}");
}
