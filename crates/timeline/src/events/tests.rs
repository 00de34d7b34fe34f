//! A made-up host to which everything happens.

use super::*;
use crate::Sample;
use crate::facts::{CgroupMode, SWAPPINESS};
use crate::kernel_report::{KernelReport, Killed, ReportKind};
use crate::signals::{
    CGROUP_EVENTS_HIGH, CGROUP_EVENTS_MAX, CGROUP_EVENTS_OOM_KILL, CGROUP_MAX, MEM_FREE, OOM_KILLS,
};
use crate::signals::{Counter, Entity, Signal};
use units::{Bytes, Count, Limit, WallClock};

const START: i64 = 1_700_000_000;

fn stamp(boot: u64, wall: i64) -> Stamp {
    Stamp {
        boot: Span::from_secs(boot),
        awake: Some(Span::from_secs(boot)),
        wall: Some(WallClock::from_unix_nanos((START + wall) * 1_000_000_000)),
    }
}

fn second(at: u64) -> Sample {
    let mut sample = Sample::default();
    sample.stamp = stamp(at, i64::try_from(at).unwrap());
    sample.host.set(MEM_FREE, Bytes::new(at));
    sample
}

fn count(sample: &mut Sample, group: &str, signal: Signal<Counter<Count>>, n: u64) {
    let row = sample.table_mut(Entity::Cgroup).entry(group);
    row.row.set(signal, Count::new(n));
}

/// What groups counted, second by second.
fn counted(signal: Signal<Counter<Count>>, groups: &[(&str, &[u64])]) -> Timeline {
    let mut timeline = Timeline::default();
    for at in 0..groups[0].1.len() {
        let mut sample = second(at as u64);
        for (group, values) in groups {
            count(&mut sample, group, signal, values[at]);
        }
        timeline.push(&sample).unwrap();
    }
    timeline
}

fn texts(timeline: &Timeline, facts: &Facts) -> Vec<String> {
    let all = events(timeline, facts);
    all.into_iter().map(|event| event.text).collect()
}

fn noted(kind: EventKind, at: u64, subject: &str) -> Event {
    Event {
        stamp: stamp(at, i64::try_from(at).unwrap()),
        kind,
        subject: subject.to_owned(),
        text: format!("noted {}", kind.name()),
        report: "the kernel's line\n".to_owned(),
    }
}

fn kill_of(pid: u32) -> KernelReport {
    KernelReport {
        kind: ReportKind::OomKill,
        killed: vec![Killed {
            pid,
            name: "hog".to_owned(),
            anon: Some(Bytes::from_mib(90)),
            ..Killed::default()
        }],
        ..KernelReport::default()
    }
}

#[test]
fn a_kill_that_every_ancestor_counts_is_told_once_where_it_happened() {
    let groups: [(&str, &[u64]); 3] = [
        ("/sys", &[5, 5, 6, 6]),
        ("/sys/web", &[2, 2, 3, 3]),
        ("/sys/web/a", &[0, 0, 1, 1]),
    ];
    let timeline = counted(CGROUP_EVENTS_OOM_KILL, &groups);
    let told = texts(&timeline, &Facts::default());
    assert_eq!(told, ["OOM kill in /sys/web/a"]);
    // cgroup v1 counts each group by itself.
    let mut v1 = Facts::default();
    v1.cgroup_mode = Some(CgroupMode::V1);
    assert_eq!(texts(&timeline, &v1).len(), 3);
}

#[test]
fn a_kill_in_a_group_that_is_gone_is_told_at_the_lowest_group_known() {
    let groups: [(&str, &[u64]); 2] = [("/sys", &[0, 3, 3]), ("/sys/web", &[0, 1, 1])];
    let told = texts(&counted(CGROUP_EVENTS_OOM_KILL, &groups), &Facts::default());
    assert_eq!(told, ["2 OOM kills in /sys", "OOM kill in /sys/web"]);
}

#[test]
fn files_that_are_read_a_sample_apart_still_tell_of_one_kill() {
    let groups: [(&str, &[u64]); 2] = [("/sys", &[0, 0, 1, 1]), ("/sys/web", &[0, 1, 1, 1])];
    let told = texts(&counted(CGROUP_EVENTS_OOM_KILL, &groups), &Facts::default());
    assert_eq!(told, ["OOM kill in /sys/web"]);
}

