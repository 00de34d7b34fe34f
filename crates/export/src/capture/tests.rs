//! Tests that a capture has the readings of its source.

use std::collections::BTreeMap;
use std::path::Path;

use super::*;
use import::{open, open_bytes};
use timeline::facts::SWAPPINESS;
use timeline::signals::{
    CGROUP_CURRENT, CGROUP_MAX, CGROUP_PSI_MEMORY_SOME, MEM_FREE, PSI_MEMORY_SOME, PSWPIN,
    RECORDER_LATE,
};
use timeline::{EventKind, SourceKind};
use units::{Bytes, Limit, Micros, Pages, WallClock};

fn corpus(name: &str) -> Source {
    let captures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/captures");
    open(&captures.join(name).join("capture.jsonl.gz"), &mut |_| ()).unwrap()
}

fn converted(opened: &Source) -> (Source, Converted) {
    let mut bytes = Vec::new();
    let converted = convert(opened, &mut bytes).unwrap();
    let again = open_bytes("capture", &bytes).unwrap();
    assert_eq!(again.origin.kind, SourceKind::Capture);
    assert_eq!(again.problems, Vec::<String>::new());
    (again, converted)
}

type Rows = BTreeMap<(Entity, String), BTreeMap<&'static str, u64>>;

fn rows(sample: &Sample) -> Rows {
    let readings = |row: &timeline::Row| {
        let of = |(signal, raw): (timeline::SignalId, u64)| (signal.def().name, raw);
        row.iter().map(of).collect::<BTreeMap<_, _>>()
    };
    let mut rows = Rows::new();
    rows.insert((Entity::Host, String::new()), readings(&sample.host));
    for entity in Entity::ALL {
        for row in sample.table(entity).rows() {
            let key = format!("{} {} {}", row.key, row.label, row.group);
            rows.insert((entity, key), readings(&row.row));
        }
    }
    rows
}

#[test]
fn a_capture_of_a_capture_is_the_same() {
    for name in [
        "node-reclaim--dist21",
        "cgroup-oom--96m",
        "healthy--5.10-768m-build",
        "healthy--7.2-1g-streamwrite",
        "swap-thrash--512m-swapdisk",
    ] {
        let before = corpus(name);
        let (after, converted) = converted(&before);
        let words = Converted { fields_left_out: 0, ..converted };
        assert_eq!(words.in_words(), Vec::<String>::new(), "{name}");
        assert_eq!(before.timeline.len(), after.timeline.len());
        for index in 0..before.timeline.len() {
            let [before, after] =
                [&before, &after].map(|opened| rows(&opened.timeline.sample(index).unwrap()));
            assert_eq!(before, after, "{name}, sample {index}");
        }
        let facts = [&before.facts, &after.facts];
        let [tunables, again] = facts.map(|facts| facts.iter().collect::<Vec<_>>());
        assert_eq!(tunables, again, "{name}");
        assert_eq!(facts[0].nodes, facts[1].nodes);
        assert_eq!(facts[0].disks, facts[1].disks);
        assert_eq!(facts[0].memory_mounts, facts[1].memory_mounts);
        assert_eq!(facts[0].cgroup_mode, facts[1].cgroup_mode);
    }
}

fn sample(boot: u64, wall: i64) -> Sample {
    let mut sample = Sample::at(Span::from_secs(boot));
    sample.stamp.wall = Some(WallClock::from_unix_nanos(wall * 1_000_000_000));
    sample.host.set(MEM_FREE, Bytes::from_kib(boot));
    sample
}

fn opened(timeline: Timeline) -> Source {
    Source::new(SourceKind::Text, "", timeline, Facts::default())
}

#[test]
fn a_reboot_is_one_in_the_capture() {
    let mut timeline = Timeline::default();
    for (boot, wall, swapped) in [(900, 1000, 70), (901, 1001, 80), (5, 1060, 1), (6, 1061, 3)] {
        let mut sample = sample(boot, wall);
        sample.host.set(PSWPIN, Pages::new(swapped));
        timeline.push(&sample).unwrap();
    }
    let before = opened(timeline);
    let (after, _) = converted(&before);
    let breaks = [&before, &after].map(|opened| opened.timeline.breaks().to_vec());
    assert_eq!(breaks[0], breaks[1]);
    assert!(breaks[0].iter().any(|b| b.kind == BreakKind::Reboot));
    assert_eq!(before.timeline.times(), after.timeline.times());
}

