//! A synthetic host on which every kind of event happens.

use super::*;
use crate::Sample;
use crate::facts::{CgroupMode, SWAPPINESS};
use crate::kernel_report::{KernelReport, Killed, ReportKind};
use crate::signals::{
    CGROUP_CURRENT, CGROUP_EVENTS_HIGH, CGROUP_EVENTS_MAX, CGROUP_EVENTS_OOM_KILL, CGROUP_MAX,
    MEM_FREE, OOM_KILLS,
};
use crate::signals::{Counter, Entity, Signal};
use units::{Bytes, Count, Limit, WallClock};

const START: i64 = 1_700_000_000;

fn stamp(boot: u64, wall: i64) -> Stamp {
    Stamp {
        boot: Span::from_secs(boot),
        awake: Some(Span::from_secs(boot)),
        wall: Some(WallClock::from_unix_nanos((START + wall) * 1_000_000_000)),
        ..Stamp::default()
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

/// Counters of cgroups, second by second.
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
    all.into_iter().map(|listed| listed.event.text).collect()
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
    let groups: [(&str, &[u64]); 3] =
        [("/sys", &[5, 5, 6, 6]), ("/sys/web", &[2, 2, 3, 3]), ("/sys/web/a", &[0, 0, 1, 1])];
    let timeline = counted(CGROUP_EVENTS_OOM_KILL, &groups);
    let found = texts(&timeline, &Facts::default());
    assert_eq!(found, ["OOM kill in /sys/web/a"]);
    // cgroup v1 counts each group by itself.
    let mut v1 = Facts::default();
    v1.cgroup_mode = Some(CgroupMode::V1);
    assert_eq!(texts(&timeline, &v1).len(), 3);
}

#[test]
fn a_kill_in_a_group_that_is_gone_is_reported_at_the_lowest_group_known() {
    let groups: [(&str, &[u64]); 2] = [("/sys", &[0, 3, 3]), ("/sys/web", &[0, 1, 1])];
    let found = texts(&counted(CGROUP_EVENTS_OOM_KILL, &groups), &Facts::default());
    assert_eq!(found, ["2 OOM kills in /sys", "OOM kill in /sys/web"]);
}

#[test]
fn files_that_are_read_a_sample_apart_still_report_one_kill() {
    let groups: [(&str, &[u64]); 2] = [("/sys", &[0, 0, 1, 1]), ("/sys/web", &[0, 1, 1, 1])];
    let found = texts(&counted(CGROUP_EVENTS_OOM_KILL, &groups), &Facts::default());
    assert_eq!(found, ["OOM kill in /sys/web"]);
}

#[test]
fn a_cgroup_at_its_limit_is_one_event_until_a_pause() {
    let mut values = vec![0, 10, 20, 30];
    values.extend(std::iter::repeat_n(30, 100));
    values.push(31);
    let groups: [(&str, &[u64]); 2] = [("/a", &values), ("/a/b", &values)];
    let mut timeline = counted(CGROUP_EVENTS_MAX, &groups);
    let found = texts(&timeline, &Facts::default());
    assert_eq!(found, ["/a/b hit its limit, 30 times in 2 s", "/a/b hit its limit"]);
    let mut sample = second(500);
    let row = sample.table_mut(Entity::Cgroup).entry("/a/b");
    row.row.set(CGROUP_MAX, Limit::Bytes(Bytes::from_mib(64)));
    count(&mut sample, "/a/b", CGROUP_EVENTS_MAX, 32);
    count(&mut sample, "/a/b", CGROUP_EVENTS_HIGH, 1);
    timeline.push(&sample).unwrap();
    let found = texts(&timeline, &Facts::default());
    assert!(found.contains(&"/a/b hit its limit of 64 MiB".to_owned()), "{found:?}");
}

#[test]
fn a_kill_that_report_recorder_and_counters_tell_of_is_one_event() {
    let mut timeline = Timeline::default();
    for at in 0..10 {
        let mut sample = second(at);
        sample.host.set(OOM_KILLS, Count::new(u64::from(at >= 5)));
        count(&mut sample, "/web", CGROUP_EVENTS_OOM_KILL, u64::from(at >= 5));
        timeline.push(&sample).unwrap();
        if at == 5 {
            timeline.report(kill_of(42), None);
        }
    }
    timeline.add_recorder_event(noted(EventKind::OomKill, 5, "hog (42)"));
    let all = events(&timeline, &Facts::default());
    assert_eq!(all.len(), 1, "{all:?}");
    assert_eq!(all[0].event.text, "OOM kill of hog (42), 90 MiB");
    assert_eq!(all[0].event.subject, "hog (42)");
    assert_eq!(all[0].event.report, "the kernel's line\n");
    // A kill that only the recorder noted is another kill.
    timeline.add_recorder_event(noted(EventKind::OomKill, 6, "hog (43)"));
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
    assert_eq!(all[0].event.text, "OOM kill, by the host's counter");
    assert_eq!(all[0].event.subject, "");
}

#[test]
fn everything_that_can_happen_is_told_in_order_of_time() {
    let mut timeline = Timeline::default();
    for at in 0..5 {
        timeline.push(&second(at)).unwrap();
    }
    // A gap of ten minutes, a step of the wall clock, sleep, a reboot.
    for (boot, awake, wall) in [(604, 604, 604), (605, 605, 4205), (705, 606, 4305), (3, 3, 4400)] {
        let mut sample = second(boot);
        sample.stamp = stamp(boot, wall);
        sample.stamp.awake = Some(Span::from_secs(awake));
        timeline.push(&sample).unwrap();
    }
    let mut facts = Facts::default();
    facts.record(Span::ZERO, SWAPPINESS, "60");
    facts.record(Span::from_secs(2), SWAPPINESS, "1");
    timeline.add_recorder_event(noted(EventKind::RecorderStarted, 0, ""));
    timeline.add_recorder_event(noted(EventKind::FactChanged, 2, "vm.swappiness"));
    timeline.add_recorder_event(noted(EventKind::ServiceStarted, 3, "web.service"));
    timeline.add_recorder_event(noted(EventKind::Gap, 604, ""));
    let all = events(&timeline, &facts);
    let kinds: Vec<EventKind> = all.iter().map(|listed| listed.event.kind).collect();
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
    let found = texts(&Timeline::default(), &facts);
    assert_eq!(found, ["thp.enabled changed from madvise to always"]);
}

#[test]
fn counters_that_restart_after_a_reboot_show_no_event() {
    let mut timeline = Timeline::default();
    for (boot, wall, kills) in [(100, 0, 1), (101, 1, 1), (5, 60, 2), (6, 61, 2)] {
        let mut sample = second(boot);
        sample.stamp = stamp(boot, wall);
        sample.host.set(OOM_KILLS, Count::new(kills));
        timeline.push(&sample).unwrap();
    }
    let found = texts(&timeline, &Facts::default());
    assert_eq!(found, ["OOM kill since boot, by the host's counter", "the machine rebooted"]);
}

/// A kill that a recorder read in the kernel's log, `seconds` after the first sample, with the log's lines.
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
        sample.host.set(OOM_KILLS, Count::new(3 + u64::from(at > 0)));
        timeline.push(&sample).unwrap();
    }
    let kills = [(-33_000, 7), (-32_988, 8), (-40, 9)];
    for (seconds, pid) in kills {
        timeline.add_recorder_event(read_of_log(seconds, pid));
    }
    let fresh = read_of_log(-40, 9);
    let sample = timeline.report_by_time(fresh.stamp, kill_of(9), Some(fresh.report.into()));
    assert_eq!(sample, None, "nothing is known of the host at that time");
    let all = events(&timeline, &Facts::default());
    let found: Vec<_> =
        all.iter().map(|listed| (listed.event.stamp.wall, listed.event.subject.as_str())).collect();
    let own = |(seconds, _)| stamp(0, seconds).wall;
    assert_eq!(
        found,
        [
            (own(kills[0]), "hog (7)"),
            (own(kills[1]), "hog (8)"),
            (own(kills[2]), "hog (9)"),
            (stamp(0, 1).wall, ""),
        ],
        "the host counts a kill of after the first sample: it is none of those"
    );
    assert_eq!(all[2].event.text, "OOM kill of hog (9), 90 MiB");
}

