//! Looks at processes, services and cgroups.

use std::time::{Duration, Instant};

use timeline::signals::{
    CGROUP_CURRENT, CGROUP_EVENTS_MAX, PROC_PSS, PROC_RSS, SERVICE_CPU, SERVICE_PROCESSES,
    SERVICE_PSS, SERVICE_RSS,
};
use timeline::{Entity, EventKind, Timeline};
use units::{Bytes, Count, Pages, Ratio, Span, Ticks};

use crate::fake::{Fake, Process, always};

const WEB: &str = "/system.slice/web.service";

fn keys(timeline: &Timeline, entity: Entity) -> Vec<String> {
    let series = timeline.entities(entity);
    series.map(|series| format!("{} {} {}", series.key, series.label, series.group)).collect()
}

#[test]
fn processes_come_go_and_change_and_their_service_goes_on() {
    let fake = Fake::host();
    let (mut recorder, health, _outbox) = fake.recorder(always());
    let mut old = Process::new(20, "web", WEB);
    let shell = Process::new(10, "bash", "/");
    fake.process(&shell);
    fake.process(&old);
    recorder.take();
    old.ticks = 80;
    old.pages = 1_200;
    fake.process(&old);
    recorder.take();
    // It ends, and its number goes to another one of the service, which has used 5 and 7 ticks.
    fake.end(20);
    let mut new = Process::new(20, "web", WEB);
    new.start = u64::MAX >> 1;
    new.ticks = 5;
    fake.process(&new);
    recorder.take();
    // The shell becomes another program.
    let mut other = shell.clone();
    other.name = "make".to_owned();
    fake.process(&other);
    recorder.take();
    recorder.stop().unwrap();

    let timeline = fake.loaded().timeline;
    let new_key = format!("20@{}", new.start);
    let expected = ["10@110 make ", "20@120 web web.service"].map(str::to_owned);
    let all = keys(&timeline, Entity::Process);
    assert_eq!(all[..2], expected);
    assert_eq!(all[2], format!("{new_key} web web.service"));
    let process = |key: &str| timeline.entity(Entity::Process, key).unwrap();
    let rss = |key: &str, at| timeline.at_of(process(key), PROC_RSS, at);
    assert_eq!(rss("20@120", 1), Some(Pages::new(1_200)));
    assert_eq!(rss("20@120", 2), None, "it is gone");
    assert_eq!(rss(&new_key, 2), Some(Pages::new(1_000)));

    let web = timeline.entity(Entity::Service, "web.service").unwrap();
    let cpu = |at| timeline.at_of(web, SERVICE_CPU, at);
    assert_eq!(cpu(1), Some(Ticks::new(30)));
    assert_eq!(cpu(2), Some(Ticks::new(42)), "what the new one has used counts");
    assert_eq!(timeline.at_of(web, SERVICE_RSS, 1), Some(Pages::new(1_200)));
    assert_eq!(timeline.at_of(web, SERVICE_PROCESSES, 3), Some(Count::new(1)));
    let services = timeline.entities(Entity::Service).map(|service| service.key.as_str());
    assert_eq!(services.collect::<Vec<_>>(), ["bash", "make", "web.service"]);
    let told = timeline.recorder_events().iter().map(|event| event.kind);
    assert!(told.clone().any(|kind| kind == EventKind::ServiceStarted));
    assert_eq!(health.figures().processes, 2);
}

#[test]
fn a_process_that_is_moved_belongs_to_its_new_service() {
    let fake = Fake::host();
    let (mut recorder, _, _outbox) = fake.recorder(always());
    let mut child = Process::new(30, "worker", "/system.slice/manager.service");
    fake.process(&child);
    recorder.take();
    // Who starts processes moves them when they are there.
    WEB.clone_into(&mut child.unit);
    fake.process(&child);
    recorder.take();
    recorder.stop().unwrap();
    let timeline = fake.loaded().timeline;
    assert_eq!(keys(&timeline, Entity::Process), ["30@130 worker web.service"]);
    let at = |name, at| {
        let service = timeline.entity(Entity::Service, name).unwrap();
        timeline.at_of(service, SERVICE_PROCESSES, at)
    };
    assert_eq!(at("manager.service", 0), Some(Count::new(1)));
    assert_eq!(at("manager.service", 1), None);
    assert_eq!(at("web.service", 1), Some(Count::new(1)));
}

#[test]
fn processes_and_groups_are_looked_at_on_their_own_beats() {
    let fake = Fake::host();
    fake.process(&Process::new(20, "web", WEB));
    fake.group("web", 700);
    let mut settings = always();
    settings.processes = Some(Span::from_secs(3));
    settings.groups = Some(Span::from_secs(2));
    let (mut recorder, health, _outbox) = fake.recorder(settings);
    for _ in 0..7 {
        recorder.take();
    }
    recorder.stop().unwrap();
    let timeline = fake.loaded().timeline;
    let read = |entity| {
        let at = (0..7).filter(|at| timeline.was_read(entity, *at));
        at.collect::<Vec<_>>()
    };
    assert_eq!(read(Entity::Process), [0, 3, 6]);
    assert_eq!(read(Entity::Service), [0, 3, 6]);
    assert_eq!(read(Entity::Cgroup), [0, 2, 4, 6]);
    let web = timeline.entity(Entity::Cgroup, "/web").unwrap();
    assert_eq!(timeline.at_of(web, CGROUP_CURRENT, 2), Some(Bytes::new(700)));
    assert_eq!(health.figures().groups, 2);
}

