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
