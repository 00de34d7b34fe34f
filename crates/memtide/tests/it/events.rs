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
        ("cgroup-high-throttle--6.12-1g-200m", "/batch was throttled at memory.high of 200 MiB"),
    ] {
        let text = events(&case(name), &[]);
        assert!(text.contains(line), "{name}: {text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
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
            assert!(!is_failure || event["kind"] == "allocation-failure", "{path:?}");
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
    let late = events(&source, &["--since", "+6s", "--kind", "oom-kill", "--format", "csv"]);
    assert_eq!(late.lines().count(), 2, "{late}");
}

/// Kills at 10 s and at 20 min.
#[test]
fn events_are_those_of_the_minutes_around_a_moment() {
    let directory = tempfile::tempdir().unwrap();
    let sample = |second: u32| {
        let kills = u32::from(second >= 10) + u32::from(second >= 1200);
        vec![
            ("/proc/meminfo", "MemTotal: 1000 kB\nMemFree: 500 kB\n".to_owned()),
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

/// Seven hours, which are read by the minute. A cgroup meets its limit twice for 10 s, 95 s apart, and 20 min later once.
#[test]
fn bursts_of_limit_hits_in_neighbouring_minutes_of_a_long_recording_are_two_events() {
    const BEGIN: u64 = 1_794_900_000;
    let directory = tempfile::tempdir().unwrap();
    let mut text = String::from("{\"interval_s\": 5.0, \"page_size\": 4096}\n");
    let mut hits = 0;
    for second in (0..7 * 3_600).step_by(5) {
        let is_hit = matches!(second, 3_605..=3_615 | 3_710..=3_720 | 4_900..=4_910);
        hits += u32::from(is_hit) * 100;
        let sample = serde_json::json!({
            "t": second,
            "wall_ns": (BEGIN + second) * 1_000_000_000,
            "files": {
                "/proc/meminfo": "MemTotal: 1000000 kB\nMemFree: 500000 kB\n",
                "/sys/fs/cgroup/web/memory.current": "4096000\n",
                "/sys/fs/cgroup/web/memory.events":
                    format!("low 0\nhigh 0\nmax {hits}\noom 0\noom_kill 0\n"),
            },
        });
        text.push_str(&format!("{sample}\n"));
    }
    let source = file(&directory, "long.jsonl", text);
    let kept = directory.path().join("kept").to_str().unwrap().to_owned();
    let output = memtide(&["record", "--from", &source, "--to", &kept]);
    assert!(output.status.success(), "{}", stderr(&output));
    let hits = |source: &str| events(source, &["--kind", "cgroup-limit"]);
    assert_eq!(hits(&kept), hits(&source));
    assert_eq!(hits(&kept).matches("300 times in 10 s").count(), 3);
}

#[test]
fn a_hostile_group_is_shown_harmless_to_people_and_whole_to_programs() {
    let name = "/evil\u{1b}[2J,\"x";
    let path = |file: &str| format!("/sys/fs/cgroup{name}/{file}");
    let (current, counts) = (path("memory.current"), path("memory.events"));
    let sample = |kills: u32| {
        vec![
            ("/proc/meminfo", "MemTotal: 1000 kB\nMemFree: 500 kB\n".to_owned()),
            (current.as_str(), "4096\n".to_owned()),
            (counts.as_str(), format!("low 0\nhigh 0\nmax 0\noom 0\noom_kill {kills}\n")),
        ]
    };
    let directory = tempfile::tempdir().unwrap();
    let source = file(&directory, "a.jsonl", capture(&[sample(0), sample(1)]));
    let text = events(&source, &[]);
    assert_eq!(text, "0:01  OOM kill in /evil\\x1b[2J,\"x\n");
    let output = memtide(&["events", &source, "--format", "json"]);
    assert_eq!(json(&output)["events"][0]["subject"], name);
    let csv = events(&source, &["--format", "csv"]);
    assert!(csv.contains(",oom-kill,\"/evil\\x1b[2J,\"\"x\","), "{csv}");
}