#[test]
fn groups_of_v1_are_in_files_of_v1() {
    let mut sample = sample(10, 1000);
    for (key, limit) in [("/", Limit::Unlimited), ("/a", Limit::Bytes(Bytes::from_mib(24)))] {
        let row = &mut sample.table_mut(Entity::Cgroup).entry(key).row;
        row.set(CGROUP_CURRENT, Bytes::from_mib(7));
        row.set(CGROUP_MAX, limit);
        row.set(CGROUP_PSI_MEMORY_SOME, Micros::new(5));
    }
    let files = texts::from_sample(&sample, CgroupMode::V1);
    let limit = |path| files.get(path).map(String::as_str);
    assert_eq!(limit("/sys/fs/cgroup/memory/a/memory.limit_in_bytes"), Some("25165824\n"));
    let mut timeline = Timeline::default();
    timeline.push(&sample).unwrap();
    let mut before = opened(timeline);
    before.facts.cgroup_mode = Some(CgroupMode::V1);
    let (after, converted) = converted(&before);
    assert_eq!(converted.in_words(), Vec::<String>::new());
    assert_eq!(after.facts.cgroup_mode, Some(CgroupMode::V1));
    let again = after.timeline.sample(0).unwrap();
    assert_eq!(rows(&before.timeline.sample(0).unwrap()), rows(&again));
}

#[test]
fn a_tunable_changes_when_it_did() {
    let mut timeline = Timeline::default();
    for second in 0..4 {
        timeline.push(&sample(50 + second, 1000)).unwrap();
    }
    let mut before = opened(timeline);
    for (at, value) in [(0, "60"), (1, "60"), (2, "1")] {
        before.facts.record(Span::from_secs(at), SWAPPINESS, value);
    }
    let after = converted(&before).0.facts;
    assert_eq!(after.changes(), before.facts.changes());
    assert_eq!(after.text(SWAPPINESS), Some("1"));
}

#[test]
fn nothing_is_made_up_and_what_has_no_file_is_named() {
    let mut sample = sample(10, 1000);
    sample.host.set(PSI_MEMORY_SOME, Micros::new(7));
    sample.host.set(RECORDER_LATE, Micros::new(3));
    let mut timeline = Timeline::default();
    timeline.push(&sample).unwrap();
    timeline.add_recorder_event(Event {
        stamp: sample.stamp,
        kind: EventKind::OomKill,
        subject: String::new(),
        text: "a service began".to_owned(),
        report: String::new(),
    });
    let (after, converted) = converted(&opened(timeline));
    let read: Vec<_> = after.timeline.sample(0).unwrap().host.iter().collect();
    assert_eq!(read.len(), 2, "no averages of pressure: {read:?}");
    let words = converted.in_words();
    assert!(words[0].starts_with("1 signal: ") && words[0].ends_with(": recorder.late"));
    assert!(words[1].starts_with("1 event: "), "{words:?}");
}

/// Parses the report in a log.
fn report(log: &str) -> KernelReport {
    let source = open_bytes("log", log.as_bytes()).unwrap();
    source.timeline.all_reports()[0].report.clone()
}

#[test]
fn a_report_on_a_recorded_sample_leaves_the_sample_its_own_readings() {
    const REPORT: &str = include_str!("../../../probe/tests/kernel_reports/vm-6.12-swapfull.log");
    let mut timeline = Timeline::default();
    let mut last = sample(11, 1001);
    last.host.set(PSWPIN, Pages::new(9));
    timeline.push(&sample(10, 1000)).unwrap();
    timeline.push(&last).unwrap();
    let report = report(REPORT);
    for _ in 0..2 {
        timeline.report(report.clone(), Some(REPORT.into()));
    }
    let (after, converted) = converted(&opened(timeline));
    assert_eq!(after.timeline.at(PSWPIN, 1), Some(Pages::new(9)));
    assert_eq!(after.timeline.all_reports().len(), 1);
    assert_eq!(converted.reports_left_out, 1, "a sample of a capture holds one");
}

#[test]
fn kernel_reports_that_no_sample_shows_are_left_out_and_counted() {
    const REPORT: &str = include_str!("../../../probe/tests/kernel_reports/vm-6.12-swapfull.log");
    let mut timeline = Timeline::default();
    let (old, fresh) = (sample(10, 1000).stamp, sample(100_000, 100_990).stamp);
    timeline.push(&sample(100_010, 101_000)).unwrap();
    for report in ["[10] killed", "[11] killed"] {
        timeline.add_recorder_event(Event {
            stamp: old,
            kind: EventKind::OomKill,
            subject: report.to_owned(),
            text: String::new(),
            report: report.to_owned(),
        });
    }
    let report = report(REPORT);
    timeline.add_recorder_event(Event::of_report(fresh, &report, REPORT.to_owned()));
    timeline.report_when(0, fresh, report, Some(REPORT.into()));
    let (after, converted) = converted(&opened(timeline));
    assert_eq!(after.timeline.all_reports().len(), 1);
    assert_eq!(converted.reports_left_out, 2);
    let words = converted.in_words();
    assert!(words[0].starts_with("2 kernel reports: "), "{words:?}");
}

#[test]
fn fields_that_memtide_does_not_know_are_counted() {
    let mut timeline = Timeline::default();
    timeline.push(&sample(10, 1000)).unwrap();
    timeline.note_unknown("/proc/meminfo", "Novel".to_owned(), 7);
    let (_, converted) = converted(&opened(timeline));
    let words = converted.in_words();
    assert!(words[0].starts_with("1 kernel field: memtide does not know it"));
}