#[test]
fn a_note_and_a_report_with_other_words_are_two_kills() {
    let mut timeline = Timeline::default();
    timeline.push(&second(0)).unwrap();
    timeline.add_recorder_event(read_of_log(-3, 8));
    timeline.add_recorder_event(read_of_log(-2, 9));
    let fresh = read_of_log(-2, 9);
    timeline.report_when(0, fresh.stamp, kill_of(9), Some(fresh.report.into()));
    let all = events(&timeline, &Facts::default());
    let found: Vec<_> = all.iter().map(|listed| listed.event.subject.as_str()).collect();
    assert_eq!(found, ["hog (8)", "hog (9)"]);
    assert_eq!(all[1].event.text, "OOM kill of hog (9), 90 MiB");
}

/// A host on which the cgroup's counter is read only every ten seconds.
fn rarely_read(host: impl Fn(u64) -> u64, group: impl Fn(u64) -> u64) -> Timeline {
    let mut timeline = Timeline::default();
    for at in 0..31 {
        let mut sample = second(at);
        sample.host.set(OOM_KILLS, Count::new(host(at)));
        if at % 10 == 0 {
            count(&mut sample, "/web", CGROUP_EVENTS_OOM_KILL, group(at));
        }
        timeline.push(&sample).unwrap();
    }
    timeline
}