#[test]
fn between_two_scans_the_busiest_groups_are_read_and_the_others_are_not_gone() {
    let fake = Fake::host();
    for name in ["grows", "idle", "full"] {
        fake.group(name, 700);
        fake.hits(name, 3);
    }
    let mut settings = always();
    settings.groups = Some(Span::from_secs(4));
    settings.groups_share = Ratio::from_percent(100.0);
    let (mut recorder, _, _outbox) = fake.recorder(settings);
    for sample in 0..9 {
        if sample > 2 {
            fake.group("grows", 700 + sample);
        }
        if sample == 2 {
            fake.hits("full", 8);
        }
        recorder.take();
    }
    recorder.stop().unwrap();
    let timeline = fake.loaded().timeline;
    let samples = |test: &dyn Fn(usize) -> bool| (0..9).filter(|at| test(*at)).collect::<Vec<_>>();
    let whole = |at| {
        let is_partial = timeline.was_read_in_part(Entity::Cgroup, at);
        timeline.was_read(Entity::Cgroup, at) && !is_partial
    };
    assert_eq!(samples(&whole), [0, 4, 8]);
    let partial = |at| timeline.was_read_in_part(Entity::Cgroup, at);
    assert_eq!(samples(&partial), [2, 3, 5, 6, 7]);
    let group = |name| timeline.entity(Entity::Cgroup, name).unwrap();
    for name in ["/grows", "/idle", "/full"] {
        let levels = timeline.gauge_of(group(name), CGROUP_CURRENT).unwrap();
        assert!(levels.values().iter().all(Option::is_some), "{name}");
    }
    let hits = timeline.rate_of(group("/full"), CGROUP_EVENTS_MAX).unwrap();
    let rises = hits.values().iter().map(|rate| rate.is_some_and(|rate| rate > 0.0));
    let rises: Vec<usize> =
        (0..).zip(rises).filter_map(|(at, rises)| rises.then_some(at)).collect();
    assert_eq!(rises, [1, 2], "until the second in which it was asked");
    let grown = |at| timeline.at_of(group("/grows"), CGROUP_CURRENT, at);
    assert_eq!(grown(6), Some(Bytes::new(706)));
    assert_eq!(grown(3), None, "it was not one of the busiest yet");
}

#[test]
fn shares_come_from_their_own_thread_with_the_look_that_follows() {
    let fake = Fake::host();
    let mut large = Process::new(20, "web", WEB);
    large.pages = 50_000;
    fake.process(&large);
    let mut settings = always();
    settings.shares = Some(Ratio::from_percent(50.0));
    let (mut recorder, health, _outbox) = fake.recorder(settings);
    let began = Instant::now();
    while health.figures().shares_read == 0 {
        assert!(began.elapsed() < Duration::from_secs(60), "none comes");
        std::thread::sleep(Duration::from_millis(2));
        recorder.take();
    }
    recorder.take();
    recorder.stop().unwrap();
    let timeline = fake.loaded().timeline;
    let web = timeline.entity(Entity::Process, "20@120").unwrap();
    let last = timeline.len() - 1;
    let share = Some(Bytes::from_kib(100_000));
    assert_eq!(timeline.at_of(web, PROC_PSS, 0), None);
    assert_eq!(timeline.at_of(web, PROC_PSS, last - 1), share);
    assert_eq!(timeline.at_of(web, PROC_PSS, last), None, "no reading is told twice");
    let service = timeline.entity(Entity::Service, "web.service").unwrap();
    assert_eq!(timeline.at_of(service, SERVICE_PSS, last), share, "of the service, the last known");
}

#[test]
fn looks_at_groups_are_as_rare_as_the_cost_of_the_second_demands() {
    let fake = Fake::host();
    fake.group("web.slice", 4096);
    let mut settings = always();
    // No look is so cheap that it could be had again within an hour for this.
    settings.groups_share = Ratio::from_percent(1e-7);
    let (mut recorder, health, _outbox) = fake.recorder(settings);
    // The first opens the files, so the second decides.
    (0..2).for_each(|_| recorder.take());
    let (groups, every) = (health.figures().groups, health.figures().cgroups_every);
    assert!(groups > 0 && every > Span::from_hours(1), "{every}");
    fake.group("second.slice", 4096);
    (0..5).for_each(|_| recorder.take());
    assert_eq!(health.figures().groups, groups);
    recorder.stop().unwrap();
}

#[test]
fn a_host_without_processes_or_groups_is_recorded_all_the_same() {
    let fake = Fake::host();
    let mut settings = always();
    (settings.processes, settings.groups) = (None, None);
    fake.process(&Process::new(20, "web", WEB));
    let (mut recorder, health, _outbox) = fake.recorder(settings);
    recorder.take();
    recorder.take();
    recorder.stop().unwrap();
    let timeline = fake.loaded().timeline;
    assert_eq!(timeline.len(), 2);
    assert_eq!(timeline.entities(Entity::Process).count(), 0);
    assert!(health.tasks().is_none());
}
