//! Processes that the kernel kills while a check samples, and just before: each reported once, with its own time.

use std::ops::ControlFlow;
use std::time::SystemTime;

use probe::{ProcessDetail, Root};
use sampler::WatchOptions;
use serde_json::Value;
use timeline::recent_kills;
use units::Span;

use crate::record::{Group, Running, is_root, lacks, skip, until};
use crate::support::{json, memtide, stderr};

/// As much as the clock of the kernel's log may be off.
const NEAR_S: f64 = 3.0;

/// A cgroup in which processes can be killed, where this user may make one and read the kernel's log.
fn group(name: &str) -> Option<Group> {
    if !is_root() {
        skip("making a cgroup needs root: run the tests as root");
        return None;
    }
    if let Err(error) = probe::kmsg::KernelLog::open(&Root::default()) {
        lacks(&format!("the kernel log may not be read here: {error}"));
        return None;
    }
    let made = Group::make(name, "16777216");
    made.map_err(|why| skip(&format!("{why}: mount the v1 memory controller"))).ok()
}

/// Seconds since 1970.
fn now() -> f64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.unwrap().as_secs_f64()
}

/// Kills of one group that `memtide events` tells of.
fn kills_of(group: &Group, directory: &str) -> Vec<Value> {
    let output = memtide(&["events", directory, "--format", "json", "--kind", "oom-kill"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let mut all = json(&output)["events"].take();
    let all = std::mem::take(all.as_array_mut().unwrap()).into_iter();
    let name = group.name();
    all.filter(|kill| kill["text"].as_str().unwrap().contains(&name)).collect()
}

fn seconds(at: &Value) -> f64 {
    let at: jiff::Timestamp = at.as_str().unwrap().parse().unwrap();
    at.as_duration().as_secs_f64()
}

#[test]
fn a_kill_is_one_event_with_its_own_time_also_from_before_the_recording() {
    let Some(group) = group("story") else { return };
    let kill = || {
        let began = now();
        (group.have_one_killed(), began - NEAR_S..now() + NEAR_S)
    };
    let mut killed = vec![kill()];
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path();
    let running = Running::started(place, &[]);
    killed.push(kill());
    let directory = place.to_str().unwrap();
    until("a sample", || memtide(&["events", directory]).status.success());
    until("the kill", || kills_of(&group, directory).len() >= 2);
    assert_eq!(running.end().status.code(), Some(0));
    let reported = kills_of(&group, directory);
    assert_eq!(reported.len(), 2, "{reported:#?}");
    for (reported, (pid, about)) in reported.iter().zip(&killed) {
        let subject = reported["subject"].as_str().unwrap();
        assert!(subject.ends_with(&format!("({pid})")), "{subject}");
        assert_eq!(reported["dated"], "exactly");
        let at = seconds(&reported["at"]);
        assert!(about.contains(&at), "{reported} {about:?}");
    }
    let is_before = |reported: &Value| {
        let text = reported["text"].as_str().unwrap();
        let says = text.ends_with("before the recording began");
        (reported["offset_s"].as_f64().unwrap() < 0.0, says)
    };
    assert_eq!(is_before(&reported[0]), (true, true), "{}", reported[0]);
    assert_eq!(is_before(&reported[1]), (false, false), "{}", reported[1]);
}

/// Within 5 seconds the kernel writes 10 reports, and of further kills one line each.
#[test]
fn no_name_hides_a_kill_however_little_the_kernel_says_of_it() {
    let Some(group) = group("names") else { return };
    let directory = tempfile::tempdir().unwrap();
    let running = Running::started(directory.path(), &[]);
    let names = [
        "\nghost",
        "ghost\n",
        "\nKilled process",
        "Kill process 1 ",
        "x) total-vm:1kB",
        ",task=x",
        r"\x0aghost",
        r"a\nb",
        "\u{1b}[2J",
        "oom-kill:",
    ];
    let killed = names.iter().chain(&names).chain(&names);
    let killed: Vec<_> = killed.map(|name| (*name, group.have_one_killed_as(name))).collect();
    let place = directory.path().to_str().unwrap();
    let kills = || -> Vec<Value> {
        let kind = ["--kind", "oom-kill", "--format", "json"];
        let output = memtide(&[&["events", place][..], &kind].concat());
        if output.stdout.is_empty() {
            return Vec::new(); // no sample is on the disk yet
        }
        let mut events = json(&output)["events"].take();
        std::mem::take(events.as_array_mut().unwrap())
    };
    let is_of = |kill: &Value, pid: u32| {
        let subject = kill["subject"].as_str();
        subject.is_some_and(|subject| subject.ends_with(&format!("({pid})")))
    };
    let (_, last) = killed[killed.len() - 1];
    until("the last kill", || kills().iter().any(|kill| is_of(kill, last)));
    assert_eq!(running.end().status.code(), Some(0));
    let kills = kills();
    for (name, pid) in killed {
        let found: Vec<_> = kills.iter().filter(|kill| is_of(kill, pid)).collect();
        let [kill] = found.as_slice() else { panic!("{name:?} {pid}: {found:#?}") };
        assert_eq!(kill["subject"], format!("{name} ({pid})"));
        assert!(kill["text"].as_str().unwrap().contains(" MiB"), "{kill}");
    }
}

#[test]
fn a_look_without_a_recorder_knows_who_was_killed_before_it_and_while_it_lasts() {
    let Some(group) = group("look") else { return };
    let mut killed = vec![group.have_one_killed()];
    let options = WatchOptions {
        duration: Span::from_secs(2),
        every: Span::from_millis(200),
        last: ProcessDetail::COMPLETE,
        recent: Span::from_mins(15),
        window: None,
        pss_every: None,
    };
    let mut during = None;
    let opened = sampler::watch(&Root::default(), options, &mut |_| {
        during.get_or_insert_with(|| group.have_one_killed());
        ControlFlow::Continue(())
    });
    killed.extend(during);
    let lately = |within| {
        let kills = recent_kills(&opened.timeline, &opened.facts, within);
        let path = format!("/{}", group.name());
        let own = kills.into_iter();
        own.filter(|kill| kill.group.as_ref() == Some(&path)).collect::<Vec<_>>()
    };
    let reported = lately(Span::from_mins(15));
    let pids: Vec<_> = reported.iter().filter_map(|kill| kill.pid).collect();
    assert_eq!(pids, killed, "{reported:#?}");
    assert!(reported.iter().all(|kill| kill.count == 1 && kill.since.is_none()));
    let own = |pid| {
        let mut reports = opened.timeline.reports();
        reports.any(|it| it.report.killed.iter().any(|killed| killed.pid == pid))
    };
    assert_eq!([own(killed[0]), own(killed[1])], [false, true], "{killed:?}");
    assert!(!opened.timeline.earlier_reports().is_empty());
}