fn seconds(at: Option<EventTime>) -> Option<i128> {
    at.map(|at| at.nanos / 1_000_000_000)
}

fn when(kills: &[Kill]) -> Vec<(Option<i128>, Option<i128>, u64)> {
    let ends = |kill: &Kill| (seconds(kill.since), seconds(Some(kill.at)), kill.count);
    kills.iter().map(ends).collect()
}

const ALL: Span = Span::from_hours(24);

#[test]
fn a_kill_that_only_a_groups_counter_tells_of_lies_between_two_readings() {
    let timeline = rarely_read(|_| 0, |at| u64::from(at > 10));
    let all = events(&timeline, &Facts::default());
    assert_eq!(all.len(), 1, "{all:?}");
    assert_eq!(all[0].event.stamp, stamp(20, 20));
    assert_eq!(all[0].dated, Dated::Since(stamp(10, 10)));
    let kills = recent_kills(&timeline, &Facts::default(), ALL);
    assert_eq!(when(&kills), [(Some(10), Some(20), 1)]);
    assert_eq!(kills[0].group.as_deref(), Some("/web"));
    // The host's counter is read more often and is more precise, so it separates two kills.
    let timeline =
        rarely_read(|at| u64::from(at >= 13) + u64::from(at >= 17), |at| 2 * u64::from(at > 10));
    let kills = recent_kills(&timeline, &Facts::default(), ALL);
    assert_eq!(when(&kills), [(Some(12), Some(13), 1), (Some(16), Some(17), 1)]);
    assert_eq!(texts(&timeline, &Facts::default()), ["OOM kill in /web"; 2]);
}

#[test]
fn a_kill_is_one_event_however_the_recorder_and_the_report_have_cut_its_lines() {
    let mut timeline = rarely_read(|at| u64::from(at >= 13), |at| u64::from(at > 10));
    let lines = "hog invoked oom-killer: \nKilled process 42 (hog)";
    let note = Event { report: lines.to_owned(), ..noted(EventKind::OomKill, 12, "hog (42)") };
    let written = note.stamp;
    timeline.add_recorder_event(note);
    let trimmed = lines.replace(" \n", "\n");
    timeline.report_by_time(written, kill_of(42), Some(trimmed.into()));
    let all = events(&timeline, &Facts::default());
    assert_eq!(all.len(), 1, "{all:?}");
    let only = &all[0];
    assert_eq!((only.event.stamp, only.dated), (written, Dated::Exactly));
    assert_eq!(only.event.report, lines);
    let kills = recent_kills(&timeline, &Facts::default(), ALL);
    assert_eq!(when(&kills), [(None, Some(12), 1)]);
    assert_eq!(kills[0].pid, Some(42));
    assert_eq!(kills[0].process.as_deref(), Some("hog"));
}