#[test]
fn a_group_at_its_limit_is_one_event_until_it_has_rest() {
    let mut values = vec![0, 10, 20, 30];
    values.extend(std::iter::repeat_n(30, 100));
    values.push(31);
    let groups: [(&str, &[u64]); 2] = [("/a", &values), ("/a/b", &values)];
    let mut timeline = counted(CGROUP_EVENTS_MAX, &groups);
    let told = texts(&timeline, &Facts::default());
    assert_eq!(
        told,
        ["/a/b met its limit, 30 times in 2 s", "/a/b met its limit"]
    );
    let mut sample = second(500);
    let row = sample.table_mut(Entity::Cgroup).entry("/a/b");
    row.row.set(CGROUP_MAX, Limit::Bytes(Bytes::from_mib(64)));
    count(&mut sample, "/a/b", CGROUP_EVENTS_MAX, 32);
    count(&mut sample, "/a/b", CGROUP_EVENTS_HIGH, 1);
    timeline.push(&sample).unwrap();
    let told = texts(&timeline, &Facts::default());
    assert!(
        told.contains(&"/a/b met its limit of 64 MiB".to_owned()),
        "{told:?}"
    );
}

#[test]
fn a_kill_that_report_recorder_and_counters_tell_of_is_one_event() {
    let mut timeline = Timeline::default();
    for at in 0..10 {
        let mut sample = second(at);
        sample.host.set(OOM_KILLS, Count::new(u64::from(at >= 5)));
        count(
            &mut sample,
            "/web",
            CGROUP_EVENTS_OOM_KILL,
            u64::from(at >= 5),
        );
        timeline.push(&sample).unwrap();
        if at == 5 {
            timeline.report(kill_of(42), None);
        }
    }
    timeline.note(noted(EventKind::OomKill, 5, "hog (42)"));
    let all = events(&timeline, &Facts::default());
    assert_eq!(all.len(), 1, "{all:?}");
    assert_eq!(all[0].text, "OOM kill of hog (42), 90 MiB");
    assert_eq!(all[0].subject, "hog (42)");
    assert_eq!(all[0].report, "the kernel's line\n");
    // Another one that only the recorder heard of is another one.
    timeline.note(noted(EventKind::OomKill, 6, "hog (43)"));
    assert_eq!(events(&timeline, &Facts::default()).len(), 2);
}

#[test]
fn a_kill_that_only_the_host_counts_is_told_too() {
    let mut timeline = Timeline::default();
    for at in 0..3 {
        let mut sample = second(at);
        sample.host.set(OOM_KILLS, Count::new(at));
        timeline.push(&sample).unwrap();
    }
    let all = events(&timeline, &Facts::default());
    assert_eq!(all.len(), 2);
    assert_eq!(all[0].text, "OOM kill, by the host's counter");
    assert_eq!(all[0].subject, "");
}

#[test]
fn everything_that_can_happen_is_told_in_order_of_time() {
    let mut timeline = Timeline::default();
    for at in 0..5 {
        timeline.push(&second(at)).unwrap();
    }
    // A gap of ten minutes, a step of the wall clock, sleep, a reboot.
    for (boot, awake, wall) in [
        (604, 604, 604),
        (605, 605, 4205),
        (705, 606, 4305),
        (3, 3, 4400),
    ] {
        let mut sample = second(boot);
        sample.stamp = stamp(boot, wall);
        sample.stamp.awake = Some(Span::from_secs(awake));
        timeline.push(&sample).unwrap();
    }
    let mut facts = Facts::default();
    facts.record(Span::ZERO, SWAPPINESS, "60");
    facts.record(Span::from_secs(2), SWAPPINESS, "1");
    timeline.note(noted(EventKind::RecorderStarted, 0, ""));
    timeline.note(noted(EventKind::FactChanged, 2, "vm.swappiness"));
    timeline.note(noted(EventKind::ServiceStarted, 3, "web.service"));
    timeline.note(noted(EventKind::Gap, 604, ""));
    let all = events(&timeline, &facts);
    let kinds: Vec<EventKind> = all.iter().map(|event| event.kind).collect();
    assert_eq!(
        kinds,
        [
            EventKind::RecorderStarted,
            EventKind::FactChanged,
            EventKind::ServiceStarted,
            EventKind::Gap,
            EventKind::ClockStep,
            EventKind::Suspend,
            EventKind::Boot,
        ],
        "{all:?}"
    );
}

