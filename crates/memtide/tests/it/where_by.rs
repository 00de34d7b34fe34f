//! `memtide where --by`: tables of owners add up, name what they cannot know, and fit 80 columns.

use diagnose::accounting::GroupBy;
use serde_json::Value;

use crate::cases::{self, on_each};
use crate::support::{capture, file, folded, json, memtide, stderr, stdout};

const KINDS: [GroupBy; 8] = [
    GroupBy::Unit,
    GroupBy::Container,
    GroupBy::Pod,
    GroupBy::User,
    GroupBy::Process,
    GroupBy::Cgroup,
    GroupBy::Node,
    GroupBy::Mount,
];

fn assert_adds_up(report: &Value, place: &str) {
    let sum = |name: &str| -> u64 {
        let rows = report[name].as_array().unwrap().iter();
        rows.map(|row| row["bytes"].as_u64().unwrap()).sum()
    };
    let bytes = |name: &str| report[name].as_u64().unwrap();
    let (whole, all) = (bytes("total_bytes") + bytes("exceeds_bytes"), sum("rows") + sum("rest"));
    assert_eq!(all, whole, "{place}: {report:#}");
}

#[test]
fn every_table_of_every_case_adds_up() {
    on_each(cases::all(), |case| {
        for by in KINDS {
            if let Ok(report) = answers::where_by(&case.judged().source, by) {
                let report = serde_json::to_value(&report).unwrap();
                assert_adds_up(&report, &format!("{} by {}", case.id, by.name()));
            }
        }
    });
}

#[test]
fn a_table_of_this_host_adds_up_and_fits_the_screen() {
    for by in KINDS.map(GroupBy::name) {
        let answer = memtide(&["where", "--by", by, "--format", "json"]);
        if answer.status.success() {
            assert_adds_up(&json(&answer), by);
        } else {
            assert!(stderr(&answer).contains("this source has no"), "{by}: {}", stderr(&answer));
        }
        let text = stdout(&memtide(&["where", "--by", by]));
        let wide = text.lines().find(|line| line.chars().count() > 80);
        assert_eq!(wide, None, "{text}");
    }
}

#[test]
fn a_containers_share_of_its_limit_and_its_growth_are_in_its_row() {
    let id = "a59e4e7d3090c04c6ce5a4b7a8bc85228eb9b96ac00b1284643a8c7c11dda661";
    let group = format!("/sys/fs/cgroup/system.slice/docker-{id}.scope");
    let files = |mib: u64| {
        let at = |name: &str| format!("{group}/{name}");
        [
            ("/proc/meminfo".to_owned(), "MemTotal: 1024000 kB\nMemFree: 512000 kB\n".to_owned()),
            (at("memory.current"), format!("{}\n", mib << 20)),
            (at("memory.max"), format!("{}\n", 200_u64 << 20)),
        ]
    };
    let samples = [files(100), files(150)];
    let samples: Vec<Vec<(&str, String)>> = samples
        .iter()
        .map(|sample| sample.iter().map(|(path, text)| (&**path, text.clone())).collect())
        .collect();
    let directory = tempfile::tempdir().unwrap();
    let path = file(&directory, "pods.jsonl", capture(&samples));
    let text = folded(&memtide(&["where", "--by", "container", &path]));
    assert!(text.contains("150 MiB 15 % 75 % +50 MiB docker a59e4e7d3090"), "{text}");
    let pods = folded(&memtide(&["where", "--by", "pod", &path]));
    assert!(pods.contains("No cgroup is a pod."), "{pods}");
}

#[test]
fn a_source_without_what_it_takes_is_an_error_that_names_the_way_out() {
    let case = cases::path("healthy--idle");
    let answer = memtide(&["where", "--by", "container", &case]);
    assert_eq!(answer.status.code(), Some(3));
    assert!(stderr(&answer).contains("`--by process` needs none"), "{}", stderr(&answer));
    let mounts = memtide(&["where", "--by", "mount", &case]);
    assert!(stderr(&mounts).contains("on a live host only"), "{}", stderr(&mounts));
}