#[test]
fn kills_minutes_apart_are_as_many_events_and_times() {
    let mut timeline = Timeline::default();
    for at in 0..300 {
        let mut sample = second(at);
        let kills = u64::from(at >= 10) + u64::from(at >= 250);
        sample.host.set(OOM_KILLS, Count::new(kills));
        timeline.push(&sample).unwrap();
    }
    for (at, pid) in [(9, 42), (249, 43)] {
        let written = stamp(at, i64::try_from(at).unwrap());
        timeline.report_by_time(written, kill_of(pid), None);
    }
    let found: Vec<_> = events(&timeline, &Facts::default())
        .into_iter()
        .map(|listed| (listed.event.stamp.boot, listed.event.subject))
        .collect();
    let expected = [(9, "hog (42)"), (249, "hog (43)")];
    assert_eq!(found, expected.map(|(at, who)| (Span::from_secs(at), who.to_owned())));
    let recent = recent_kills(&timeline, &Facts::default(), Span::from_mins(2));
    assert_eq!(when(&recent), [(None, Some(249), 1)]);
}

#[test]
fn a_kill_in_a_group_that_counts_itself_is_not_taken_for_another_groups() {
    let mut timeline =
        counted(CGROUP_EVENTS_OOM_KILL, &[("/a", &[0, 0, 0, 0]), ("/b", &[0, 0, 1, 1])]);
    let report = KernelReport {
        group: Some(crate::kernel_report::GroupReport {
            path: "/a".to_owned(),
            ..Default::default()
        }),
        ..kill_of(42)
    };
    timeline.report_by_time(stamp(2, 2), report, None);
    let found = texts(&timeline, &Facts::default());
    assert_eq!(found, ["OOM kill of hog (42), 90 MiB, in /a", "OOM kill in /b"]);
}

#[test]
fn kills_of_which_only_the_counter_tells_at_the_first_sample_have_no_time() {
    let mut timeline = Timeline::default();
    for at in 0..3 {
        let mut sample = second(5_000 + at);
        sample.host.set(OOM_KILLS, Count::new(3));
        timeline.push(&sample).unwrap();
    }
    timeline.report_by_time(stamp(4_700, 4_700), kill_of(42), None);
    let all = events(&timeline, &Facts::default());
    let found: Vec<_> = all
        .iter()
        .map(|dated_event| (dated_event.event.text.as_str(), dated_event.dated))
        .collect();
    assert_eq!(
        found,
        [
            ("2 OOM kills since boot, by the host's counter", Dated::SinceBoot),
            ("OOM kill of hog (42), 90 MiB", Dated::Exactly),
        ]
    );
    assert_eq!(kills_since_boot(&timeline), 2);
    // The kills may have been within the last two hours, and the one with a time was not within the last two minutes.
    let recent = |within| when(&recent_kills(&timeline, &Facts::default(), within));
    assert_eq!(recent(Span::from_mins(2)), []);
    assert_eq!(recent(Span::from_mins(15)), [(None, Some(-300), 1)]);
}

#[test]
fn a_look_behind_its_recording_knows_each_kill_once() {
    let mut past = Timeline::default();
    for at in 0..10 {
        past.push(&second(at * 60)).unwrap();
    }
    let known = stamp(100, 100);
    past.add_recorder_event(Event { stamp: known, ..noted(EventKind::OomKill, 0, "hog (7)") });
    past.report_by_time(known, kill_of(7), None);
    let mut later = Timeline::default();
    for at in 600..605 {
        later.push(&second(at)).unwrap();
    }
    for (at, pid) in [(100, 7), (590, 8)] {
        later.report_by_time(stamp(at, i64::try_from(at).unwrap()), kill_of(pid), None);
    }
    later.report_by_time(stamp(602, 602), kill_of(9), None);
    past.append(&later).unwrap();
    let subjects: Vec<_> =
        events(&past, &Facts::default()).into_iter().map(|listed| listed.event.subject).collect();
    assert_eq!(subjects, ["hog (7)", "hog (8)", "hog (9)"]);
    let of_look = past.part(10, 15);
    let kills = recent_kills(&of_look, &Facts::default(), Span::from_mins(15));
    assert_eq!(when(&kills), [(None, Some(100), 1), (None, Some(590), 1), (None, Some(602), 1)]);
}