#[test]
fn settings_with_choices_show_the_chosen_one() {
    let mut facts = Facts::default();
    let thp = crate::facts::THP_ENABLED;
    facts.record(Span::ZERO, thp, "always [madvise] never");
    facts.record(Span::from_secs(1), thp, "[always] madvise never");
    let told = texts(&Timeline::default(), &facts);
    assert_eq!(told, ["thp.enabled changed from madvise to always"]);
}

#[test]
fn counters_that_begin_anew_after_a_reboot_tell_nothing() {
    let mut timeline = Timeline::default();
    for (boot, wall, kills) in [(100, 0, 1), (101, 1, 1), (5, 60, 2), (6, 61, 2)] {
        let mut sample = second(boot);
        sample.stamp = stamp(boot, wall);
        sample.host.set(OOM_KILLS, Count::new(kills));
        timeline.push(&sample).unwrap();
    }
    let told = texts(&timeline, &Facts::default());
    assert_eq!(told, ["the machine was started anew"]);
}

/// A kill that a recorder read of the kernel's log, so many seconds after the first sample, with the log's lines.
fn read_of_log(seconds: i64, pid: u32) -> Event {
    Event {
        stamp: stamp(u64::try_from(50_000 + seconds).unwrap(), seconds),
        report: format!("[{}] Killed process {pid} (hog)\n", 50_000 + seconds),
        ..noted(EventKind::OomKill, 0, &format!("hog ({pid})"))
    }
}

#[test]
fn kills_of_before_the_first_sample_are_told_once_each_at_their_own_times() {
    let mut timeline = Timeline::default();
    for at in 0..5 {
        let mut sample = second(at);
        sample.stamp.boot = Span::from_secs(50_000 + at);
        sample.stamp.awake = None;
        sample
            .host
            .set(OOM_KILLS, Count::new(3 + u64::from(at > 0)));
        timeline.push(&sample).unwrap();
    }
    let kills = [(-33_000, 7), (-32_988, 8), (-40, 9)];
    for (seconds, pid) in kills {
        timeline.note(read_of_log(seconds, pid));
    }
    // Only what was just before the recorder came is judged: it has a report, on the first sample.
    let fresh = read_of_log(-40, 9);
    timeline.report_when(0, fresh.stamp.wall, kill_of(9), Some(fresh.report.into()));
    let all = events(&timeline, &Facts::default());
    let told: Vec<_> = all
        .iter()
        .map(|event| (event.stamp.wall, event.subject.as_str()))
        .collect();
    let own = |(seconds, _)| stamp(0, seconds).wall;
    assert_eq!(
        told,
        [
            (own(kills[0]), "hog (7)"),
            (own(kills[1]), "hog (8)"),
            (own(kills[2]), "hog (9)"),
            (stamp(0, 1).wall, ""),
        ],
        "the host counts a kill of after the first sample: it is none of those"
    );
    assert_eq!(all[2].text, "OOM kill of hog (9), 90 MiB");
}

#[test]
fn a_note_and_a_report_with_other_words_are_two_kills() {
    let mut timeline = Timeline::default();
    timeline.push(&second(0)).unwrap();
    timeline.note(read_of_log(-3, 8));
    timeline.note(read_of_log(-2, 9));
    let lines = read_of_log(-2, 9).report;
    timeline.report_when(0, stamp(0, -2).wall, kill_of(9), Some(lines.into()));
    let all = events(&timeline, &Facts::default());
    let told: Vec<_> = all.iter().map(|event| event.subject.as_str()).collect();
    assert_eq!(told, ["hog (8)", "hog (9)"]);
    assert_eq!(all[1].text, "OOM kill of hog (9), 90 MiB");
}
