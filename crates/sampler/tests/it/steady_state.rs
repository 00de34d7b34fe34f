//! What must hold for a recorder that goes on while the host has no memory left: the sampler allocates nothing.

#![allow(clippy::print_stderr)]

use allocation_counter::measure;
use probe::{Root, TaskSource};
use sampler::{Recorder, Settings};
use timeline::Entity;
use units::{Ratio, Span};

use crate::fake::{Fake, Process, always, recorder};

/// Allocations of the sampler in so many samples.
fn allocations(recorder: &mut Recorder, samples: usize) -> u64 {
    let take = || (0..samples).for_each(|_| recorder.take());
    measure(take).count_total
}

/// Whether nothing was allocated in one of these windows. What others start meanwhile, processes and cgroups, needs room
/// once; an allocation of the sampler's own is in each window.
fn is_any_quiet(mut windows: impl Iterator<Item = u64>) -> bool {
    windows.any(|allocations| allocations == 0)
}

#[test]
fn samples_of_processes_services_and_groups_allocate_nothing() {
    let fake = Fake::host();
    for pid in 1..300 {
        let unit = format!("/system.slice/unit{}.service", pid % 40);
        fake.process(&Process::new(pid, "worker", &unit));
    }
    fake.group("system.slice", 1 << 30);
    for group in 0..50 {
        fake.group(&format!("system.slice/unit{group}.service"), group * 4096);
    }
    let (mut recorder, health, _outbox) = fake.recorder(always());
    assert!(allocations(&mut recorder, 5) > 0, "the counter counts");
    for round in 0..6 {
        // Sizes change, and with them the order of groups and services.
        for pid in 1..20 {
            let unit = format!("/system.slice/unit{}.service", pid % 40);
            let mut process = Process::new(pid, "worker", &unit);
            process.pages = u64::from(pid * 7919 % 1000) + round * 31;
            process.ticks += round;
            fake.process(&process);
        }
        for group in 0..50 {
            fake.group(
                &format!("system.slice/unit{group}.service"),
                (group * 7919 + round * 104_729) % 999_983,
            );
        }
        fake.meminfo(1_000 + round);
        assert_eq!(allocations(&mut recorder, 3), 0, "round {round}");
    }
    let figures = health.figures();
    assert_eq!((figures.processes, figures.services, figures.groups), (299, 40, 52));
    recorder.stop().unwrap();
}

#[test]
fn samples_of_the_busiest_groups_allocate_nothing() {
    let fake = Fake::host();
    let name = |group: u64| format!("system.slice/unit{group}.service");
    for group in 0..100 {
        fake.group(&name(group), group * 4096);
        fake.hits(&name(group), 0);
    }
    let mut settings = always();
    settings.processes = None;
    settings.groups = Some(Span::from_secs(5));
    settings.groups_share = Ratio::from_percent(100.0);
    let (mut recorder, health, _outbox) = fake.recorder(settings);
    let change = |round: u64| {
        for group in 0..80 {
            fake.group(&name(group), (group * 7919 + round * 104_729) % 999_983);
        }
        fake.hits(&name(round * 13 % 100), round);
    };
    change(1);
    allocations(&mut recorder, 6);
    change(2);
    allocations(&mut recorder, 6);
    for round in 3..9 {
        change(round);
        assert_eq!(allocations(&mut recorder, 5), 0, "round {round}");
    }
    assert_eq!(health.figures().groups, 101);
    recorder.stop().unwrap();
    let timeline = fake.loaded().timeline;
    let in_part = (0..timeline.len()).filter(|at| timeline.was_read_in_part(Entity::Cgroup, *at));
    assert!(in_part.count() > 20);
}

#[test]
fn samples_with_bpf_and_shares_allocate_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let settings = Settings {
        processes: Some(Span::from_secs(1)),
        groups: None,
        source: Some(TaskSource::Bpf),
        shares: Some(Ratio::from_percent(50.0)),
        ..Settings::default()
    };
    let (mut recorder, health, _outbox) = recorder(&Root::default(), directory.path(), settings);
    let source = health.tasks().map(ToString::to_string).unwrap_or_default();
    if source != "BPF task iterator" {
        let is_ci = std::env::var_os("CI").is_some_and(|ci| ci == "true");
        assert!(!is_ci, "run as root on a kernel with BTF: {source}");
        eprintln!("skipped: {source}");
        return;
    }
    allocations(&mut recorder, 20);
    let pause = || std::thread::sleep(std::time::Duration::from_millis(20));
    let mut window = |_| (pause(), allocations(&mut recorder, 10)).1;
    // Shares are read by another thread, which a busy host lets run when it has room.
    let is_read = |_| {
        let _ = window(0);
        health.figures().shares_read > 0
    };
    assert!((0..500).any(is_read), "shares came meanwhile");
    assert!(is_any_quiet((0..100).map(window)));
    recorder.stop().unwrap();
}

#[test]
fn samples_of_this_host_allocate_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let settings =
        Settings { processes: None, source: Some(TaskSource::Proc), ..Settings::default() };
    let (mut recorder, _, _outbox) = recorder(&Root::default(), directory.path(), settings);
    allocations(&mut recorder, 5);
    // The slab caches are read with one sample in 60.
    let window = |_| allocations(&mut recorder, 60);
    assert!(is_any_quiet((0..20).map(window)));
    recorder.stop().unwrap();
}