#[test]
fn a_changed_setting_is_told_with_both_readings_and_the_note_of_it_not_again() {
    let mut timeline = Timeline::default();
    for at in 0..130 {
        timeline.push(&second(at)).unwrap();
    }
    let mut facts = Facts::default();
    for (at, text) in [(0, "60"), (60, "60"), (120, "1")] {
        facts.record(Span::from_secs(at), SWAPPINESS, text);
    }
    timeline.add_recorder_event(noted(EventKind::FactChanged, 120, "vm.swappiness"));
    let all = events(&timeline, &facts);
    assert_eq!(all.len(), 1, "{all:?}");
    assert_eq!(all[0].event.text, "vm.swappiness changed from 60 to 1");
    assert_eq!(all[0].dated, Dated::Since(stamp(60, 60)));
    assert_eq!(all[0].event.stamp, stamp(120, 120));
}

/// A cgroup with these limits in MiB, second by second, that hits its limit `hits` times a second; 0 for no limit, `None`
/// where the cgroup is not there.
fn limited(limits: &[Option<u64>], hits: u64) -> Timeline {
    let mut timeline = Timeline::default();
    for (at, limit) in limits.iter().enumerate() {
        let mut sample = second(at as u64);
        sample.table_mut(Entity::Cgroup).entry("/").row.set(CGROUP_CURRENT, Bytes::ZERO);
        if let Some(mib) = limit {
            let limit =
                if *mib == 0 { Limit::Unlimited } else { Limit::Bytes(Bytes::from_mib(*mib)) };
            sample.table_mut(Entity::Cgroup).entry("/web").row.set(CGROUP_MAX, limit);
            count(&mut sample, "/web", CGROUP_EVENTS_MAX, at as u64 * hits);
        }
        timeline.push(&sample).unwrap();
    }
    timeline
}

#[test]
fn a_changed_limit_is_an_event_between_two_readings() {
    let steps = [64, 64, 80, 80, 256, 0, 40].map(Some);
    let timeline = limited(&steps, 0);
    assert_eq!(
        texts(&timeline, &Facts::default()),
        [
            "limit of /web raised from 64 MiB to 80 MiB",
            "limit of /web raised from 80 MiB to 256 MiB",
            "limit of /web removed; it was 256 MiB before",
            "limit of /web set to 40 MiB; there was none before",
        ]
    );
    let first = &events(&timeline, &Facts::default())[0];
    assert_eq!(first.event.kind, EventKind::LimitChanged);
    assert_eq!(first.group.as_deref(), Some("/web"));
    assert_eq!((first.dated, first.event.stamp), (Dated::Since(stamp(1, 1)), stamp(2, 2)));
}

#[test]
fn a_cgroup_that_appears_or_is_made_again_has_no_changed_limit() {
    let none: [&str; 0] = [];
    for limits in [vec![None, Some(64), Some(64)], vec![Some(64), None, Some(256)]] {
        assert_eq!(texts(&limited(&limits, 0), &Facts::default()), none);
    }
}

#[test]
fn a_limit_that_a_program_sets_again_and_again_is_one_event() {
    let limits: Vec<_> = (0..60).map(|at| Some(100 + at)).collect();
    let all = texts(&limited(&limits, 0), &Facts::default());
    assert_eq!(all, ["limit of /web changed 59 times, between 100 MiB and 159 MiB"]);
}

#[test]
fn hits_of_two_limits_are_two_events() {
    let hits = |limits: &[Option<u64>]| {
        let mut all = texts(&limited(limits, 10), &Facts::default());
        all.retain(|text| text.contains("hit its limit"));
        all
    };
    let two = hits(&[64, 64, 64, 256, 256, 256].map(Some));
    assert_eq!(
        two,
        [
            "/web hit its limit of 64 MiB, 30 times in 2 s",
            "/web hit its limit of 256 MiB, 20 times in 1 s"
        ]
    );
    // A controller that adjusts a limit a little leaves one event.
    assert_eq!(hits(&[64, 64, 64, 65, 65, 65].map(Some)).len(), 1);
}
